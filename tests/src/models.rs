//! The models that tests and packs run.

use aot_ir::{Graph, State};

/// Sizes by name.
pub type Sizes = &'static [(&'static str, i64)];

/// A model, and the sizes that it is built for and tried at.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Its name, and that of the folder with its reference outputs.
    pub name: &'static str,
    /// File under `assets/models`.
    pub file: &'static str,
    /// Names of its inputs and of their axes (numbers are fixed sizes).
    pub inputs: &'static [(&'static str, &'static [&'static str])],
    /// Per dim name: least and greatest size, and step.
    pub dims: &'static [(&'static str, i64, i64, i64)],
    /// Dims that have one size in packs.
    pub fixed: Sizes,
    /// Sizes of the other dims at which packs run it, and the values of integers among its inputs that decide what runs.
    pub sizes: &'static [Sizes],
    /// Inputs of integers below a bound.
    pub bounds: &'static [(&'static str, i64)],
    /// Inputs that are outputs of the call before, with these.
    pub state: &'static [(&'static str, &'static str)],
    /// The type of 16 bits that it is tried in: bf16 where activations are beyond what f16 holds.
    pub narrow: &'static str,
    /// Its kernels of 16 bits are compiled for all targets of a pack, not for the first alone.
    pub everywhere: bool,
}

/// A model of one size in all.
const FIXED: Model = Model {
    name: "",
    file: "",
    inputs: &[],
    dims: &[],
    fixed: &[],
    sizes: &[&[]],
    bounds: &[],
    state: &[],
    narrow: "f16",
    everywhere: false,
};

const BATCH_SEQUENCE: &[&str] = &["batch", "sequence"];

/// The window and state of silero-vad at 16 kHz.
const VOICE_STATE: &[(&str, &str)] = &[("state", "stateN")];

const VOICE_16K: &[(&str, &[&str])] = &[("input", &["1", "576"]), ("state", &["2", "1", "128"])];

/// The file of silero-vad that has a network for either rate.
const VOICE: Model = Model {
    name: "vad",
    file: "silero-vad/vad.onnx",
    inputs: &[("input", &["1", "samples"]), ("state", &["2", "1", "128"])],
    dims: &[("samples", 1, 1024, 1)],
    sizes: &[&[("samples", 576), ("sr", 16000)], &[("samples", 288), ("sr", 8000)]],
    state: VOICE_STATE,
    ..FIXED
};

/// The models that are compared with onnxruntime.
pub const MODELS: &[Model] = &[
    Model {
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
        ..FIXED
    },
    Model {
        name: "det",
        file: "pp-ocr/det.onnx",
        inputs: &[("x", &["n", "3", "h", "w"])],
        dims: &[("n", 1, 4, 1), ("h", 32, 960, 32), ("w", 32, 960, 32)],
        fixed: &[("n", 1)],
        sizes: &[
            &[("h", 32), ("w", 32)],
            &[("h", 96), ("w", 224)],
            &[("h", 320), ("w", 320)],
            &[("h", 960), ("w", 960)],
        ],
        ..FIXED
    },
    Model {
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
        everywhere: true,
        ..FIXED
    },
    Model {
        name: "cls",
        file: "pp-ocr/cls.onnx",
        inputs: &[("x", &["n", "3", "h", "w"])],
        dims: &[("n", 1, 8, 1), ("h", 16, 64, 1), ("w", 16, 320, 1)],
        fixed: &[("h", 48), ("w", 192)],
        sizes: &[&[("n", 1)], &[("n", 8)]],
        ..FIXED
    },
    Model {
        name: "basic-pitch",
        file: "basic-pitch/nmp.onnx",
        inputs: &[("serving_default_input_2:0", &["n", "43844", "1"])],
        dims: &[("n", 1, 8, 1)],
        sizes: &[&[("n", 1)], &[("n", 8)]],
        ..FIXED
    },
    Model {
        name: "common-det",
        file: "ddddocr/common_det.onnx",
        inputs: &[("images", &["1", "3", "416", "416"])],
        ..FIXED
    },
    Model {
        name: "terrain",
        file: "terrain/unet.onnx",
        narrow: "bf16",
        dims: &[("batch", 1, 8, 1)],
        sizes: &[&[("batch", 1)], &[("batch", 2)]],
        ..FIXED
    },
    Model {
        name: "tashkeel",
        file: "tashkeel/rawi_ensemble.onnx",
        inputs: &[("input", BATCH_SEQUENCE)],
        dims: &[("batch", 1, 8, 1), ("sequence", 1, 64, 1)],
        sizes: &[
            &[("batch", 1), ("sequence", 1)],
            &[("batch", 2), ("sequence", 24)],
            &[("batch", 8), ("sequence", 64)],
        ],
        bounds: &[("input", 40)],
        ..FIXED
    },
    VOICE,
    Model { name: "vad-8k", ..VOICE },
    Model {
        name: "vad-op15",
        file: "silero-vad/vad_16k_op15.onnx",
        inputs: VOICE_16K,
        state: VOICE_STATE,
        sizes: &[&[("sr", 16000)]],
        ..FIXED
    },
    Model {
        name: "vad-half",
        file: "silero-vad/vad_half.onnx",
        inputs: VOICE_16K,
        state: VOICE_STATE,
        ..FIXED
    },
    Model {
        name: "vad-openvino",
        file: "silero-vad/vad_openvino_16k.onnx",
        inputs: VOICE_16K,
        state: VOICE_STATE,
        ..FIXED
    },
    Model {
        name: "vad-ifless",
        file: "silero-vad/vad_op18_ifless.onnx",
        inputs: &[("input", &["batch", "576"]), ("state", &["2", "batch", "128"])],
        dims: &[("batch", 1, 8, 1)],
        state: VOICE_STATE,
        sizes: &[&[("batch", 1), ("sr", 16000)], &[("batch", 2), ("sr", 16000)]],
        ..FIXED
    },
    Model {
        name: "vad-sequence",
        file: "silero-vad/vad_16k_sequence.onnx",
        inputs: &[("input", &["windows", "576"])],
        dims: &[("windows", 1, 64, 1)],
        state: &[("h", "hn"), ("c", "cn")],
        sizes: &[&[("windows", 1)], &[("windows", 7)], &[("windows", 64)]],
        ..FIXED
    },
];

impl Model {
    /// Has the graph keep what calls hand on.
    ///
    /// # Panics
    /// When it has no such input or output.
    pub fn keep_state(&self, graph: &mut Graph) {
        let state = self.state.iter().map(|(input, output)| {
            let input = graph.inputs.iter().position(|v| graph[*v].name == *input);
            let output = graph.outputs.iter().position(|(name, _)| name == output);
            let (input, output) = (input.expect("an input"), output.expect("an output"));
            State { input: input as u32, output: output as u32 }
        });
        let mut state: Vec<State> = state.collect();
        state.sort_by_key(|s| s.input);
        graph.state = state;
    }

    /// The model of this name.
    ///
    /// # Panics
    /// When there is none.
    pub fn of(name: &str) -> &'static Self {
        MODELS.iter().find(|m| m.name == name).unwrap_or_else(|| panic!("no model {name}"))
    }
}
