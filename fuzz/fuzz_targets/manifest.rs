//! Aot.toml of any text: a manifest or errors that can be rendered, never a panic.
#![no_main]

use cargo_aot::manifest::{Files, Manifest, ManifestError, SourceFile, render_all};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|text: &str| {
    let file = SourceFile { path: "Aot.toml".into(), text: text.to_owned() };
    if let Err(ManifestError::Invalid { file, diagnostics }) =
        Manifest::parse(file, Path::new(""), Files::Ignore)
    {
        let _ = render_all(&diagnostics, &file, false);
    }
});
