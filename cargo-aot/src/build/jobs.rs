//! Compiling kernels in parallel, through the cache.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use aot_kernels::Arch;
use rayon::prelude::*;

use super::cache::{Cache, CacheError};
use super::compiler::Compiler;
use super::digest::Digest;
use super::events::{Counts, Event, Outcome, Watch};
use super::kernels::{Alternative, Kept, KernelFailure, KernelSource, Origin};
use super::merged::merge;
use super::nvrtc::{Request, Target};
use super::ptx;
use super::report::Report;

/// Bytes of stack of a thread that compiles: front ends recurse deeply.
const STACK: usize = 32 << 20;

/// What the kernels of a build have in common.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// Where images are looked up and kept.
    pub cache: &'a Cache,
    /// Who makes them.
    pub compiler: &'a dyn Compiler,
    /// Who is told.
    pub watch: &'a dyn Watch,
    /// How many to compile at once; 0 for one per core.
    pub threads: usize,
    /// The PTX version that the oldest supported driver reads.
    pub ptx_version: (u32, u32),
    /// Whether a schedule that the assembler changed is an error instead of a warning.
    pub strict: bool,
}

impl fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("compiler", self.compiler.identity())
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// One compiled kernel for one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The kernel's name.
    pub name: String,
    /// What it was compiled for.
    pub target: Target,
    /// The architectures that use it; none for PTX.
    pub serves: Vec<Arch>,
    /// Which of the kernel's alternatives it is of.
    pub alternative: usize,
    /// Its key in the cache.
    pub key: Digest,
    /// ELF image or PTX text.
    pub bytes: Vec<u8>,
    /// What the compiler said.
    pub report: Report,
    /// Whether it was compiled now.
    pub outcome: Outcome,
}

/// All kernels of a build, compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Images {
    /// Every image once.
    pub images: Vec<Image>,
    /// For each kernel given, in that order, the indices of its images.
    pub of: Vec<Vec<usize>>,
    /// How many were cached and compiled.
    pub counts: Counts,
}

/// A kernel that could not be compiled for a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct KernelError {
    /// The kernel's name.
    pub kernel: String,
    /// What it was compiled for.
    pub target: Target,
    /// Who needs it.
    pub origin: Vec<Origin>,
    /// The schedules tried, in order, and why each failed.
    pub failures: Vec<(String, KernelFailure)>,
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}` does not compile for {}", self.kernel, self.target)?;
        for origin in &self.origin {
            write!(f, "\n  needed by {origin}")?;
        }
        for (schedule, failure) in &self.failures {
            write!(f, "\n  schedule `{schedule}`: {failure}")?;
        }
        Ok(())
    }
}

/// Everything that went wrong with the kernels of a build.
#[derive(Debug, thiserror::Error)]
pub struct KernelErrors {
    /// Kernels that could not be compiled.
    pub kernels: Vec<KernelError>,
    /// The first artifact that could not be kept.
    pub cache: Option<CacheError>,
    /// Why the threads could not be started.
    pub threads: Option<String>,
    /// How many kernels were cached, compiled and failed.
    pub counts: Counts,
}

impl fmt::Display for KernelErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernels = self.kernels.iter().map(ToString::to_string);
        let cache = self.cache.iter().map(ToString::to_string);
        let threads = self.threads.iter().map(|error| format!("cannot start threads: {error}"));
        let all: Vec<String> = kernels.chain(cache).chain(threads).collect();
        f.write_str(&all.join("\n"))
    }
}

/// One kernel for one target, with everyone who needs it.
struct Job<'a> {
    name: &'a str,
    alternatives: &'a [Alternative],
    target: Target,
    /// For a cubin: PTX of the same text and architecture is wanted as well.
    ptx_too: bool,
    serves: Vec<Arch>,
    origin: Vec<Origin>,
}

/// Compiles every kernel for its targets, or takes it from the cache. Kernels of equal text are
/// compiled once for all who need them. All errors are reported, not the first.
pub fn compile(sources: &[KernelSource], settings: &Settings<'_>) -> Result<Images, KernelErrors> {
    let merged = merge(sources);
    let mut jobs = Vec::new();
    let mut of = vec![Vec::new(); sources.len()];
    for group in &merged {
        for (target, serves) in group.targets() {
            for &member in &group.members {
                let source = &sources[member];
                let wanted = match target {
                    Target::Cubin(_) => serves.iter().any(|arch| source.archs.contains(arch)),
                    Target::Ptx(arch) => source.ptx == Some(arch),
                };
                if wanted {
                    of[member].push(jobs.len());
                }
            }
            jobs.push(Job {
                name: group.name,
                alternatives: group.alternatives,
                target,
                ptx_too: matches!(target, Target::Cubin(arch) if group.ptx.contains(&arch)),
                serves,
                origin: group.origin.clone(),
            });
        }
    }
    settings.watch.event(Event::KernelsStarted { total: jobs.len() });
    let run = Run { settings, unkept: Mutex::new(None), aside: Mutex::default() };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(settings.threads)
        .stack_size(STACK)
        .thread_name(|index| format!("kernel-{index}"))
        .build();
    let (results, threads) = match pool {
        Ok(pool) => (pool.install(|| run.all(&jobs)), None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };

    let mut images = Vec::new();
    let mut kernels = Vec::new();
    let mut counts = Counts::default();
    for result in results {
        match result {
            Ok(image) => {
                counts.add(image.outcome);
                images.push(image);
            }
            Err(error) => {
                counts.add(Outcome::Failed);
                kernels.push(error);
            }
        }
    }
    settings.watch.event(Event::KernelsFinished { counts });
    let cache = lock(&run.unkept).take();
    if kernels.is_empty() && cache.is_none() && threads.is_none() {
        Ok(Images { images, of, counts })
    } else {
        Err(KernelErrors { kernels, cache, threads, counts })
    }
}

struct Run<'a> {
    settings: &'a Settings<'a>,
    unkept: Mutex<Option<CacheError>>,
    /// PTX that came with cubins, by its key.
    aside: Mutex<BTreeMap<Digest, Kept>>,
}

impl Run<'_> {
    /// Results in the order of the jobs. Cubins are made first: PTX may come with them.
    fn all(&self, jobs: &[Job<'_>]) -> Vec<Result<Image, KernelError>> {
        let is_ptx = |job: &Job<'_>| matches!(job.target, Target::Ptx(_));
        let of = |ptx: bool| {
            let chosen = jobs.par_iter().enumerate().filter(move |(_, job)| is_ptx(job) == ptx);
            chosen.map(|(index, job)| (index, self.job(job))).collect::<Vec<_>>()
        };
        let mut results = of(false);
        results.extend(of(true));
        results.sort_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }

    fn job(&self, job: &Job<'_>) -> Result<Image, KernelError> {
        let started = Instant::now();
        let result = self.first_that_compiles(job);
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (outcome, schedule, report) = match &result {
            Ok(image) => (
                image.outcome,
                job.alternatives[image.alternative].schedule.clone(),
                Some(image.report.clone()),
            ),
            Err(_) => (Outcome::Failed, String::new(), None),
        };
        self.settings.watch.event(Event::KernelFinished {
            kernel: job.name.to_owned(),
            target: job.target.flag(),
            schedule,
            outcome,
            millis,
            report,
        });
        result
    }

    fn first_that_compiles(&self, job: &Job<'_>) -> Result<Image, KernelError> {
        let mut failures: Vec<(String, KernelFailure)> = Vec::new();
        for (index, alternative) in job.alternatives.iter().enumerate() {
            let last = index + 1 == job.alternatives.len();
            let settings = self.settings;
            let key =
                alternative.key(job.target, settings.ptx_version, settings.compiler.identity());
            let (kept, outcome) = self.kept(job, alternative, &key);
            let failure = match kept {
                Kept::Refused(failure) => failure,
                Kept::Image { image, report } => {
                    let spoiled: Vec<_> = report.spoiling().cloned().collect();
                    if spoiled.is_empty() || (last && !settings.strict) {
                        if !spoiled.is_empty() {
                            self.warn(job, &alternative.schedule, &KernelFailure::Spoiled(spoiled));
                        }
                        for (schedule, failure) in &failures {
                            self.warn(job, schedule, failure);
                        }
                        return Ok(Image {
                            name: job.name.to_owned(),
                            target: job.target,
                            serves: job.serves.clone(),
                            alternative: index,
                            key,
                            bytes: image,
                            report,
                            outcome,
                        });
                    }
                    KernelFailure::Spoiled(spoiled)
                }
            };
            failures.push((alternative.schedule.clone(), failure));
        }
        Err(KernelError {
            kernel: job.name.to_owned(),
            target: job.target,
            origin: job.origin.clone(),
            failures,
        })
    }

    /// What the cache has for a key, else what the compiler makes of it.
    fn kept(&self, job: &Job<'_>, alternative: &Alternative, key: &Digest) -> (Kept, Outcome) {
        if let Some(kept) = lock(&self.aside).remove(key) {
            return (kept, Outcome::Compiled);
        }
        let artifact = format_args!("kernel `{}`", job.name);
        let lookup = self.settings.cache.look_up(key, artifact, self.settings.watch);
        let found = lookup.artifact.and_then(|entry| entry.read().ok());
        let found = found.and_then(|bytes| postcard::from_bytes(&bytes).ok());
        if let Some(kept) = found {
            return (kept, Outcome::Cached);
        }
        self.settings
            .watch
            .event(Event::KernelStarted { kernel: job.name.to_owned(), target: job.target.flag() });
        let (kept, keep) = match self.make(job, alternative) {
            Ok((image, report)) => (Kept::Image { image, report }, true),
            Err(failure) => {
                // A failure says something about the text only when the compiler read it.
                let of_text =
                    !matches!(&failure, KernelFailure::Compiler { log, .. } if log.is_empty());
                let keep = of_text && job.alternatives.len() > 1;
                (Kept::Refused(failure), keep)
            }
        };
        if keep {
            self.keep(key, &kept);
        }
        (kept, Outcome::Compiled)
    }

    fn keep(&self, key: &Digest, kept: &Kept) {
        if let Ok(bytes) = postcard::to_stdvec(kept)
            && let Err(error) = self.settings.cache.put(key, &bytes)
        {
            lock(&self.unkept).get_or_insert(error);
        }
    }

    /// Keeps the PTX that came with a cubin, as if it had been compiled by itself.
    fn keep_ptx(&self, arch: Arch, alternative: &Alternative, text: &[u8], log: &str) {
        let settings = self.settings;
        let Ok(image) = ptx::lower_version(text, settings.ptx_version) else { return };
        let kept = Kept::Image { image, report: Report::parse(log).before_assembly() };
        let identity = settings.compiler.identity();
        let key = alternative.key(Target::Ptx(arch), settings.ptx_version, identity);
        self.keep(&key, &kept);
        lock(&self.aside).insert(key, kept);
    }

    fn make(
        &self,
        job: &Job<'_>,
        alternative: &Alternative,
    ) -> Result<(Vec<u8>, Report), KernelFailure> {
        let target = job.target;
        let options = alternative.all_options();
        // The name stands in messages, which are cached, so it must not depend on the kernel's.
        let request =
            Request { source: &alternative.source, name: "kernel.cu", options: &options, target };
        let output = self
            .settings
            .compiler
            .compile(&request)
            .map_err(|error| KernelFailure::Compiler { message: error.message, log: error.log })?;
        let report = Report::parse(&output.log);
        if let (true, Some(text)) = (job.ptx_too, &output.ptx) {
            self.keep_ptx(target.arch(), alternative, text, &output.log);
        }
        let image = match target {
            Target::Cubin(_) => output.image,
            Target::Ptx(_) => ptx::lower_version(&output.image, self.settings.ptx_version)?,
        };
        Ok((image, report))
    }

    fn warn(&self, job: &Job<'_>, schedule: &str, failure: &KernelFailure) {
        let message = format!(
            "kernel `{}` for {}: schedule `{schedule}` is not as written: {failure}",
            job.name, job.target
        );
        self.settings.watch.event(Event::Warning { message });
    }
}

/// What a mutex holds; what its holders do leaves it whole even if they panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
#[path = "jobs_tests.rs"]
mod tests;
