//! The models that tests run.

use crate::reference::asset;
use aot_ir::Graph;
use cargo_aot::import::{AxisSpec, DimSpec, ImportOptions, import};

/// A model, and the sizes that tests build it for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    /// Name of the folder with its reference outputs.
    pub(crate) name: &'static str,
    /// File under `assets/models`.
    pub(crate) file: &'static str,
    /// Names of its inputs and of their axes (numbers are fixed sizes).
    pub(crate) inputs: &'static [(&'static str, &'static [&'static str])],
    /// Per dim name: least and greatest size, and step.
    pub(crate) dims: &'static [(&'static str, i64, i64, i64)],
}

const BATCH_SEQUENCE: &[&str] = &["batch", "sequence"];

const VOICE_16K: &[(&str, &[&str])] = &[("input", &["1", "576"]), ("state", &["2", "1", "128"])];

/// The models of the project's first goals.
pub(crate) const MODELS: &[Model] = &[
    Model {
        name: "minilm",
        file: "minilm/minilm.onnx",
        inputs: &[
            ("input_ids", BATCH_SEQUENCE),
            ("attention_mask", BATCH_SEQUENCE),
            ("token_type_ids", BATCH_SEQUENCE),
        ],
        dims: &[("batch", 1, 64, 1), ("sequence", 1, 512, 1)],
    },
    Model {
        name: "det",
        file: "pp-ocr/det.onnx",
        inputs: &[("x", &["n", "3", "h", "w"])],
        dims: &[("n", 1, 4, 1), ("h", 32, 960, 32), ("w", 32, 960, 32)],
    },
    Model {
        name: "rec",
        file: "pp-ocr/rec.onnx",
        inputs: &[("x", &["n", "3", "48", "w"])],
        dims: &[("n", 1, 8, 1), ("w", 8, 1280, 4)],
    },
    Model {
        name: "cls",
        file: "pp-ocr/cls.onnx",
        inputs: &[("x", &["n", "3", "h", "w"])],
        dims: &[("n", 1, 8, 1), ("h", 16, 64, 1), ("w", 16, 320, 1)],
    },
    Model {
        name: "basic-pitch",
        file: "basic-pitch/nmp.onnx",
        inputs: &[("serving_default_input_2:0", &["n", "43844", "1"])],
        dims: &[("n", 1, 8, 1)],
    },
    Model {
        name: "common-det",
        file: "ddddocr/common_det.onnx",
        inputs: &[("images", &["1", "3", "416", "416"])],
        dims: &[],
    },
    Model { name: "terrain", file: "terrain/unet.onnx", inputs: &[], dims: &[("batch", 1, 8, 1)] },
    Model {
        name: "tashkeel",
        file: "tashkeel/rawi_ensemble.onnx",
        inputs: &[("input", &["batch", "24"])],
        dims: &[("batch", 1, 8, 1)],
    },
    Model { name: "vad", file: "silero-vad/vad.onnx", inputs: VOICE_16K, dims: &[] },
    Model {
        name: "vad-8k",
        file: "silero-vad/vad.onnx",
        inputs: &[("input", &["1", "288"]), ("state", &["2", "1", "128"])],
        dims: &[],
    },
    Model { name: "vad-op15", file: "silero-vad/vad_16k_op15.onnx", inputs: VOICE_16K, dims: &[] },
    Model { name: "vad-half", file: "silero-vad/vad_half.onnx", inputs: VOICE_16K, dims: &[] },
    Model {
        name: "vad-openvino",
        file: "silero-vad/vad_openvino_16k.onnx",
        inputs: VOICE_16K,
        dims: &[],
    },
    Model {
        name: "vad-ifless",
        file: "silero-vad/vad_op18_ifless.onnx",
        inputs: &[("input", &["batch", "576"]), ("state", &["2", "batch", "128"])],
        dims: &[("batch", 1, 8, 1)],
    },
    Model {
        name: "vad-sequence",
        file: "silero-vad/vad_16k_sequence.onnx",
        inputs: &[("input", &["3", "576"])],
        dims: &[],
    },
];

impl Model {
    /// The model of this name.
    ///
    /// # Panics
    /// When there is none.
    pub(crate) fn of(name: &str) -> &'static Self {
        MODELS.iter().find(|m| m.name == name).unwrap_or_else(|| panic!("no model {name}"))
    }

    /// The graph as it is imported.
    ///
    /// # Panics
    /// When the import fails.
    pub(crate) fn import(&self) -> Graph {
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
        match import(&asset("models").join(self.file), &options) {
            Ok(imported) => imported.graph,
            Err(error) => panic!("{}: {error}", self.name),
        }
    }
}
