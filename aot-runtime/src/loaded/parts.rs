//! What a model is loaded from.

use std::path::{Path, PathBuf};

use aot_ir::Bytes;

use crate::artifact::{UncheckedWeights, WeightsId};
use crate::{Error, Result};

/// The artifacts of a model.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The model's artifact.
    pub model: &'a [u8],
    /// Kernel images, a file per architecture.
    pub images: &'a [&'a [u8]],
    /// Where the weights are.
    pub weights: WeightsSource<'a>,
    /// For every dim with a range in the manifest, its line there.
    pub lines: &'a [(&'a str, u32)],
}

/// Where a model's weights are.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum WeightsSource<'a> {
    /// Within the executable.
    Embedded(&'static [u8]),
    /// In a file of this name: only in the folder that the environment variable `AOT_WEIGHTS_DIR` names, if
    /// it is set; else next to the executable, else in `built`, where the build put it.
    File {
        /// The file's name.
        name: &'a str,
        /// The folder of the build.
        built: &'a str,
    },
    /// In memory.
    Bytes(&'a Bytes),
}

impl WeightsSource<'_> {
    /// The weights' data, yet to be checked.
    ///
    /// # Errors
    /// When they are missing, or those of another build.
    pub(crate) fn open(&self, expected: &WeightsId) -> Result<UncheckedWeights> {
        match self {
            Self::Embedded(bytes) => {
                let bytes = Bytes::new(std::sync::Arc::new(*bytes));
                UncheckedWeights::open(&bytes, expected, "the embedded weights")
            }
            Self::Bytes(bytes) => UncheckedWeights::open(bytes, expected, "the weights"),
            Self::File { name, built } => {
                let path = find(name, built)?;
                let bytes = crate::artifact::map(&path)?;
                UncheckedWeights::open(&bytes, expected, &path.display().to_string())
            }
        }
    }
}

fn find(name: &str, built: &str) -> Result<PathBuf> {
    let given = std::env::var_os("AOT_WEIGHTS_DIR").map(PathBuf::from);
    let beside = || Some(std::env::current_exe().ok()?.parent()?.to_path_buf());
    // Who names a folder wants that one and no other.
    let folders = match given {
        Some(folder) => vec![folder],
        None => beside().into_iter().chain([PathBuf::from(built)]).collect(),
    };
    find_in(name, &folders)
}

fn find_in(name: &str, folders: &[PathBuf]) -> Result<PathBuf> {
    let path = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    path.ok_or_else(|| Error::WeightsMissing {
        name: name.to_owned(),
        tried: folders.iter().map(|f: &PathBuf| show(f)).collect(),
    })
}

fn show(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_names_the_folders() {
        let error = find_in("m.weights", &["/nowhere/a".into(), "/nowhere/b".into()]).unwrap_err();
        let text = "no weights file `m.weights` in /nowhere/a, /nowhere/b; \
                    copy it next to the executable or set AOT_WEIGHTS_DIR";
        assert_eq!(error.to_string(), text);
    }
}
