//! Groups, interpreted through the planned arena, against the reference executor.

use aot_ir::exec::{Executor, Tensor};
use aot_tests::cases::{Case, all};
use aot_tests::compare::{distance, tolerance};
use aot_tests::net::inputs;
use cargo_aot::lower::arena::plan_arena;
use cargo_aot::lower::interpret::interpret;
use cargo_aot::lower::{LowerOptions, Precision, lower};

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
    let bounds: Vec<i64> = graph.symbols.iter().map(|(_, s)| s.hi).collect();
    let arena = plan_arena(&plan, &bounds);
    for sizes in &case.sizes {
        let (atoms, tensors) = inputs(graph, sizes, 3);
        let expected =
            Executor::wide(graph).and_then(|e| e.run(&tensors)).map_err(|e| e.to_string())?;
        let bytes: Vec<Vec<u8>> = tensors.iter().map(Tensor::to_bytes).collect();
        let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let found = interpret(&plan, &arena, &atoms, &bytes).map_err(|e| e.to_string())?;
        for (found, expected) in found.iter().zip(&expected) {
            let shape = expected.shape().to_vec();
            let found =
                Tensor::from_bytes(expected.dtype(), shape, found).map_err(|e| e.to_string())?;
            let d = distance(&found.to_f64(), &expected.to_f64());
            // In a narrow type every kept value is rounded, not the operands alone.
            let chain = if precision == Precision::F32 { 1.0 } else { 3.0 };
            let allowed = tolerance(name, expected.dtype()) * case.slack * chain;
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
