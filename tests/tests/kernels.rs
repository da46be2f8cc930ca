//! Every kernel of every network, compiled for every architecture, and its PTX assembled by the
//! oldest assembler that has to take it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::groups::passed;
use aot_ir::Arch;
use aot_kernels::kernels_for;
use aot_tests::cases::all;
use cargo_aot::build::cache::Cache;
use cargo_aot::build::compiler::LazyNvrtc;
use cargo_aot::build::events::Silent;
use cargo_aot::build::jobs::{Images, Settings, compile};
use cargo_aot::build::kernels::{Alternative, KernelSource, Origin};
use cargo_aot::build::nvrtc::Target;
use cargo_aot::build::toolchain::{CudaMajor, Search, ensure};
use cargo_aot::lower::{LowerOptions, Precision, lower};
use rayon::prelude::*;

/// Capabilities to compile for, by precision: each kind of GPU in one of them.
const CAPABILITIES: [(Precision, &[u16]); 2] =
    [(Precision::F16, &[75, 80, 86, 89, 90]), (Precision::F32, &[80, 100, 120])];

/// The assembler of CUDA 13.0, which drivers R580 have, as its wheels are pinned.
const ASSEMBLER: &str = "nvidia-cuda-nvcc==13.0.88 \
     --hash=sha256:56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03 \
     --hash=sha256:c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// Kernels of all networks, each text once, for the architectures that chose it.
fn sources() -> Vec<KernelSource> {
    let mut found: BTreeMap<(String, Vec<String>), KernelSource> = BTreeMap::new();
    for case in all().into_iter().filter(|c| c.on_gpus) {
        for (precision, capabilities) in CAPABILITIES {
            let options = LowerOptions { precision, precision_for: Vec::new() };
            let graph = passed(&case);
            let Ok(plan) = lower(&graph, &options) else {
                panic!("{} cannot be lowered", case.name)
            };
            // What is drawn at random is to compile at all, for the others compile everywhere.
            let one = case.name.starts_with("random/");
            let capabilities = if one { &capabilities[..1] } else { capabilities };
            for group in plan.prepare.iter().chain(&plan.steps) {
                for arch in capabilities.iter().copied().map(Arch::of_capability) {
                    let kernels = kernels_for(group, &plan.graph.symbols, arch);
                    let kernels = kernels.unwrap_or_else(|e| panic!("{}: {e}", case.name));
                    for kernel in kernels {
                        let key = (kernel.source.clone(), kernel.options.clone());
                        let source = found.entry(key).or_insert_with(|| KernelSource {
                            name: kernel.entry.clone(),
                            alternatives: vec![Alternative {
                                schedule: kernel.schedule.clone(),
                                source: kernel.source.clone(),
                                options: kernel.options.clone(),
                            }],
                            origin: vec![Origin {
                                model: case.name.clone(),
                                group: group.label.clone(),
                                nodes: group.origin.clone(),
                            }],
                            archs: Vec::new(),
                            ptx: None,
                        });
                        source.archs.push(arch);
                        // The portable path is what newer GPUs compile from PTX.
                        if arch == Arch::of_capability(80) {
                            source.ptx = Some(arch);
                        }
                    }
                }
            }
        }
    }
    found.into_values().collect()
}

fn compiled(sources: &[KernelSource]) -> Images {
    let search = Search::from_env(CudaMajor::Cuda13, None);
    let toolchain = ensure(&search, false, &|text| eprintln!("{text}")).expect("a toolchain");
    let cache = Cache::new(folder().join("kernels"), None);
    let compiler = LazyNvrtc::new(toolchain, &cache, &Silent).expect("an identity");
    let settings = Settings {
        cache: &cache,
        compiler: &compiler,
        watch: &Silent,
        threads: 0,
        ptx_version: CudaMajor::Cuda13.ptx_version(),
        strict: true,
    };
    compile(sources, &settings).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The path of ptxas 13.0, fetched once.
fn assembler() -> PathBuf {
    let folder = folder().join("ptxas-13.0");
    let program = folder.join("nvidia/cu13/bin/ptxas");
    if program.is_file() {
        return program;
    }
    fs::create_dir_all(&folder).unwrap();
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, ASSEMBLER).unwrap();
    // A wheel unpacked by pip keeps the mark that the program may be run.
    let status = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--upgrade"])
        .arg("--target")
        .arg(&folder)
        .arg("--requirement")
        .arg(&requirements)
        .status()
        .expect("python3 with pip is needed");
    assert!(status.success(), "pip could not fetch the assembler");
    assert!(program.is_file(), "no ptxas in the wheel");
    program
}

/// Assembles PTX for a GPU. Gives what the assembler says when it refuses.
fn assemble(program: &Path, ptx: &Path, arch: &str) -> Result<(), String> {
    let output = Command::new(program)
        .arg(format!("--gpu-name={arch}"))
        .arg(ptx)
        .arg("--output-file")
        .arg(ptx.with_extension(format!("{arch}.cubin")))
        .output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(said) }
}

#[test]
fn every_kernel_compiles_everywhere_and_old_drivers_take_its_ptx() {
    let sources = sources();
    assert!(sources.len() > 100, "{}", sources.len());
    let images = compiled(&sources).images;
    for image in &images {
        assert!(
            image.report.warnings.is_empty(),
            "{} for {}: {:?}",
            image.name,
            image.target,
            image.report.warnings
        );
    }
    let program = assembler();
    let dir = tempfile::tempdir().unwrap();
    let ptx: Vec<_> =
        images.iter().filter(|image| matches!(image.target, Target::Ptx(_))).collect();
    assert!(ptx.len() > 50, "{}", ptx.len());
    let refused: Vec<String> = ptx
        .par_iter()
        .enumerate()
        .filter_map(|(index, image)| {
            let path = dir.path().join(format!("{index}.ptx"));
            fs::write(&path, &image.bytes).unwrap();
            // A GPU newer than any that has an image of its own.
            let error = assemble(&program, &path, "sm_121").err()?;
            Some(format!("{}: {error}", image.name))
        })
        .collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    // Unless it were lowered, it would be refused.
    let newest = String::from_utf8(ptx[0].bytes.clone()).unwrap();
    let newest = newest.replace(".version 9.0", ".version 9.5");
    let path = dir.path().join("newest.ptx");
    fs::write(&path, newest).unwrap();
    assert!(assemble(&program, &path, "sm_121").unwrap_err().contains("9.5"));
}
