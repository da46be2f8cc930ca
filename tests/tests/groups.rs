//! Groups, interpreted through the planned arena, against the reference executor.

use aot_ir::DType;
use aot_ir::exec::{Executor, Tensor};
use aot_tests::cases::{Case, all};
use aot_tests::compare::{distance, tolerance};
use aot_tests::net::inputs;
use cargo_aot::lower::arena::plan_arena;
use cargo_aot::lower::interpret::interpret;
use cargo_aot::lower::plan::Plan;
use cargo_aot::lower::{LowerOptions, Precision, lower};

/// Of each output of a plan at these sizes: how far the groups, interpreted, are from the graph, executed; and
/// its type.
pub(crate) fn distances(
    plan: &Plan<'_>,
    atoms: &[i64],
    inputs: &[Tensor],
) -> Result<Vec<(f64, DType)>, String> {
    let bounds: Vec<i64> = plan.graph.symbols.iter().map(|(_, s)| s.hi).collect();
    let arena = plan_arena(plan, &bounds);
    let expected =
        Executor::wide(plan.graph).and_then(|e| e.run(inputs)).map_err(|e| e.to_string())?;
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
    let plan = lower(graph, &options).map_err(|e| e.to_string())?;
    if let Some(groups) = case.groups
        && precision == Precision::F32
        && plan.steps.len() != groups
    {
        return Err(format!("{} groups instead of {groups}", plan.steps.len()));
    }
    for sizes in &case.sizes {
        let (atoms, tensors) = inputs(graph, sizes, 3);
        for (d, dtype) in distances(&plan, &atoms, &tensors)? {
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
        for (precision, name) in [(Precision::F32, "f32"), (Precision::F16, "f16")] {
            if let Err(message) = check(case, precision, name) {
                wrong.push(format!("{} in {name}: {message}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
