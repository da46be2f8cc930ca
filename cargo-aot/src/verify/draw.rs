//! Random inputs.

use aot_ir::exec::Tensor;
use aot_ir::{DType, Graph};

use super::error::VerifyError;
use super::ranges::{Range, index_ranges};

/// Inputs of the graph at sizes given by atoms; equal seeds give equal inputs.
///
/// Whatever ends as an index or a size is drawn from the range that all its uses allow, indices counted from the
/// beginning. Other integers are 0 or 1, and 8-bit unsigned ones, which are pixels more often than
/// flags, 0 to 255; of integers and booleans of 0 and 1 the first of each row is 1, so that masks
/// exclude no row entirely. Floats are in -1..1.
pub(super) fn inputs(graph: &Graph, atoms: &[i64], seed: u64) -> Result<Vec<Tensor>, VerifyError> {
    let mut random = Random(seed);
    let ranges = index_ranges(graph, atoms)?;
    let mut tensors = Vec::with_capacity(graph.inputs.len());
    for (&input, range) in graph.inputs.iter().zip(ranges) {
        let value = &graph[input];
        let extents = value.shape.iter().map(|dim| dim.eval(atoms));
        let extents = extents.collect::<Result<Vec<i64>, _>>()?;
        let shape: Vec<usize> = extents.iter().map(|n| usize::try_from(*n).unwrap_or(0)).collect();
        let count = shape.iter().product();
        let width = shape.last().copied().unwrap_or(1).max(1);
        let values: Vec<f64> = (0..count)
            .map(|i| match (range, value.dtype) {
                (Some(range), _) => random.within(nonnegative(range)) as f64,
                (None, DType::U8) => random.within(Range { lo: 0, hi: 255 }) as f64,
                (None, dtype) if dtype.is_float() => random.unit(),
                _ if i % width == 0 => 1.0,
                _ => random.within(Range { lo: 0, hi: 1 }) as f64,
            })
            .collect();
        tensors.push(Tensor::from_f64(value.dtype, shape, &values)?);
    }
    Ok(tensors)
}

/// The part of a range from zero on, where it has one, of a length that any type holds.
fn nonnegative(range: Range) -> Range {
    let lo = if range.hi >= 0 { range.lo.max(0) } else { range.lo.max(range.hi - 127) };
    Range { lo, hi: range.hi.min(lo.saturating_add(i64::from(u32::MAX) >> 1)) }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In -1..1.
    fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn within(&mut self, range: Range) -> i64 {
        let width = range.hi.abs_diff(range.lo).saturating_add(1);
        range.lo.saturating_add_unsigned(self.word() % width.max(1))
    }
}

#[cfg(test)]
mod tests {
    use aot_ir::{Constant, Dim, Op, Symbol};

    use super::*;

    #[test]
    fn every_kind_of_input() {
        let mut graph = Graph::new("g");
        let n = graph.symbols.add(Symbol::new("n", 1, 64, 1));
        let shape = vec![Dim::from(3), graph.symbols.dim(n)];
        let ids = graph.add_input("ids", DType::I32, shape.clone());
        graph.add_input("mask", DType::Bool, shape.clone());
        graph.add_input("types", DType::I64, shape.clone());
        graph.add_input("pixels", DType::U8, shape.clone());
        graph.add_input("x", DType::F32, shape);
        let bytes = vec![0; 28].into();
        let table = Constant { name: "t".into(), dtype: DType::F32, shape: vec![7], bytes };
        let table = graph.add_constant(table).unwrap();
        graph.add1(Op::Gather { axis: 0 }, &[table, ids], "g").unwrap();
        let drawn = inputs(&graph, &[64], 5).unwrap();
        let values: Vec<Vec<f64>> = drawn.iter().map(Tensor::to_f64).collect();
        let distinct = |of: &[f64]| {
            let mut all: Vec<i64> = of.iter().map(|v| *v as i64).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        assert_eq!(distinct(&values[0]), [0, 1, 2, 3, 4, 5, 6]);
        for mask in [&values[1], &values[2]] {
            assert_eq!(distinct(mask), [0, 1]);
            assert!(mask.chunks(64).all(|row| row[0] == 1.0));
        }
        assert!(distinct(&values[3]).len() > 50);
        assert!(values[4].iter().all(|x| (-1.0..1.0).contains(x)) && values[4][0] != values[4][1]);
        let again = inputs(&graph, &[64], 5).unwrap();
        assert!(again.iter().zip(&values).all(|(a, b)| a.to_f64() == *b));
        assert_ne!(inputs(&graph, &[64], 6).unwrap()[4].to_f64(), values[4]);
    }
}
