//! A program that gives its intermediate values.

use aot_runtime::program::{BufferId, MemoryPlan, Place, Port, Program};

/// The program with the buffers of its arena as further outputs, in order of the buffers, and
/// which buffers these are.
///
/// Kernels take addresses, so that they are the same kernels on the same elements; that buffers
/// share memory over time is all that is lost.
pub(super) fn traced(program: &Program) -> (Program, Vec<BufferId>) {
    let mut traced = program.clone();
    let mut buffers = Vec::new();
    for (i, buffer) in traced.buffers.iter_mut().enumerate() {
        if buffer.place != Place::Arena {
            continue;
        }
        buffer.place = Place::Output(traced.outputs.len() as u32);
        traced.outputs.push(Port {
            name: format!("buffer {i}"),
            dtype: buffer.dtype,
            shape: vec![buffer.elements.clone()],
        });
        buffers.push(BufferId(i as u32));
    }
    traced.in_place.clear();
    for MemoryPlan { offsets, total, .. } in &mut traced.plans {
        offsets.clear();
        *total = 0;
    }
    (traced, buffers)
}

#[cfg(test)]
mod tests {
    use aot_ir::{DType, Dim, Graph, Op};
    use aot_kernels::Arch;

    use super::*;
    use crate::lower::program::assemble;
    use crate::lower::{LowerOptions, Precision, lower};

    #[test]
    fn every_intermediate_is_an_output_and_launches_stay() {
        let mut graph = Graph::new("g");
        let x = graph.add_input("x", DType::F32, vec![Dim::from(4), Dim::from(3)]);
        let a = graph.add1(Op::Softmax { axis: 1, log: false }, &[x], "a").unwrap();
        let b = graph.add1(Op::Softmax { axis: 0, log: false }, &[a], "b").unwrap();
        graph.outputs.push(("y".into(), b));
        let options = LowerOptions { precision: Precision::F16, precision_for: Vec::new() };
        let plan = lower(&graph, &options).unwrap();
        let targets = [(Arch::of_capability(80), false)];
        let assembled = assemble(&plan, "g", &targets, &[], &aot_kernels::kernels_for).unwrap();
        let program = &assembled.program;
        let (traced, buffers) = traced(program);
        assert_eq!(traced.check(), Ok(()));
        assert_eq!(buffers, [assembled.buffers[&plan.homes[&a].buffer]]);
        let port = &traced.outputs[1];
        assert_eq!((traced.outputs.len(), port.dtype), (2, DType::F16));
        assert_eq!(port.shape, [Dim::from(12)]);
        assert_eq!(traced.targets[0].launches, program.targets[0].launches);
        assert!(program.plans[0].total > 0 && traced.plans[0].total == 0);
    }
}
