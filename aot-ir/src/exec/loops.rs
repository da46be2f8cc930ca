//! Loops.

use super::error::ExecError;
use super::executor::Executor;
use super::ops;
use super::sizes::Sizes;
use super::tensor::Tensor;
use crate::op::LoopAttrs;
use crate::{Dim, Scalar};

/// The results of a loop.
///
/// # Errors
/// When an iteration fails, or the number of iterations is negative or outside its range.
pub(super) fn run(
    attrs: &LoopAttrs,
    body: &Executor,
    mut operands: Vec<Tensor>,
    sizes: &mut Sizes,
) -> Result<Vec<Tensor>, ExecError> {
    let graph = body.graph();
    if operands.len() != attrs.lead() + graph.inputs.len() {
        return Err(ExecError::value("a loop has another number of operands"));
    }
    let mut state = operands.split_off(attrs.lead());
    let captured = state.split_off(attrs.carried);
    let mut going = operands.first().is_none_or(is_true);
    let count = attrs.count.eval(sizes.atoms())?;
    if count < 0 {
        return Err(ExecError::value(format!("the number of iterations is {count}")));
    }
    let mut lists: Vec<Vec<Tensor>> = vec![Vec::new(); attrs.stacked()];
    let inner = attrs.inner_symbols();
    let mut made = 0;
    while going && made < count {
        sizes.forget(&inner);
        sizes.begin(graph, attrs.iteration, made)?;
        state.extend(captured.iter().cloned());
        let mut results = body.run_at(state, sizes, &mut |_, _| {})?;
        let collected = results.split_off(attrs.lead() + attrs.carried);
        state = results.split_off(attrs.lead());
        going = results.first().is_none_or(is_true);
        lists.iter_mut().zip(collected).for_each(|(list, x)| list.push(x));
        made += 1;
    }
    let mut stacks = Vec::with_capacity(lists.len());
    let collected = &graph.outputs[attrs.lead() + attrs.carried..];
    for ((mut list, (_, value)), backward) in lists.into_iter().zip(collected).zip(&attrs.backward)
    {
        if *backward {
            list.reverse();
        }
        stacks.push(match list.first() {
            Some(first) => stack(&list, first.shape())?,
            None => {
                let extent = |d: &Dim| Ok(usize::try_from(d.eval(sizes.atoms())?).unwrap_or(0));
                let rest = graph[*value].shape.iter().map(extent);
                let rest = rest.collect::<Result<Vec<_>, ExecError>>()?;
                let shape = std::iter::once(0).chain(rest).collect();
                let empty = Tensor::filled(graph[*value].dtype, shape, Scalar::Int(0))?;
                if body.is_wide() { empty.widened() } else { empty }
            }
        });
    }
    let mut results = Vec::with_capacity(1 + state.len() + stacks.len());
    if attrs.is_conditional() {
        results.push(Tensor::from_vec(Vec::new(), vec![made])?);
    }
    results.extend(state);
    results.extend(stacks);
    Ok(results)
}

fn is_true(x: &Tensor) -> bool {
    x.to_i64().first() == Some(&1)
}

/// Tensors of one shape as one with a new first axis.
fn stack(list: &[Tensor], shape: &[usize]) -> Result<Tensor, ExecError> {
    let one: Vec<usize> = std::iter::once(1).chain(shape.iter().copied()).collect();
    let parts = list.iter().map(|x| x.clone().with_shape(one.clone()));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let mut whole = one;
    whole[0] = list.len();
    ops::concat(&parts, 0, &whole)
}
