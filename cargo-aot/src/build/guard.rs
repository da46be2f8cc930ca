//! Whether a build has anything to do.
//!
//! The guard is one file that a finished build leaves: a key of everything that is not a file
//! (options, the version of this tool), and the digests of all files that were read or
//! written. When the key and all files are as they were, the build is done. Answering that
//! takes one stat for each file and starts no process.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::atomic;
use super::digest::Digest;
use super::files::{Files, Remembered};

/// What a finished build leaves behind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Guard {
    key: Digest,
    /// None for a file whose absence mattered.
    inputs: BTreeMap<PathBuf, Option<Digest>>,
    outputs: BTreeMap<PathBuf, Digest>,
    /// Warnings, which a build that has nothing to do repeats.
    warnings: Vec<String>,
    remembered: Remembered,
}

/// Whether there is anything to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing; with the warnings of the build that made the artifacts.
    Fresh(Vec<String>),
    /// Something, with the reasons.
    Stale(Vec<String>),
}

/// The files that a build reads and writes.
#[derive(Debug, Clone, Default)]
pub struct Touched {
    /// Files read, and files that would have been read had they been there.
    pub inputs: Vec<PathBuf>,
    /// Files written.
    pub outputs: Vec<PathBuf>,
    /// Warnings to repeat.
    pub warnings: Vec<String>,
}

impl Guard {
    /// The guard that an earlier build left, if there is one that can be read.
    pub fn load(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Takes down the present content of all files that a build touched.
    pub fn take(key: Digest, touched: Touched, files: &Files) -> io::Result<Self> {
        let mut inputs = BTreeMap::new();
        for path in touched.inputs {
            let digest = files.digest(&path)?;
            inputs.insert(path, digest);
        }
        let mut outputs = BTreeMap::new();
        for path in touched.outputs {
            let digest = files.digest(&path)?.ok_or(io::ErrorKind::NotFound)?;
            outputs.insert(path, digest);
        }
        let paths = inputs.keys().chain(outputs.keys()).map(PathBuf::as_path);
        let remembered = files.remembered(paths);
        Ok(Self { key, inputs, outputs, warnings: touched.warnings, remembered })
    }

    /// Writes the guard as a whole.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        atomic::write(path, &[&serde_json::to_vec(self)?])
    }

    /// What is known of files, for a build to start from.
    pub fn remembered(&self) -> Remembered {
        self.remembered.clone()
    }

    /// Compares with the present. Where files had to be read to know, the guard in `path` is
    /// brought up to date so that they need not be the next time.
    pub fn check(&self, key: Digest, path: &Path) -> Verdict {
        if self.key != key {
            return Verdict::Stale(vec!["options or cargo-aot itself changed".to_owned()]);
        }
        let files = Files::new(self.remembered());
        let mut why = Vec::new();
        let inputs = self.inputs.iter().map(|(path, digest)| (path, *digest, "source"));
        let outputs = self.outputs.iter().map(|(path, digest)| (path, Some(*digest), "artifact"));
        for (path, before, what) in inputs.chain(outputs) {
            let change = match (before, files.digest(path)) {
                (_, Err(error)) => format!("cannot be read: {error}"),
                (Some(_), Ok(None)) => "is gone".to_owned(),
                (None, Ok(Some(_))) => "is new".to_owned(),
                (before, Ok(now)) if before != now => "changed".to_owned(),
                _ => continue,
            };
            why.push(format!("{what} {} {change}", path.display()));
        }
        if !why.is_empty() {
            return Verdict::Stale(why);
        }
        if files.reads() > 0 {
            let paths = self.inputs.keys().chain(self.outputs.keys()).map(PathBuf::as_path);
            let renewed = Self { remembered: files.remembered(paths), ..self.clone() };
            // The present guard is right too, only slower.
            let _ = renewed.save(path);
        }
        Verdict::Fresh(self.warnings.clone())
    }
}

/// Whether there is anything to do, by the guard that the last build left in `path`.
pub fn check(path: &Path, key: Digest) -> Verdict {
    match Guard::load(path) {
        Some(guard) => guard.check(key, path),
        None => Verdict::Stale(vec!["never built here".to_owned()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bench {
        dir: tempfile::TempDir,
        key: Digest,
    }

    impl Bench {
        fn new() -> Self {
            let bench = Self { dir: tempfile::tempdir().unwrap(), key: Digest::of(b"key") };
            fs::write(bench.at("source"), "source").unwrap();
            fs::write(bench.at("artifact"), "artifact").unwrap();
            let touched = Touched {
                inputs: vec![bench.at("source"), bench.at("optional")],
                outputs: vec![bench.at("artifact")],
                warnings: vec!["careful".to_owned()],
            };
            let guard = Guard::take(bench.key, touched, &Files::default()).unwrap();
            guard.save(&bench.at("guard")).unwrap();
            bench
        }

        fn at(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn check(&self) -> Verdict {
            check(&self.at("guard"), self.key)
        }

        fn why(&self) -> String {
            match self.check() {
                Verdict::Stale(why) => why.join("; "),
                Verdict::Fresh(_) => panic!("fresh"),
            }
        }
    }

    #[test]
    fn unchanged_is_fresh_and_repeats_warnings() {
        let bench = Bench::new();
        assert_eq!(bench.check(), Verdict::Fresh(vec!["careful".to_owned()]));
        // Touched, with the same bytes.
        fs::write(bench.at("source"), "source").unwrap();
        assert_eq!(bench.check(), Verdict::Fresh(vec!["careful".to_owned()]));
    }

    #[test]
    fn every_change_is_seen_and_named() {
        let bench = Bench::new();
        fs::write(bench.at("source"), "sourcf").unwrap();
        assert!(bench.why().ends_with("source changed"), "{}", bench.why());
        let bench = Bench::new();
        fs::write(bench.at("optional"), "").unwrap();
        assert!(bench.why().ends_with("optional is new"));
        let bench = Bench::new();
        fs::remove_file(bench.at("artifact")).unwrap();
        fs::remove_file(bench.at("source")).unwrap();
        assert_eq!(bench.why().matches("is gone").count(), 2);
        let mut bench = Bench::new();
        bench.key = Digest::of(b"other");
        assert!(bench.why().contains("options"));
        let bench = Bench::new();
        fs::write(bench.at("guard"), "{").unwrap();
        assert!(bench.why().contains("never built"));
    }

    #[test]
    fn once_it_is_old_enough_no_file_is_read() {
        let bench = Bench::new();
        std::thread::sleep(std::time::Duration::from_millis(120));
        assert!(matches!(bench.check(), Verdict::Fresh(_)));
        let guard = Guard::load(&bench.at("guard")).unwrap();
        let files = Files::new(guard.remembered());
        files.digest(&bench.at("source")).unwrap();
        assert_eq!(files.reads(), 0);
    }
}
