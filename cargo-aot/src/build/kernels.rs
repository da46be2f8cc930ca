//! Kernels to compile: their text, where they come from, and the keys of their images.

use std::fmt;

use aot_kernels::Arch;
use serde::{Deserialize, Serialize};

use super::digest::{Digest, KeyBuilder};
use super::nvrtc::Target;
use super::ptx::PtxError;
use super::report::{Coded, Report};
use super::toolchain::Identity;

/// Options that every kernel is compiled with.
pub const OPTIONS: [&str; 2] = ["--std=c++17", "--ptxas-options=-v"];

/// A kernel for one or several architectures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSource {
    /// For people, such as the name of its function.
    pub name: String,
    /// Ways to write it, best first; the next is taken when one does not compile. At least one.
    pub alternatives: Vec<Alternative>,
    /// Who needs it.
    pub origin: Vec<Origin>,
    /// Architectures to make cubins for. Images that are valid for several are made once.
    pub archs: Vec<Arch>,
    /// The architecture to make PTX for, if any.
    pub ptx: Option<Arch>,
}

/// One way to write a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// The schedule, for people.
    pub schedule: String,
    /// Complete CUDA C++ text; only headers of the CUDA runtime may be included.
    pub source: String,
    /// Options besides [`OPTIONS`] and the architecture.
    pub options: Vec<String>,
}

/// Who needs a kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The model's name in the manifest.
    pub model: String,
    /// The group's label.
    pub group: String,
    /// Names of the model file's nodes that the group covers.
    pub nodes: Vec<String>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 4;
        write!(f, "model `{}`, group `{}`", self.model, self.group)?;
        if self.nodes.is_empty() {
            return Ok(());
        }
        let shown: Vec<String> =
            self.nodes.iter().take(SHOWN).map(|node| format!("`{node}`")).collect();
        write!(f, ", node{} {}", if self.nodes.len() == 1 { "" } else { "s" }, shown.join(", "))?;
        match self.nodes.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// What the cache keeps of one compilation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kept {
    /// It went well.
    Image {
        /// ELF image or PTX text.
        image: Vec<u8>,
        /// What the compiler said.
        report: Report,
    },
    /// The text does not compile for that target; kept for kernels with another alternative.
    Refused(KernelFailure),
}

/// Why one alternative of a kernel did not become an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum KernelFailure {
    /// The compiler refused it.
    #[error("{message}{}", indented(log))]
    Compiler {
        /// The compiler's name for the failure.
        message: String,
        /// What it said.
        log: String,
    },
    /// The assembler did not keep to the schedule.
    #[error("the assembler changed the schedule: {}", listed(.0))]
    Spoiled(Vec<Coded>),
    /// The PTX needs a newer driver.
    #[error("{0}")]
    Ptx(String),
}

impl From<PtxError> for KernelFailure {
    fn from(error: PtxError) -> Self {
        Self::Ptx(error.to_string())
    }
}

fn indented(log: &str) -> String {
    log.lines().map(|line| format!("\n    {line}")).collect()
}

fn listed(messages: &[Coded]) -> String {
    messages.iter().map(Coded::to_string).collect::<Vec<_>>().join("; ")
}

impl Alternative {
    /// All options but the architecture and the include path.
    pub(super) fn all_options(&self) -> Vec<String> {
        OPTIONS
            .iter()
            .map(|option| (*option).to_owned())
            .chain(self.options.iter().cloned())
            .collect()
    }

    /// The key of its image: text, options, architecture, compiler. For PTX also the version
    /// that it is lowered to.
    pub fn key(&self, target: Target, ptx_version: (u32, u32), compiler: &Identity) -> Digest {
        let mut key = KeyBuilder::new("kernel")
            .part("source", &self.source)
            .part("target", target.flag())
            .part("compiler", &compiler.digest);
        if let Target::Ptx(_) = target {
            key = key.part("ptx", format!("{}.{}", ptx_version.0, ptx_version.1));
        }
        for option in self.all_options() {
            key = key.part("option", option);
        }
        key.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(digest: &str) -> Identity {
        Identity { version: "13.5.37".to_owned(), digest: digest.to_owned() }
    }

    #[test]
    fn everything_that_reaches_the_image_is_in_the_key() {
        let base = Alternative {
            schedule: "a".to_owned(),
            source: "x".to_owned(),
            options: vec!["-DA".to_owned()],
        };
        let sm80 = Target::Cubin(Arch::of_capability(80));
        let key = |alternative: &Alternative, target, version, compiler: &str| {
            alternative.key(target, version, &identity(compiler))
        };
        let own = key(&base, sm80, (9, 0), "c");
        let renamed = Alternative { schedule: "b".to_owned(), ..base.clone() };
        assert_eq!(own, key(&renamed, sm80, (9, 0), "c"), "names are for people");
        assert_eq!(own, key(&base, sm80, (8, 0), "c"), "cubins have no PTX version");
        let others = [
            key(&Alternative { source: "y".to_owned(), ..base.clone() }, sm80, (9, 0), "c"),
            key(&Alternative { options: vec![], ..base.clone() }, sm80, (9, 0), "c"),
            key(&base, Target::Cubin(Arch::of_capability(90)), (9, 0), "c"),
            key(&base, Target::Ptx(Arch::of_capability(80)), (9, 0), "c"),
            key(&base, Target::Ptx(Arch::of_capability(80)), (8, 0), "c"),
            key(&base, sm80, (9, 0), "d"),
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(own, *other, "{index}");
            assert!(!others[..index].contains(other), "{index}");
        }
    }

    #[test]
    fn origins_are_short() {
        let mut origin = Origin {
            model: "minilm".to_owned(),
            group: "mlp".to_owned(),
            nodes: vec!["/a".to_owned()],
        };
        assert_eq!(origin.to_string(), "model `minilm`, group `mlp`, node `/a`");
        origin.nodes = (0..7).map(|n| n.to_string()).collect();
        assert!(origin.to_string().ends_with("nodes `0`, `1`, `2`, `3` and 3 more"));
    }
}
