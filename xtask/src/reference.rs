//! Reference outputs: what onnxruntime answers for each model, under `assets/reference`.

use std::fs;
use std::process::Command;

use crate::catalogue::Use;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::{fetch, process};

/// The Rust source with the constants that the scripts share with the OCR example.
const SETTINGS: &str = "examples/ocr/src/settings.rs";

/// Makes `assets/reference` with the scripts of `tests/reference`, unless it is there and was made
/// by the same scripts with the same packages.
pub fn make(layout: &Layout) -> Result<()> {
    fetch::fetch(layout, Use::Test)?;
    let made_from = sources(layout)?;
    let folder = layout.assets().join("reference");
    let stamp = folder.join("made-from.txt");
    if fs::read_to_string(&stamp).is_ok_and(|made| made == made_from) {
        return Ok(());
    }
    eprintln!("      Making assets/reference (onnxruntime)");
    let fresh = layout.assets().join(".reference");
    for path in [&fresh, &folder] {
        if path.exists() {
            fs::remove_dir_all(path).map_err(Error::io("remove", path))?;
        }
    }
    fs::create_dir_all(&fresh).map_err(Error::io("create", &fresh))?;
    let script = layout.reference_scripts().join("onnxruntime_reference.py");
    process::run(Command::new(layout.python()).arg("-B").arg(script).arg(&fresh), "")?;
    let stamp = fresh.join("made-from.txt");
    fs::write(&stamp, made_from).map_err(Error::io("write", &stamp))?;
    fs::rename(&fresh, &folder).map_err(Error::io("make", &folder))
}

/// The text of everything that the outputs depend on.
fn sources(layout: &Layout) -> Result<String> {
    let scripts = layout.reference_scripts();
    let mut paths = vec![
        layout.requirements("python"),
        layout.requirements("models"),
        layout.requirements("fonts"),
        layout.root().join(SETTINGS),
    ];
    for entry in fs::read_dir(&scripts).map_err(Error::io("list", &scripts))? {
        paths.push(entry.map_err(Error::io("list", &scripts))?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|end| end != "pyc"));
    paths.sort();
    let mut text = String::new();
    for path in paths {
        text.push_str(&fs::read_to_string(&path).map_err(Error::io("read", &path))?);
    }
    Ok(text)
}
