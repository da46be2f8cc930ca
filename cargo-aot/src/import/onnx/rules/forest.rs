//! Decision trees as tables, and walking them.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{Bytes, Constant, DType, Dim};

/// How a node compares a feature with its number, by code.
const MODES: [BinaryOp; 6] =
    [BinaryOp::Le, BinaryOp::Lt, BinaryOp::Ge, BinaryOp::Gt, BinaryOp::Eq, BinaryOp::Ne];
/// The code of nodes that ask whether a feature is one of several numbers.
pub(super) const MEMBER: i64 = 6;
/// Most numbers in the table of what leaves give.
const MAX_TABLE: usize = 1 << 24;

/// Trees whose nodes are numbered: inner ones first, leaves behind them.
#[derive(Debug, Default)]
pub(super) struct Forest {
    /// The first node of every tree.
    pub(super) roots: Vec<i64>,
    /// Where to go from a node, when its condition holds and when not; leaves stay.
    pub(super) next: [Vec<i64>; 2],
    /// Of inner nodes: the feature that is looked at.
    pub(super) features: Vec<i64>,
    /// Of inner nodes: how it is compared.
    pub(super) modes: Vec<i64>,
    /// Of inner nodes: with which number.
    pub(super) splits: Vec<f64>,
    /// Of inner nodes: whether the condition holds for NaN.
    pub(super) missing: Vec<bool>,
    /// Of inner nodes: the numbers of [`MEMBER`].
    pub(super) sets: Vec<Vec<f64>>,
    /// Of leaves: what they give, by target.
    pub(super) leaves: Vec<Vec<(i64, f64)>>,
}

/// How trees are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    Mean,
    Sum,
    Min,
    Max,
}

impl Forest {
    fn inner(&self) -> usize {
        self.features.len()
    }

    fn count(&self) -> usize {
        self.inner() + self.leaves.len()
    }

    /// Checks that tables fit one another, and what nodes refer to exists.
    fn check(&self) -> OpResult<()> {
        let inner = self.inner();
        let lengths = [self.modes.len(), self.splits.len(), self.missing.len(), self.sets.len()];
        if lengths.iter().any(|n| *n != inner) || self.next.iter().any(|n| n.len() != self.count())
        {
            return wrong("lists of nodes differ in length");
        }
        let mut places = self.roots.iter().chain(&self.next[0]).chain(&self.next[1]);
        if let Some(id) = places.find(|id| !(0..self.count() as i64).contains(*id)) {
            return wrong(format!("a node leads to {id}, which does not exist"));
        }
        match self.modes.iter().find(|m| !(0..=MEMBER).contains(*m)) {
            Some(mode) => wrong(format!("a node has mode {mode}")),
            None if self.roots.is_empty() => wrong("there are no trees"),
            None => Ok(()),
        }
    }

    /// Most steps from a root to a leaf.
    fn depth(&self) -> OpResult<usize> {
        let inner = |node: &i64| (*node as usize) < self.inner();
        let mut at = self.roots.clone();
        let mut depth = 0;
        while at.iter().any(inner) {
            depth += 1;
            if depth > self.count() {
                return wrong("nodes lead to one another in a circle");
            }
            let inner = at.into_iter().filter(inner);
            let reached = inner.flat_map(|n| [&self.next[0], &self.next[1]].map(|s| s[n as usize]));
            let mut reached: Vec<i64> = reached.collect();
            reached.sort_unstable();
            reached.dedup();
            at = reached;
        }
        Ok(depth)
    }

    /// What the trees give for every row of `x [rows, features]`, combined: `[rows, targets]`.
    pub(super) fn scores(
        &self,
        c: &mut Call<'_>,
        x: Tensor,
        targets: i64,
        aggregate: Aggregate,
    ) -> OpResult {
        self.check()?;
        let dtype = c.dtype(x);
        let width = usize::try_from(targets).unwrap_or(0);
        if width == 0 || self.leaves.len().saturating_mul(width) > MAX_TABLE {
            return unsupported(format!("{} leaves for {targets} targets", self.leaves.len()));
        }
        let absent = match aggregate {
            Aggregate::Min => f64::INFINITY,
            Aggregate::Max => f64::NEG_INFINITY,
            Aggregate::Mean | Aggregate::Sum => 0.0,
        };
        let mut table = vec![absent; self.leaves.len() * width];
        for (row, leaf) in table.chunks_mut(width).zip(&self.leaves) {
            for &(target, weight) in leaf {
                match usize::try_from(target).ok().and_then(|t| row.get_mut(t)) {
                    Some(place) if place.is_finite() => *place += weight,
                    Some(place) => *place = weight,
                    None => return wrong(format!("a leaf gives target {target} of {targets}")),
                }
            }
        }
        let table = floats(c, &table, &[self.leaves.len(), width], dtype)?;
        let leaf = self.walk(c, x)?;
        let own = c.gather(table, leaf, 0)?;
        let op = match aggregate {
            Aggregate::Mean => ReduceOp::Mean,
            Aggregate::Sum => ReduceOp::Sum,
            Aggregate::Min => ReduceOp::Min,
            Aggregate::Max => ReduceOp::Max,
        };
        c.reduce(op, own, &[1], false)
    }

    /// The leaf that a row comes to in every tree, `[rows, trees]`: one gather per level for all trees at once.
    fn walk(&self, c: &mut Call<'_>, x: Tensor) -> OpResult {
        let dtype = c.dtype(x);
        // Leaves look at some feature, too.
        let padded = |values: &[i64]| -> Vec<i64> {
            let mut padded = values.to_vec();
            padded.resize(self.count(), 0);
            padded
        };
        let features = ints(c, &padded(&self.features));
        let mut splits = self.splits.clone();
        splits.resize(self.count(), 0.0);
        let splits = floats(c, &splits, &[self.count()], dtype)?;
        let modes = ints(c, &padded(&self.modes));
        let missing: Vec<i64> = self.missing.iter().map(|m| i64::from(*m)).collect();
        let tracked = self.missing.contains(&true).then(|| ints(c, &padded(&missing)));
        let sets = match self.modes.contains(&MEMBER) {
            true => Some(self.members(c, dtype)?),
            false => None,
        };
        let next = [ints(c, &self.next[0]), ints(c, &self.next[1])];
        let roots = ints(c, &self.roots);
        let rows = c.shape(x)[0].clone();
        let mut at = c.expand(roots, &[rows, Dim::from(self.roots.len() as i64)])?;
        for _ in 0..self.depth()? {
            let feature = c.gather(features, at, 0)?;
            let value = c.gather_elements(x, feature, 1)?;
            let mut holds: Option<Tensor> = None;
            for (code, op) in MODES.into_iter().enumerate() {
                if self.modes.contains(&(code as i64)) {
                    let split = c.gather(splits, at, 0)?;
                    let here = c.binary(op, value, split)?;
                    holds = Some(either(c, (modes, at, code as i64), here, holds)?);
                }
            }
            if let Some(sets) = sets {
                let set = c.gather(sets, at, 0)?;
                let one = c.unsqueeze(value, &[2])?;
                let same = c.binary(BinaryOp::Eq, one, set)?;
                let here = c.reduce(ReduceOp::Max, same, &[2], false)?;
                holds = Some(either(c, (modes, at, MEMBER), here, holds)?);
            }
            let Some(mut holds) = holds else { return unsupported("nodes of unknown modes") };
            if let Some(tracked) = tracked {
                let follows = c.gather(tracked, at, 0)?;
                let follows = c.cast(follows, DType::Bool)?;
                let missing = c.unary(UnaryOp::IsNan, value)?;
                holds = c.select(missing, follows, holds)?;
            }
            let (yes, no) = (c.gather(next[0], at, 0)?, c.gather(next[1], at, 0)?);
            at = c.select(holds, yes, no)?;
        }
        c.with(BinaryOp::Sub, at, self.inner() as f64)
    }

    /// Per node the numbers of its set, filled up with NaN: `[nodes, most]`.
    fn members(&self, c: &mut Call<'_>, dtype: DType) -> OpResult {
        let most = self.sets.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let sets = self.sets.iter().map(Vec::as_slice);
        let sets = sets.chain(std::iter::repeat_n(&[][..], self.leaves.len()));
        let filled = sets
            .flat_map(|set| set.iter().copied().chain(std::iter::repeat(f64::NAN)).take(most))
            .collect::<Vec<f64>>();
        floats(c, &filled, &[self.count(), most], dtype)
    }
}

/// `here` for nodes of a mode, else what was found for the others.
fn either(
    c: &mut Call<'_>,
    (modes, at, code): (Tensor, Tensor, i64),
    here: Tensor,
    others: Option<Tensor>,
) -> OpResult {
    let Some(others) = others else { return Ok(here) };
    let mode = c.gather(modes, at, 0)?;
    let own = c.with(BinaryOp::Eq, mode, code as f64)?;
    c.select(own, here, others)
}

/// A constant vector of integers.
pub(super) fn ints(c: &mut Call<'_>, values: &[i64]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let (name, shape) = (String::new(), vec![values.len()]);
    c.constant(Constant { name, dtype: DType::I64, shape, bytes: Bytes::from(bytes) })
}

/// A constant of floats: in `F64` as they are, else rounded to `F32` first.
pub(super) fn floats(c: &mut Call<'_>, values: &[f64], shape: &[usize], dtype: DType) -> OpResult {
    let (own, bytes): (DType, Vec<u8>) = match dtype {
        DType::F64 => (dtype, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        _ => (DType::F32, values.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect()),
    };
    let (name, shape) = (String::new(), shape.to_vec());
    let t = c.constant(Constant { name, dtype: own, shape, bytes: Bytes::from(bytes) });
    c.cast(t, dtype)
}
