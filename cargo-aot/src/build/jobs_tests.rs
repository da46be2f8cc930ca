use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::build::events::tests::Recorder;
use crate::build::nvrtc::{NvrtcError, Output};
use crate::build::toolchain::Identity;

/// Compiles everything but text with `error`; text with `serialise` is spoiled on sm_90a.
#[derive(Debug)]
struct Fake {
    identity: Identity,
    calls: AtomicUsize,
}

impl Fake {
    fn new(digest: &str) -> Self {
        let identity = Identity { version: "13.5".to_owned(), digest: digest.to_owned() };
        Self { identity, calls: AtomicUsize::new(0) }
    }

    fn calls(&self) -> usize {
        self.calls.swap(0, Ordering::Relaxed)
    }
}

impl Compiler for Fake {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn compile(&self, request: &Request<'_>) -> Result<Output, NvrtcError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if request.source.contains("error") {
            let log = format!("{}(1): error: no", request.name);
            return Err(NvrtcError { message: "NVRTC_ERROR_COMPILATION".to_owned(), log });
        }
        let spoiled = request.source.contains("serialise") && request.target.flag() == "sm_90a";
        let log = if spoiled { "ptxas info    : (C7510) serialised\n" } else { "" };
        let ptx = format!(".version 9.5\n// {}\n", request.source).into_bytes();
        let (image, ptx) = match request.target {
            Target::Ptx(_) => (ptx, None),
            Target::Cubin(arch) => (format!("{arch} {}", request.source).into_bytes(), Some(ptx)),
        };
        Ok(Output { image, ptx, log: log.to_owned() })
    }
}

fn arch(text: &str) -> Arch {
    text.parse().unwrap()
}

fn source(name: &str, texts: &[&str], archs: &[&str]) -> KernelSource {
    let alternatives = texts.iter().map(|text| Alternative {
        schedule: format!("schedule of {text}"),
        source: (*text).to_owned(),
        options: vec![],
    });
    let origin = Origin {
        model: "m".to_owned(),
        group: format!("group of {name}"),
        nodes: vec![format!("/node/{name}")],
    };
    KernelSource {
        name: name.to_owned(),
        alternatives: alternatives.collect(),
        origin: vec![origin],
        archs: archs.iter().map(|name| arch(name)).collect(),
        ptx: None,
    }
}

struct Bench {
    dir: tempfile::TempDir,
    cache: Cache,
    compiler: Fake,
    watch: Recorder,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(dir.path().join("cache"), None);
        Self { dir, cache, compiler: Fake::new("c"), watch: Recorder::default() }
    }

    fn run_with(&self, sources: &[KernelSource], strict: bool) -> Result<Images, KernelErrors> {
        let settings = Settings {
            cache: &self.cache,
            compiler: &self.compiler,
            watch: &self.watch,
            threads: 2,
            ptx_version: (9, 0),
            strict,
        };
        compile(sources, &settings)
    }

    fn run(&self, sources: &[KernelSource]) -> Result<Images, KernelErrors> {
        self.run_with(sources, false)
    }

    fn repairs(&self) -> Vec<Event> {
        let events = self.watch.take().into_iter();
        events.filter(|event| matches!(event, Event::CacheRepair { .. })).collect()
    }

    fn warnings(&self) -> Vec<String> {
        let events = self.watch.take().into_iter();
        events
            .filter_map(|event| match event {
                Event::Warning { message } => Some(message),
                _ => None,
            })
            .collect()
    }
}

/// All files below a folder.
fn files(root: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(root).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn the_second_time_everything_is_cached() {
    let bench = Bench::new();
    let mut sources = [source("a", &["a"], &["sm_80", "sm_90a"]), source("b", &["b"], &["sm_80"])];
    sources[0].ptx = Some(arch("sm_80"));
    let first = bench.run(&sources).unwrap();
    assert_eq!(first.counts, Counts { cached: 0, compiled: 4, failed: 0 });
    assert_eq!(first.of, [vec![0, 1, 2], vec![3]]);
    assert_eq!(first.images[2].bytes, b".version 9.0\n// a\n");
    let second = bench.run(&sources).unwrap();
    assert_eq!(second.counts, Counts { cached: 4, compiled: 0, failed: 0 });
    let bytes = |images: &Images| images.images.iter().map(|i| i.bytes.clone()).collect::<Vec<_>>();
    assert_eq!(bytes(&first), bytes(&second));
    assert_eq!(bench.compiler.calls(), 3, "PTX of sm_80 comes with its cubin");
}

#[test]
fn ptx_is_the_same_with_a_cubin_and_by_itself() {
    let of = |archs: &[&str]| {
        let bench = Bench::new();
        // The first does not compile, and the second is spoiled as a cubin alone.
        let mut sources = [source("a", &["error", "serialise"], archs)];
        sources[0].ptx = Some(arch("sm_90a"));
        let image = bench.run(&sources).unwrap().images.pop().unwrap();
        assert_eq!(image.target, Target::Ptx(arch("sm_90a")));
        let again = bench.run(&sources).unwrap().images.pop().unwrap();
        assert_eq!((&again.bytes, again.outcome), (&image.bytes, Outcome::Cached));
        assert_eq!(again.report, image.report);
        image
    };
    assert_eq!(of(&["sm_90a"]), of(&[]));
}

#[test]
fn adding_a_gpu_compiles_for_that_gpu_alone() {
    let bench = Bench::new();
    bench.run(&[source("a", &["a"], &["sm_80", "sm_90a"])]).unwrap();
    let more = bench.run(&[source("a", &["a"], &["sm_80", "sm_90a", "sm_120a"])]).unwrap();
    assert_eq!(more.counts, Counts { cached: 2, compiled: 1, failed: 0 });
}

#[test]
fn equal_text_is_compiled_once_for_everyone() {
    let bench = Bench::new();
    let sources = [
        source("a", &["same"], &["sm_89"]),
        source("b", &["same"], &["sm_80", "sm_90a"]),
        source("c", &["other"], &["sm_89"]),
    ];
    let images = bench.run(&sources).unwrap();
    assert_eq!(bench.compiler.calls(), 3);
    assert_eq!(images.of, [vec![0], vec![0, 1], vec![2]]);
    assert_eq!(images.images[0].target, Target::Cubin(arch("sm_80")));
    assert_eq!(images.images[0].serves, [arch("sm_80"), arch("sm_89")]);
}

#[test]
fn equal_text_shares_the_compilation_of_a_cubin_and_ptx() {
    let bench = Bench::new();
    let mut sources = [source("a", &["a"], &[]), source("b", &["a"], &["sm_80"])];
    sources[0].ptx = Some(arch("sm_80"));
    let images = bench.run(&sources).unwrap();
    assert_eq!(images.of, [vec![1], vec![0]]);
    assert_eq!(images.counts, Counts { cached: 0, compiled: 2, failed: 0 });
    assert_eq!(bench.compiler.calls(), 1);
}

#[test]
fn another_compiler_shares_nothing() {
    let mut bench = Bench::new();
    bench.run(&[source("a", &["a"], &["sm_80"])]).unwrap();
    bench.compiler = Fake::new("d");
    assert_eq!(bench.run(&[source("a", &["a"], &["sm_80"])]).unwrap().counts.compiled, 1);
}

#[test]
fn all_errors_are_reported_with_what_they_concern() {
    let bench = Bench::new();
    let sources = [
        source("good", &["good"], &["sm_80"]),
        source("bad", &["error 1"], &["sm_80", "sm_90a"]),
        source("worse", &["error 2", "error 3"], &["sm_80"]),
        source("like bad", &["error 1"], &["sm_80"]),
    ];
    let errors = bench.run(&sources).unwrap_err();
    assert_eq!(errors.counts, Counts { cached: 0, compiled: 1, failed: 3 });
    assert_eq!(errors.kernels.len(), 3);
    assert_eq!(
        errors.kernels[2].to_string(),
        "kernel `worse` does not compile for sm_80\n  needed by model `m`, group `group of worse`, \
         node `/node/worse`\n  schedule `schedule of error 2`: NVRTC_ERROR_COMPILATION\n    \
         kernel.cu(1): error: no\n  schedule `schedule of error 3`: NVRTC_ERROR_COMPILATION\n    \
         kernel.cu(1): error: no"
    );
    let shared = errors.kernels[0].to_string();
    assert!(shared.contains("/node/bad") && shared.contains("/node/like bad"), "{shared}");
    // What did compile is kept.
    assert_eq!(bench.run(&sources[..1]).unwrap().counts.cached, 1);
}

#[test]
fn a_schedule_that_fails_gives_way_to_the_next() {
    let bench = Bench::new();
    let sources = [source("a", &["error", "serialise", "plain"], &["sm_80", "sm_90a"])];
    let images = bench.run(&sources).unwrap();
    let chosen: Vec<usize> = images.images.iter().map(|image| image.alternative).collect();
    assert_eq!(chosen, [1, 2], "sm_80 does not spoil the second");
    assert_eq!(bench.warnings().len(), 3);
    bench.compiler.calls();
    let again = bench.run(&sources).unwrap();
    assert_eq!(again.counts.cached, 2);
    assert_eq!(bench.compiler.calls(), 0, "that they fail is kept too");
}

#[test]
fn a_spoiled_last_schedule_is_a_warning_or_an_error() {
    let bench = Bench::new();
    let sources = [source("a", &["serialise"], &["sm_90a"])];
    bench.run(&sources).unwrap();
    assert!(bench.warnings()[0].contains("C7510"));
    let errors = bench.run_with(&sources, true).unwrap_err();
    assert!(errors.to_string().contains("C7510"), "{errors}");
}

#[test]
fn a_flipped_byte_is_noticed_and_made_again() {
    let bench = Bench::new();
    let sources = [source("a", &["a"], &["sm_80"])];
    let first = bench.run(&sources).unwrap();
    let entry = files(bench.cache.local()).pop().unwrap();
    let mut bytes = std::fs::read(&entry).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 4;
    std::fs::write(&entry, bytes).unwrap();
    bench.watch.take();
    let again = bench.run(&sources).unwrap();
    assert_eq!(again.counts, Counts { cached: 0, compiled: 1, failed: 0 });
    assert_eq!(again.images[0].bytes, first.images[0].bytes);
    let [Event::CacheRepair { path, .. }] = &bench.repairs()[..] else { panic!("one repair") };
    assert_eq!(Path::new(path), entry);
    assert_eq!(bench.run(&sources).unwrap().counts.cached, 1);
}

#[test]
fn a_cache_that_cannot_be_written_is_one_error() {
    let bench = Bench::new();
    std::fs::write(bench.dir.path().join("cache"), "in the way").unwrap();
    let sources = [source("a", &["a"], &["sm_80"]), source("b", &["b"], &["sm_80"])];
    let errors = bench.run(&sources).unwrap_err();
    assert!(errors.kernels.is_empty());
    assert_eq!(errors.to_string().lines().count(), 1);
    assert!(errors.to_string().starts_with("cannot write "), "{errors}");
}
