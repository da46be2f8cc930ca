//! State that sessions keep, on the CPU.

use crate::memory::nothing;
use crate::models::imported;
use crate::reference::cases;
use aot_ir::exec::Tensor;
use aot_ir::{Arch, Bytes, Graph};
use aot_runtime::Device;
use aot_runtime::artifact::{WeightsLayout, write_model};
use aot_runtime::loaded::{Loaded, Parts, WeightsSource};
use aot_tests::models::Model;
use aot_tests::sessions::{compare_session, given_inputs, same, step};
use cargo_aot::lower::program::assemble;
use cargo_aot::lower::{LowerOptions, Precision, lower};
use cargo_aot::passes;

/// A graph as an application loads it on the CPU.
fn on_cpu(graph: &Graph) -> Loaded {
    let options = LowerOptions { precision: Precision::F32, precision_for: Vec::new() };
    let plan = lower(graph, &options).unwrap();
    let targets = [(Arch::of_capability(90), false)];
    let program = assemble(&plan, "m", &targets, &[], &nothing).unwrap().program;
    let layout = WeightsLayout::new(graph);
    let (weights, id) = layout.write(graph);
    let (model, weights) = (write_model(&program, graph, &layout, &id).unwrap(), weights.into());
    let weights: &Bytes = &weights;
    let weights = WeightsSource::Bytes(weights);
    let parts = Parts { model: &model, images: &[], weights, lines: &[] };
    Loaded::load(&Device::cpu().unwrap(), &parts).unwrap()
}

fn passed(graph: &Graph) -> Graph {
    let passed = passes::run(graph, &passes::Options::default()).unwrap();
    assert_eq!((passed.check(), &passed.state), (Ok(()), &graph.state));
    passed
}

/// Speech that goes on from window to window.
#[test]
fn voice_goes_on_from_call_to_call() {
    for name in ["vad", "vad-8k", "vad-op15", "vad-half", "vad-ifless", "vad-sequence"] {
        let graph = passed(&imported(Model::of(name)));
        assert!(!graph.state.is_empty(), "{name}");
        let runs: Vec<Vec<Tensor>> = cases(name)
            .iter()
            .map(|case| {
                let all = case.inputs_of(&graph);
                given_inputs(&graph).into_iter().map(|i| all[i].clone()).collect()
            })
            .collect();
        // State of a batch stays of that size.
        let alike = |run: &&Vec<Tensor>| {
            run.iter().zip(&runs[0]).all(|(a, b)| a.shape().first() == b.shape().first())
        };
        let runs: Vec<Vec<Tensor>> = match name {
            "vad-sequence" => runs.clone(),
            _ => runs.iter().filter(alike).cloned().collect(),
        };
        let worst = compare_session(&on_cpu(&graph), &graph, &runs);
        let worst = worst.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(worst < 1e-4 && runs.len() > 1, "{name}: {worst:e}, {} runs", runs.len());
    }
}

#[test]
fn what_is_wrong_with_a_session_is_said() {
    let graph = passed(&imported(Model::of("vad-ifless")));
    let loaded = on_cpu(&graph);
    let all = cases("vad-ifless")[0].inputs_of(&graph);
    let given: Vec<Tensor> = given_inputs(&graph).into_iter().map(|i| all[i].clone()).collect();
    let session = loaded.session().unwrap();
    let empty = session.save().unwrap();
    step(&session, &graph, &given).unwrap();
    let saved = session.save().unwrap();
    let after = step(&session, &graph, &given).unwrap();

    let says = |bytes: &[u8], text: &str| {
        let error = session.restore(bytes).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    says(b"nothing", "the bytes are no saved state");
    says(&saved[..saved.len() - 1], "ends too early");
    let mut damaged = saved.clone();
    *damaged.last_mut().unwrap() ^= 1;
    says(&damaged, "does not match its checksum");
    let mut renamed = graph.clone();
    renamed.name = "other".to_owned();
    let other = on_cpu(&renamed).session().unwrap();
    let error = other.restore(&saved).unwrap_err().to_string();
    assert!(error.ends_with(&format!("it is of `{}`, not of `other`", graph.name)), "{error}");

    // Nothing of this has changed the session.
    session.restore(&saved).unwrap();
    assert!(same(&step(&session, &graph, &given).unwrap(), &after));
    session.restore(&empty).unwrap();
    step(&session, &graph, &given).unwrap();
    assert_eq!(session.save().unwrap(), saved);

    let mut stateless = graph.clone();
    stateless.state.clear();
    let stateless = on_cpu(&stateless);
    let error = stateless.session().unwrap_err().to_string();
    assert!(error.contains("keeps no state: its table in Aot.toml has no `state`"), "{error}");
    assert!(loaded.save().is_err() && loaded.reset().is_err());
}
