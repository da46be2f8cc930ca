//! The ONNX importer on any bytes: an error or a graph, never a panic, never long.
#![no_main]

use cargo_aot::import::{DimSpec, ImportOptions, describe, import};
use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::LazyLock;

/// A folder of this process: external data that a model names is looked for there in vain.
static MODEL: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("aot-fuzz-onnx-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    folder.join("model.onnx")
});

fuzz_target!(|data: &[u8]| {
    std::fs::write(&*MODEL, data).expect("a temporary file");
    let Ok(description) = describe(&MODEL) else { return };
    let mut options = ImportOptions { name: "fuzz".to_owned(), ..ImportOptions::default() };
    // Every other dim is a range, so that symbolic and constant sizes meet.
    let names = description.inputs.iter().flat_map(|i| i.dims.iter().flatten());
    for (i, name) in names.flat_map(|d| d.names().to_vec()).enumerate() {
        let spec = if i % 2 == 0 {
            DimSpec::Range { lo: 1, hi: 64, step: 1 }
        } else {
            DimSpec::Fixed(4)
        };
        options.dims.insert(name, spec);
    }
    if let Err(error) = import(&MODEL, &options) {
        // Messages must be printable, whatever they quote.
        let _ = error.to_string();
    }
});
