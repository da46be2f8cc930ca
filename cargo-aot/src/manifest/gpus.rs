//! GPU names and the architecture of each: the one table of them.
//!
//! Capabilities are those of NVIDIA's "CUDA GPU Compute Capability" page.

use aot_kernels::{Arch, ParseArchError};

/// A row of the table: GPUs of one architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Compute capability, `major * 10 + minor`.
    pub capability: u16,
    /// Names in lower case, without `-`, `_` and spaces.
    pub names: &'static [&'static str],
}

const TABLE: &[Gpu] = &[
    Gpu {
        capability: 75,
        names: &[
            "t4",
            "t4g",
            "t400",
            "t600",
            "t1000",
            "titanrtx",
            "gtx1650",
            "gtx1650super",
            "gtx1650ti",
            "gtx1660",
            "gtx1660super",
            "gtx1660ti",
            "rtx2060",
            "rtx2060super",
            "rtx2070",
            "rtx2070super",
            "rtx2080",
            "rtx2080super",
            "rtx2080ti",
            "rtx8000",
        ],
    },
    Gpu { capability: 80, names: &["a100", "a100x", "a800", "a30", "a30x"] },
    Gpu {
        capability: 86,
        names: &[
            "a2",
            "a10",
            "a10g",
            "a10m",
            "a16",
            "a40",
            "rtxa1000",
            "rtxa2000",
            "rtxa3000",
            "rtxa4000",
            "rtxa4500",
            "rtxa5000",
            "rtxa5500",
            "rtxa6000",
            "rtx2050",
            "rtx3050",
            "rtx3050ti",
            "rtx3060",
            "rtx3060ti",
            "rtx3070",
            "rtx3070ti",
            "rtx3080",
            "rtx3080ti",
            "rtx3090",
            "rtx3090ti",
        ],
    },
    Gpu {
        capability: 87,
        names: &[
            "orin",
            "agxorin",
            "jetsonagxorin",
            "orinnx",
            "jetsonorinnx",
            "orinnano",
            "jetsonorinnano",
        ],
    },
    Gpu {
        capability: 89,
        names: &[
            "l2",
            "l4",
            "l20",
            "l40",
            "l40g",
            "l40s",
            "rtx4050",
            "rtx4060",
            "rtx4060ti",
            "rtx4070",
            "rtx4070super",
            "rtx4070ti",
            "rtx4070tisuper",
            "rtx4080",
            "rtx4080super",
            "rtx4090",
            "rtx4090d",
            "rtx2000ada",
            "rtx4000ada",
            "rtx4500ada",
            "rtx5000ada",
            "rtx5880ada",
            "rtx6000ada",
        ],
    },
    Gpu { capability: 90, names: &["h100", "h100nvl", "h200", "h200nvl", "h20", "h800", "gh200"] },
    Gpu { capability: 100, names: &["b100", "b200", "gb200"] },
    Gpu { capability: 103, names: &["b300", "gb300"] },
    Gpu { capability: 110, names: &["thor", "agxthor", "jetsonthor", "jetsonagxthor", "t5000"] },
    Gpu {
        capability: 120,
        names: &[
            "rtx5050",
            "rtx5060",
            "rtx5060ti",
            "rtx5070",
            "rtx5070ti",
            "rtx5080",
            "rtx5090",
            "rtx5090d",
            "rtxpro500",
            "rtxpro1000",
            "rtxpro2000",
            "rtxpro3000",
            "rtxpro4000",
            "rtxpro4500",
            "rtxpro5000",
            "rtxpro6000",
            "rtxpro6000server",
        ],
    },
    Gpu { capability: 121, names: &["gb10", "dgxspark", "spark"] },
];

/// The whole table, oldest architecture first.
pub fn gpu_table() -> &'static [Gpu] {
    TABLE
}

/// Why a text names no GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UnknownGpu {
    /// It looks like an architecture, and is none.
    Arch(ParseArchError),
    /// It is older than every supported one.
    TooOld(u16),
    /// It is no name of the table; the nearest one, if one is near.
    Name(Option<&'static str>),
}

/// The architecture that `text` stands for: a GPU name such as `RTX 4090`, `rtx-4090` or
/// `h200`, or an architecture such as `sm_90a`, `sm_120` or `90`. A bare number from 90 on
/// means the `a` variant (see [`Arch::of_capability`]); case, `-`, `_` and spaces don't matter,
/// nor does a leading `geforce`, `nvidia`, `tesla` or `quadro`.
pub fn find_gpu(text: &str) -> Option<Arch> {
    lookup(text).ok()
}

pub(super) fn lookup(text: &str) -> Result<Arch, UnknownGpu> {
    let mut name: String =
        text.to_ascii_lowercase().chars().filter(|c| !"-_ .".contains(*c)).collect();
    for brand in ["nvidia", "geforce", "tesla", "quadro"] {
        if let Some(rest) = name.strip_prefix(brand) {
            name = rest.to_owned();
        }
    }
    if let Some(gpu) = TABLE.iter().find(|gpu| gpu.names.contains(&name.as_str())) {
        return Ok(Arch::of_capability(gpu.capability));
    }
    let number = name.strip_prefix("sm").or(name.strip_prefix("compute")).unwrap_or(&name);
    if number.starts_with(|c: char| c.is_ascii_digit()) {
        return match number.parse::<Arch>() {
            Ok(arch) if number.bytes().all(|b| b.is_ascii_digit()) => {
                Ok(Arch::of_capability(arch.capability()))
            }
            Ok(arch) => Ok(arch),
            Err(ParseArchError::Unknown(capability)) if capability < 75 => {
                Err(UnknownGpu::TooOld(capability))
            }
            Err(error) => Err(UnknownGpu::Arch(error)),
        };
    }
    let names = TABLE.iter().flat_map(|gpu| gpu.names.iter().copied());
    Err(UnknownGpu::Name(super::reader::nearest(&name, names)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn arch(text: &str) -> String {
        find_gpu(text).map_or_else(|| "none".to_owned(), |arch| arch.to_string())
    }

    #[test]
    fn spellings() {
        for (text, expected) in [
            ("a100", "sm_80"),
            ("A10G", "sm_86"),
            ("H200", "sm_90a"),
            ("RTX 4090", "sm_89"),
            ("GeForce RTX-3060 Ti", "sm_86"),
            ("rtx-pro-6000", "sm_120a"),
            ("dgx-spark", "sm_121a"),
            ("Tesla T4", "sm_75"),
            ("sm_75", "sm_75"),
            ("sm_90", "sm_90a"),
            ("SM_90A", "sm_90a"),
            ("90", "sm_90a"),
            ("8.6", "sm_86"),
            ("sm_100f", "sm_100f"),
            ("compute_120", "sm_120a"),
            ("h2000", "none"),
            ("sm_70", "none"),
            ("", "none"),
        ] {
            assert_eq!(arch(text), expected, "{text}");
        }
    }

    #[test]
    fn every_name_is_listed_once_and_normalised() {
        let mut seen = HashSet::new();
        for name in TABLE.iter().flat_map(|gpu| gpu.names) {
            assert!(seen.insert(name), "{name} twice");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()), "{name}");
        }
    }

    #[test]
    fn near_names_are_suggested() {
        assert_eq!(lookup("h20O"), Err(UnknownGpu::Name(Some("h200"))));
        assert_eq!(lookup("rtx409o"), Err(UnknownGpu::Name(Some("rtx4090"))));
        assert_eq!(lookup("mi300x"), Err(UnknownGpu::Name(None)));
        assert_eq!(lookup("sm_61"), Err(UnknownGpu::TooOld(61)));
    }
}
