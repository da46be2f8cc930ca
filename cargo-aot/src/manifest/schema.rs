//! What a manifest says, after every check that needs no model.

use std::path::{Path, PathBuf};

use aot_kernels::Arch;
use toml::Spanned;

use super::diagnostic::{SourceFile, Span};
use super::glob::Glob;
use super::names::{PackageName, RustName};
use crate::build::toolchain::CudaMajor;

/// A whole Aot.toml.
///
/// Spans are byte ranges of [`Manifest::file`]'s text. A value that was not written has the span
/// of what encloses it.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The text, for diagnostics.
    pub file: SourceFile,
    /// The folder that relative paths start from: the one with Aot.toml.
    pub dir: PathBuf,
    /// `[package]`
    pub package: Package,
    /// `[target]`
    pub target: Target,
    /// `[toolchain]`
    pub toolchain: Toolchain,
    /// `[models.*]` in the order of the file; never empty.
    pub models: Vec<Model>,
}

impl Manifest {
    /// `path`, taken from the manifest's folder when it is relative.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.dir.join(path)
    }

    /// Where the generated crate lies.
    pub fn crate_dir(&self) -> PathBuf {
        self.resolve(self.package.path.get_ref())
    }

    /// The 1-based line where `span` begins, for messages of the generated crate.
    pub fn line_of(&self, span: &Span) -> usize {
        self.file.line_of(span.start)
    }
}

/// `[package]`: the generated crate.
#[derive(Clone, Debug)]
pub struct Package {
    /// Its names; `models` unless given.
    pub name: Spanned<PackageName>,
    /// Its folder, relative to the manifest's unless absolute; `aot/<name>` unless given.
    pub path: Spanned<PathBuf>,
    /// Where weights go.
    pub weights: Weights,
}

/// `package.weights`: where the generated crate keeps weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Weights {
    /// Within the executable.
    Embed,
    /// In a file beside it.
    File,
    /// Embedded below [`Weights::EMBED_LIMIT`], else a file.
    #[default]
    Auto,
}

impl Weights {
    /// Models with fewer bytes of weights than this are embedded by [`Weights::Auto`].
    pub const EMBED_LIMIT: u64 = 64 << 20;

    /// Whether `bytes` of weights are embedded.
    pub fn embeds(self, bytes: u64) -> bool {
        match self {
            Weights::Embed => true,
            Weights::File => false,
            Weights::Auto => bytes < Self::EMBED_LIMIT,
        }
    }
}

/// `[target]`: what kernels are compiled for.
#[derive(Clone, Debug)]
pub struct Target {
    /// One kernel image each: no architecture twice, in the order of the file. May be empty if
    /// `ptx` is set.
    pub gpus: Vec<Spanned<Arch>>,
    /// Whether to add PTX of the portable path; true unless given.
    pub ptx: bool,
}

/// `[toolchain]`: which compiler makes kernels.
#[derive(Clone, Debug, Default)]
pub struct Toolchain {
    /// `cuda`: which NVRTC.
    pub cuda: CudaMajor,
    /// `path`: a folder to look for the compiler in first; absolute.
    pub path: Option<Spanned<PathBuf>>,
}

/// What matrix units compute in; sums are always kept in f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// IEEE single precision, without matrix units.
    #[default]
    F32,
    /// Inputs rounded to 10 bits of mantissa.
    Tf32,
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
}

impl Precision {
    /// As the manifest spells it.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::Tf32 => "tf32",
            Precision::F16 => "f16",
            Precision::Bf16 => "bf16",
        }
    }
}

/// One entry of `precision-for`.
#[derive(Clone, Debug)]
pub struct PrecisionRule {
    /// Which nodes.
    pub nodes: Spanned<Glob>,
    /// Their precision.
    pub precision: Precision,
}

/// `[models.NAME]`
#[derive(Clone, Debug)]
pub struct Model {
    /// NAME as written.
    pub name: Spanned<String>,
    /// The names it gets in Rust.
    pub rust: RustName,
    /// The ONNX file; relative to the manifest's folder unless absolute.
    pub source: Spanned<PathBuf>,
    /// For all nodes without a rule.
    pub precision: Precision,
    /// In the order of the file; the first that covers a node decides.
    pub precision_for: Vec<PrecisionRule>,
    /// In the order of the file.
    pub dims: Vec<DimSpec>,
    /// In the order of the file.
    pub inputs: Vec<InputSpec>,
    /// In the order of the file.
    pub state: Vec<StateSpec>,
}

impl Model {
    /// The precision of the node called `node`.
    pub fn precision_of(&self, node: &str) -> Precision {
        self.precision_for
            .iter()
            .find(|rule| rule.nodes.get_ref().matches(node))
            .map_or(self.precision, |rule| rule.precision)
    }

    /// What `dims` says of the dim `name`.
    pub fn dim(&self, name: &str) -> Option<&DimSpec> {
        self.dims.iter().find(|dim| dim.name.get_ref() == name)
    }
}

/// One entry of `state`: outputs that are inputs of the next run. What the stars of one pattern stand for they stand
/// for in the other.
#[derive(Clone, Debug)]
pub struct StateSpec {
    /// Which inputs.
    pub input: Spanned<Glob>,
    /// Which outputs; as many stars as `input`.
    pub output: Spanned<Glob>,
}

/// One entry of `dims`.
#[derive(Clone, Debug)]
pub struct DimSpec {
    /// The dim.
    pub name: Spanned<String>,
    /// Where its sizes are written.
    pub span: Span,
    /// Its sizes.
    pub kind: DimKind,
}

/// The sizes a dim may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimKind {
    /// Always this one.
    Fixed(u64),
    /// Multiples of `step` from `lo` to `hi`, both included.
    Range {
        /// Smallest size, a multiple of `step`.
        lo: u64,
        /// Largest size, a multiple of `step`, at most [`DimSpec::LARGEST`].
        hi: u64,
        /// At least 1.
        step: u64,
        /// Increasing multiples of `step` within the range; the last is `hi`.
        buckets: Vec<u64>,
    },
}

impl DimSpec {
    /// Kernels count elements of an axis in 32 bits.
    pub const LARGEST: u64 = i32::MAX as u64;
}

/// One entry of `inputs`: the shape of an input whose dims the file leaves unnamed.
#[derive(Clone, Debug)]
pub struct InputSpec {
    /// The tensor's name in the model.
    pub name: Spanned<String>,
    /// Where its dims are written.
    pub span: Span,
    /// One per axis.
    pub dims: Vec<Spanned<InputDim>>,
}

/// One axis of an [`InputSpec`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputDim {
    /// A dim that `dims` gives a range.
    Name(String),
    /// A size.
    Fixed(u64),
}
