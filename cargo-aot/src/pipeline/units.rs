//! The units of one model: import, weights, plan, and the artifact that the run time loads.

use std::cell::OnceCell;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use aot_ir::{Arch, Bytes, Graph};
use aot_runtime::artifact::{
    WEIGHT_ALIGNMENT, WeightsId, WeightsLayout, read_weights, write_model,
};
use aot_runtime::program::Program;
use serde::{Deserialize, Serialize};

use super::error::ModelError;
use super::model::{Prepared, prepare, with_plan_of};
use super::options::{bucket_bounds, import_options, lower_options, targets};
use crate::build::kernels::{Alternative, KernelSource, Origin};
use crate::build::session::Session;
use crate::build::units::{Blob, Inputs, Unit, UnitId, Units};
use crate::lower::program::{Assembled, KernelUnit};
use crate::manifest::{Manifest, Model};

/// What import makes of a model's file.
#[derive(Debug, Serialize, Deserialize)]
pub struct ImportArtifact {
    /// After the passes; without the bytes of constants.
    pub graph: Graph,
    /// The weights file with those bytes.
    pub weights: WeightsId,
    /// The input that was added for random numbers to come from, if the model draws any.
    pub seed: Option<String>,
    /// What is odd about the file.
    pub warnings: Vec<String>,
    /// Of outputs whose elements are places in a list of texts, the name and the texts.
    pub labels: Vec<(String, Vec<String>)>,
    /// The file's own key-value metadata.
    pub metadata: Vec<(String, String)>,
}

/// What lowering makes of a graph.
#[derive(Debug, Serialize, Deserialize)]
pub struct PlanArtifact {
    /// The program.
    pub program: Program,
    /// Its kernels.
    pub kernels: Vec<PlannedKernel>,
}

/// A kernel to compile.
#[derive(Debug, Serialize, Deserialize)]
pub struct PlannedKernel {
    /// By which the program finds its image.
    pub key: [u8; 32],
    /// The architecture that it was chosen for.
    pub arch: Arch,
    /// Whether it is compiled to PTX.
    pub ptx: bool,
    /// Its function.
    pub entry: String,
    /// For people.
    pub schedule: String,
    /// CUDA C++.
    pub source: String,
    /// Compiler options.
    pub options: Vec<String>,
    /// The group it computes.
    pub group: String,
    /// The model's nodes that it computes.
    pub nodes: Vec<String>,
}

/// A model whose units are up to date.
#[derive(Debug)]
pub struct ModelUnits<'m> {
    /// The model.
    pub model: &'m Model,
    /// Every file that was read, the model itself first.
    pub sources: Vec<PathBuf>,
    /// Import.
    pub import: Unit<ImportArtifact>,
    /// The weights file.
    pub weights: Blob,
    /// Plan.
    pub plan: Unit<PlanArtifact>,
    /// What the run time loads.
    pub artifact: Blob,
}

/// What a build hands to the units of its models.
#[derive(Debug)]
pub struct Workshop<'s> {
    /// The manifest.
    pub manifest: &'s Manifest,
    /// The build.
    pub session: &'s Session<'s>,
    /// Units that are reported.
    pub units: Units<'s>,
    /// Units that are too small to be.
    pub quiet: Units<'s>,
}

/// An import that was made in this build.
struct Made {
    prepared: Prepared,
    weights: Vec<u8>,
    id: WeightsId,
}

impl Workshop<'_> {
    /// Brings the units of `model` up to date.
    ///
    /// # Errors
    /// Why the model can't be built.
    pub fn model<'m>(&self, model: &'m Model) -> Result<ModelUnits<'m>, ModelError> {
        let name = model.name.get_ref();
        let made = OnceCell::new();
        let sources = self.sources(model, &made)?;
        let mut inputs = Inputs::new()
            .option("dims", &format!("{:?}", import_options(model)))
            .option("state", &state_text(model));
        for path in &sources {
            inputs = inputs.file(path, self.session.source(path)?);
        }
        let import = self.units.build(&UnitId::new("import", name), inputs.clone(), || {
            let Made { prepared, id, .. } = self.make(model, &made)?;
            Ok::<_, ModelError>(ImportArtifact {
                graph: prepared.graph.clone(),
                weights: id.clone(),
                seed: prepared.seed.clone(),
                warnings: prepared.warnings.clone(),
                labels: prepared.labels.clone(),
                metadata: prepared.metadata.clone(),
            })
        })?;
        let weights = self.units.build_blob(&UnitId::new("weights", name), inputs, |sink| {
            sink.write_all(&self.make(model, &made)?.weights)?;
            Ok::<_, ModelError>(())
        })?;
        let bound = OnceCell::new();
        let graph = || bind(&import, &weights, &made, &bound);
        let plan = self.plan(model, &import, graph)?;
        let inputs =
            Inputs::new().unit(import.id(), import.digest()).unit(plan.id(), plan.digest());
        let artifact = self.quiet.build_blob(&UnitId::new("artifact", name), inputs, |sink| {
            let graph = graph()?;
            let layout = WeightsLayout::new(graph);
            let id = &import.get()?.weights;
            sink.write_all(&write_model(&plan.get()?.program, graph, &layout, id)?)?;
            Ok::<_, ModelError>(())
        })?;
        Ok(ModelUnits { model, sources, import, weights, plan, artifact })
    }

    /// Every file that import of `model` reads: known from an earlier import of the same file, or
    /// by importing it.
    fn sources(&self, model: &Model, made: &OnceCell<Made>) -> Result<Vec<PathBuf>, ModelError> {
        let main = self.manifest.resolve(model.source.get_ref());
        let inputs = Inputs::new()
            .file(&main, self.session.source(&main)?)
            .option("dims", &format!("{:?}", import_options(model)));
        let id = UnitId::new("sources", model.name.get_ref());
        let unit = self.quiet.build(&id, inputs, || {
            Ok::<_, ModelError>(self.make(model, made)?.prepared.sources.clone())
        })?;
        Ok(unit.into_value()?)
    }

    fn make<'c>(&self, model: &Model, made: &'c OnceCell<Made>) -> Result<&'c Made, ModelError> {
        if let Some(made) = made.get() {
            return Ok(made);
        }
        let prepared = prepare(self.manifest, model)?;
        let (weights, id) = WeightsLayout::new(&prepared.graph).write(&prepared.graph);
        Ok(made.get_or_init(|| Made { prepared, weights, id }))
    }

    fn plan<'g>(
        &self,
        model: &Model,
        import: &Unit<ImportArtifact>,
        graph: impl Fn() -> Result<&'g Graph, ModelError>,
    ) -> Result<Unit<PlanArtifact>, ModelError> {
        let targets = targets(&self.manifest.target);
        let bounds = bucket_bounds(model, &import.get()?.graph.symbols);
        let inputs = Inputs::new()
            .unit(import.id(), import.digest())
            .option("targets", &targets)
            .option("buckets", &bounds)
            .option("precision", &format!("{:?}", lower_options(model)));
        self.units.build(&UnitId::new("plan", model.name.get_ref()), inputs, || {
            let graph = graph()?;
            with_plan_of(self.manifest, model, graph, |planned| plan_artifact(&planned.assembled))
        })
    }
}

/// What `state` of a model says, wherever it stands.
fn state_text(model: &Model) -> String {
    let pairs = model.state.iter().map(|spec| (spec.input.get_ref(), spec.output.get_ref()));
    format!("{:?}", pairs.collect::<Vec<_>>())
}

/// The graph with the bytes of its constants.
fn bind<'c>(
    import: &Unit<ImportArtifact>,
    weights: &Blob,
    made: &'c OnceCell<Made>,
    bound: &'c OnceCell<Graph>,
) -> Result<&'c Graph, ModelError> {
    if let Some(made) = made.get() {
        return Ok(&made.prepared.graph);
    }
    if let Some(graph) = bound.get() {
        return Ok(graph);
    }
    let artifact = import.get()?;
    let file = Bytes::from(weights.entry.read()?);
    let data = read_weights(&file, &artifact.weights, "the cached weights")?;
    let graph = bind_constants(artifact.graph.clone(), data)?;
    Ok(bound.get_or_init(|| graph))
}

/// Puts the constants' bytes back, by the layout that [`WeightsLayout`] gives them.
fn bind_constants(mut graph: Graph, data: Bytes) -> Result<Graph, ModelError> {
    let owner: Arc<dyn AsRef<[u8]> + Send + Sync> = Arc::new(Shared(data));
    let mut end = 0_u64;
    let mut missing = None;
    graph.bind_constants(|_, constant| {
        let elements = constant.shape.iter().map(|extent| *extent as u64).product();
        let start = end.next_multiple_of(WEIGHT_ALIGNMENT);
        end = start + constant.dtype.bytes_for(elements).unwrap_or(0);
        let range = usize::try_from(start).unwrap_or(usize::MAX)
            ..usize::try_from(end).unwrap_or(usize::MAX);
        Bytes::part(owner.clone(), range).unwrap_or_else(|| {
            missing.get_or_insert_with(|| constant.name.clone());
            Bytes::default()
        })
    });
    match missing {
        Some(name) => Err(ModelError::Weights(name)),
        None => Ok(graph),
    }
}

struct Shared(Bytes);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// What is kept of an assembled program.
fn plan_artifact(assembled: &Assembled) -> PlanArtifact {
    let kernel = |unit: &KernelUnit| PlannedKernel {
        key: unit.key,
        arch: unit.arch,
        ptx: unit.ptx,
        entry: unit.kernel.entry.clone(),
        schedule: unit.kernel.schedule.clone(),
        source: unit.kernel.source.clone(),
        options: unit.kernel.options.clone(),
        group: unit.group.clone(),
        nodes: unit.nodes.clone(),
    };
    PlanArtifact {
        program: assembled.program.clone(),
        kernels: assembled.kernels.iter().map(kernel).collect(),
    }
}

impl PlannedKernel {
    /// The kernel for the compiler, as `model` needs it.
    pub fn source(&self, model: &str) -> KernelSource {
        KernelSource {
            name: self.entry.clone(),
            alternatives: vec![Alternative {
                schedule: self.schedule.clone(),
                source: self.source.clone(),
                options: self.options.clone(),
            }],
            origin: vec![Origin {
                model: model.to_owned(),
                group: self.group.clone(),
                nodes: self.nodes.clone(),
            }],
            archs: if self.ptx { Vec::new() } else { vec![self.arch] },
            ptx: self.ptx.then_some(self.arch),
        }
    }
}
