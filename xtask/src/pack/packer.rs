//! Writing a pack: programs, weights, images, executables.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use aot_ir::{Arch, Graph};
use aot_kernels::kernels_for;
use aot_runtime::artifact::{ImagesInfo, Packing, WeightsLayout, write_images, write_model};
use aot_tests::manifest::{Entry, FILE, Pack};
use aot_tests::packed;
use cargo_aot::build::cache::Cache;
use cargo_aot::build::compiler::LazyNvrtc;
use cargo_aot::build::events::Silent;
use cargo_aot::build::jobs::{Settings, compile};
use cargo_aot::build::kernels::{Alternative, KernelSource, Origin};
use cargo_aot::build::toolchain::{self, CudaMajor, Search};
use cargo_aot::lower::program::{KernelUnit, assemble};
use cargo_aot::lower::{LowerOptions, Precision, lower};

use crate::error::{Error, Result};
use crate::layout::Layout;

/// Collects entries and the kernels that they need.
pub(super) struct Packer<'a> {
    dir: &'a Path,
    targets: Vec<(Arch, bool)>,
    pack: Pack,
    units: BTreeMap<([u8; 32], Arch, bool), KernelUnit>,
    /// How many kernels each family and precision was the first to need.
    added: BTreeMap<String, usize>,
}

const SCRIPT: &str = "#!/bin/sh
# Runs all benches and GPU tests of this pack; needs a GPU and its driver. Prints `N passed, N failed` last.
cd \"$(dirname \"$0\")\" || exit 2
timeout 240 ./bin/gpu-bench . || echo 'gpu-bench failed'
exec timeout 900 ./bin/gpu-tests . \"$@\"
";

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(Error::io("write", path))
}

impl<'a> Packer<'a> {
    /// An empty pack in a folder, which is made; targets are architectures or `ARCH-ptx`.
    pub(super) fn new(dir: &'a Path, targets: &[String]) -> Result<Self> {
        for part in ["models", "bin"] {
            let path = dir.join(part);
            fs::create_dir_all(&path).map_err(Error::io("create", &path))?;
        }
        let target = |text: &String| {
            let (name, ptx) =
                text.strip_suffix("-ptx").map_or((text.as_str(), false), |n| (n, true));
            name.parse::<Arch>().map(|arch| (arch, ptx)).map_err(|e| Error::Other(e.to_string()))
        };
        let targets = targets.iter().map(target).collect::<Result<_>>()?;
        let (pack, units, added) = (Pack::default(), BTreeMap::new(), BTreeMap::new());
        Ok(Self { dir, targets, pack, units, added })
    }

    /// Notes that something could not be compiled.
    pub(super) fn failed(&mut self, name: &str, reason: &str) {
        self.pack.failures.push((name.to_owned(), reason.to_owned()));
    }

    /// Writes recorded data for the next entry; the file's name in the pack.
    pub(super) fn record(&self, bytes: &[u8]) -> Result<String> {
        let file = format!("models/{}.data", self.pack.entries.len());
        write(&self.dir.join(&file), bytes)?;
        Ok(file)
    }

    /// Says how many kernels each family of networks added.
    pub(super) fn count(&self) {
        for (family, kernels) in &self.added {
            println!("{kernels:5} {family}");
        }
        println!("{:5} in all", self.units.len());
    }

    /// Compiles all kernels and writes what is still missing.
    pub(super) fn finish(mut self, layout: &Layout) -> Result<()> {
        self.compile(layout)?;
        let json =
            serde_json::to_string_pretty(&self.pack).map_err(|e| Error::Other(e.to_string()))?;
        write(&self.dir.join(FILE), json.as_bytes())?;
        executables(layout, self.dir)?;
        for (name, text) in [("run.sh", SCRIPT), ("sanitize.sh", include_str!("sanitize.sh"))] {
            let script = self.dir.join(name);
            write(&script, text.as_bytes())?;
            let runnable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&script, runnable)
                .map_err(Error::io("make executable", &script))?;
        }
        println!(
            "{} networks, {} kernels, {} not compiled in {}",
            self.pack.entries.len(),
            self.units.len(),
            self.pack.failures.len(),
            self.dir.display()
        );
        Ok(())
    }

    /// Compiles a graph to a program and writes it; equal weights are written once.
    pub(super) fn add(
        &mut self,
        mut entry: Entry,
        graph: &Graph,
        precision: Precision,
    ) -> Result<()> {
        let other = |e: &dyn std::error::Error| Error::Other(format!("{}: {e}", entry.name));
        let options = LowerOptions { precision, precision_for: Vec::new() };
        let plan = lower(graph, &options).map_err(|e| other(&e))?;
        let targets = if entry.everywhere { &self.targets } else { &self.targets[..1] };
        let assembled =
            assemble(&plan, &entry.name, targets, &[], &kernels_for).map_err(|e| other(&e))?;
        let layout = WeightsLayout::new(graph);
        let (weights, id) = layout.write(graph);
        let model = write_model(&assembled.program, graph, &layout, &id).map_err(|e| other(&e))?;
        entry.model = format!("models/{}.model", self.pack.entries.len());
        match entry.made {
            Some(made) if made.weights()[..] != weights[..] => {
                let reason = "its weights are not those of the network that is made";
                return Err(Error::Other(format!("{}: {reason}", entry.name)));
            }
            Some(_) => {}
            None => {
                entry.weights = format!("models/{:016x}.weights", id.checksum);
                write(&self.dir.join(&entry.weights), &weights)?;
            }
        }
        write(&self.dir.join(&entry.model), &model)?;
        let before = self.units.len();
        for unit in assembled.kernels {
            self.units.entry((unit.key, unit.arch, unit.ptx)).or_insert(unit);
        }
        let family = entry.name.split('/').next().unwrap_or_default();
        let family = format!("{family} in {}", entry.precision);
        *self.added.entry(family).or_default() += self.units.len() - before;
        self.pack.entries.push(entry);
        Ok(())
    }

    fn compile(&mut self, layout: &Layout) -> Result<()> {
        let other = |e: &dyn std::error::Error| Error::Other(e.to_string());
        let cuda = CudaMajor::Cuda13;
        let found = toolchain::ensure(&Search::from_env(cuda, None), false, &|t| eprintln!("{t}"))
            .map_err(|e| other(&e))?;
        let cache = Cache::new(layout.root().join("target/aot/cache"), None);
        let compiler = LazyNvrtc::new(found, &cache, &Silent).map_err(|e| other(&e))?;
        let sources: Vec<KernelSource> = self
            .units
            .values()
            .map(|unit| KernelSource {
                name: unit.kernel.entry.clone(),
                alternatives: vec![Alternative {
                    schedule: unit.kernel.schedule.clone(),
                    source: unit.kernel.source.clone(),
                    options: unit.kernel.options.clone(),
                }],
                origin: vec![Origin {
                    model: "pack".to_owned(),
                    group: unit.group.clone(),
                    nodes: unit.nodes.clone(),
                }],
                archs: if unit.ptx { Vec::new() } else { vec![unit.arch] },
                ptx: unit.ptx.then_some(unit.arch),
            })
            .collect();
        println!("compiling {} kernels", sources.len());
        let settings = Settings {
            cache: &cache,
            compiler: &compiler,
            watch: &Silent,
            threads: 0,
            ptx_version: cuda.ptx_version(),
            strict: true,
        };
        let images = compile(&sources, &settings).map_err(|e| other(&e))?;
        for &(arch, ptx) in &self.targets {
            let chosen = self.units.keys().zip(&images.of).filter_map(|((key, a, p), of)| {
                let image = of.first().map(|i| &images.images[*i])?;
                ((*a, *p) == (arch, ptx)).then_some((*key, image.bytes.as_slice()))
            });
            let info = ImagesInfo { arch, ptx, driver: 12000 };
            let bytes = write_images(info, Packing::Plain, chosen).map_err(|e| other(&e))?;
            let name = format!("{arch}{}.images.br", if ptx { "-ptx" } else { "" });
            let path = self.dir.join(&name);
            write(&path, &packed::compress(&bytes).map_err(Error::io("compress", &path))?)?;
            self.pack.images.push(name);
        }
        Ok(())
    }
}

/// Builds the executables and puts them into the pack, without symbols.
fn executables(layout: &Layout, dir: &Path) -> Result<()> {
    let run = |command: &mut Command| {
        let status = command.status().map_err(|e| Error::Other(e.to_string()))?;
        match status.success() {
            true => Ok(()),
            false => Err(Error::Other(format!("{command:?} failed"))),
        }
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo).current_dir(layout.root()).args([
        "build",
        "--profile",
        "pack",
        "--package",
        "aot-tests",
        "--bins",
    ]))?;
    for name in ["gpu-tests", "gpu-bench"] {
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or(layout.root().join("target"), PathBuf::from);
        let from = target.join("pack").join(name);
        let to = dir.join("bin").join(name);
        fs::copy(&from, &to).map_err(Error::io("copy", &from))?;
    }
    Ok(())
}
