//! Groups, interpreted through the planned arena, against the reference executor.

use crate::reference::asset;
use aot_ir::exec::{Executor, Tensor};
use aot_ir::{Arch, DType, Dim, Graph};
use aot_kernels::group::{Anchor, Expr, Group};
use aot_kernels::kernels_for;
use aot_tests::cases::{self, Case};
use aot_tests::compare::{distance, tolerance};
use aot_tests::net::inputs;
use cargo_aot::lower::arena::plan_arena;
use cargo_aot::lower::interpret::interpret;
use cargo_aot::lower::plan::{BufferKind, Plan, PlanBuffer};
use cargo_aot::lower::program::assemble;
use cargo_aot::lower::{LowerOptions, Precision, lower};
use cargo_aot::passes;
use std::borrow::Cow;

/// All networks, those that are made as ONNX files included.
fn all() -> Vec<Case> {
    let mut all = cases::all();
    let made = aot_conformance::networks(&asset("reference/sizes").join("../.."));
    all.extend(made.expect("the networks can be imported").into_iter().map(|n| n.case));
    all
}

/// The graph to lower.
pub(crate) fn passed(case: &Case) -> Cow<'_, Graph> {
    match case.written_out {
        true => Cow::Owned(passes::run(&case.graph, &passes::Options::default()).expect("passes")),
        false => Cow::Borrowed(&case.graph),
    }
}

/// Of each output of a plan at these sizes: how far the groups, interpreted, are from the graph (that which the
/// plan is of, or one that means the same), executed; and its type.
pub(crate) fn distances(
    graph: &Graph,
    plan: &Plan<'_>,
    atoms: &[i64],
    inputs: &[Tensor],
) -> Result<Vec<(f64, DType)>, String> {
    let bounds: Vec<i64> = plan.graph.symbols.iter().map(|(_, s)| s.hi).collect();
    let arena = plan_arena(plan, &bounds);
    let expected = Executor::wide(graph).and_then(|e| e.run(inputs)).map_err(|e| e.to_string())?;
    let bytes: Vec<Vec<u8>> = inputs.iter().map(Tensor::to_bytes).collect();
    let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    let found = interpret(plan, &arena, atoms, &bytes).map_err(|e| e.to_string())?;
    let outputs = found.iter().zip(&expected).map(|(found, expected)| {
        let shape = expected.shape().to_vec();
        let found =
            Tensor::from_bytes(expected.dtype(), shape, found).map_err(|e| e.to_string())?;
        Ok((distance(&found.to_f64(), &expected.to_f64()), expected.dtype()))
    });
    outputs.collect()
}

/// What is wrong with a case, if anything.
fn check(case: &Case, precision: Precision, name: &str) -> Result<(), String> {
    let graph = &case.graph;
    let options = LowerOptions { precision, precision_for: Vec::new() };
    let lowered = passed(case);
    let plan = lower(&lowered, &options).map_err(|e| e.to_string())?;
    if let Some(groups) = case.groups
        && precision == Precision::F32
        && plan.steps.len() != groups
    {
        return Err(format!("{} groups instead of {groups}", plan.steps.len()));
    }
    for sizes in &case.sizes {
        let (atoms, tensors) = inputs(graph, sizes, 3);
        for (d, dtype) in distances(graph, &plan, &atoms, &tensors)? {
            // In a narrow type every kept value is rounded, not the operands alone.
            let chain = if precision == Precision::F32 { 1.0 } else { 3.0 };
            let allowed = tolerance(name, dtype) * case.slack * chain;
            if d.is_nan() || d > allowed {
                return Err(format!("off by {d:e} at {sizes:?}"));
            }
        }
    }
    Ok(())
}

#[test]
fn groups_mean_what_the_graph_means() {
    let mut wrong = Vec::new();
    let cases = all();
    assert!(cases.len() > 100);
    for case in &cases {
        let precisions =
            [(Precision::F32, "f32"), (Precision::F16, "f16"), (Precision::Bf16, "bf16")];
        for (precision, name) in precisions {
            if let Err(message) = check(case, precision, name) {
                wrong.push(format!("{} in {name}: {message}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn programs_with_sizes_that_runs_bind_are_consistent() {
    let mut tried = 0;
    for case in all() {
        let graph = passed(&case);
        if !graph.symbols.iter().any(|(id, _)| graph.symbols.in_run(id)) {
            continue;
        }
        let options = LowerOptions { precision: Precision::F32, precision_for: Vec::new() };
        let plan = lower(&graph, &options).unwrap();
        let targets = [(Arch::of_capability(90), false)];
        let assembled = assemble(&plan, &case.name, &targets, &[], &kernels_for).unwrap();
        assert_eq!(assembled.program.check(), Ok(()), "{}", case.name);
        tried += 1;
    }
    assert!(tried > 10, "{tried}");
}

/// Networks of the families `padded_…`, lowered, with random inputs at their first sizes.
fn padded(precision: Precision, mut f: impl FnMut(&str, &mut Plan<'_>, &[i64], &[Tensor])) {
    let options = LowerOptions { precision, precision_for: Vec::new() };
    for case in all().iter().filter(|c| c.name.starts_with("padded_")) {
        let mut plan = lower(&case.graph, &options).unwrap();
        let (atoms, tensors) = inputs(&case.graph, &case.sizes[0], 3);
        f(&case.name, &mut plan, &atoms, &tensors);
    }
}

#[test]
fn rows_that_are_no_whole_accesses_are_padded() {
    for precision in [Precision::F32, Precision::F16, Precision::Bf16] {
        padded(precision, |name, plan, _, _| {
            let mut paddings = plan.homes.values().filter_map(|h| h.padding);
            assert!(paddings.next().is_some(), "{name} in {precision:?} pads nothing");
            let caller =
                |b: &PlanBuffer| matches!(b.kind, BufferKind::Input(_) | BufferKind::Output(_));
            for (value, home) in &plan.homes {
                let buffer = &plan.buffers[home.buffer as usize];
                assert!(!caller(buffer) || home.padding.is_none(), "{name}");
                let shape: Dim = plan.graph[*value].shape.iter().product();
                assert!(!caller(buffer) || buffer.elements == shape, "{name}");
            }
        });
    }
}

/// Stores that zero padding are made to store there what they would store elsewhere.
#[test]
fn padding_that_is_not_zero_is_noticed() {
    let (mut changed, mut noticed) = (0, 0);
    padded(Precision::F16, |_, plan, atoms, tensors| {
        for Group { exprs, stores, .. } in &mut plan.steps {
            for store in stores {
                if let Expr::Select(_, inside, _) = exprs[store.value.index()].expr {
                    store.value = inside;
                    changed += 1;
                }
            }
        }
        let found = distances(plan.graph, plan, atoms, tensors);
        let said = matches!(&found, Err(message) if message.contains("padding that is not zero"));
        noticed += usize::from(said);
    });
    // Some padding is never read: groups of channels end before it.
    assert!(changed > 40 && noticed > 15, "{changed} changed, {noticed} networks noticed");
}

/// Elements of a buffer with every size at `part` of its bound.
fn elements(plan: &Plan<'_>, buffer: &PlanBuffer, part: i64) -> i64 {
    let symbols = plan.graph.symbols.iter();
    let atoms: Vec<i64> = symbols
        .map(|(_, s)| if s.name == "batch" { s.hi } else { (s.hi * part / 100).max(s.lo) })
        .collect();
    buffer.elements.eval(&atoms[..]).unwrap()
}

#[test]
fn attention_that_is_written_out_keeps_no_scores() {
    let cases = all();
    let fused: Vec<&Case> =
        cases.iter().filter(|c| c.name.starts_with("attention_") && c.groups.is_some()).collect();
    assert!(fused.len() > 15, "{}", fused.len());
    for case in fused {
        for precision in [Precision::F32, Precision::Tf32, Precision::F16, Precision::Bf16] {
            let options = LowerOptions { precision, precision_for: Vec::new() };
            let graph = passed(case);
            let plan = lower(&graph, &options).unwrap();
            let name = format!("{} in {precision:?}", case.name);
            let is_attention = |g: &&Group| matches!(g.anchor, Anchor::Attention(_));
            assert_eq!(plan.steps.iter().filter(is_attention).count(), 1, "{name}");
            for buffer in plan.buffers.iter().filter(|b| b.kind == BufferKind::Arena) {
                // Scores and masks grow with the square of the sequence.
                let (half, whole) = (elements(&plan, buffer, 50), elements(&plan, buffer, 100));
                assert!(whole <= 2 * half, "{name}: `{}` has {whole} elements", buffer.name);
            }
        }
    }
}
