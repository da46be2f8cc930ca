//! Runs the application over the pictures that `cargo xtask reference` draws, and compares the text
//! with what the same pipeline reads over onnxruntime.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

fn ocr(arguments: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ocr")).args(arguments).output().unwrap()
}

fn pictures() -> Vec<PathBuf> {
    let folder = Path::new("../../assets/reference/ocr");
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}: run `cargo xtask reference`", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "png"));
    paths.sort();
    paths
}

fn stdout(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn every_picture_reads_as_with_onnxruntime() {
    let pictures = pictures();
    assert_eq!(pictures.len(), 20);
    let paths: Vec<&Path> = pictures.iter().map(PathBuf::as_path).collect();
    let text = stdout(&ocr(&paths));
    let read: BTreeMap<&str, &str> =
        text.split("== ").filter_map(|part| part.split_once('\n')).collect();
    let mut wrong = Vec::new();
    for path in &pictures {
        let expected = fs::read_to_string(path.with_extension("txt")).unwrap();
        assert!(!expected.is_empty());
        let found = read[path.to_str().unwrap()];
        if found != expected {
            wrong.push(format!("{}: {found:?} instead of {expected:?}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn boxes_are_drawn_where_text_is() {
    let picture = Path::new("../../assets/reference/ocr/hello.png");
    let out = env::temp_dir().join(format!("aot-ocr-{}.png", std::process::id()));
    let text = stdout(&ocr(&[picture, Path::new("--out"), &out]));
    assert_eq!(text, fs::read_to_string(picture.with_extension("txt")).unwrap());
    let (before, after) =
        (image::open(picture).unwrap().to_rgb8(), image::open(&out).unwrap().to_rgb8());
    fs::remove_file(&out).unwrap();
    let changed = before.pixels().zip(after.pixels()).filter(|(a, b)| a != b).count();
    assert!((500..5000).contains(&changed), "{changed} pixels changed");
}

#[test]
fn what_is_no_picture_is_named() {
    let output = ocr(&[Path::new("Cargo.toml")]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot read Cargo.toml"));
}
