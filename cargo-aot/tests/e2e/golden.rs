//! The generated crate of a fixed project, compared with `tests/golden`, and its documentation.
//! With `BLESS=1` in the environment the files there are written instead.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::app::App;
use super::network::{Dense, Network};

const FILES: [&str; 6] = [
    "Cargo.toml",
    "build.rs",
    "src/lib.rs",
    "src/text_tagger.rs",
    "src/dense.rs",
    "src/recurrent.rs",
];

/// Names that are no Rust, and dims of every kind.
fn tagger() -> Vec<u8> {
    let table: Vec<f32> = (0..32).map(|i| i as f32).collect();
    Network::default()
        .integers("tokens:0", "batch sequence")
        .input("type", "batch 4 width")
        .input("picture", "batch 1 sequence width")
        .weight("table", &[8, 4], &table)
        .node("Gather", "table tokens:0", "/embed/out.0")
        .node("MatMul", "/embed/out.0 type", "/Scores|0")
        .node("Relu", "type", "9")
        .texts("tags", &["noun", "\"verb\" `v`", "other"])
        .integer("three", 3)
        .node("Gather", "tokens:0 three", "fourth")
        .int("axis", 1)
        .node("Gather", "tags fourth", "tag")
        .node("MaxPool", "picture", "pooled")
        .ints("kernel_shape", &[2, 2])
        .ints("strides", &[2, 2])
        .file(
            "/Scores|0 9 /embed/out.0 pooled tag",
            &[("labels", "a\n\"b\" `c`"), ("author", "tests")],
        )
}

/// A state between an input and an output, and random numbers.
fn recurrent() -> Vec<u8> {
    Network::default()
        .input("h", "batch 3")
        .input("x", "batch 3")
        .node("Add", "h x", "sum")
        .node("Tanh", "sum", "hn")
        .node("RandomNormalLike", "sum", "noise")
        .node("Mul", "sum noise", "y")
        .file("hn y", &[])
}

const MANIFEST: &str = r#"
[package]
name = "golden-nets"
path = "nets"

[target]
gpus = ["a100", "h200"]

[models.text-tagger]
source = "tagger.onnx"
precision = "f16"
precision-for = { "*Relu*" = "f32" }

[models.text-tagger.dims]
batch = "1..=8"
sequence = { range = "2..=64", buckets = [8, 64] }
width = { range = "16..=48", step = 16 }

[models.dense]
source = "dense.onnx"
dims = { batch = 3 }

[models.recurrent]
source = "recurrent.onnx"
dims = { batch = "1..=4" }
state = [{ input = "h", output = "hn" }]
"#;

fn app(name: &str) -> App {
    let app = App::new(name);
    app.write("tagger.onnx", tagger());
    app.write("dense.onnx", Dense::new(&[2, 3], 1).file());
    app.write("recurrent.onnx", recurrent());
    app.write("Aot.toml", MANIFEST);
    app.aot(&["build"]).ok();
    app
}

#[test]
fn the_generated_crate_is_as_recorded() {
    let app = app("aot-e2e-golden");
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../aot-runtime");
    let runtime = runtime.canonicalize().unwrap();
    let mut different = Vec::new();
    for file in FILES {
        let found = app.read(&format!("nets/{file}"));
        let found = found.replace(&*runtime.to_string_lossy(), "CHECKOUT/aot-runtime");
        let expected = golden.join(file);
        if bless {
            fs::create_dir_all(expected.parent().unwrap()).unwrap();
            fs::write(&expected, &found).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != found {
            different.push(format!("{file}:\n{found}"));
        }
    }
    assert!(different.is_empty(), "run with BLESS=1 if this is right:\n{}", different.join("\n"));
}

#[test]
fn the_documentation_is_whole_and_its_examples_compile() {
    let app = app("aot-e2e-documented");
    fs::copy(app.path("Cargo.lock"), app.path("nets/Cargo.lock")).unwrap();
    app.cargo_in("nets", &["doc", "--no-deps"]).ok();
    let tested = app.cargo_in("nets", &["test", "--doc"]).ok();
    assert!(tested.stdout.contains("test result: ok. 4 passed"), "{tested}");
}

/// `cargo fmt --all` formats crates that an application depends on by path, too: what it finds in
/// ours it must leave alone, whatever the application's style.
#[test]
fn generated_code_is_nobodys_to_format() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let output = Command::new("rustfmt")
        .args(["--edition", "2024", "--check", "--config", "max_width=60"])
        .args([golden.join("src/lib.rs"), golden.join("build.rs")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
