//! The wheels that a managed toolchain is made of.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The major version of CUDA whose compiler is used.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub enum CudaMajor {
    /// For drivers R525 and later.
    #[serde(rename = "12")]
    Cuda12,
    /// For drivers R580 and later.
    #[default]
    #[serde(rename = "13")]
    Cuda13,
}

/// A text that is neither `12` nor `13`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown CUDA version `{0}`: \"13\" (drivers R580 and later) and \"12\" (R525) are supported"
)]
pub struct UnknownCuda(pub String);

impl CudaMajor {
    /// 13 of CUDA 13.5.
    pub fn number(self) -> u32 {
        match self {
            Self::Cuda12 => 12,
            Self::Cuda13 => 13,
        }
    }

    /// The oldest branch of drivers that runs what it compiles.
    pub fn oldest_driver(self) -> u32 {
        match self {
            Self::Cuda12 => 525,
            Self::Cuda13 => 580,
        }
    }

    /// The newest PTX ISA version that the oldest driver reads (table "Release Notes" of
    /// NVIDIA's *PTX ISA* manual: 8.0 with R525, 9.0 with R580).
    pub fn ptx_version(self) -> (u32, u32) {
        match self {
            Self::Cuda12 => (8, 0),
            Self::Cuda13 => (9, 0),
        }
    }
}

impl fmt::Display for CudaMajor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}

impl FromStr for CudaMajor {
    type Err = UnknownCuda;

    fn from_str(text: &str) -> Result<Self, UnknownCuda> {
        match text {
            "12" => Ok(Self::Cuda12),
            "13" => Ok(Self::Cuda13),
            _ => Err(UnknownCuda(text.to_owned())),
        }
    }
}

/// One wheel, by name, version and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin {
    /// The package's name.
    pub package: &'static str,
    /// Its version.
    pub version: &'static str,
    /// SHA-256 of the wheel for Linux on x86-64, in hexadecimal.
    pub x86_64: &'static str,
    /// SHA-256 of the wheel for Linux on aarch64, in hexadecimal.
    pub aarch64: &'static str,
}

const CUDA_13: [Pin; 2] = [
    Pin {
        package: "nvidia-cuda-nvrtc",
        version: "13.5.37",
        x86_64: "86b4d68058807988b7d9af5b44917a0601e9c337f35ccd657bfb3c759ff8d8bc",
        aarch64: "36e4fa2a8ada293f5693d308e531c196ab6f91cf7a0ff479bf96a537d43a6096",
    },
    Pin {
        package: "nvidia-cuda-runtime",
        version: "13.5.37",
        x86_64: "df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d",
        aarch64: "de2dc5a7367974228b0a69588a9acc9340d3768bef1bf38bf0801eb08497cd2d",
    },
];

const CUDA_12: [Pin; 2] = [
    Pin {
        package: "nvidia-cuda-nvrtc-cu12",
        version: "12.9.86",
        x86_64: "210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4",
        aarch64: "096d4de6bda726415dfaf3198d4f5c522b8e70139c97feef5cd2ca6d4cd9cead",
    },
    Pin {
        package: "nvidia-cuda-runtime-cu12",
        version: "12.9.79",
        x86_64: "25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3",
        aarch64: "83469a846206f2a733db0c42e223589ab62fd2fabac4432d2f8802de4bded0a4",
    },
];

/// The wheels of a CUDA version: the compiler, then the headers.
pub fn pins(cuda: CudaMajor) -> &'static [Pin; 2] {
    match cuda {
        CudaMajor::Cuda12 => &CUDA_12,
        CudaMajor::Cuda13 => &CUDA_13,
    }
}

impl Pin {
    /// `NAME==VERSION --hash=…`, as a requirements file for pip or uv has it.
    pub fn requirement(&self) -> String {
        format!(
            "{}=={} --hash=sha256:{} --hash=sha256:{}",
            self.package, self.version, self.x86_64, self.aarch64
        )
    }

    /// Whether that is the hash of one of its wheels.
    pub fn is_hash(&self, sha256: &str) -> bool {
        sha256 == self.x86_64 || sha256 == self.aarch64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_have_the_form_of_hashes() {
        for pin in pins(CudaMajor::Cuda12).iter().chain(pins(CudaMajor::Cuda13)) {
            for hash in [pin.x86_64, pin.aarch64] {
                assert_eq!(hash.len(), 64, "{}", pin.package);
                assert!(hash.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase()));
            }
            assert_ne!(pin.x86_64, pin.aarch64);
        }
    }

    #[test]
    fn versions_are_read_as_the_manifest_writes_them() {
        assert_eq!("13".parse(), Ok(CudaMajor::Cuda13));
        assert_eq!("12".parse(), Ok(CudaMajor::Cuda12));
        assert!("13.5".parse::<CudaMajor>().is_err());
        assert_eq!(serde_json::to_string(&CudaMajor::Cuda12).unwrap(), "\"12\"");
    }
}
