//! Values that runs keep in memory and that the source model has too.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use aot_ir::exec::Tensor;
use aot_ir::{DType, Def, DimError, Graph, ValueId};

use crate::lower::plan::{BufferKind, Home, Plan};

/// A value of the source model that a run of the compiled one keeps.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// The value of the imported graph.
    pub(super) source: ValueId,
    /// The value of the compiled graph.
    pub(super) compiled: ValueId,
    /// Where its elements are.
    pub(super) home: Home,
    /// The type that they are stored in.
    pub(super) stored: DType,
}

/// The values of `plan` that live in the arena and whose name, type and shape are
/// those of exactly one value of the imported graph; without those of a size that the run computes.
///
/// Passes give what they put in a value's place its name.
pub(super) fn kept(plan: &Plan<'_>, imported: &Graph) -> Vec<Kept> {
    let sources = unique(imported);
    let compiled = unique(plan.graph);
    let mut found: Vec<Kept> = plan
        .homes
        .iter()
        .filter_map(|(&value, home)| {
            let buffer = &plan.buffers[home.buffer as usize];
            let during_run = buffer.kind == BufferKind::Arena;
            let name = plan.graph[value].name.as_str();
            let source = *sources.get(name)?;
            let (x, y) = (&plan.graph[value], &imported[source]);
            let same = (x.dtype, &x.shape) == (y.dtype, &y.shape);
            let elements = &plan.buffers[home.buffer as usize].elements;
            let sized = !imported.symbols.mentions_run(elements);
            (during_run && same && sized && compiled.get(name) == Some(&value)).then(|| Kept {
                source,
                compiled: value,
                home: home.clone(),
                stored: buffer.dtype,
            })
        })
        .collect();
    found.sort_by_key(|kept| kept.compiled);
    found
}

/// Results of nodes by their names, without those whose name another one has.
fn unique(graph: &Graph) -> HashMap<&str, ValueId> {
    let mut found = HashMap::new();
    let mut twice = BTreeSet::new();
    for (id, value) in graph.values() {
        if matches!(value.def, Def::Node(..)) && found.insert(value.name.as_str(), id).is_some() {
            twice.insert(value.name.as_str());
        }
    }
    found.retain(|name, _| !twice.contains(name));
    found
}

/// The elements of a value as a run left them.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// As a tensor.
    Tensor(Tensor),
    /// Somewhere in a buffer.
    Part {
        /// The whole buffer.
        buffer: Rc<Tensor>,
        /// Of the element at coordinate zero.
        offset: i64,
        /// Elements between neighbours along each axis.
        strides: Vec<i64>,
        /// Extents.
        shape: Vec<usize>,
    },
}

impl Content {
    /// The part of a buffer where a value lives, at sizes given by atoms.
    pub(super) fn part(
        buffer: Rc<Tensor>,
        home: &Home,
        shape: &[aot_ir::Dim],
        atoms: &[i64],
    ) -> Result<Self, DimError> {
        let all = |dims: &[aot_ir::Dim]| {
            dims.iter().map(|d| d.eval(atoms)).collect::<Result<Vec<_>, _>>()
        };
        let shape = all(shape)?.into_iter().map(|n| usize::try_from(n).unwrap_or(0)).collect();
        Ok(Self::Part {
            buffer,
            offset: home.offset.eval(atoms)?,
            strides: all(&home.strides)?,
            shape,
        })
    }

    /// The elements in row-major order; none where they are not all in the buffer.
    pub(super) fn to_f64(&self) -> Option<Vec<f64>> {
        let Self::Part { buffer, offset, strides, shape } = self else {
            let Self::Tensor(tensor) = self else { return None };
            return Some(tensor.to_f64());
        };
        let elements = buffer.to_f64();
        let count = shape.iter().product();
        let mut out = Vec::with_capacity(count);
        let mut at = vec![0usize; shape.len()];
        let mut place = *offset;
        for _ in 0..count {
            out.push(*usize::try_from(place).ok().and_then(|place| elements.get(place))?);
            for axis in (0..shape.len()).rev() {
                at[axis] += 1;
                place += strides[axis];
                if at[axis] < shape[axis] {
                    break;
                }
                place -= strides[axis] * at[axis] as i64;
                at[axis] = 0;
            }
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use aot_ir::op::UnaryOp;
    use aot_ir::{Dim, Op};

    use super::*;
    use crate::lower::{LowerOptions, Precision, lower};

    #[test]
    fn parts_come_out_in_row_major_order() {
        let buffer =
            Rc::new(Tensor::from_vec(vec![7], vec![9f32, 1., 4., 2., 5., 3., 6.]).unwrap());
        let part = |offset| Content::Part {
            buffer: buffer.clone(),
            offset,
            strides: vec![1, 2],
            shape: vec![2, 3],
        };
        assert_eq!(part(1).to_f64(), Some(vec![1., 2., 3., 4., 5., 6.]));
        assert_eq!(part(2).to_f64(), None);
    }

    #[test]
    fn a_value_is_found_by_its_name_unless_two_have_it() {
        let graph = |names: [&str; 3]| {
            let mut graph = Graph::new("g");
            let mut x = graph.add_input("x", DType::F32, vec![Dim::from(4), Dim::from(3)]);
            for name in names {
                x = graph.add1(Op::Softmax { axis: 1, log: false }, &[x], "softmax").unwrap();
                graph.set_name(x, name);
            }
            let y = graph.add1(Op::Unary(UnaryOp::Neg), &[x], "neg").unwrap();
            graph.outputs.push(("y".into(), y));
            graph
        };
        let compiled = graph(["a", "b", "b"]);
        let options = LowerOptions { precision: Precision::F16, precision_for: Vec::new() };
        let plan = lower(&compiled, &options).unwrap();
        let names = |imported: &Graph| -> Vec<String> {
            kept(&plan, imported).iter().map(|k| imported[k.source].name.clone()).collect()
        };
        assert_eq!(names(&graph(["a", "b", "c"])), ["a"]);
        assert!(names(&graph(["a", "a", "c"])).is_empty());
    }
}
