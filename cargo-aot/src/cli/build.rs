//! `cargo aot build`

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use aot_ir::op::HostOp;
use aot_ir::{BoundBy, SymId};
use aot_kernels::Arch;
use aot_runtime::artifact::{ImagesInfo, Packing, write_images};
use aot_runtime::program::{StatePort, Step};

use super::args::{BuildArgs, Global};
use super::error::CliError;
use super::models::try_each;
use super::project::Project;
use super::runtime_dependency::RuntimeDependency;
use super::shell::{MessageFormat, Shell};
use super::{stub, toolchain};
use crate::build::cache::Cache;
use crate::build::code_version;
use crate::build::compiler::{Compiler, LazyNvrtc};
use crate::build::digest::{Digest, KeyBuilder};
use crate::build::events::{Concerns, Counts, Event, Watch};
use crate::build::guard::Verdict;
use crate::build::jobs::{Images, Settings, compile};
use crate::build::lockfile::LockFile;
use crate::build::outputs::{Content, OutputFile};
use crate::build::progress::{Format, Options, Progress};
use crate::build::session::{Opened, Session, check};
use crate::build::toolchain::{CudaMajor, ensure};
use crate::build::units::{Inputs, UnitId, Units};
use crate::emit::{
    CrateSpec, DimSpec, ModelSpec, PortSpec, Source, content_stamp, crate_files, weights_file,
};
use crate::manifest::{DimKind, Manifest};
use crate::pipeline::{ModelError, ModelUnits, Workshop, feature, targets};

/// Brings the generated crate up to date.
pub(super) fn run(
    args: &BuildArgs,
    project: &Project,
    global: &Global,
    shell: &Shell,
) -> Result<(), CliError> {
    let started = Instant::now();
    let progress = Progress::new(Options {
        format: match shell.format() {
            MessageFormat::Human => Format::Human,
            MessageFormat::Json => Format::Json,
        },
        quiet: shell.quiet(),
        verbose: shell.verbose(),
        explain: args.explain,
        color: shell.color(),
        bar: shell.draws_progress(),
    });
    let result = build(args, project, global, &progress);
    let (fresh, counts) = *result.as_ref().unwrap_or(&(false, Counts::default()));
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    progress.event(Event::Finished { success: result.is_ok(), fresh, millis, counts });
    result.map(|_| ())
}

/// Whether there was nothing to do, and what became of kernels.
fn build(
    args: &BuildArgs,
    project: &Project,
    global: &Global,
    progress: &Progress,
) -> Result<(bool, Counts), CliError> {
    let folder = project.artifacts();
    let runtime = RuntimeDependency::find();
    let key = key(project, &runtime);
    let warn = |warnings: Vec<String>| {
        warnings.into_iter().for_each(|message| progress.event(Event::Warning { message }));
    };
    if let Verdict::Fresh(warnings) = check(&folder, key) {
        warn(warnings);
        return Ok((true, Counts::default()));
    }
    let manifest = project.manifest()?;
    let crate_dir = manifest.crate_dir();
    if !stub::is_ours(&crate_dir) {
        return Err(CliError::NotOurs(crate_dir));
    }
    let session = match Session::open(&folder, key, progress)? {
        Opened::Fresh(warnings) => {
            warn(warnings);
            return Ok((true, Counts::default()));
        }
        Opened::Stale(session, _) => session,
    };
    session.source(&project.manifest_path())?;
    let counts = {
        let cache = session.own_cache();
        let concerns = Concerns(&*session);
        let building = Building {
            args,
            project,
            global,
            manifest: &manifest,
            session: &session,
            quiet: Units::new(&cache, &concerns, folder.join("quiet-units.json")),
        };
        building.run(&cache, &runtime)?
    };
    session.finish()?;
    Ok((false, counts))
}

/// Stands for everything that decides about a build and is no file.
pub(super) fn key(project: &Project, runtime: &RuntimeDependency) -> Digest {
    let path = |path: &Path| path.to_string_lossy().into_owned().into_bytes();
    KeyBuilder::new("build")
        .part("tool", code_version().as_bytes())
        .part("project", path(&project.dir))
        .part("runtime", runtime.to_toml(&project.dir, &BTreeSet::new()))
        .finish()
}

/// A build with something to do.
struct Building<'b> {
    args: &'b BuildArgs,
    project: &'b Project,
    global: &'b Global,
    manifest: &'b Manifest,
    session: &'b Session<'b>,
    quiet: Units<'b>,
}

impl Building<'_> {
    fn run(&self, cache: &Cache, runtime: &RuntimeDependency) -> Result<Counts, CliError> {
        let concerns = Concerns(self.session);
        let workshop = Workshop {
            manifest: self.manifest,
            session: self.session,
            units: self.session.units(cache),
            quiet: Units::new(cache, &concerns, self.project.artifacts().join("quiet.json")),
        };
        let all: Vec<_> = self.manifest.models.iter().collect();
        let (built, failed) = try_each(&all, self.global.jobs, |model| workshop.model(model))?;
        let failed = if failed.is_empty() {
            None
        } else {
            Some(CliError::Models { file: self.manifest.file.clone(), failed })
        };
        let failed = match failed {
            Some(error) if !self.args.keep_going => return Err(error),
            other => other,
        };
        for model in &built {
            for warning in &model.import.get().map_err(ModelError::from)?.warnings {
                let message = format!("model `{}`: {warning}", model.model.name.get_ref());
                self.session.event(Event::Warning { message });
            }
        }
        let images = self.kernels(&built)?;
        if let Some(error) = failed {
            return Err(error);
        }
        self.emit(&built, &images, runtime)?;
        Ok(images.counts)
    }

    /// Compiles the kernels of all models, after Aot.lock was brought up to date.
    fn kernels(&self, built: &[ModelUnits<'_>]) -> Result<Images, CliError> {
        let search = toolchain::search(Some(self.manifest));
        let cuda = search.cuda;
        let say = |text: &str| {
            let (verb, text) = ("Toolchain".to_owned(), text.to_owned());
            self.session.event(Event::Status { verb, text });
        };
        let toolchain = ensure(&search, self.global.offline(), &say)?;
        let compiler = LazyNvrtc::new(toolchain, self.session.cache(), self.session)?;
        self.lock(built, cuda, compiler.identity().version.clone())?;
        let mut sources = Vec::new();
        for model in built {
            let plan = model.plan.get().map_err(ModelError::from)?;
            let name = model.model.name.get_ref();
            sources.extend(plan.kernels.iter().map(|kernel| kernel.source(name)));
        }
        let settings = Settings {
            cache: self.session.cache(),
            compiler: &compiler,
            watch: self.session,
            threads: self.global.jobs.unwrap_or(0),
            ptx_version: cuda.ptx_version(),
            strict: false,
        };
        Ok(compile(&sources, &settings)?)
    }

    fn lock(
        &self,
        built: &[ModelUnits<'_>],
        cuda: CudaMajor,
        nvrtc: String,
    ) -> Result<(), CliError> {
        let mut sources = BTreeMap::new();
        for path in built.iter().flat_map(|model| &model.sources) {
            let shown = path.strip_prefix(&self.manifest.dir).unwrap_or(path);
            sources.insert(shown.to_string_lossy().into_owned(), self.session.source(path)?);
        }
        let path = self.project.dir.join("Aot.lock");
        LockFile::new(cuda, nvrtc, sources).update(&path, self.global.locked())?;
        self.session.wrote([path]);
        Ok(())
    }

    /// Writes the generated crate.
    fn emit(
        &self,
        built: &[ModelUnits<'_>],
        images: &Images,
        runtime: &RuntimeDependency,
    ) -> Result<(), CliError> {
        let crate_dir = self.manifest.crate_dir();
        let package = self.manifest.package.name.get_ref();
        let mut outputs = Vec::new();
        let mut models = Vec::new();
        let mut first_kernel = 0;
        let mut features = BTreeSet::new();
        let targets = targets(&self.manifest.target);
        for model in built {
            let spec = self.model_spec(model)?;
            let module = &model.model.rust.module;
            let mut artifact = |name: String, content: Content| {
                outputs.push(OutputFile { path: Path::new("artifacts").join(name), content });
            };
            artifact(format!("{module}.model"), Content::Cached(model.artifact.entry.clone()));
            artifact(
                weights_file(&package.package, &spec),
                Content::Cached(model.weights.entry.clone()),
            );
            for target in &targets {
                let content = self.images(model, *target, images, first_kernel)?;
                artifact(format!("{module}.{}", feature(*target)), content);
            }
            let plan = model.plan.get().map_err(ModelError::from)?;
            features.extend(plan.program.steps.iter().flat_map(Step::on_host).map(HostOp::feature));
            first_kernel += plan.kernels.len();
            models.push(spec);
        }
        let spec = CrateSpec {
            package,
            runtime: runtime.to_toml(&crate_dir, &features),
            dir: &crate_dir,
            project: &self.manifest.dir,
            sources: self.sources(built)?,
            images: targets.iter().map(|target| feature(*target)).collect(),
            models,
        };
        let files = crate_files(&spec).map_err(|failed| CliError::Models {
            file: self.manifest.file.clone(),
            failed: failed.into_iter().map(|(name, error)| (name, error.into())).collect(),
        })?;
        outputs.extend(
            files.into_iter().map(|(path, text)| OutputFile {
                path,
                content: Content::Bytes(text.into_bytes()),
            }),
        );
        let written = self.session.write(&crate_dir, &outputs)?;
        if !written.changed.is_empty() {
            let shown = self.project.shown(&crate_dir).display();
            let text = format!("{shown} ({} files changed)", written.changed.len());
            self.session.event(Event::Status { verb: "Generated".to_owned(), text });
        }
        Ok(())
    }

    fn model_spec(&self, built: &ModelUnits<'_>) -> Result<ModelSpec, CliError> {
        let model = built.model;
        let import = built.import.get().map_err(ModelError::from)?;
        let program = &built.plan.get().map_err(ModelError::from)?.program;
        let symbols = &program.symbols;
        let counters: Vec<SymId> = program.steps.iter().flat_map(Step::counters).collect();
        let sizes = symbols.iter().filter(|(id, _)| !counters.contains(id));
        let dims = sizes.map(|(_, symbol)| {
            let spec = model.dim(&symbol.name);
            let buckets = match spec.map(|spec| &spec.kind) {
                Some(DimKind::Range { buckets, .. }) => buckets.clone(),
                _ => Vec::new(),
            };
            DimSpec {
                name: symbol.name.clone(),
                min: symbol.min_size(),
                max: symbol.max_size(),
                step: symbol.scale,
                buckets,
                line: spec.map(|spec| self.manifest.line_of(&spec.span)),
                from_data: symbol.bound_by == BoundBy::Run,
            }
        });
        let inputs = PortSpec::of(&program.inputs, symbols);
        let mut outputs = PortSpec::of(&program.outputs, symbols);
        for port in &mut outputs {
            let labels = import.labels.iter().find(|(name, _)| *name == port.name);
            port.labels = labels.map(|(_, labels)| labels.clone()).unwrap_or_default();
        }
        let pair =
            |s: &StatePort| (inputs[s.input as usize].clone(), outputs[s.output as usize].clone());
        let state: Vec<_> = program.state.iter().map(pair).collect();
        let is_kept = |port: &PortSpec, of: fn(&(PortSpec, PortSpec)) -> &PortSpec| {
            state.iter().any(|pair| of(pair).index == port.index)
        };
        let inputs = inputs.into_iter().filter(|port| !is_kept(port, |(input, _)| input)).collect();
        let outputs =
            outputs.into_iter().filter(|port| !is_kept(port, |(_, output)| output)).collect();
        Ok(ModelSpec {
            name: model.name.get_ref().clone(),
            rust: model.rust.clone(),
            source: model.source.get_ref().display().to_string(),
            inputs,
            outputs,
            state,
            dims: dims.collect(),
            precision: model.precision,
            exceptions: !model.precision_for.is_empty(),
            seed: import.seed.clone(),
            metadata: import.metadata.clone(),
            embedded: self.manifest.package.weights.embeds(import.weights.bytes),
        })
    }

    /// The images file of a model for a target. `first` is the place of the model's first kernel
    /// among all kernels that were compiled.
    fn images(
        &self,
        built: &ModelUnits<'_>,
        target: (Arch, bool),
        images: &Images,
        first: usize,
    ) -> Result<Content, CliError> {
        let plan = built.plan.get().map_err(ModelError::from)?;
        let mut keyed: BTreeMap<[u8; 32], &[u8]> = BTreeMap::new();
        let mut inputs = Inputs::new().option("target", &target);
        for (index, kernel) in plan.kernels.iter().enumerate() {
            if (kernel.arch, kernel.ptx) != target {
                continue;
            }
            let found = images.of.get(first + index).and_then(|of| of.first());
            let Some(image) = found.and_then(|index| images.images.get(*index)) else {
                return Err(CliError::NoImage(kernel.entry.clone()));
            };
            keyed.insert(kernel.key, &image.bytes);
            inputs =
                inputs.option(&hex(&kernel.key), &Digest::of(&image.bytes).as_bytes().to_vec());
        }
        let info = ImagesInfo {
            arch: target.0,
            ptx: target.1,
            driver: self.manifest.toolchain.cuda.number() * 1000,
        };
        let id =
            UnitId::new("images", format!("{} {}", built.model.name.get_ref(), feature(target)));
        let blob = self.quiet.build_blob(&id, inputs, |sink| {
            let bytes = write_images(
                info,
                Packing::Compressed,
                keyed.iter().map(|(key, bytes)| (*key, *bytes)),
            )?;
            std::io::Write::write_all(sink, &bytes)?;
            Ok::<_, ModelError>(())
        });
        Ok(Content::Cached(blob.map_err(CliError::from)?.entry))
    }

    fn sources(&self, built: &[ModelUnits<'_>]) -> Result<Vec<Source>, CliError> {
        let mut paths: Vec<PathBuf> = vec![self.project.manifest_path()];
        paths.extend(built.iter().flat_map(|model| model.sources.iter().cloned()));
        let mut seen = std::collections::BTreeSet::new();
        paths.retain(|path| seen.insert(path.clone()));
        paths
            .into_iter()
            .map(|path| {
                let content = self.session.source(&path)?;
                let inputs = Inputs::new().file(&path, content);
                let id = UnitId::new("stamp", path.to_string_lossy());
                let stamp = self.quiet.build(&id, inputs, || {
                    Ok::<_, ModelError>(content_stamp(&std::fs::read(&path)?))
                })?;
                Ok(Source { stamp: stamp.into_value().map_err(ModelError::from)?, path })
            })
            .collect()
    }
}

fn hex(key: &[u8; 32]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}
