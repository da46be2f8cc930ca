//! Reads the text in pictures:
//!
//! ```text
//! cargo run --release -- PICTURE… [--out FILE]
//! ```
//!
//! prints the lines of each PNG or JPEG and, with `--out`, writes the (one) picture with a box
//! around each line. Runs on the GPU if there is one, else on the CPU.

mod components;
mod detection;
mod draw;
mod pixels;
mod reader;
mod recognition;
mod rectangle;
mod settings;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use aot_runtime::Device;
use image::{ImageReader, Rgb, RgbImage};

use crate::reader::Reader;

const USAGE: &str = "usage: ocr PICTURE... [--out FILE]";

struct Arguments {
    pictures: Vec<PathBuf>,
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    match arguments().and_then(read) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut arguments = Arguments { pictures: Vec::new(), out: None };
    let mut rest = std::env::args_os().skip(1);
    while let Some(word) = rest.next() {
        match word.to_str() {
            Some("--out") => {
                let path = rest.next().ok_or_else(|| format!("--out wants a file\n{USAGE}"))?;
                arguments.out = Some(path.into());
            }
            Some(flag) if flag.starts_with('-') => {
                return Err(format!("no such flag: {flag}\n{USAGE}").into());
            }
            _ => arguments.pictures.push(word.into()),
        }
    }
    match (arguments.pictures.len(), &arguments.out) {
        (0, _) => Err(USAGE.into()),
        (2.., Some(_)) => Err(format!("--out goes with a single picture\n{USAGE}").into()),
        _ => Ok(arguments),
    }
}

fn read(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let device = Device::best()?;
    if let Some(reason) = device.reason() {
        eprintln!("no GPU is used: {reason}");
    }
    let start = Instant::now();
    let reader = Reader::load(&device)?;
    eprintln!("running on {device}, loaded in {:.0?}", start.elapsed());
    for path in &arguments.pictures {
        let mut picture = open(path)?;
        let start = Instant::now();
        let lines = reader.read(&picture)?;
        let took = start.elapsed();
        if arguments.pictures.len() > 1 {
            println!("== {}", path.display());
        }
        for line in &lines {
            println!("{}", line.text);
        }
        eprintln!("{}: {} lines in {took:.0?}", path.display(), lines.len());
        if let Some(out) = &arguments.out {
            let width = (f64::from(picture.width().max(picture.height())) / 320.0).max(1.5);
            for line in &lines {
                draw::outline(&mut picture, &line.place, Rgb([222, 60, 40]), width);
            }
            picture.save(out).map_err(|e| format!("cannot write {}: {e}", out.display()))?;
        }
    }
    Ok(())
}

fn open(path: &Path) -> Result<RgbImage, String> {
    let bad = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
    let reader = ImageReader::open(path).map_err(|e| bad(&e))?;
    let reader = reader.with_guessed_format().map_err(|e| bad(&e))?;
    Ok(reader.decode().map_err(|e| bad(&e))?.to_rgb8())
}
