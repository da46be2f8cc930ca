//! GPU architectures as the CUDA compiler names them.
//!
//! See "GPU Feature List" in NVIDIA's *CUDA Compiler Driver NVCC* manual for the names, and
//! "Binary Compatibility" in the *CUDA C++ Programming Guide* for which device runs which image:
//! a plain image (`sm_80`) runs on GPUs of the same major version and the same or a later minor
//! one, a family image (`sm_100f`) on those of its family, a specific image (`sm_90a`) on one
//! capability. Integrated GPUs (Orin, Thor) run only images of their own capability.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The compute capabilities that the compiler of CUDA 13 makes code for, as `major * 10 + minor`.
pub const KNOWN_CAPABILITIES: [u16; 12] = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121];

/// Which instructions of a compute capability an image may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ArchFeatures {
    /// `sm_80`: those that every later minor version has too.
    Base,
    /// `sm_100f`: those that the family of this capability shares.
    Family,
    /// `sm_90a`: all of exactly this capability (wgmma, setmaxnreg, tcgen05 …).
    Specific,
}

/// One architecture that kernels are compiled for, such as `sm_80` or `sm_90a`.
///
/// Serialised as that name. Ordered by capability, then base before family before specific.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Arch {
    capability: u16,
    features: ArchFeatures,
}

impl Arch {
    /// The architecture whose images use everything that a GPU of compute capability
    /// `capability` (`major * 10 + minor`) has: from 9.0 on that is the `a` variant, since the
    /// base variant runs on no additional GPU that is worth the instructions it lacks.
    pub fn of_capability(capability: u16) -> Self {
        let features = if capability >= 90 { ArchFeatures::Specific } else { ArchFeatures::Base };
        Self { capability, features }
    }

    /// An architecture with its features given.
    pub fn new(capability: u16, features: ArchFeatures) -> Self {
        Self { capability, features }
    }

    /// `major * 10 + minor` of the compute capability.
    pub fn capability(self) -> u16 {
        self.capability
    }

    /// Which instructions its images may use.
    pub fn features(self) -> ArchFeatures {
        self.features
    }

    /// Major version of the compute capability.
    pub fn major(self) -> u16 {
        self.capability / 10
    }

    /// Minor version of the compute capability.
    pub fn minor(self) -> u16 {
        self.capability % 10
    }

    /// Whether a cubin for this architecture loads on a GPU of compute capability
    /// `major.minor`.
    pub fn runs_on(self, major: u16, minor: u16) -> bool {
        if (self.major(), self.minor()) == (major, minor) {
            return true;
        }
        let alone = is_integrated(self.capability) || is_integrated(major * 10 + minor);
        let later = major == self.major() && minor >= self.minor();
        !alone && later && self.features != ArchFeatures::Specific
    }

    /// Whether a driver can compile PTX for this architecture to a GPU of compute capability
    /// `major.minor`.
    pub fn ptx_runs_on(self, major: u16, minor: u16) -> bool {
        match self.features {
            ArchFeatures::Base => (self.major(), self.minor()) <= (major, minor),
            ArchFeatures::Family => self.major() == major && self.minor() <= minor,
            ArchFeatures::Specific => (self.major(), self.minor()) == (major, minor),
        }
    }

    /// Whether a cubin for this architecture will do for all GPUs that `target` stands for.
    pub fn serves(self, target: Self) -> bool {
        self.features <= target.features && self.runs_on(target.major(), target.minor())
    }

    /// Which cubins to compile so that code which is the same text for all of `targets` runs
    /// on each of them: every image with the targets that it serves, in order. Each target is
    /// served by exactly one image.
    pub fn images(targets: &[Self]) -> Vec<(Self, Vec<Self>)> {
        let mut sorted = targets.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let mut images: Vec<(Self, Vec<Self>)> = Vec::new();
        for target in sorted {
            match images.iter_mut().find(|(image, _)| image.serves(target)) {
                Some((_, served)) => served.push(target),
                None => images.push((target, vec![target])),
            }
        }
        images
    }

    /// The architecture of the portable path, whose PTX later GPUs can run: `sm_75` for
    /// `sm_75`, `sm_80` for everything later.
    pub fn portable(self) -> Self {
        Self {
            capability: if self.capability < 80 { 75 } else { 80 },
            features: ArchFeatures::Base,
        }
    }

    /// `compute_90a`: how compilers are asked for PTX instead of a cubin.
    pub fn compute(self) -> String {
        format!("compute_{}{}", self.capability, self.features.suffix())
    }

    /// The most shared memory that one block can have, in bytes, after opting in.
    pub fn shared_memory_per_block(self) -> u32 {
        let kib = match self.capability {
            75 => 64,
            86 | 89 | 120 | 121 => 99,
            80 | 87 | 88 => 163,
            _ => 227,
        };
        kib * 1024
    }

    /// Whether the NVRTC of a CUDA version `(major, minor)` compiles for this architecture.
    pub fn compiled_by(self, cuda: (u32, u32)) -> bool {
        let since = match (self.capability, self.features) {
            (88 | 110, _) => (13, 0),
            (103 | 121, _) | (_, ArchFeatures::Family) => (12, 9),
            (100 | 120, _) => (12, 8),
            _ => (12, 0),
        };
        cuda >= since
    }
}

/// Whether GPUs of that capability share the host's memory: those run only images of their own.
fn is_integrated(capability: u16) -> bool {
    matches!(capability, 87 | 88 | 110)
}

impl ArchFeatures {
    /// The letter that stands for it at the end of a name.
    fn suffix(self) -> &'static str {
        match self {
            Self::Base => "",
            Self::Family => "f",
            Self::Specific => "a",
        }
    }
}

impl From<Arch> for String {
    fn from(arch: Arch) -> Self {
        arch.to_string()
    }
}

impl TryFrom<String> for Arch {
    type Error = ParseArchError;

    fn try_from(text: String) -> Result<Self, ParseArchError> {
        text.parse()
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.capability, self.features.suffix())
    }
}

/// Why a text names no architecture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseArchError {
    /// Not of the form `sm_NN`, `compute_NN` or `NN` with an optional `a` or `f`.
    #[error("`{0}` does not have the form `sm_90a`")]
    Form(String),
    /// A capability the compiler does not know.
    #[error("the compiler knows no architecture `sm_{0}`")]
    Unknown(u16),
    /// A suffix on an architecture that has no such variant.
    #[error("`sm_{capability}` has no variant `{suffix}`")]
    Suffix {
        /// `major * 10 + minor`.
        capability: u16,
        /// The letter given.
        suffix: char,
    },
}

impl FromStr for Arch {
    type Err = ParseArchError;

    /// Reads exactly what [`Display`](fmt::Display) writes, so `sm_90` is the base variant and
    /// `sm_90a` the specific one; `90a` and any case are accepted too.
    fn from_str(text: &str) -> Result<Self, ParseArchError> {
        let form = || ParseArchError::Form(text.to_owned());
        let lower = text.to_ascii_lowercase();
        let rest = lower.strip_prefix("sm_").or(lower.strip_prefix("sm")).unwrap_or(&lower);
        let digits = rest.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        if digits.is_empty() || digits.len() > 3 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(form());
        }
        let capability: u16 = digits.parse().map_err(|_| form())?;
        let features = match &rest[digits.len()..] {
            "" => ArchFeatures::Base,
            "a" => ArchFeatures::Specific,
            "f" => ArchFeatures::Family,
            _ => return Err(form()),
        };
        if !KNOWN_CAPABILITIES.contains(&capability) {
            return Err(ParseArchError::Unknown(capability));
        }
        let oldest = match features {
            ArchFeatures::Base => 0,
            ArchFeatures::Specific => 90,
            ArchFeatures::Family => 100,
        };
        if capability < oldest {
            let suffix = if features == ArchFeatures::Family { 'f' } else { 'a' };
            return Err(ParseArchError::Suffix { capability, suffix });
        }
        Ok(Self { capability, features })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for text in ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_100f", "sm_120a"] {
            assert_eq!(text.parse::<Arch>().unwrap().to_string(), text);
        }
        assert_eq!("90A".parse::<Arch>().unwrap(), Arch::of_capability(90));
        assert_eq!(Arch::of_capability(89).to_string(), "sm_89");
    }

    #[test]
    fn refuses_what_does_not_exist() {
        for text in ["", "sm_", "sm_80a", "sm_90f", "sm_70", "sm_9000", "sm_90b", "h100", "é"] {
            assert!(text.parse::<Arch>().is_err(), "{text}");
        }
    }

    #[test]
    fn images_run_within_their_major_version() {
        let sm80: Arch = "sm_80".parse().unwrap();
        assert!(sm80.runs_on(8, 9) && !sm80.runs_on(9, 0) && !sm80.runs_on(7, 5));
        let sm100a: Arch = "sm_100a".parse().unwrap();
        assert!(sm100a.runs_on(10, 0) && !sm100a.runs_on(10, 3));
    }

    fn arch(text: &str) -> Arch {
        text.parse().unwrap()
    }

    #[test]
    fn integrated_gpus_stand_alone() {
        assert!(!arch("sm_80").runs_on(8, 7) && !arch("sm_86").runs_on(8, 7));
        assert!(!arch("sm_87").runs_on(8, 9) && arch("sm_87").runs_on(8, 7));
        assert!(!arch("sm_103f").runs_on(10, 0) && arch("sm_100f").runs_on(10, 3));
    }

    #[test]
    fn ptx_runs_on_later_gpus_unless_it_is_specific() {
        assert!(arch("sm_80").ptx_runs_on(12, 1) && !arch("sm_80").ptx_runs_on(7, 5));
        assert!(arch("sm_90a").ptx_runs_on(9, 0) && !arch("sm_90a").ptx_runs_on(10, 0));
        assert_eq!(arch("sm_90a").portable().compute(), "compute_80");
        assert_eq!(arch("sm_75").portable().compute(), "compute_75");
    }

    #[test]
    fn equal_code_is_compiled_once_for_all_that_can_run_it() {
        let targets = ["sm_89", "sm_90a", "sm_80", "sm_87", "sm_86", "sm_90a"].map(arch);
        let expected = [
            (arch("sm_80"), ["sm_80", "sm_86", "sm_89"].map(arch).to_vec()),
            (arch("sm_87"), vec![arch("sm_87")]),
            (arch("sm_90a"), vec![arch("sm_90a")]),
        ];
        assert_eq!(Arch::images(&targets), expected);
        let plain_first = Arch::images(&[arch("sm_90"), arch("sm_90a")]);
        assert_eq!(plain_first, [(arch("sm_90"), vec![arch("sm_90"), arch("sm_90a")])]);
        assert!(!arch("sm_90a").serves(arch("sm_90")) && !arch("sm_120a").serves(arch("sm_121a")));
    }

    #[test]
    fn old_compilers_lack_new_architectures() {
        assert!(!arch("sm_121a").compiled_by((12, 8)) && arch("sm_121a").compiled_by((13, 5)));
        assert!(arch("sm_90a").compiled_by((12, 4)) && !arch("sm_100f").compiled_by((12, 8)));
    }
}
