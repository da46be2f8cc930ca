//! All comparisons of one model.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use aot_ir::dim::{ShapePattern, bind};
use aot_ir::exec::{Executor, Tensor};
use aot_ir::{Graph, ValueId};
use aot_runtime::Device;
use aot_runtime::artifact::{ModelFile, WeightsLayout, read_weights, write_model};
use aot_runtime::loaded::Loaded;
use aot_runtime::program::Program;

use super::cost;
use super::draw;
use super::error::VerifyError;
use super::kept::{Kept, kept};
use super::layers::Layers;
use super::outputs;
use super::report::{ModelReport, RunReport, Subject};
use super::sizes;
use super::subjects::{self, Found};
use super::tolerance::tolerance;
use super::trace::traced;
use crate::lower::LowerOptions;
use crate::lower::plan::Plan;
use crate::manifest::{Manifest, Model};
use crate::npy::Array;
use crate::pipeline::{
    Artifacts, ModelError, bucket_bounds, import_model, lower_model, lower_options, with_plan_of,
};

/// Operations and bytes of a reference run at sizes that are chosen here: a few seconds.
const REFERENCE: f64 = 2e10;

/// Expressions that are evaluated to interpret groups at the first sizes: a minute or two.
const FIRST_INTERPRETATION: f64 = 1e9;
/// The same at further sizes.
const INTERPRETATION: f64 = 1e8;

/// Where random inputs begin.
const SEED: u64 = 20;

/// How to verify.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// What was built.
    pub artifacts: &'r Artifacts,
    /// Where to run it.
    pub device: &'r Device,
    /// Inputs by name; random ones without.
    pub input: Option<&'r [(String, Array)]>,
    /// Outputs by name; those of the reference without.
    pub expected: Option<&'r [(String, Array)]>,
    /// Sizes to try; some of the ranges if there are none.
    pub sizes: &'r [Vec<(String, i64)>],
    /// The greatest error; the usual one without.
    pub tolerance: Option<f64>,
    /// How many of the worst values within the model to report.
    pub layers: usize,
}

/// One trial.
struct Case {
    sizes: BTreeMap<String, i64>,
    /// Atoms of the imported graph's symbols.
    atoms: Vec<i64>,
    inputs: Vec<Tensor>,
}

/// Compares what was compiled of `model` with its reference. `say` hears what is being done.
///
/// # Errors
/// When the model can't be imported or its artifacts can't be loaded, and when inputs do not fit. That
/// results differ is in the report.
pub fn verify(
    manifest: &Manifest,
    model: &Model,
    request: &Request<'_>,
    say: &dyn Fn(&str),
) -> Result<ModelReport, VerifyError> {
    let imported = import_model(manifest, model)?.graph;
    let artifacts = request.artifacts;
    let file = ModelFile::open(&artifacts.model)?;
    let weights = read_weights(&artifacts.weights, &file.info().weights, "the weights")?;
    let compiled = file.graph_with(&weights)?;
    let options = lower_options(model);
    let plan = lower_model(&compiled, &options)?;
    let images = artifacts.image_bytes();
    let loaded = Loaded::load(request.device, &artifacts.parts(&artifacts.model, &images))?;
    let mut notes = Vec::new();
    let kept = if request.layers > 0 { kept(&plan, &imported) } else { Vec::new() };
    let tracer = match request.device.is_cuda() && !kept.is_empty() {
        true => tracer(manifest, model, request, &file.program()?, &compiled, &mut notes)?,
        false => None,
    };
    let cases = cases(&imported, &plan, request)?;
    let needs_reference = request.expected.is_none() || request.layers > 0;
    let verifying = Verifying {
        request,
        imported: &imported,
        bounds: bucket_bounds(model, &compiled.symbols),
        reference: needs_reference.then(|| Executor::wide(&imported)).transpose()?,
        graph: Executor::wide(&compiled)?,
        cpu: Executor::new(&compiled)?,
        plan: &plan,
        options: &options,
        loaded: &loaded,
        tracer: tracer.as_ref(),
        kept: &kept,
    };
    let mut runs = Vec::new();
    let mut layers = Layers::default();
    for (index, case) in cases.iter().enumerate() {
        say(&format!("{} ({} of {})", size_text(&case.sizes), index + 1, cases.len()));
        let found = verifying.subjects(case, index == 0, &mut notes);
        runs.extend(verifying.compare(case, index, &found, &mut layers)?);
    }
    notes.dedup();
    let cases: Vec<_> = cases.into_iter().map(|case| case.sizes).collect();
    Ok(ModelReport {
        name: model.name.get_ref().clone(),
        precision: model.precision.name(),
        device: request.device.name().to_owned(),
        ok: runs.iter().all(|run| run.ok),
        layers: layers.report(request.layers, &runs, &plan, &kept, &imported, &cases),
        runs,
        notes,
    })
}

/// `batch 2, sequence 17`
pub(super) fn size_text(sizes: &BTreeMap<String, i64>) -> String {
    if sizes.is_empty() {
        return "fixed sizes".to_owned();
    }
    sizes.iter().map(|(name, size)| format!("{name} {size}")).collect::<Vec<_>>().join(", ")
}

/// The inputs to try.
fn cases(
    imported: &Graph,
    plan: &Plan<'_>,
    request: &Request<'_>,
) -> Result<Vec<Case>, VerifyError> {
    let case = |atoms: Vec<i64>, inputs| Case {
        sizes: sizes::named(imported, &atoms).into_iter().collect(),
        atoms,
        inputs,
    };
    if let Some(arrays) = request.input {
        let mut inputs = Vec::new();
        let mut patterns = Vec::new();
        for &input in &imported.inputs {
            let value = &imported[input];
            let found = arrays.iter().find(|(name, _)| *name == value.name);
            let (_, array) = found.ok_or_else(|| VerifyError::NoArray(value.name.clone()))?;
            inputs.push(subjects::tensor(array)?);
            let (name, dims) = (value.name.as_str(), value.shape.as_slice());
            patterns.push(ShapePattern { name, dims, extents: &array.shape });
        }
        return Ok(vec![case(bind(&imported.symbols, &patterns)?, inputs)]);
    }
    let all = if request.sizes.is_empty() {
        sizes::choose(imported, &|atoms| cost::of_reference(plan, atoms), REFERENCE)?
    } else {
        let given = request.sizes.iter().map(|sizes| sizes::given(imported, sizes));
        given.collect::<Result<_, _>>()?
    };
    let drawn = all.into_iter().enumerate().map(|(index, atoms)| {
        let inputs = draw::inputs(imported, &atoms, SEED + index as u64)?;
        Ok(case(atoms, inputs))
    });
    drawn.collect()
}

/// The model with its intermediate values as outputs.
struct Tracer {
    loaded: Loaded,
    /// Buffers of the plan, in order of the outputs after the model's own.
    buffers: Vec<u32>,
    /// How many outputs the model has.
    outputs: usize,
}

fn tracer(
    manifest: &Manifest,
    model: &Model,
    request: &Request<'_>,
    program: &Program,
    compiled: &Graph,
    notes: &mut Vec<String>,
) -> Result<Option<Tracer>, VerifyError> {
    let encoded = |program: &Program| postcard::to_allocvec(program).ok();
    let numbers = with_plan_of(manifest, model, compiled, |planned| {
        let same = encoded(&planned.assembled.program) == encoded(program);
        same.then(|| planned.assembled.buffers.clone())
    })?;
    let Some(numbers) = numbers else {
        notes.push("values within the model are not shown: the artifact was planned otherwise; run `cargo aot build`".to_owned());
        return Ok(None);
    };
    let artifacts = request.artifacts;
    let (program, buffers) = traced(program);
    let layout = WeightsLayout::new(compiled);
    let weights = ModelFile::open(&artifacts.model)?.info().weights.clone();
    let file = write_model(&program, compiled, &layout, &weights)?;
    let images = artifacts.image_bytes();
    let loaded = Loaded::load(request.device, &artifacts.parts(&file, &images))?;
    let of_plan = |id| numbers.iter().find(|(_, number)| **number == id).map(|(plan, _)| *plan);
    let buffers = buffers.into_iter().filter_map(of_plan).collect();
    Ok(Some(Tracer { loaded, buffers, outputs: compiled.outputs.len() }))
}

/// Everything that comparisons of one model need.
struct Verifying<'v> {
    request: &'v Request<'v>,
    imported: &'v Graph,
    reference: Option<Executor>,
    graph: Executor,
    cpu: Executor,
    plan: &'v Plan<'v>,
    /// Sizes that memory is planned for.
    bounds: Vec<Vec<i64>>,
    options: &'v LowerOptions,
    loaded: &'v Loaded,
    tracer: Option<&'v Tracer>,
    kept: &'v [Kept],
}

impl Verifying<'_> {
    /// What is compared at one choice of sizes; `notes` say what is left out.
    fn subjects(&self, case: &Case, first: bool, notes: &mut Vec<String>) -> Vec<Found> {
        let mut found = Vec::new();
        if first {
            found.push(subjects::graph(Subject::Graph, &self.graph, self.kept, &case.inputs));
        }
        if self.request.device.is_cuda() {
            found.push(self.kernels(case, notes));
            return found;
        }
        let mut cpu = subjects::device(Subject::Cpu, self.loaded, &case.inputs);
        if !self.kept.is_empty() {
            cpu.layers = subjects::graph(Subject::Cpu, &self.cpu, self.kept, &case.inputs).layers;
        }
        found.push(cpu);
        let limit = if first { FIRST_INTERPRETATION } else { INTERPRETATION };
        if cost::of_interpreter(self.plan, &case.atoms) <= limit {
            found.push(subjects::groups(self.plan, &self.bounds, self.kept, &case.inputs));
        } else {
            notes.push("groups are interpreted only where that is quick".to_owned());
        }
        found
    }

    fn kernels(&self, case: &Case, notes: &mut Vec<String>) -> Found {
        let mut found = subjects::device(Subject::Kernels, self.loaded, &case.inputs);
        let Some(tracer) = self.tracer else { return found };
        let layers = subjects::tensors(&tracer.loaded, &case.inputs).and_then(|tensors| {
            let contents = tensors.into_iter().skip(tracer.outputs).map(Rc::new);
            let buffers: HashMap<u32, Rc<Tensor>> =
                tracer.buffers.iter().copied().zip(contents).collect();
            subjects::in_buffers(self.plan, self.kept, &case.inputs, &buffers)
        });
        match layers {
            Ok(layers) => found.layers = layers,
            Err(reason) => notes.push(format!(
                "values within the model are not shown at {}: {reason}",
                size_text(&case.sizes)
            )),
        }
        found
    }

    /// Runs the reference and compares.
    fn compare(
        &self,
        case: &Case,
        index: usize,
        found: &[Found],
        layers: &mut Layers,
    ) -> Result<Vec<RunReport>, VerifyError> {
        let mut observe = |value: ValueId, tensor: &Tensor| {
            for each in found {
                if let Some(content) = each.layers.get(&value) {
                    layers.add(each.subject, value, index, content, tensor);
                }
            }
        };
        let computed = match &self.reference {
            Some(reference) => reference.run_observed(&case.inputs, &mut observe)?,
            None => Vec::new(),
        };
        let names = self.imported.outputs.iter().map(|(name, _)| name.as_str());
        let expected: Vec<(&str, Tensor)> = match self.request.expected {
            Some(arrays) => outputs::given(self.imported, arrays)?,
            None => names.zip(computed).collect(),
        };
        let compiled = self.plan.graph;
        let runs = found.iter().map(|each| {
            let limit =
                self.request.tolerance.unwrap_or_else(|| tolerance(each.subject, self.options));
            let outputs = each.outputs.as_ref().map_err(Clone::clone);
            let outputs =
                outputs.and_then(|found| outputs::compare(compiled, found, &expected, limit));
            let failure = outputs.as_ref().err().cloned();
            let outputs = outputs.unwrap_or_default();
            let ok = failure.is_none() && outputs.iter().all(|output| output.ok);
            RunReport { subject: each.subject, sizes: case.sizes.clone(), ok, outputs, failure }
        });
        Ok(runs.collect())
    }
}

impl From<aot_ir::GraphError> for VerifyError {
    fn from(error: aot_ir::GraphError) -> Self {
        Self::Model(ModelError::from(error))
    }
}
