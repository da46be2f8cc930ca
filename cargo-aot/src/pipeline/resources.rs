//! What compiled kernels take of a multiprocessor.

use aot_runtime::artifact::ImagesFile;

use super::artifacts::TargetImages;
use super::summary::{ModelSummary, hex};
use crate::build::cubin::{Usage, usage};

/// What the image with this key says of its function `entry`; none where there is no such image, or
/// no machine code.
pub fn kernel_usage(file: &[u8], key: &[u8; 32], entry: &str) -> Option<Usage> {
    let image = ImagesFile::open(file).ok()?.get(key).ok()??;
    usage(&image)?.into_iter().find(|usage| usage.entry == entry)
}

impl ModelSummary {
    /// Adds what machine code says of kernels, where `images` have the kernels of this plan.
    pub fn add_resources(&mut self, images: &[TargetImages]) {
        for ((arch, ptx), bytes) in images {
            let arch = arch.to_string();
            let target = self.targets.iter_mut().find(|t| (&t.arch, t.ptx) == (&arch, *ptx));
            let (Some(target), Ok(file)) = (target, ImagesFile::open(bytes)) else { continue };
            for kernel in &mut target.kernels {
                let key = file.keys().find(|key| hex(key) == kernel.key);
                if let Some(usage) = key.and_then(|key| kernel_usage(bytes, &key, &kernel.name)) {
                    kernel.registers = Some(usage.registers);
                    kernel.stack = Some(usage.stack);
                    kernel.static_shared = Some(usage.static_shared);
                    kernel.code = Some(usage.code);
                }
            }
        }
    }
}
