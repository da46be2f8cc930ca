//! Where things lie in a checkout.

use std::env;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The folders of a checkout, all absolute.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Finds the checkout: the one whose xtask cargo runs, else the one the current folder is in.
    pub fn find() -> Result<Self> {
        if let Some(manifest) = env::var_os("CARGO_MANIFEST_DIR")
            && let Some(root) = Path::new(&manifest).parent()
            && root.join("xtask/Cargo.toml").is_file()
        {
            return Ok(Self { root: root.to_owned() });
        }
        let here = env::current_dir().map_err(Error::io("find", Path::new(".")))?;
        here.ancestors()
            .find(|folder| folder.join("xtask/Cargo.toml").is_file())
            .map(|root| Self { root: root.to_owned() })
            .ok_or_else(|| Error::NoCheckout(here.clone()))
    }

    /// The root of the checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The Python environment reference outputs are made with.
    pub fn venv(&self) -> PathBuf {
        self.root.join(".venv")
    }

    /// The interpreter of [`Self::venv`].
    pub fn python(&self) -> PathBuf {
        if cfg!(windows) {
            self.venv().join("Scripts/python.exe")
        } else {
            self.venv().join("bin/python")
        }
    }

    /// Everything that is fetched, and what is made from it.
    pub fn assets(&self) -> PathBuf {
        self.root.join("assets")
    }

    /// A pinned requirements file of `xtask/requirements`, by its stem.
    pub fn requirements(&self, stem: &str) -> PathBuf {
        self.root.join("xtask/requirements").join(stem).with_extension("txt")
    }

    /// The scripts that make reference outputs.
    pub fn reference_scripts(&self) -> PathBuf {
        self.root.join("tests/reference")
    }

    /// A cargo application under `examples/`.
    pub fn example(&self, name: &str) -> PathBuf {
        self.root.join("examples").join(name)
    }
}
