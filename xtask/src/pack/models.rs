//! Models that packs can hold.

use aot_ir::Graph;
use cargo_aot::import::{AxisSpec, DimSpec, ImportOptions, import};
use cargo_aot::passes;

use crate::error::{Error, Result};
use crate::layout::Layout;

pub(super) type Sizes<'a> = &'a [&'a [(&'a str, i64)]];

/// A model of assets/models: name, file, axes of inputs, ranges of dims, sizes to try, bounds of integer inputs.
pub(super) struct Source {
    pub(super) name: &'static str,
    file: &'static str,
    inputs: &'static [(&'static str, &'static [&'static str])],
    dims: &'static [(&'static str, i64, i64, i64)],
    pub(super) sizes: Sizes<'static>,
    pub(super) bounds: &'static [(&'static str, i64)],
    /// Its f16 kernels are compiled for all targets, not for the first alone.
    pub(super) everywhere: bool,
}

const BATCH_SEQUENCE: &[&str] = &["batch", "sequence"];

pub(super) const SOURCES: &[Source] = &[
    Source {
        name: "minilm",
        file: "minilm/minilm.onnx",
        inputs: &[
            ("input_ids", BATCH_SEQUENCE),
            ("attention_mask", BATCH_SEQUENCE),
            ("token_type_ids", BATCH_SEQUENCE),
        ],
        dims: &[("batch", 1, 64, 1), ("sequence", 1, 512, 1)],
        sizes: &[
            &[("batch", 1), ("sequence", 1)],
            &[("batch", 3), ("sequence", 37)],
            &[("batch", 32), ("sequence", 128)],
            &[("batch", 2), ("sequence", 512)],
            &[("batch", 64), ("sequence", 512)],
        ],
        bounds: &[("input_ids", 30000), ("attention_mask", 2), ("token_type_ids", 2)],
        everywhere: true,
    },
    Source {
        name: "det",
        file: "pp-ocr/det.onnx",
        inputs: &[("x", &["1", "3", "h", "w"])],
        dims: &[("h", 32, 960, 32), ("w", 32, 960, 32)],
        sizes: &[
            &[("h", 32), ("w", 32)],
            &[("h", 96), ("w", 224)],
            &[("h", 320), ("w", 320)],
            &[("h", 960), ("w", 960)],
        ],
        bounds: &[],
        everywhere: false,
    },
    Source {
        name: "rec",
        file: "pp-ocr/rec.onnx",
        inputs: &[("x", &["n", "3", "48", "w"])],
        dims: &[("n", 1, 8, 1), ("w", 8, 1280, 4)],
        sizes: &[
            &[("n", 1), ("w", 8)],
            &[("n", 2), ("w", 100)],
            &[("n", 1), ("w", 320)],
            &[("n", 8), ("w", 1280)],
        ],
        bounds: &[],
        everywhere: true,
    },
    Source {
        name: "cls",
        file: "pp-ocr/cls.onnx",
        inputs: &[("x", &["n", "3", "48", "192"])],
        dims: &[("n", 1, 8, 1)],
        sizes: &[&[("n", 1)], &[("n", 8)]],
        bounds: &[],
        everywhere: false,
    },
    Source {
        name: "basic-pitch",
        file: "basic-pitch/nmp.onnx",
        inputs: &[("serving_default_input_2:0", &["n", "43844", "1"])],
        dims: &[("n", 1, 8, 1)],
        sizes: &[&[("n", 1)], &[("n", 8)]],
        bounds: &[],
        everywhere: false,
    },
    Source {
        name: "common-det",
        file: "ddddocr/common_det.onnx",
        inputs: &[("images", &["1", "3", "416", "416"])],
        dims: &[],
        sizes: &[&[]],
        bounds: &[],
        everywhere: false,
    },
];

impl Source {
    /// The model, imported and simplified.
    pub(super) fn graph(&self, layout: &Layout) -> Result<Graph> {
        let axis = |text: &&str| match text.parse() {
            Ok(size) => AxisSpec::Fixed(size),
            Err(_) => AxisSpec::Named((*text).to_owned()),
        };
        let inputs = self.inputs.iter();
        let inputs =
            inputs.map(|(name, axes)| ((*name).to_owned(), axes.iter().map(axis).collect()));
        let dims = self.dims.iter();
        let dims =
            dims.map(|&(name, lo, hi, step)| (name.to_owned(), DimSpec::Range { lo, hi, step }));
        let options = ImportOptions {
            name: self.name.to_owned(),
            dims: dims.collect(),
            inputs: inputs.collect(),
            ..ImportOptions::default()
        };
        let path = layout.assets().join("models").join(self.file);
        let other = |e: &dyn std::error::Error| Error::Other(format!("{}: {e}", self.name));
        let imported = import(&path, &options).map_err(|e| other(&e))?;
        passes::run(&imported.graph, &passes::Options::default()).map_err(|e| other(&e))
    }
}
