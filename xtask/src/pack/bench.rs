//! Benches on this machine.

use std::process::Command;

use super::gpu::{self, gpu_pack};
use crate::error::{Error, Result};
use crate::layout::Layout;

/// What to time.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Models, by name
    #[arg(long, value_delimiter = ',', default_value = "minilm,det,rec,cls,basic-pitch")]
    models: Vec<String>,
    /// The GPU's architecture, or `ARCH-ptx`
    #[arg(long, default_value = "sm_90a")]
    target: String,
    /// Only networks whose name contains this
    #[arg(long, default_value = "bench/")]
    filter: String,
}

/// Builds a pack of the models under `target` and runs its benches.
pub(crate) fn bench(layout: &Layout, arguments: &Arguments) -> Result<()> {
    let Arguments { models, target, filter } = arguments.clone();
    let dir = layout.root().join("target/bench-pack");
    let pack =
        gpu::Arguments { dir: dir.clone(), models, targets: vec![target], filter, count: false };
    gpu_pack(layout, &pack)?;
    let status = Command::new(dir.join("bin/gpu-bench")).arg(&dir).status();
    match status.map_err(Error::io("run", &dir))?.success() {
        true => Ok(()),
        false => Err(Error::Other("the benches failed".to_owned())),
    }
}
