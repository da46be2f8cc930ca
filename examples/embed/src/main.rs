//! Semantic search over the lines of a text file:
//!
//! ```text
//! cargo run --release -- [--file FILE] [--top N] [QUESTION]
//! ```
//!
//! prints the lines whose meaning is nearest to the question. Runs on the GPU if there is one, else
//! on the CPU.

mod embedding;
mod wordpiece;

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use aot_runtime::Device;

use crate::embedding::{Encoder, cosine};
use crate::wordpiece::WordPiece;

const USAGE: &str = "usage: embed [--file FILE] [--top N] [--vocabulary FILE] [QUESTION]";

struct Arguments {
    file: PathBuf,
    vocabulary: PathBuf,
    top: usize,
    question: String,
}

fn main() -> ExitCode {
    match arguments().and_then(search) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut arguments = Arguments {
        file: "data/sentences.txt".into(),
        vocabulary: "../../assets/models/minilm/vocab.txt".into(),
        top: 3,
        question: "How do I get to Austria by rail?".to_owned(),
    };
    let mut words = Vec::new();
    let mut rest = std::env::args().skip(1);
    while let Some(word) = rest.next() {
        let mut value = || rest.next().ok_or(format!("{word} wants a value\n{USAGE}"));
        match word.as_str() {
            "--file" => arguments.file = value()?.into(),
            "--vocabulary" => arguments.vocabulary = value()?.into(),
            "--top" => {
                let text = value()?;
                arguments.top = text.parse().map_err(|e| format!("--top {text}: {e}\n{USAGE}"))?;
            }
            "--help" | "-h" => return Err(USAGE.into()),
            flag if flag.starts_with('-') => {
                return Err(format!("no such flag: {flag}\n{USAGE}").into());
            }
            _ => words.push(word),
        }
    }
    if !words.is_empty() {
        arguments.question = words.join(" ");
    }
    Ok(arguments)
}

fn search(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let read = |path: &PathBuf| {
        fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
    };
    let text = read(&arguments.file)?;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let tokenizer = WordPiece::from_vocabulary(&read(&arguments.vocabulary)?)?;

    let device = Device::best()?;
    match device.reason() {
        Some(reason) => println!("running on {device}: {reason}"),
        None => println!("running on {device}"),
    }
    let start = Instant::now();
    let encoder = Encoder::load(&device, tokenizer)?;
    let loaded = start.elapsed();
    let vectors = encoder.embed(&lines)?;
    let question = encoder.embed(&[&arguments.question])?.remove(0);
    let done = start.elapsed();

    let mut scored: Vec<(f32, &str)> =
        vectors.iter().map(|v| cosine(v, &question)).zip(lines.iter().copied()).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("\n{}", arguments.question);
    for (score, line) in scored.iter().take(arguments.top) {
        println!("  {score:.3}  {line}");
    }
    println!(
        "\n{} sentences, loaded in {:.0?}, embedded in {:.0?}",
        lines.len() + 1,
        loaded,
        done - loaded
    );
    Ok(())
}
