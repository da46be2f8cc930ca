//! Wheel files: what they are called, what they contain.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};
use zip::ZipArchive;

use super::pins::Pin;

/// A wheel file of a toolchain's package.
#[derive(Debug, Clone)]
pub(super) struct Wheel {
    /// Where it lies.
    pub(super) path: PathBuf,
    /// `nvidia-cuda-nvrtc`.
    pub(super) package: String,
    /// `13.5.37`.
    pub(super) version: String,
    /// Hash of the file, in hexadecimal.
    pub(super) sha256: String,
}

/// Why a wheel is not usable.
#[derive(Debug, thiserror::Error)]
pub enum WheelError {
    /// It could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its name is not that of a wheel.
    #[error("{} is not named as a wheel is (NAME-VERSION-….whl)", path.display())]
    Name {
        /// The file.
        path: PathBuf,
    },
    /// It is not a zip file, or a damaged one.
    #[error("{} is damaged: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        source: zip::result::ZipError,
    },
    /// It is not the file that this release pins.
    #[error("{} has the wrong hash: expected sha256 {expected}, found {found}", path.display())]
    Hash {
        /// The file.
        path: PathBuf,
        /// The pinned hash for this host.
        expected: &'static str,
        /// Its hash.
        found: String,
    },
    /// It was made for another kind of host.
    #[error("{} is for another kind of machine; this one needs {needed}", path.display())]
    Host {
        /// The file.
        path: PathBuf,
        /// `x86_64` or `aarch64`.
        needed: &'static str,
    },
    /// A file of it could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Wheel {
    /// Reads the name and the hash of a wheel file.
    pub(super) fn open(path: &Path) -> Result<Self, WheelError> {
        let stem = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".whl"));
        let parts: Vec<&str> = stem.map(|stem| stem.split('-').collect()).unwrap_or_default();
        let [package, version, .., platform] = parts[..] else {
            return Err(WheelError::Name { path: path.to_owned() });
        };
        let host = std::env::consts::ARCH;
        if platform != "any" && !platform.contains(host) {
            return Err(WheelError::Host { path: path.to_owned(), needed: host });
        }
        Ok(Self {
            path: path.to_owned(),
            package: package.replace('_', "-").to_ascii_lowercase(),
            version: version.to_owned(),
            sha256: sha256(path)
                .map_err(|source| WheelError::Read { path: path.to_owned(), source })?,
        })
    }

    /// Fails unless it is one of the files that the pin names.
    pub(super) fn check(&self, pin: &Pin) -> Result<(), WheelError> {
        if pin.is_hash(&self.sha256) {
            return Ok(());
        }
        let expected = if std::env::consts::ARCH == "aarch64" { pin.aarch64 } else { pin.x86_64 };
        Err(WheelError::Hash { path: self.path.clone(), expected, found: self.sha256.clone() })
    }

    /// Writes what a toolchain needs of it: NVRTC's libraries to `lib`, headers to `include`,
    /// the licence beside them.
    pub(super) fn unpack(&self, tree: &Path) -> Result<(), WheelError> {
        let file = File::open(&self.path)
            .map_err(|source| WheelError::Read { path: self.path.clone(), source })?;
        let damaged = |source| WheelError::Damaged { path: self.path.clone(), source };
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(damaged)?;
        for index in 0..archive.len() {
            let mut entry = archive.by_index(index).map_err(damaged)?;
            let Some(place) = entry.enclosed_name().and_then(|name| self.place(&name)) else {
                continue;
            };
            if entry.is_dir() {
                continue;
            }
            let path = tree.join(place);
            let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
                let mut out = File::create(&path)?;
                io::copy(&mut entry, &mut out)?;
                out.sync_all()
            });
            written.map_err(|source| WheelError::Write { path, source })?;
        }
        Ok(())
    }

    /// Where an entry goes; None for what a toolchain does not need.
    fn place(&self, name: &Path) -> Option<PathBuf> {
        let parts: Vec<&str> = name
            .components()
            .map(|part| match part {
                Component::Normal(part) => part.to_str(),
                _ => None,
            })
            .collect::<Option<_>>()?;
        let file = *parts.last()?;
        if file.starts_with("License") && parts.iter().any(|part| part.ends_with(".dist-info")) {
            return Some(PathBuf::from(format!("LICENSE-{}.txt", self.package)));
        }
        let folder = parts.iter().position(|part| *part == "lib" || *part == "include")?;
        match parts[folder] {
            // `.alt` is a second build of the same library.
            "lib" if file.starts_with("libnvrtc") && !file.contains(".alt.") => {
                Some(Path::new("lib").join(file))
            }
            "include" => Some(parts[folder..].iter().collect()),
            _ => None,
        }
    }
}

/// SHA-256 of a file, in hexadecimal.
fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0_u8; 1 << 20];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_wheels_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let host = std::env::consts::ARCH;
        let path = dir
            .path()
            .join(format!("nvidia_cuda_nvrtc_cu12-12.9.86-py3-none-manylinux_2_17_{host}.whl"));
        fs::write(&path, b"abc").unwrap();
        let wheel = Wheel::open(&path).unwrap();
        assert_eq!(wheel.package, "nvidia-cuda-nvrtc-cu12");
        assert_eq!(wheel.version, "12.9.86");
        // FIPS 180-2, appendix B.1.
        assert_eq!(
            wheel.sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert!(matches!(wheel.unpack(dir.path()), Err(WheelError::Damaged { .. })));
    }

    #[test]
    fn wheels_of_other_machines_and_other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open = |name: &str| Wheel::open(&dir.path().join(name));
        assert!(matches!(open("notes.txt"), Err(WheelError::Name { .. })));
        assert!(matches!(open("a.whl"), Err(WheelError::Name { .. })));
        assert!(matches!(open("a-1-py3-none-win_amd64.whl"), Err(WheelError::Host { .. })));
        assert!(matches!(open("a-1-py3-none-any.whl"), Err(WheelError::Read { .. })));
    }

    #[test]
    fn entries_go_where_a_toolchain_has_them() {
        let wheel = Wheel {
            path: PathBuf::new(),
            package: "nvidia-cuda-nvrtc".to_owned(),
            version: "13.5.37".to_owned(),
            sha256: String::new(),
        };
        let place =
            |name: &str| wheel.place(Path::new(name)).map(|path| path.display().to_string());
        assert_eq!(place("nvidia/cu13/lib/libnvrtc.so.13").as_deref(), Some("lib/libnvrtc.so.13"));
        assert_eq!(place("nvidia/cu13/include/crt/a.h").as_deref(), Some("include/crt/a.h"));
        assert_eq!(place("nvidia/cu13/lib/libnvrtc.alt.so.13"), None);
        assert_eq!(place("nvidia/cu13/lib/libcudart.so.13"), None);
        assert_eq!(
            place("nvidia_cuda_nvrtc-13.5.37.dist-info/licenses/License.txt").as_deref(),
            Some("LICENSE-nvidia-cuda-nvrtc.txt")
        );
    }
}
