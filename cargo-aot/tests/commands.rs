//! The executable, started as cargo starts it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// An application without models.
fn application() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("src")).unwrap();
    fs::write(dir.path().join("src/main.rs"), "fn main() {}\n").unwrap();
    let manifest = "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    fs::write(dir.path().join("Cargo.toml"), manifest).unwrap();
    dir
}

fn aot(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cargo-aot"))
        .arg("aot")
        .args(arguments)
        .current_dir(dir)
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("CARGO_TERM_COLOR")
        .output()
        .unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn read(dir: &Path, path: &str) -> String {
    fs::read_to_string(dir.join(path)).unwrap()
}

#[test]
fn init_writes_what_cargo_can_resolve() {
    let app = application();
    let output = aot(app.path(), &["init"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stderr(&output).contains("then run `cargo aot build`"));
    let cargo_toml = read(app.path(), "Cargo.toml");
    assert!(cargo_toml.contains("models = { path = \"aot/models\" }"));
    let runtime = cargo_toml.lines().find(|line| line.starts_with("aot-runtime = ")).unwrap();
    assert!(read(app.path(), "aot/models/Cargo.toml").contains(runtime));
    assert!(read(app.path(), "aot/models/src/lib.rs").contains("run `cargo aot build`"));
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(app.path())
        .output()
        .unwrap();
    assert!(metadata.status.success(), "{}", stderr(&metadata));
    let output = aot(app.path(), &["clean", "--stub"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stderr(&output).contains("no model is declared"));
}

#[test]
fn init_declares_models_and_gpus() {
    let app = application();
    fs::write(app.path().join("PP-OCRv4 det.onnx"), "").unwrap();
    fs::write(app.path().join("3d.onnx"), "").unwrap();
    let arguments =
        ["init", "PP-OCRv4 det.onnx", "3d.onnx", "--gpu", "l4", "--gpu", "sm_90", "--name", "nets"];
    let output = aot(app.path(), &arguments);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let expected = "\n[models.pp-ocrv4-det]\nsource = \"PP-OCRv4 det.onnx\"\n";
    let manifest = read(app.path(), "Aot.toml");
    assert!(manifest.contains(expected), "{manifest}");
    assert!(manifest.contains("\n[models.model-3d]\n") && manifest.contains("[\"l4\", \"sm_90\"]"));
    assert!(read(app.path(), "Cargo.toml").contains("nets = { path = \"aot/nets\" }"));
    let parsed = cargo_aot::manifest::Manifest::load(&app.path().join("Aot.toml"), Path::new("x"));
    assert_eq!(parsed.unwrap().models.len(), 2);
}

#[test]
fn init_overwrites_nothing() {
    let app = application();
    let before = read(app.path(), "Cargo.toml");
    let refused = |arguments: &[&str], expected: i32, message: &str| {
        let output = aot(app.path(), arguments);
        assert_eq!(code(&output), expected, "{}", stderr(&output));
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
        assert_eq!(read(app.path(), "Cargo.toml"), before);
    };
    refused(&["init", "--gpu", "h2000000"], 2, "unknown GPU");
    refused(&["init", "--name", "std"], 2, "a crate that comes with Rust");
    refused(&["init", "none.onnx"], 2, "no model file");
    fs::create_dir_all(app.path().join("aot/models")).unwrap();
    refused(&["init"], 1, "exists already");
    fs::remove_dir(app.path().join("aot/models")).unwrap();
    fs::write(app.path().join("Aot.toml"), "mine").unwrap();
    refused(&["init"], 1, "exists already");
    assert_eq!(read(app.path(), "Aot.toml"), "mine");
}

#[test]
fn clean_removes_artifacts_and_restores_the_stub() {
    let app = application();
    assert_eq!(code(&aot(app.path(), &["init"])), 0);
    fs::write(app.path().join("m.onnx"), "").unwrap();
    fs::write(
        app.path().join("Aot.toml"),
        "[target]\ngpus = [\"t4\"]\n[models.m]\nsource = \"m.onnx\"\n",
    )
    .unwrap();
    let cached = app.path().join("target/aot/cache/x");
    fs::create_dir_all(cached.parent().unwrap()).unwrap();
    fs::write(&cached, [0; 2048]).unwrap();
    let output = aot(app.path(), &["clean", "--dry-run"]);
    assert!(stderr(&output).contains("Would remove 1 files, 2.0 KiB"), "{}", stderr(&output));
    assert!(cached.exists());
    let lib = app.path().join("aot/models/src/lib.rs");
    fs::write(&lib, "pub mod m;").unwrap();
    let output = aot(app.path(), &["clean", "--stub"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(!cached.exists() && fs::read_to_string(&lib).unwrap().contains("compile_error!"));
    fs::write(app.path().join("aot/models/Cargo.toml"), "[package]\n").unwrap();
    let output = aot(app.path(), &["clean", "--stub"]);
    assert!(stderr(&output).contains("did not write"), "{}", stderr(&output));
    assert!(lib.exists());
}

#[test]
fn completions_for_every_shell() {
    let app = application();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = aot(app.path(), &["completions", shell]);
        assert_eq!(code(&output), 0);
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("cargo-aot") && script.contains("manifest-path"), "{shell}");
    }
}

#[test]
fn wrong_command_lines_exit_with_2() {
    let app = application();
    for arguments in [["frobnicate"].as_slice(), &[], &["clean", "-j", "0"], &["run"]] {
        assert_eq!(code(&aot(app.path(), arguments)), 2, "{arguments:?}");
    }
    assert_eq!(code(&aot(app.path(), &["--help"])), 0);
    assert_eq!(code(&aot(app.path(), &["--version"])), 0);
}

#[test]
fn a_missing_manifest_says_what_to_do() {
    let app = application();
    let output = aot(app.path(), &["clean"]);
    assert_eq!(code(&output), 3);
    assert!(stderr(&output).contains("`cargo aot init` makes one"), "{}", stderr(&output));
}

#[test]
fn diagnostics_as_json_lines() {
    let app = application();
    fs::write(app.path().join("Aot.toml"), "[target]\ngpus = [\"h20O\"]\n").unwrap();
    let output = aot(app.path(), &["clean", "--stub", "--message-format", "json"]);
    assert_eq!(code(&output), 3);
    let lines: Vec<serde_json::Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["reason"], "diagnostic");
    assert_eq!(lines[0]["labels"][0]["line"], 2);
    assert_eq!(lines[0]["labels"][0]["column"], 9);
    assert_eq!(lines.last().unwrap()["reason"], "message");
    assert_eq!(stderr(&output).trim(), "");
}

#[test]
fn doctor_and_toolchain_answer_anywhere() {
    let app = application();
    let output = aot(app.path(), &["doctor"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("compiler: ") && text.contains("aot-runtime: "), "{text}");
    let output = aot(app.path(), &["toolchain", "show", "--message-format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["reason"], &json["cuda"]), (&"toolchain".into(), &"13".into()));
}

#[test]
fn the_shared_cache_is_where_the_environment_says() {
    let app = application();
    let cache = |value: &Path, arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_cargo-aot"))
            .arg("aot")
            .args(arguments)
            .current_dir(app.path())
            .env("AOT_CACHE_DIR", value)
            .output()
            .unwrap()
    };
    let dir = app.path().join("shared");
    let output = cache(&dir, &["cache"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text, format!("{}\n0 artifacts, 0 B\n", dir.display()));
    assert_eq!(code(&cache(&dir, &["cache", "clear"])), 0);
    assert_eq!(code(&cache(Path::new(""), &["cache"])), 1);
}
