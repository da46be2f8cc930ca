//! What no kernel does, and its rule.

use super::infer::{Inferred, ShapeError};
use super::rule::{Rule, fail};
use crate::{DType, Dim};
use serde::{Deserialize, Serialize};

/// A computation that the host does, whatever device a run is on; see [`HostOp::evaluate`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum HostOp {
    /// `(file: U8 [n]) -> I64 [2]`: height and width, in pixels, of the image in a file.
    ImageSize,
    /// `(file: U8 [n]) -> U8 [height, width, channels]`: the image in a file, which must be of this size. It may be
    /// BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP.
    DecodeImage {
        /// In pixels.
        height: Dim,
        /// In pixels.
        width: Dim,
        /// What the channels are.
        format: PixelFormat,
    },
}

/// The channels of a pixel, a byte each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum PixelFormat {
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red.
    Bgr,
    /// Luma: 0.299 red + 0.587 green + 0.114 blue.
    Grayscale,
}

impl PixelFormat {
    /// How many channels there are.
    pub fn channels(self) -> usize {
        match self {
            Self::Rgb | Self::Bgr => 3,
            Self::Grayscale => 1,
        }
    }
}

impl HostOp {
    /// A short name for messages and listings.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ImageSize => "image_size",
            Self::DecodeImage { .. } => "decode_image",
        }
    }

    /// Element type of the result.
    pub fn result_type(&self) -> DType {
        match self {
            Self::ImageSize => DType::I64,
            Self::DecodeImage { .. } => DType::U8,
        }
    }

    /// Every size expression in it.
    pub fn dims(&self) -> Vec<&Dim> {
        match self {
            Self::ImageSize => Vec::new(),
            Self::DecodeImage { height, width, .. } => vec![height, width],
        }
    }

    pub(super) fn dims_mut(&mut self) -> Vec<&mut Dim> {
        match self {
            Self::ImageSize => Vec::new(),
            Self::DecodeImage { height, width, .. } => vec![height, width],
        }
    }
}

pub(super) fn rule(rule: Rule<'_>, op: &HostOp) -> Result<Inferred, ShapeError> {
    let [file] = rule.operands()?;
    if file.dtype != DType::U8 || file.shape.len() != 1 {
        let shape = rule.show_shape(&file.shape);
        return fail(format!("a file is a vector of u8, found {} {shape}", file.dtype));
    }
    let shape = match op {
        HostOp::ImageSize => vec![Dim::from(2)],
        HostOp::DecodeImage { height, width, format } => {
            vec![height.clone(), width.clone(), Dim::from(format.channels() as i64)]
        }
    };
    rule.one(op.result_type(), shape)
}
