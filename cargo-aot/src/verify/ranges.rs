//! Which values an input may have, by what reads it.

use aot_ir::op::BinaryOp;
use aot_ir::{Dim, DimError, Graph, Node, Op, ValueId};

/// Least and greatest value, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) lo: i64,
    pub(super) hi: i64,
}

/// Constants longer than this are not searched for their extremes.
const LONGEST: usize = 1 << 20;

/// For every input of the graph, the range in which everything made of it that is used as an index
/// is inside what it indexes, and everything that is used as a size is one of the symbol's, at sizes given by atoms;
/// none where it is neither.
pub(super) fn index_ranges(graph: &Graph, atoms: &[i64]) -> Result<Vec<Option<Range>>, DimError> {
    let mut needs = Needs { graph, atoms, of: vec![None; graph.values().len()] };
    for binding in &graph.bindings {
        if let Some(symbol) = graph.symbols.get(binding.symbol) {
            needs.meet(binding.size, Range { lo: symbol.min_size(), hi: symbol.max_size() });
        }
    }
    for (_, node) in graph.nodes().rev() {
        needs.node(node)?;
    }
    Ok(graph.inputs.iter().map(|input| needs.of[input.index()]).collect())
}

/// What values must be in, found from the outputs to the inputs.
struct Needs<'g> {
    graph: &'g Graph,
    atoms: &'g [i64],
    of: Vec<Option<Range>>,
}

impl Needs<'_> {
    /// Adds a need to those that a value has. One that contradicts them is of a branch that such
    /// values don't take: `select(i < 0, i + n, i)` wraps indices that count from the end.
    fn meet(&mut self, value: ValueId, need: Range) {
        let slot = &mut self.of[value.index()];
        let both =
            slot.map_or(need, |old| Range { lo: old.lo.max(need.lo), hi: old.hi.min(need.hi) });
        if both.lo <= both.hi {
            *slot = Some(both);
        }
    }

    fn extent(&self, value: ValueId, axis: usize) -> Result<i64, DimError> {
        self.graph[value].shape.get(axis).map_or(Ok(0), |dim: &Dim| dim.eval(self.atoms))
    }

    fn index(&mut self, indices: ValueId, extent: i64) {
        self.meet(indices, Range { lo: 0, hi: extent - 1 });
    }

    fn node(&mut self, node: &Node) -> Result<(), DimError> {
        let inputs = node.inputs.as_slice();
        match (&node.op, inputs) {
            (Op::Gather { axis } | Op::GatherElements { axis }, [data, indices])
            | (Op::ScatterElements { axis, .. }, [data, indices, _]) => {
                self.index(*indices, self.extent(*data, *axis)?);
            }
            (Op::GatherNd { batch_dims }, [data, indices]) => {
                self.coordinates(*data, *indices, *batch_dims)?;
            }
            (Op::ScatterNd { .. }, [data, indices, _]) => self.coordinates(*data, *indices, 0)?,
            _ => {}
        }
        let Some(need) = node.outputs.first().and_then(|v| self.of[v.index()]) else {
            return Ok(());
        };
        match (&node.op, inputs) {
            (
                Op::Reshape { .. }
                | Op::Transpose { .. }
                | Op::Slice { .. }
                | Op::Pad { .. }
                | Op::Expand { .. }
                | Op::Cast(_)
                | Op::Gather { .. }
                | Op::GatherElements { .. }
                | Op::GatherNd { .. },
                [x, ..],
            ) => self.meet(*x, need),
            (Op::ScatterElements { .. } | Op::ScatterNd { .. }, [data, _, updates]) => {
                self.meet(*data, need);
                self.meet(*updates, need);
            }
            (Op::Concat { .. }, parts) => parts.iter().for_each(|part| self.meet(*part, need)),
            (Op::Select, [_, a, b]) => {
                self.meet(*a, need);
                self.meet(*b, need);
            }
            (Op::Binary(op), [a, b]) => match (self.known(*a)?, self.known(*b)?) {
                (None, Some(b)) => self.left(*op, *a, b, need),
                (Some(a), None) => self.right(*op, a, *b, need),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    /// Every component of indices counts along an axis of its own.
    fn coordinates(
        &mut self,
        data: ValueId,
        indices: ValueId,
        first: usize,
    ) -> Result<(), DimError> {
        let depth = self.graph[indices].shape.last().and_then(Dim::as_const).unwrap_or(0);
        let axes = first..first + usize::try_from(depth).unwrap_or(0);
        let extents = axes.map(|axis| self.extent(data, axis)).collect::<Result<Vec<_>, _>>()?;
        if let Some(least) = extents.into_iter().min() {
            self.index(indices, least);
        }
        Ok(())
    }

    /// `op(x, b)` must be in a range, where `b` is in one.
    fn left(&mut self, op: BinaryOp, x: ValueId, b: Range, need: Range) {
        let Range { lo, hi } = need;
        let need = match op {
            BinaryOp::Add => Range { lo: lo.saturating_sub(b.lo), hi: hi.saturating_sub(b.hi) },
            BinaryOp::Sub => Range { lo: lo.saturating_add(b.hi), hi: hi.saturating_add(b.lo) },
            BinaryOp::Mul if b.lo > 0 => Range { lo: ceil_div(lo, b.lo), hi: hi.div_euclid(b.hi) },
            BinaryOp::Div if b.lo > 0 => {
                Range { lo: lo.saturating_mul(b.hi), hi: hi.saturating_mul(b.lo) }
            }
            // What is cut off does not matter.
            BinaryOp::Min if b.lo >= lo && b.hi <= hi => Range { lo, hi: i64::MAX },
            BinaryOp::Max if b.lo >= lo && b.hi <= hi => Range { lo: i64::MIN, hi },
            BinaryOp::Min | BinaryOp::Max => need,
            _ => return,
        };
        if need.lo <= need.hi {
            self.meet(x, need);
        }
    }

    /// `op(a, x)` must be in a range, where `a` is in one.
    fn right(&mut self, op: BinaryOp, a: Range, x: ValueId, need: Range) {
        match op {
            BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max => {
                self.left(op, x, a, need);
            }
            BinaryOp::Sub => {
                let lo = a.hi.saturating_sub(need.hi);
                let hi = a.lo.saturating_sub(need.lo);
                if lo <= hi {
                    self.meet(x, Range { lo, hi });
                }
            }
            _ => {}
        }
    }

    /// The range of a value that depends on no input.
    fn known(&self, value: ValueId) -> Result<Option<Range>, DimError> {
        if let Some(constant) = self.graph.constant_of(value) {
            if !constant.dtype.is_int() || constant.bytes.len() > LONGEST {
                return Ok(None);
            }
            let Ok(tensor) = aot_ir::exec::Tensor::from_constant(constant) else { return Ok(None) };
            let values = tensor.to_i64();
            let ends = values.iter().min().zip(values.iter().max());
            return Ok(ends.map(|(&lo, &hi)| Range { lo, hi }));
        }
        let Some(node) = self.graph.producer(value) else { return Ok(None) };
        let node = &self.graph[node];
        Ok(match &node.op {
            Op::Iota { shape, axis, .. } => {
                let extent = shape.get(*axis).map_or(Ok(1), |dim| dim.eval(self.atoms))?;
                Some(Range { lo: 0, hi: extent - 1 })
            }
            Op::Fill { value, .. } => Some(Range { lo: value.as_i64(), hi: value.as_i64() }),
            Op::Dims { dims, .. } => {
                let dims = dims.iter().map(|dim| dim.eval(self.atoms));
                let dims = dims.collect::<Result<Vec<_>, _>>()?;
                dims.iter().min().zip(dims.iter().max()).map(|(&lo, &hi)| Range { lo, hi })
            }
            Op::Reshape { .. }
            | Op::Transpose { .. }
            | Op::Slice { .. }
            | Op::Expand { .. }
            | Op::Cast(_) => match node.inputs.first() {
                Some(x) => self.known(*x)?,
                None => None,
            },
            _ => None,
        })
    }
}

fn ceil_div(a: i64, b: i64) -> i64 {
    a.div_euclid(b) + i64::from(a.rem_euclid(b) != 0)
}

#[cfg(test)]
mod tests {
    use aot_ir::{Binding, Constant, DType, Scalar, Symbol};

    use super::*;

    struct Net {
        graph: Graph,
        ids: ValueId,
        table: ValueId,
    }

    /// A table of 10 rows, and indices that may count into it.
    fn net() -> Net {
        let mut graph = Graph::new("g");
        let n = graph.symbols.add(Symbol::new("n", 1, 8, 1));
        let n = graph.symbols.dim(n);
        let ids = graph.add_input("ids", DType::I64, vec![n]);
        let constant = Constant {
            name: "table".into(),
            dtype: DType::F32,
            shape: vec![10, 2],
            bytes: vec![0; 80].into(),
        };
        let table = graph.add_constant(constant).unwrap();
        Net { graph, ids, table }
    }

    impl Net {
        fn int(&mut self, value: i64) -> ValueId {
            let fill = Op::Fill { shape: vec![], value: Scalar::Int(value), dtype: DType::I64 };
            self.graph.add1(fill, &[], "c").unwrap()
        }

        fn op(&mut self, op: Op, inputs: &[ValueId]) -> ValueId {
            self.graph.add1(op, inputs, "op").unwrap()
        }

        fn binary(&mut self, op: BinaryOp, a: ValueId, b: ValueId) -> ValueId {
            self.op(Op::Binary(op), &[a, b])
        }

        fn range(mut self, indices: ValueId) -> Option<(i64, i64)> {
            let table = self.table;
            self.op(Op::Gather { axis: 0 }, &[table, indices]);
            let found = index_ranges(&self.graph, &[4]).unwrap()[0];
            found.map(|range| (range.lo, range.hi))
        }
    }

    #[test]
    fn sizes_are_in_their_range() {
        let mut net = net();
        let (ids, two) = (net.ids, net.int(2));
        let slice = Op::Slice { starts: vec![Dim::ONE], sizes: vec![Dim::ONE], steps: vec![1] };
        let part = net.op(slice, &[ids]);
        let part = net.op(Op::Reshape { shape: vec![] }, &[part]);
        let size = net.binary(BinaryOp::Sub, part, two);
        let symbol = net.graph.symbols.add(Symbol::in_run("m", 3, 7));
        net.graph.bindings.push(Binding { symbol, size });
        let found = index_ranges(&net.graph, &[4, 7]).unwrap()[0];
        assert_eq!(found, Some(Range { lo: 5, hi: 9 }));
    }

    #[test]
    fn indices_are_inside_what_they_index() {
        let net = net();
        let ids = net.ids;
        assert_eq!(net.range(ids), Some((0, 9)));
    }

    #[test]
    fn arithmetic_is_undone() {
        let mut a = net();
        let two = a.int(2);
        let shifted = a.binary(BinaryOp::Add, a.ids, two);
        assert_eq!(a.range(shifted), Some((-2, 7)));
        let mut b = net();
        let three = b.int(3);
        let scaled = b.binary(BinaryOp::Mul, three, b.ids);
        assert_eq!(b.range(scaled), Some((0, 3)));
        let mut c = net();
        let nine = c.int(9);
        let reversed = c.binary(BinaryOp::Sub, nine, c.ids);
        assert_eq!(c.range(reversed), Some((0, 9)));
        let mut d = net();
        let iota = Op::Iota { shape: vec![Dim::from(4)], axis: 0, dtype: DType::I64 };
        let iota = d.op(iota, &[]);
        let ids = d.op(Op::Reshape { shape: vec![Dim::from(4)] }, &[d.ids]);
        let moved = d.binary(BinaryOp::Add, ids, iota);
        assert_eq!(d.range(moved), Some((0, 6)));
    }

    #[test]
    fn indices_that_wrap_count_from_the_beginning() {
        let mut net = net();
        let (zero, ten) = (net.int(0), net.int(10));
        let negative = net.binary(BinaryOp::Lt, net.ids, zero);
        let wrapped = net.binary(BinaryOp::Add, net.ids, ten);
        let ids = net.op(Op::Select, &[negative, wrapped, net.ids]);
        assert_eq!(net.range(ids), Some((0, 9)));
    }

    #[test]
    fn what_is_no_index_is_free() {
        let mut net = net();
        net.op(Op::Cast(DType::F32), &[net.ids]);
        assert_eq!(index_ranges(&net.graph, &[4]).unwrap(), [None]);
    }
}
