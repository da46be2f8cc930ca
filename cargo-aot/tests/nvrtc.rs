//! The real compiler: all architectures, PTX for old drivers, the cache around it. Fetches the
//! toolchain when there is none.

use std::sync::OnceLock;

use aot_kernels::{Arch, KNOWN_CAPABILITIES};
use cargo_aot::build::cache::Cache;
use cargo_aot::build::compiler::{Compiler, LazyNvrtc};
use cargo_aot::build::cubin;
use cargo_aot::build::events::{Counts, Silent};
use cargo_aot::build::jobs::{self, Images, KernelErrors, Settings};
use cargo_aot::build::kernels::{Alternative, KernelFailure, KernelSource, Origin};
use cargo_aot::build::nvrtc::{Nvrtc, Request, Target};
use cargo_aot::build::ptx;
use cargo_aot::build::report::Report;
use cargo_aot::build::toolchain::{CudaMajor, Identity, Search, Toolchain, ensure};

const ADD: &str = "\
#include <cuda_fp16.h>
extern \"C\" __global__ void add(const __half* a, const __half* b, __half* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = __hadd(a[i], b[i]);
}
";

fn toolchain() -> &'static Toolchain {
    static TOOLCHAIN: OnceLock<Toolchain> = OnceLock::new();
    TOOLCHAIN.get_or_init(|| {
        let search = Search::from_env(CudaMajor::Cuda13, None);
        ensure(&search, false, &|text| eprintln!("{text}")).expect("a toolchain")
    })
}

fn nvrtc() -> Nvrtc {
    Nvrtc::load(toolchain()).expect("the compiler loads")
}

fn kernel(name: &str, texts: &[&str], archs: &[Arch]) -> KernelSource {
    let alternatives = texts.iter().enumerate().map(|(index, text)| Alternative {
        schedule: format!("schedule {index}"),
        source: (*text).to_owned(),
        options: Vec::new(),
    });
    let origin =
        Origin { model: "m".to_owned(), group: "g".to_owned(), nodes: vec!["/n".to_owned()] };
    KernelSource {
        name: name.to_owned(),
        alternatives: alternatives.collect(),
        origin: vec![origin],
        archs: archs.to_vec(),
        ptx: Some(Arch::of_capability(80)),
    }
}

fn compile(sources: &[KernelSource], cache: &Cache) -> Result<Images, KernelErrors> {
    let compiler = LazyNvrtc::new(toolchain().clone(), cache, &Silent).expect("an identity");
    let settings = Settings {
        cache,
        compiler: &compiler,
        watch: &Silent,
        threads: 0,
        ptx_version: CudaMajor::Cuda13.ptx_version(),
        strict: true,
    };
    jobs::compile(sources, &settings)
}

#[test]
fn every_architecture_compiles_to_the_same_bytes_again() {
    let nvrtc = nvrtc();
    assert_eq!(nvrtc.version().0, 13);
    for capability in KNOWN_CAPABILITIES {
        let arch = Arch::of_capability(capability);
        let options = ["--ptxas-options=-v".to_owned()];
        let target = Target::Cubin(arch);
        let request = Request { source: ADD, name: "add.cu", options: &options, target };
        let first = nvrtc.compile(&request).unwrap_or_else(|e| panic!("{arch}: {e}\n{}", e.log));
        assert_eq!(first.image[..4], *b"\x7fELF", "{arch}");
        assert_eq!(first.image, nvrtc.compile(&request).unwrap().image, "{arch}");
        let report = Report::parse(&first.log);
        assert_eq!(report.entries.len(), 1, "{arch}: {}", first.log);
        assert_eq!(report.entries[0].entry, "add");
        let [usage] = &cubin::usage(&first.image).unwrap()[..] else { panic!("{arch}") };
        assert_eq!((usage.entry.as_str(), usage.stack), ("add", 0), "{arch}");
        assert_eq!(usage.registers, report.entries[0].registers, "{arch}");
        assert!(report.registers() > 0 && report.spills() == 0, "{arch}: {report:?}");
    }
}

#[test]
fn errors_carry_the_log() {
    let target = Target::Cubin(Arch::of_capability(80));
    let source = "__global__ void k() { nothing(); }";
    let request = Request { source, name: "bad.cu", options: &[], target };
    let error = nvrtc().compile(&request).unwrap_err();
    assert!(error.log.contains("bad.cu(1): error: identifier \"nothing\""), "{}", error.log);
    let request = Request { source: "a\0b", ..request };
    assert!(nvrtc().compile(&request).unwrap_err().message.contains("NUL"));
    let options = ["--no-such-option".to_owned()];
    let request = Request { source: ADD, options: &options, ..request };
    assert!(nvrtc().compile(&request).unwrap_err().message.contains("OPTION"));
}

#[test]
fn ptx_is_for_the_oldest_driver() {
    let target = Target::Ptx(Arch::of_capability(80));
    let request = Request { source: ADD, name: "add.cu", options: &[], target };
    let image = nvrtc().compile(&request).unwrap().image;
    let cubin = Request { target: Target::Cubin(target.arch()), ..request };
    assert_eq!(
        nvrtc().compile(&cubin).unwrap().ptx.as_ref(),
        Some(&image),
        "the same with a cubin"
    );
    let lowered = ptx::lower_version(&image, CudaMajor::Cuda13.ptx_version()).unwrap();
    let text = String::from_utf8(lowered).unwrap();
    assert!(text.contains("\n.version 9.0\n.target sm_80\n"), "{text}");
}

#[test]
fn the_identity_is_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::new(dir.path().join("cache"), None);
    let asked = LazyNvrtc::new(toolchain().clone(), &cache, &Silent).unwrap();
    let remembered = LazyNvrtc::new(toolchain().clone(), &cache, &Silent).unwrap();
    assert_eq!(asked.identity(), remembered.identity());
    assert_eq!(*asked.identity(), Identity::of(&nvrtc(), toolchain()).unwrap());
    let (major, minor) = toolchain().version;
    assert!(asked.identity().version.starts_with(&format!("{major}.{minor}.")));
}

#[test]
fn a_build_compiles_what_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::new(dir.path().join("cache"), None);
    let archs = [80, 86, 90].map(Arch::of_capability);
    let sources = [kernel("add", &[ADD], &archs)];
    let first = compile(&sources, &cache).unwrap();
    assert_eq!(first.counts, Counts { cached: 0, compiled: 3, failed: 0 });
    assert_eq!(first.images[0].serves, archs[..2]);
    let second = compile(&sources, &cache).unwrap();
    assert_eq!(second.counts, Counts { cached: 3, compiled: 0, failed: 0 });
    for (first, second) in first.images.iter().zip(&second.images) {
        assert_eq!(first.bytes, second.bytes);
    }
}

/// `wgmma` whose accumulator is touched while it is in flight: the assembler serialises it.
const SERIALISED: &str = "\
extern \"C\" __global__ void __launch_bounds__(128) k(float* c, unsigned long long a, int n) {
  float d[4] = {0, 0, 0, 0};
  for (int i = 0; i < n; i++) {
    asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");
    asm volatile(
        \"{ .reg .pred p; setp.ne.b32 p, 1, 0; \"
        \"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %4, p, 1, 1, 0, 0; }\"
        : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) : \"l\"(a));
    d[0] += 1.f;
    asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");
  }
  asm volatile(\"wgmma.wait_group.sync.aligned 0;\" ::: \"memory\");
  c[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
";

#[test]
fn a_serialised_schedule_gives_way_or_fails() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::new(dir.path().join("cache"), None);
    let hopper = [Arch::of_capability(90)];
    let mut alone = kernel("k", &[SERIALISED], &hopper);
    alone.ptx = None;
    let errors = compile(&[alone.clone()], &cache).unwrap_err();
    let (_, failure) = &errors.kernels[0].failures[0];
    assert!(matches!(failure, KernelFailure::Spoiled(_)), "{failure}");
    assert!(errors.to_string().contains("model `m`, group `g`, node `/n`"), "{errors}");

    alone.alternatives.extend(kernel("k", &["bad text", ADD], &hopper).alternatives);
    let images = compile(&[alone], &cache).unwrap();
    assert_eq!(images.images[0].alternative, 2);
}
