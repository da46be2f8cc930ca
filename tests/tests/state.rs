//! State that sessions keep, on the CPU.

use crate::memory::nothing;
use crate::models::imported;
use crate::reference::cases;
use aot_ir::dim::Atom;
use aot_ir::exec::Tensor;
use aot_ir::op::UnaryOp;
use aot_ir::{Arch, Bytes, DType, Graph};
use aot_kernels::group::{Anchor, Group};
use aot_runtime::artifact::{WeightsLayout, write_model};
use aot_runtime::loaded::{Loaded, Parts, Sizes, WeightsSource};
use aot_runtime::{Device, Error, InputRef, OutputRef};
use aot_tests::cases::{Case, all};
use aot_tests::compare::distance;
use aot_tests::models::Model;
use aot_tests::net::{Net, inputs};
use aot_tests::sessions::{compare_session, given_inputs, same, step};
use cargo_aot::lower::program::assemble;
use cargo_aot::lower::{LowerOptions, Precision, lower};
use cargo_aot::passes;
use futures::executor::block_on;

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

/// A decoder's inputs at these sizes, but for what it keeps.
fn tokens(case: &Case, new: i64, seed: u64) -> Vec<Tensor> {
    let sizes = [("batch", 2), ("past", 0), ("new", new)];
    let sizes: Vec<(String, i64)> = sizes.map(|(name, size)| (name.to_owned(), size)).into();
    let (_, all) = inputs(&case.graph, &sizes, seed);
    given_inputs(&case.graph).into_iter().map(|i| all[i].clone()).collect()
}

/// The decoder that keeps binary16, and the one that puts what is new first.
const HALVES: usize = 3;
const LAST: usize = 4;

fn decoders() -> Vec<Case> {
    let cases: Vec<Case> =
        all().into_iter().filter(|case| case.name.starts_with("decoder/")).collect();
    assert_eq!(cases.len(), 5);
    cases
}

/// Prompts and single tokens.
#[test]
fn decoders_go_on_with_the_keys_of_before() {
    for case in decoders() {
        let runs: Vec<Vec<Tensor>> = [5, 1, 1, 3, 8, 1, 1, 4, 1]
            .into_iter()
            .enumerate()
            .map(|(n, new)| tokens(&case, new, n as u64))
            .collect();
        let worst = compare_session(&on_cpu(&case.graph), &case.graph, &runs);
        let worst = worst.unwrap_or_else(|e| panic!("{}: {e}", case.name));
        assert!(worst < 1e-5, "{}: {worst:e}", case.name);
    }
}

/// One token after the other gives what all of them at once give.
#[test]
fn steps_are_the_whole_sequence() {
    let case = &decoders()[0];
    let loaded = on_cpu(&case.graph);
    let whole = tokens(case, 7, 3);
    let ids = whole[0].to_f64();
    let logits = &step(&loaded, &case.graph, &whole).unwrap()[0];
    let (width, expected) = (logits.shape()[2], logits.to_f64());
    let session = loaded.session().unwrap();
    for at in 0..7 {
        let here: Vec<f64> = (0..2).map(|batch| ids[batch * 7 + at]).collect();
        let here = Tensor::from_f64(whole[0].dtype(), vec![2, 1], &here).unwrap();
        let found = step(&session, &case.graph, &[here]).unwrap()[0].to_f64();
        // The last layer adds a sum over all tokens so far, which is that of the whole only at the end.
        if at == 6 {
            for batch in 0..2 {
                let from = (batch * 7 + at) * width;
                let (found, expected) =
                    (&found[batch * width..][..width], &expected[from..][..width]);
                assert!(distance(found, expected) < 1e-5, "{found:?} {expected:?}");
            }
        }
    }
}

/// What is concatenated behind the past is stored there: no group of a run goes over the past to keep it.
#[test]
fn what_is_new_is_appended_in_place() {
    for (n, case) in decoders().iter().enumerate() {
        for precision in [Precision::F32, Precision::Tf32, Precision::F16, Precision::Bf16] {
            let options = LowerOptions { precision, precision_for: Vec::new() };
            let graph = passed(&case.graph);
            let plan = lower(&graph, &options).unwrap();
            let name = format!("{} in {precision:?}", case.name);
            // What comes first is not appended.
            let expected = if n == LAST { 0 } else { 4 };
            assert_eq!(plan.appended.len(), expected, "{name}");
            let past = case.graph.symbols.find("past").unwrap();
            let goes_over = |group: &&Group| {
                let grows = group.extents.iter().any(|e| e.any(|a| *a == Atom::Sym(past)));
                grows && !matches!(group.anchor, Anchor::Attention(_))
            };
            let growing = plan.steps.iter().filter(goes_over).count();
            assert_eq!(growing, if n == LAST { growing.max(4) } else { 0 }, "{name}");
            let program = assemble(&plan, "m", &[], &[], &nothing).unwrap().program;
            assert_eq!(program.check(), Ok(()), "{name}");
            for state in program.state.iter().filter_map(|state| state.appended) {
                let narrow = matches!(precision, Precision::F16 | Precision::Bf16) || n == HALVES;
                assert_eq!(
                    (state.capacity, state.dtype.bits()),
                    (32, if narrow { 16 } else { 32 })
                );
            }
        }
    }
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
    assert_eq!(session.state_bytes().unwrap(), 0);
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

    // Two buffers of two rows of 128 for every window of the batch.
    let batch = given[0].shape()[0] as u64;
    assert_eq!(session.state_bytes().unwrap(), 2 * 2 * batch * 128 * 4);

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

/// A decoder's run with these tokens, whose output is given a shape of its own.
fn run_into(
    session: &Loaded,
    tokens: &[Tensor],
    shape: impl Fn(&[usize]) -> Vec<usize>,
) -> aot_runtime::Result<()> {
    let bytes: Vec<Vec<u8>> = tokens.iter().map(Tensor::to_bytes).collect();
    let inputs = tokens.iter().zip(&bytes);
    let inputs = inputs.map(|(t, b)| InputRef::host(t.dtype(), t.shape(), b));
    let inputs = inputs.collect::<aot_runtime::Result<Vec<_>>>()?;
    let sizes = session.bind(&inputs)?;
    let port = &session.signature().outputs[0];
    let (shape, mut sink) = (shape(&sizes.outputs()[0]), Vec::new());
    session.run(&sizes, None, &inputs, &mut [OutputRef::bytes(port.dtype, &shape, &mut sink)])
}

#[test]
fn a_first_run_that_fails_changes_nothing() {
    let case = &decoders()[0];
    let session = on_cpu(&case.graph).session().unwrap();
    let tokens = tokens(case, 2, 0);
    let wrong = run_into(&session, &tokens, |shape| [shape, &[1]].concat());
    assert!(matches!(wrong, Err(Error::OutputShape { .. })), "{wrong:?}");
    assert_eq!(session.state_bytes().unwrap(), 0);
    // Another batch, which state of that run would refuse.
    let sizes = [("batch", 1), ("past", 0), ("new", 3)].map(|(n, size)| (n.to_owned(), size));
    let (_, all) = inputs(&case.graph, &sizes, 1);
    let other: Vec<Tensor> =
        given_inputs(&case.graph).into_iter().map(|i| all[i].clone()).collect();
    run_into(&session, &other, <[usize]>::to_vec).unwrap();
}

#[test]
fn sizes_are_those_of_the_inputs_and_of_the_model() {
    const LENGTHS: [usize; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
    let mut net = Net::new();
    let n = net.symbol("n", 1, 8, 1);
    let x = net.input(DType::F32, &[n]);
    let y = net.unary(UnaryOp::Neg, x);
    net.output(y);
    let (loaded, other) = (on_cpu(&net.graph), on_cpu(&net.graph));
    let bytes = [0u8; 32];
    let of =
        |n: usize| InputRef::host(DType::F32, std::slice::from_ref(&LENGTHS[n]), &bytes[..n * 4]);
    let run = |model: &Loaded, sizes: &Sizes, n: usize| {
        let mut sink = Vec::new();
        let mut output = [OutputRef::bytes(DType::F32, &sizes.outputs()[0], &mut sink)];
        model.run(sizes, None, &[of(n)?], &mut output)
    };
    let sizes = loaded.bind(&[of(4).unwrap()]).unwrap();
    run(&loaded, &sizes, 4).unwrap();
    for refused in [run(&loaded, &sizes, 3), run(&loaded, &sizes, 8), run(&other, &sizes, 4)] {
        assert!(matches!(refused, Err(Error::OtherSizes { .. })), "{refused:?}");
    }
    let task = block_on(loaded.run_async(&sizes, &[of(3).unwrap()]));
    assert!(matches!(task, Err(Error::OtherSizes { .. })));
}
