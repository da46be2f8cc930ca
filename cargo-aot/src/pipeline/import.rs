//! Import of a model of the manifest, with errors that point into the manifest where it is at
//! fault.

use super::error::ModelError;
use super::options::import_options;
use crate::import::{AxisSpec, Description, DimInfo, ImportError, Imported, describe, import};
use crate::manifest::{
    Diagnostic, KnownDim, KnownInput, KnownTensor, Manifest, Model, check_dims, check_inputs,
    pair_state,
};
use aot_ir::{Graph, State, ValueId};

/// What is wrong with a model's table in the manifest.
#[derive(Debug)]
pub struct ManifestProblems(pub Vec<Diagnostic>);

/// Imports `model`.
pub fn import_model(manifest: &Manifest, model: &Model) -> Result<Imported, ModelError> {
    let path = manifest.resolve(model.source.get_ref());
    let error = match import(&path, &import_options(model)) {
        Ok(mut imported) => {
            imported.graph.state = state(model, &imported.graph)?;
            return Ok(imported);
        }
        Err(error) => error,
    };
    let of_manifest = matches!(
        error,
        ImportError::UnboundDims { .. } | ImportError::Unknown { .. } | ImportError::Input { .. }
    );
    if of_manifest && let Ok(description) = describe(&path) {
        let problems = problems(model, &description);
        if !problems.is_empty() {
            return Err(ModelError::Manifest(ManifestProblems(problems)));
        }
    }
    if let ImportError::Input { input, reason } = &error
        && let Some(spec) = model.inputs.iter().find(|spec| spec.name.get_ref() == input)
    {
        let message = format!("input `{input}` of model `{}`", model.name.get_ref());
        let problem = Diagnostic::error(message).at(spec.span.clone(), reason);
        return Err(ModelError::Manifest(ManifestProblems(vec![problem])));
    }
    Err(error.into())
}

/// The state that the manifest gives the model.
fn state(model: &Model, graph: &Graph) -> Result<Vec<State>, ModelError> {
    let known = |name: &str, value: ValueId| KnownTensor {
        name: name.to_owned(),
        dtype: graph[value].dtype.to_string(),
        rank: graph[value].shape.len(),
    };
    let inputs: Vec<_> = graph.inputs.iter().map(|v| known(&graph[*v].name, *v)).collect();
    let outputs: Vec<_> = graph.outputs.iter().map(|(name, v)| known(name, *v)).collect();
    let pairs = pair_state(model, &inputs, &outputs);
    let pairs = pairs.map_err(|problems| ModelError::Manifest(ManifestProblems(problems)))?;
    let state = |(input, output)| State { input: input as u32, output: output as u32 };
    Ok(pairs.into_iter().map(state).collect())
}

/// What of `model`'s dims and inputs the file contradicts or misses.
fn problems(model: &Model, description: &Description) -> Vec<Diagnostic> {
    let options = import_options(model);
    let mut dims = Vec::new();
    let mut inputs = Vec::new();
    for tensor in &description.inputs {
        let own = tensor.dims.as_deref();
        inputs.push(KnownInput { name: tensor.name.clone(), rank: own.map(<[DimInfo]>::len) });
        let given = options.inputs.get(&tensor.name);
        let axes = given.map(Vec::len).or(own.map(<[DimInfo]>::len)).unwrap_or(0);
        for axis in 0..axes {
            let names = match given.and_then(|given| given.get(axis)) {
                Some(AxisSpec::Named(name)) => vec![name.clone()],
                Some(AxisSpec::Fixed(_)) => Vec::new(),
                Some(AxisSpec::Keep) | None => {
                    let info = own.and_then(|own| own.get(axis));
                    info.map(|info| info.names().to_vec()).unwrap_or_default()
                }
            };
            let input = &tensor.name;
            dims.extend(names.into_iter().map(|name| KnownDim {
                name,
                input: input.clone(),
                axis,
            }));
        }
    }
    let mut problems = check_dims(model, &dims);
    problems.extend(check_inputs(model, &inputs));
    // A name in `inputs` without a range is found by both.
    let mut seen = Vec::new();
    problems.retain(|problem| {
        let name = problem.message.split('`').nth(1).map(str::to_owned);
        let again = problem.message.ends_with("has no range") && seen.contains(&name);
        seen.push(name);
        !again
    });
    problems
}
