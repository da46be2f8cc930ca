//! Pinned requirements files: `name==version` lines with `--hash` continuations, as pip reads them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The pins of one requirements file.
#[derive(Debug)]
pub struct Requirements {
    file: PathBuf,
    pins: Vec<Pin>,
}

/// One pinned package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Name as the file spells it: lower case, words parted by `-`.
    pub name: String,
    /// The whole requirement on one line, hashes included.
    pub line: String,
}

impl Requirements {
    /// Reads a requirements file.
    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).map_err(Error::io("read", file))?;
        Ok(Self { file: file.to_owned(), pins: parse(&text) })
    }

    /// The pin of `package`.
    pub fn pin(&self, package: &str) -> Result<&Pin> {
        self.pins
            .iter()
            .find(|pin| pin.name == package && pin.line.contains("--hash="))
            .ok_or_else(|| Error::NoPin { file: self.file.clone(), package: package.to_owned() })
    }
}

fn parse(text: &str) -> Vec<Pin> {
    let joined = text.replace("\\\n", " ");
    joined
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default())
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter_map(|line| {
            let (name, _) = line.split_once("==")?;
            Some(Pin { name: name.to_owned(), line })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuation_lines_are_joined_and_comments_dropped() {
        let pins = parse(
            "# a note\none==1.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n\ntwo==2\n",
        );
        assert_eq!(pins.len(), 2);
        assert_eq!(pins[0].name, "one");
        assert_eq!(pins[0].line, "one==1.0 --hash=sha256:aa --hash=sha256:bb");
        assert_eq!(pins[1].line, "two==2");
    }

    #[test]
    fn a_pin_without_hashes_is_refused() {
        let requirements = Requirements { file: "r.txt".into(), pins: parse("two==2\n") };
        assert!(matches!(requirements.pin("two"), Err(Error::NoPin { .. })));
    }
}
