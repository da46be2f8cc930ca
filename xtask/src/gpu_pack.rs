//! A folder that tests and times kernels on a machine with a GPU and nothing but its driver.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use aot_ir::op::BinaryOp;
use aot_ir::{Arch, DType, Dim, Graph, Op};
use aot_kernels::kernels_for;
use aot_runtime::artifact::{ImagesInfo, WeightsLayout, write_images, write_model};
use aot_tests::cases::{self, Case};
use aot_tests::manifest::{Entry, FILE, Pack};
use aot_tests::net::Net;
use cargo_aot::build::cache::Cache;
use cargo_aot::build::compiler::LazyNvrtc;
use cargo_aot::build::events::Silent;
use cargo_aot::build::jobs::{Settings, compile};
use cargo_aot::build::kernels::{Alternative, KernelSource, Origin};
use cargo_aot::build::toolchain::{self, CudaMajor, Search};
use cargo_aot::import::{AxisSpec, DimSpec, ImportOptions, import};
use cargo_aot::lower::program::{KernelUnit, assemble};
use cargo_aot::lower::{LowerOptions, Precision, lower};
use cargo_aot::passes;

use crate::error::{Error, Result};
use crate::layout::Layout;

/// What to pack.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The folder to write
    dir: PathBuf,
    /// Models to include, by name
    #[arg(long, value_delimiter = ',', default_value = "minilm,det,rec,cls,basic-pitch")]
    models: Vec<String>,
    /// Only images for these: architectures, or `ARCH-ptx`
    #[arg(long, value_delimiter = ',', default_value = "sm_90a,sm_80,sm_80-ptx")]
    targets: Vec<String>,
    /// Only networks whose name contains this
    #[arg(long, default_value = "")]
    filter: String,
    /// Only say how many kernels each family of networks adds
    #[arg(long)]
    count: bool,
}

const PRECISIONS: [(&str, Precision); 4] = [
    ("f32", Precision::F32),
    ("tf32", Precision::Tf32),
    ("f16", Precision::F16),
    ("bf16", Precision::Bf16),
];

type Sizes<'a> = &'a [&'a [(&'a str, i64)]];

/// A model of assets/models: name, file, axes of inputs, ranges of dims, sizes to try, bounds of integer inputs.
struct Source {
    name: &'static str,
    file: &'static str,
    inputs: &'static [(&'static str, &'static [&'static str])],
    dims: &'static [(&'static str, i64, i64, i64)],
    sizes: Sizes<'static>,
    bounds: &'static [(&'static str, i64)],
    /// Its f16 kernels are compiled for all targets, not for the first alone.
    everywhere: bool,
}

const BATCH_SEQUENCE: &[&str] = &["batch", "sequence"];

const SOURCES: &[Source] = &[
    Source {
        name: "minilm",
        file: "minilm/minilm.onnx",
        inputs: &[
            ("input_ids", BATCH_SEQUENCE),
            ("attention_mask", BATCH_SEQUENCE),
            ("token_type_ids", BATCH_SEQUENCE),
        ],
        dims: &[("batch", 1, 64, 1), ("sequence", 1, 512, 1)],
        sizes: &[
            &[("batch", 1), ("sequence", 1)],
            &[("batch", 3), ("sequence", 37)],
            &[("batch", 32), ("sequence", 128)],
            &[("batch", 2), ("sequence", 512)],
        ],
        bounds: &[("input_ids", 30000), ("attention_mask", 2), ("token_type_ids", 2)],
        everywhere: true,
    },
    Source {
        name: "det",
        file: "pp-ocr/det.onnx",
        inputs: &[("x", &["1", "3", "h", "w"])],
        dims: &[("h", 32, 960, 32), ("w", 32, 960, 32)],
        sizes: &[&[("h", 32), ("w", 32)], &[("h", 96), ("w", 224)], &[("h", 320), ("w", 320)]],
        bounds: &[],
        everywhere: false,
    },
    Source {
        name: "rec",
        file: "pp-ocr/rec.onnx",
        inputs: &[("x", &["n", "3", "48", "w"])],
        dims: &[("n", 1, 8, 1), ("w", 8, 1280, 4)],
        sizes: &[&[("n", 1), ("w", 8)], &[("n", 2), ("w", 100)], &[("n", 1), ("w", 320)]],
        bounds: &[],
        everywhere: true,
    },
    Source {
        name: "cls",
        file: "pp-ocr/cls.onnx",
        inputs: &[("x", &["n", "3", "48", "192"])],
        dims: &[("n", 1, 8, 1)],
        sizes: &[&[("n", 1)], &[("n", 8)]],
        bounds: &[],
        everywhere: false,
    },
    Source {
        name: "basic-pitch",
        file: "basic-pitch/nmp.onnx",
        inputs: &[("serving_default_input_2:0", &["n", "43844", "1"])],
        dims: &[("n", 1, 8, 1)],
        sizes: &[&[("n", 1)]],
        bounds: &[],
        everywhere: false,
    },
    Source {
        name: "common-det",
        file: "ddddocr/common_det.onnx",
        inputs: &[("images", &["1", "3", "416", "416"])],
        dims: &[],
        sizes: &[&[]],
        bounds: &[],
        everywhere: false,
    },
];

/// Collects entries and the kernels that they need.
struct Packer<'a> {
    dir: &'a Path,
    targets: Vec<(Arch, bool)>,
    pack: Pack,
    units: BTreeMap<([u8; 32], Arch, bool), KernelUnit>,
    /// How many kernels each family and precision was the first to need.
    added: BTreeMap<String, usize>,
}

/// Writes the pack.
pub(crate) fn gpu_pack(layout: &Layout, arguments: &Arguments) -> Result<()> {
    let dir = &arguments.dir;
    let make = |path: &Path| fs::create_dir_all(path).map_err(Error::io("create", path));
    make(&dir.join("models"))?;
    make(&dir.join("bin"))?;
    let target = |text: &String| {
        let (name, ptx) = text.strip_suffix("-ptx").map_or((text.as_str(), false), |n| (n, true));
        name.parse::<Arch>().map(|arch| (arch, ptx)).map_err(|e| Error::Other(e.to_string()))
    };
    let mut packer = Packer {
        dir,
        targets: arguments.targets.iter().map(target).collect::<Result<_>>()?,
        pack: Pack::default(),
        units: BTreeMap::new(),
        added: BTreeMap::new(),
    };
    let chosen = |c: &&Case| c.on_gpus && c.name.contains(&arguments.filter);
    for case in cases::all().iter().filter(chosen) {
        let passed;
        let graph = if case.written_out {
            let options = passes::Options::default();
            passed = passes::run(&case.graph, &options).map_err(|e| Error::Other(e.to_string()))?;
            &passed
        } else {
            &case.graph
        };
        for (name, precision) in PRECISIONS {
            if !case.runs_in(name) {
                continue;
            }
            let chain = if name == "f32" { 1.0 } else { 3.0 };
            let tolerance = aot_tests::compare::tolerance(name, DType::F32) * case.slack * chain;
            packer.add(
                Entry {
                    name: case.name.clone(),
                    precision: name.to_owned(),
                    model: String::new(),
                    weights: String::new(),
                    sizes: case.sizes.clone(),
                    tolerance,
                    bounds: Vec::new(),
                    pictures: false,
                    everywhere: true,
                    bench: false,
                },
                graph,
                precision,
            )?;
        }
    }
    for side in [4096i64, 8192] {
        let name = format!("bench/gemm {side}");
        if name.contains(&arguments.filter) {
            let entry = Entry {
                name,
                precision: "f16".to_owned(),
                model: String::new(),
                weights: String::new(),
                sizes: vec![vec![]],
                tolerance: 2e-3,
                bounds: Vec::new(),
                pictures: false,
                everywhere: true,
                bench: true,
            };
            packer.add(entry, &gemm(side), Precision::F16)?;
        }
    }
    for source in SOURCES.iter().filter(|s| arguments.models.iter().any(|m| m == s.name)) {
        let graph = source.graph(layout)?;
        for (name, precision) in [PRECISIONS[0], PRECISIONS[2]] {
            let owned = |s: &&[(&str, i64)]| s.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
            packer.add(
                Entry {
                    name: format!("model/{}", source.name),
                    precision: name.to_owned(),
                    model: String::new(),
                    weights: String::new(),
                    sizes: source.sizes.iter().map(owned).collect(),
                    tolerance: if name == "f32" { 1e-3 } else { 1e-2 },
                    bounds: source.bounds.iter().map(|(n, b)| ((*n).to_owned(), *b)).collect(),
                    pictures: source.name == "det",
                    everywhere: source.everywhere && name == "f16",
                    bench: true,
                },
                &graph,
                precision,
            )?;
        }
    }
    if arguments.count {
        for (family, kernels) in &packer.added {
            println!("{kernels:5} {family}");
        }
        println!("{:5} in all", packer.units.len());
        return Ok(());
    }
    packer.compile(layout)?;
    let json =
        serde_json::to_string_pretty(&packer.pack).map_err(|e| Error::Other(e.to_string()))?;
    write(&dir.join(FILE), json.as_bytes())?;
    executables(layout, dir)?;
    let script = dir.join("run.sh");
    write(&script, SCRIPT.as_bytes())?;
    println!(
        "{} networks, {} kernels in {}",
        packer.pack.entries.len(),
        packer.units.len(),
        dir.display()
    );
    Ok(())
}

const SCRIPT: &str = "#!/bin/sh
# Runs all benches and GPU tests of this pack; needs a GPU and its driver. Prints `N passed, N failed` last.
cd \"$(dirname \"$0\")\" || exit 2
timeout 120 ./bin/gpu-bench . || echo 'gpu-bench failed'
exec timeout 900 ./bin/gpu-tests . \"$@\"
";

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(Error::io("write", path))
}

/// A square product of inputs that are f16 already.
fn gemm(side: i64) -> Graph {
    let mut net = Net::new();
    let shape = [Dim::from(side), Dim::from(side)];
    let a = net.input(DType::F16, &shape);
    let b = net.input(DType::F16, &shape);
    let c = net.op(Op::MatMul, &[a, b]);
    // Without scaling, sums of thousands of products would be coarse in f16.
    let scale = net.halfs(&[], &[(side as f32).sqrt().recip()]);
    let c = net.op(Op::Binary(BinaryOp::Mul), &[c, scale]);
    net.output(c);
    net.graph
}

impl Source {
    fn graph(&self, layout: &Layout) -> Result<Graph> {
        let axis = |text: &&str| match text.parse() {
            Ok(size) => AxisSpec::Fixed(size),
            Err(_) => AxisSpec::Named((*text).to_owned()),
        };
        let inputs = self.inputs.iter();
        let inputs =
            inputs.map(|(name, axes)| ((*name).to_owned(), axes.iter().map(axis).collect()));
        let dims = self.dims.iter();
        let dims =
            dims.map(|&(name, lo, hi, step)| (name.to_owned(), DimSpec::Range { lo, hi, step }));
        let options = ImportOptions {
            name: self.name.to_owned(),
            dims: dims.collect(),
            inputs: inputs.collect(),
            ..ImportOptions::default()
        };
        let path = layout.assets().join("models").join(self.file);
        let other = |e: &dyn std::error::Error| Error::Other(format!("{}: {e}", self.name));
        let imported = import(&path, &options).map_err(|e| other(&e))?;
        passes::run(&imported.graph, &passes::Options::default()).map_err(|e| other(&e))
    }
}

impl Packer<'_> {
    /// Compiles a graph to a program and writes it; equal weights are written once.
    fn add(&mut self, mut entry: Entry, graph: &Graph, precision: Precision) -> Result<()> {
        let other = |e: &dyn std::error::Error| Error::Other(format!("{}: {e}", entry.name));
        let options = LowerOptions { precision, precision_for: Vec::new() };
        let plan = lower(graph, &options).map_err(|e| other(&e))?;
        let targets = if entry.everywhere { &self.targets } else { &self.targets[..1] };
        let assembled =
            assemble(&plan, &entry.name, targets, &[], &kernels_for).map_err(|e| other(&e))?;
        let layout = WeightsLayout::new(graph);
        let (weights, id) = layout.write(graph);
        let model = write_model(&assembled.program, graph, &layout, &id).map_err(|e| other(&e))?;
        entry.weights = format!("models/{:016x}.weights", id.checksum);
        entry.model = format!("models/{}.model", self.pack.entries.len());
        write(&self.dir.join(&entry.weights), &weights)?;
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
        let compiler = LazyNvrtc::new(found, &cache).map_err(|e| other(&e))?;
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
            let bytes = write_images(info, chosen).map_err(|e| other(&e))?;
            let name = format!("{arch}{}.images", if ptx { "-ptx" } else { "" });
            write(&self.dir.join(&name), &bytes)?;
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
