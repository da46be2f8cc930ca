//! Kernel images of one architecture, shared by the models of a package.

use std::borrow::Cow;

use aot_ir::Arch;
use serde::{Deserialize, Serialize};

use super::container::{Container, FormatError, Kind, Name, Section, decode, name, write};
use crate::{Error, Result};

/// Sorts before every key but the one of all zeros; keys are hashes.
const INFO: Name = name("\0info");

/// What an images file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImagesInfo {
    /// The architecture that the images are for.
    pub arch: Arch,
    /// Whether they are PTX.
    pub ptx: bool,
    /// The CUDA version that the driver must support at least: `1000 * major + 10 * minor`.
    pub driver: u32,
}

/// How images lie in their file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Each compressed by itself.
    Compressed,
    /// As they are, for files that are compressed as a whole.
    Plain,
}

/// The bytes of an images file: images with the keys that programs find them by.
///
/// # Errors
/// When the description can't be encoded, which does not happen.
pub fn write_images<'a>(
    info: ImagesInfo,
    packing: Packing,
    images: impl IntoIterator<Item = ([u8; 32], &'a [u8])>,
) -> Result<Vec<u8>> {
    let encoded =
        postcard::to_allocvec(&info).map_err(|e| Error::artifact("the images file", e))?;
    let mut sections = vec![Section { name: INFO, bytes: Cow::Owned(encoded), compress: false }];
    for (key, image) in images {
        if !sections.iter().any(|s| s.name == key) {
            let compress = packing == Packing::Compressed;
            sections.push(Section { name: key, bytes: Cow::Borrowed(image), compress });
        }
    }
    Ok(write(Kind::Images, sections))
}

/// An opened images file.
#[derive(Clone, Copy, Debug)]
pub struct ImagesFile<'a> {
    container: Container<'a>,
    info: ImagesInfo,
}

impl<'a> ImagesFile<'a> {
    /// Checks the file's header.
    ///
    /// # Errors
    /// When these are not the bytes of an images file that this version reads.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let open = || {
            let container = Container::open(bytes, Kind::Images)?;
            let info = decode("info", &container.read(&container.expect(&INFO)?)?)?;
            Ok(Self { container, info })
        };
        open().map_err(|e: FormatError| Error::artifact("a kernel images file", e))
    }

    /// What the file says of itself.
    pub fn info(&self) -> ImagesInfo {
        self.info
    }

    /// The image with this key, if the file has it.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn get(&self, key: &[u8; 32]) -> Result<Option<Cow<'a, [u8]>>> {
        let read = || match self.container.find(key)? {
            Some(entry) => self.container.read(&entry).map(Some),
            None => Ok(None),
        };
        read().map_err(|e: FormatError| {
            Error::artifact(format!("the kernel images for {}", self.info.arch), e)
        })
    }

    /// The keys of all images.
    pub fn keys(&self) -> impl Iterator<Item = [u8; 32]> + use<'a> {
        self.container.entries().filter_map(|e| e.ok()).map(|e| e.name).filter(|n| *n != INFO)
    }
}
