//! Attributes of operators.

use crate::{Dim, Scalar};
use serde::{Deserialize, Serialize};

macro_rules! named_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum $name { $($(#[$vmeta])* $variant,)* }

        impl $name {
            /// Every variant.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// A short name for messages and listings.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

named_enum! {
    /// A function of one number.
    UnaryOp {
        /// `-x`.
        Neg = "neg",
        /// Absolute value.
        Abs = "abs",
        /// -1, 0 or 1; NaN stays NaN.
        Sign = "sign",
        /// Largest integer not above.
        Floor = "floor",
        /// Smallest integer not below.
        Ceil = "ceil",
        /// Nearest integer, halves to even.
        Round = "round",
        /// `1 / x`.
        Reciprocal = "reciprocal",
        /// Square root.
        Sqrt = "sqrt",
        /// `eˣ`.
        Exp = "exp",
        /// Natural logarithm.
        Log = "log",
        /// Natural logarithm of `1 + x`.
        Log1p = "log1p",
        /// `eˣ - 1`.
        Expm1 = "expm1",
        /// Sine.
        Sin = "sin",
        /// Cosine.
        Cos = "cos",
        /// Tangent.
        Tan = "tan",
        /// Arc sine.
        Asin = "asin",
        /// Arc cosine.
        Acos = "acos",
        /// Arc tangent.
        Atan = "atan",
        /// Hyperbolic sine.
        Sinh = "sinh",
        /// Hyperbolic cosine.
        Cosh = "cosh",
        /// Hyperbolic tangent.
        Tanh = "tanh",
        /// Inverse hyperbolic sine.
        Asinh = "asinh",
        /// Inverse hyperbolic cosine.
        Acosh = "acosh",
        /// Inverse hyperbolic tangent.
        Atanh = "atanh",
        /// Gauss error function.
        Erf = "erf",
        /// `1 / (1 + e⁻ˣ)`.
        Sigmoid = "sigmoid",
        /// `max(x, 0)`; NaN stays NaN.
        Relu = "relu",
        /// Logical negation of a `Bool`.
        Not = "not",
        /// Bitwise complement of an integer.
        BitNot = "bit_not",
        /// Whether NaN: `Bool`.
        IsNan = "is_nan",
        /// Whether +∞: `Bool`.
        IsPosInf = "is_pos_inf",
        /// Whether -∞: `Bool`.
        IsNegInf = "is_neg_inf",
    }
}

impl UnaryOp {
    /// Whether the result is `Bool` whatever the operand's type.
    pub fn is_predicate(self) -> bool {
        matches!(self, Self::IsNan | Self::IsPosInf | Self::IsNegInf)
    }
}

named_enum! {
    /// A function of two numbers of one type. Integer arithmetic wraps.
    BinaryOp {
        /// `a + b`.
        Add = "add",
        /// `a - b`.
        Sub = "sub",
        /// `a * b`.
        Mul = "mul",
        /// `a / b`; integers truncate toward zero, and division by zero gives 0.
        Div = "div",
        /// Remainder with the sign of the divisor (as Python's `%`).
        Mod = "mod",
        /// Remainder with the sign of the dividend (as C's `fmod`).
        Rem = "rem",
        /// `aᵇ`.
        Pow = "pow",
        /// The smaller; NaN if either is.
        Min = "min",
        /// The larger; NaN if either is.
        Max = "max",
        /// Angle of the point `(b, a)`.
        Atan2 = "atan2",
        /// Logical and of `Bool`s.
        And = "and",
        /// Logical or of `Bool`s.
        Or = "or",
        /// Logical exclusive or of `Bool`s.
        Xor = "xor",
        /// Bitwise and of integers.
        BitAnd = "bit_and",
        /// Bitwise or of integers.
        BitOr = "bit_or",
        /// Bitwise exclusive or of integers.
        BitXor = "bit_xor",
        /// `a << b` (0 when `b` is at least the width).
        Shl = "shl",
        /// `a >> b` (0 or the sign when `b` is at least the width).
        Shr = "shr",
        /// `a == b`.
        Eq = "eq",
        /// `a != b`.
        Ne = "ne",
        /// `a < b`.
        Lt = "lt",
        /// `a <= b`.
        Le = "le",
        /// `a > b`.
        Gt = "gt",
        /// `a >= b`.
        Ge = "ge",
    }
}

impl BinaryOp {
    /// Whether the result is `Bool` whatever the operands' type.
    pub fn is_comparison(self) -> bool {
        matches!(self, Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge)
    }
}

named_enum! {
    /// How a reduction combines elements.
    ReduceOp {
        /// Sum; 0 over nothing.
        Sum = "reduce_sum",
        /// Arithmetic mean; NaN over nothing.
        Mean = "reduce_mean",
        /// Product; 1 over nothing.
        Prod = "reduce_prod",
        /// Largest; the type's lowest value over nothing.
        Max = "reduce_max",
        /// Smallest; the type's highest value over nothing.
        Min = "reduce_min",
    }
}

named_enum! {
    /// What a scan accumulates.
    ScanOp {
        /// Running sum.
        Sum = "scan_sum",
        /// Running product.
        Prod = "scan_prod",
        /// Running maximum.
        Max = "scan_max",
        /// Running minimum.
        Min = "scan_min",
    }
}

named_enum! {
    /// How a scattered update meets the element that is there.
    ScatterReduction {
        /// Replaces it; among several updates of one element any may win.
        None = "none",
        /// Is added.
        Add = "add",
        /// Is multiplied.
        Mul = "mul",
        /// The larger stays.
        Max = "max",
        /// The smaller stays.
        Min = "min",
    }
}

/// What padding adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PadMode {
    /// A constant.
    Constant(Scalar),
    /// The mirror image, without repeating the edge element.
    Reflect,
    /// The edge element.
    Edge,
    /// From the other end.
    Wrap,
}

/// Geometry of a convolution; lists have one entry per spatial axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ConvAttrs {
    /// Steps of the window.
    pub strides: Vec<i64>,
    /// Zeros added before and after.
    pub pads: Vec<(Dim, Dim)>,
    /// Distance between kernel elements.
    pub dilations: Vec<i64>,
    /// Number of groups that channels are divided into.
    pub groups: i64,
}

/// Attributes of attention.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AttentionAttrs {
    /// Factor on the scores: a [`Scalar::Float`].
    pub scale: Scalar,
    /// Row `i` of `s` sees column `j` of `t` only if `j <= i + t - s`.
    pub causal: bool,
    /// A row whose scores are all -∞ gives zeros (else NaN).
    pub masked_row_is_zero: bool,
    /// Whether there is a mask operand.
    pub has_mask: bool,
}

/// How a pooling window is combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PoolKind {
    /// Largest element of the window; padding never wins.
    Max,
    /// Mean of the window's elements; padding counts in the divisor if asked for.
    Average {
        /// Padding counts (but not what `ceil_mode` adds beyond it).
        count_include_pad: bool,
    },
    /// `(Σ |x|ᵖ)^(1/p)`.
    Lp(i64),
}

/// Geometry of pooling; lists have one entry per spatial axis.
///
/// There is at least one window per axis, even if the padded operand is smaller than it; what lies outside
/// is left out, as padding is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PoolAttrs {
    /// What combines a window.
    pub kind: PoolKind,
    /// Extent of the window.
    pub kernel: Vec<Dim>,
    /// Steps of the window.
    pub strides: Vec<i64>,
    /// Padding before and after.
    pub pads: Vec<(Dim, Dim)>,
    /// Distance between window elements.
    pub dilations: Vec<i64>,
    /// Round the result's extent up; windows that would start beyond the padded operand are left out.
    pub ceil_mode: bool,
}

/// How a resize samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ResizeMode {
    /// The nearest element.
    Nearest(NearestRounding),
    /// Linear in every resized axis.
    Linear,
    /// Cubic convolution with coefficient `a` (a [`Scalar::Float`]) in every resized axis.
    Cubic(Scalar),
}

named_enum! {
    /// How [`ResizeMode::Nearest`] rounds a source coordinate.
    NearestRounding {
        /// Nearest, halves down.
        PreferFloor = "round_prefer_floor",
        /// Nearest, halves up.
        PreferCeil = "round_prefer_ceil",
        /// Down.
        Floor = "floor",
        /// Up.
        Ceil = "ceil",
    }
}

named_enum! {
    /// Source coordinate of a result coordinate `x`, with `scale = out / in` (or as given).
    CoordinateMap {
        /// `(x + 0.5) / scale - 0.5`.
        HalfPixel = "half_pixel",
        /// As `HalfPixel`, corrected for an output length that was rounded.
        HalfPixelSymmetric = "half_pixel_symmetric",
        /// As `HalfPixel`, but 0 when the result has one element.
        PytorchHalfPixel = "pytorch_half_pixel",
        /// `x * (in - 1) / (out - 1)`.
        AlignCorners = "align_corners",
        /// `x / scale`.
        Asymmetric = "asymmetric",
        /// `(x + 0.5) / scale`.
        TfHalfPixelForNn = "tf_half_pixel_for_nn",
    }
}

/// Attributes of a resize over all axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResizeAttrs {
    /// How samples are combined.
    pub mode: ResizeMode,
    /// Where samples are taken.
    pub coordinates: CoordinateMap,
    /// Extent of the result per axis.
    pub sizes: Vec<Dim>,
    /// The factor per axis where the model gives one (a [`Scalar::Float`]); else `sizes / extent`.
    pub scales: Vec<Option<Scalar>>,
    /// Cubic only: leave samples outside the operand out and renormalise the weights.
    pub exclude_outside: bool,
}
