//! GPU architectures as the CUDA compiler names them.
//!
//! See "GPU Feature List" in NVIDIA's *CUDA Compiler Driver NVCC* manual for the names, and
//! "Binary Compatibility" in the *CUDA C++ Programming Guide* for which device runs which image.

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
        match self.features {
            ArchFeatures::Specific => major == self.major() && minor == self.minor(),
            ArchFeatures::Base | ArchFeatures::Family => {
                major == self.major() && minor >= self.minor()
            }
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.features {
            ArchFeatures::Base => "",
            ArchFeatures::Family => "f",
            ArchFeatures::Specific => "a",
        };
        write!(f, "sm_{}{suffix}", self.capability)
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
}
