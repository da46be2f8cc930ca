//! Sessions against the reference executor, to which the state is handed on from run to run.

use crate::compare::distance;
use aot_ir::Graph;
use aot_ir::exec::{Executor, Tensor};
use aot_runtime::loaded::Loaded;
use aot_runtime::{InputRef, OutputRef};

/// The inputs of a graph that its runs do not keep.
pub fn given_inputs(graph: &Graph) -> Vec<usize> {
    let kept = |i: usize| graph.state.iter().any(|s| s.input as usize == i);
    (0..graph.inputs.len()).filter(|i| !kept(*i)).collect()
}

/// The outputs of a graph that its runs do not keep.
pub fn seen_outputs(graph: &Graph) -> Vec<usize> {
    let kept = |j: usize| graph.state.iter().any(|s| s.output as usize == j);
    (0..graph.outputs.len()).filter(|j| !kept(*j)).collect()
}

/// One run of a session, or of a model from its initial state: its outputs that are not kept.
///
/// # Errors
/// When the run fails.
pub fn step(session: &Loaded, graph: &Graph, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let text = |e: aot_runtime::Error| e.to_string();
    let bytes: Vec<Vec<u8>> = inputs.iter().map(Tensor::to_bytes).collect();
    let refs: Vec<InputRef<'_>> = inputs
        .iter()
        .zip(&bytes)
        .map(|(t, b)| InputRef::host(t.dtype(), t.shape(), b).map_err(text))
        .collect::<Result<_, _>>()?;
    let sizes = session.bind(&refs).map_err(text)?;
    let seen = seen_outputs(graph);
    let mut sinks: Vec<Vec<u8>> = vec![Vec::new(); seen.len()];
    let ports = &session.signature().outputs;
    let mut outputs: Vec<OutputRef<'_>> = seen
        .iter()
        .zip(&mut sinks)
        .map(|(&j, sink)| OutputRef::bytes(ports[j].dtype, &sizes.outputs()[j], sink))
        .collect();
    session.run(&sizes, None, &refs, &mut outputs).map_err(text)?;
    let shapes: Vec<Vec<usize>> = outputs.iter().map(|o| o.shape().to_vec()).collect();
    drop(outputs);
    let tensors = seen.iter().zip(shapes).zip(&sinks);
    tensors
        .map(|((&j, shape), bytes)| Tensor::from_bytes(ports[j].dtype, shape, bytes))
        .map(|tensor| tensor.map_err(|e| e.to_string()))
        .collect()
}

/// State for the first run with these inputs: zeros, of the least size where no other input says one.
fn initial(graph: &Graph, given: &[Tensor]) -> Result<Vec<Tensor>, String> {
    use aot_ir::dim::{ShapePattern, bind_or};
    let ports = given_inputs(graph);
    let patterns: Vec<ShapePattern<'_>> = ports
        .iter()
        .zip(given)
        .map(|(&i, tensor)| {
            let value = &graph[graph.inputs[i]];
            ShapePattern { name: &value.name, dims: &value.shape, extents: tensor.shape() }
        })
        .collect();
    let atoms = bind_or(&graph.symbols, &patterns, &|symbol| Some(symbol.lo));
    let atoms = atoms.map_err(|e| e.to_string())?;
    let zeros = graph.state.iter().map(|state| {
        let value = &graph[graph.inputs[state.input as usize]];
        let shape: Result<Vec<usize>, String> = value
            .shape
            .iter()
            .map(|d| d.eval(&atoms[..]).map(|n| n as usize).map_err(|e| e.to_string()))
            .collect();
        let shape = shape?;
        let count = shape.iter().product();
        Tensor::from_f64(value.dtype, shape, &vec![0.0; count]).map_err(|e| e.to_string())
    });
    zeros.collect()
}

/// Runs a model and the reference executor side by side, the state handed on; the greatest distance of an output.
///
/// In the middle the session is saved and restored into another one, and copied; both must go on alike.
///
/// # Errors
/// When a run fails, or what must be the same differs.
pub fn compare_session(model: &Loaded, graph: &Graph, runs: &[Vec<Tensor>]) -> Result<f64, String> {
    let text = |e: aot_runtime::Error| e.to_string();
    let reference = Executor::wide(graph).map_err(|e| e.to_string())?;
    let mut session = model.session().map_err(text)?;
    let mut state = initial(graph, &runs[0])?;
    let mut worst = 0.0f64;
    for (n, given) in runs.iter().enumerate() {
        let mut all: Vec<Option<Tensor>> = vec![None; graph.inputs.len()];
        for (&i, tensor) in given_inputs(graph).iter().zip(given) {
            all[i] = Some(tensor.clone());
        }
        for (port, tensor) in graph.state.iter().zip(&state) {
            all[port.input as usize] = Some(tensor.clone());
        }
        let all: Vec<Tensor> = all.into_iter().flatten().collect();
        let expected = reference.run(&all).map_err(|e| e.to_string())?;
        state = graph.state.iter().map(|s| expected[s.output as usize].clone()).collect();
        let copy = (n == runs.len() / 2).then(|| session.try_clone().map_err(text)).transpose()?;
        if n == runs.len() / 2 {
            let saved = session.save().map_err(text)?;
            let other = model.session().map_err(text)?;
            other.restore(&saved).map_err(text)?;
            if other.save().map_err(text)? != saved {
                return Err("a restored session saves something else".to_owned());
            }
            session = other;
        }
        let found = step(&session, graph, given)?;
        if let Some(copy) = copy
            && !same(&step(&copy, graph, given)?, &found)
        {
            return Err(format!("a copy goes on in another way in run {n}"));
        }
        for (&j, found) in seen_outputs(graph).iter().zip(&found) {
            let expected = &expected[j];
            if found.shape() != expected.shape() {
                let (found, expected) = (found.shape(), expected.shape());
                return Err(format!("output {j} of run {n} is {found:?}, not {expected:?}"));
            }
            worst = worst.max(distance(&found.to_f64(), &expected.to_f64()));
        }
    }
    session.reset().map_err(text)?;
    let again = step(&session, graph, &runs[0])?;
    match same(&again, &step(model, graph, &runs[0])?) {
        true => Ok(worst),
        false => Err("after a reset the first run is another".to_owned()),
    }
}

/// Whether tensors have the same bits.
pub fn same(a: &[Tensor], b: &[Tensor]) -> bool {
    let alike = |(a, b): (&Tensor, &Tensor)| a.shape() == b.shape() && a.to_bytes() == b.to_bytes();
    a.len() == b.len() && a.iter().zip(b).all(alike)
}
