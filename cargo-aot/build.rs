//! Gives the sources of this tool a version, so that artifacts which another version of them
//! made are made again.

use std::fs;
use std::path::{Path, PathBuf};

/// What decides about artifacts; those outside this package are there in a checkout only.
const SOURCES: [&str; 7] = [
    "src",
    "../aot-ir/src",
    "../aot-runtime/src",
    "../kernels",
    "../templates",
    "../Cargo.lock",
    "Cargo.toml",
];

fn main() {
    let mut files = Vec::new();
    for source in SOURCES {
        if Path::new(source).exists() {
            println!("cargo::rerun-if-changed={source}");
            collect(Path::new(source), &mut files);
        }
    }
    files.sort();
    let mut version = Fnv::default();
    for file in files {
        version.update(file.to_string_lossy().as_bytes());
        version.update(&fs::read(&file).unwrap_or_default());
    }
    println!("cargo::rustc-env=AOT_CODE_VERSION={:032x}", version.0);
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(path) else {
        files.push(path.to_owned());
        return;
    };
    for entry in entries.flatten() {
        collect(&entry.path(), files);
    }
}

/// FNV-1a with 128 bits (its authors' parameters). Nobody attacks it: it tells versions of
/// one source tree apart.
struct Fnv(u128);

impl Default for Fnv {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv {
    fn update(&mut self, bytes: &[u8]) {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let length = (bytes.len() as u64).to_le_bytes();
        for &byte in length.iter().chain(bytes) {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(PRIME);
        }
    }
}
