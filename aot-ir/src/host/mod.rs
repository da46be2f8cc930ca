//! What hosts do for runs on any device.

#[cfg(feature = "image")]
mod image;

use crate::DimError;
use crate::op::HostOp;

/// Why the host could not do its part of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// This was built without what it takes.
    #[error("aot-runtime was built without its feature `{0}`")]
    FeatureOff(&'static str),
    /// A file that can't be decoded.
    #[error("the file can't be decoded as an image: {0}")]
    Image(String),
    /// A file that is not what it was taken for.
    #[error("the image has {found} pixels (height, width), expected {expected}")]
    ImageSize {
        /// `4 × 6`
        found: String,
        /// `4 × 5`
        expected: String,
    },
    /// A size expression has no value.
    #[error(transparent)]
    Dim(#[from] DimError),
    /// The wrong number of operands.
    #[error("it takes one operand")]
    Operands,
}

impl HostOp {
    /// The cargo feature of aot-runtime that it takes.
    pub fn feature(&self) -> &'static str {
        match self {
            Self::ImageSize | Self::DecodeImage { .. } => "image",
        }
    }

    /// Whether this was built with that feature.
    pub fn is_available(&self) -> bool {
        match self {
            Self::ImageSize | Self::DecodeImage { .. } => cfg!(feature = "image"),
        }
    }

    /// The result's elements for operands' elements, all row-major and little-endian, at sizes given by the symbols'
    /// atoms.
    ///
    /// # Errors
    /// When an operand is no image that can be decoded or one of another size, or the feature is off.
    pub fn evaluate(&self, operands: &[&[u8]], atoms: &[i64]) -> Result<Vec<u8>, HostError> {
        let [file] = operands else { return Err(HostError::Operands) };
        #[cfg(feature = "image")]
        match self {
            Self::ImageSize => {
                let (height, width) = image::size(file)?;
                Ok([height, width].iter().flat_map(|n| i64::from(*n).to_le_bytes()).collect())
            }
            Self::DecodeImage { height, width, format } => {
                image::decode(file, (height.eval(atoms)?, width.eval(atoms)?), *format)
            }
        }
        #[cfg(not(feature = "image"))]
        {
            let _ = (file, atoms);
            Err(HostError::FeatureOff(self.feature()))
        }
    }
}
