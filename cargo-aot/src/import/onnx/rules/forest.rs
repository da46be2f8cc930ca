//! Decision trees as tables, and walking them.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{Bytes, Constant, DType, Dim};
use std::collections::HashSet;

/// How a node compares a feature with its number, by code.
const MODES: [BinaryOp; 6] =
    [BinaryOp::Le, BinaryOp::Lt, BinaryOp::Ge, BinaryOp::Gt, BinaryOp::Eq, BinaryOp::Ne];
/// The code of nodes that ask whether a feature is one of several numbers.
pub(super) const MEMBER: i64 = 6;
/// Most numbers in the table of what leaves give, where they give few.
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
        mut self,
        c: &mut Call<'_>,
        x: Tensor,
        targets: i64,
        aggregate: Aggregate,
    ) -> OpResult {
        self.check()?;
        let dtype = c.dtype(x);
        let width = usize::try_from(targets).unwrap_or(0);
        if width == 0 {
            return wrong(format!("there are {targets} targets"));
        }
        let mut given = self.leaves.iter().flatten();
        if let Some((target, _)) = given.find(|(target, _)| !(0..targets).contains(target)) {
            return wrong(format!("a leaf gives target {target} of {targets}"));
        }
        let trees = self.roots.len();
        let absent = match aggregate {
            Aggregate::Min => f64::INFINITY,
            Aggregate::Max => f64::NEG_INFINITY,
            Aggregate::Mean | Aggregate::Sum => 0.0,
        };
        let grouped = width > 1 && self.group_by_target(width);
        // What a leaf gives: one number where its tree is for one target, else one per target.
        let columns = if grouped { 1 } else { width };
        let given: usize = self.leaves.iter().map(Vec::len).sum();
        if self.leaves.len().saturating_mul(columns) > MAX_TABLE.max(given.saturating_mul(4)) {
            return unsupported(format!("{} leaves for {targets} targets", self.leaves.len()));
        }
        let mut table = vec![absent; self.leaves.len() * columns];
        for (row, leaf) in table.chunks_mut(columns).zip(&self.leaves) {
            for &(target, weight) in leaf {
                let place = &mut row[if grouped { 0 } else { target as usize }];
                *place = if place.is_finite() { *place + weight } else { weight };
            }
        }
        let table = floats(c, &table, &[self.leaves.len(), columns], dtype)?;
        let leaf = self.walk(c, x)?;
        let own = c.gather(table, leaf, 0)?;
        // [rows, trees, columns], or with the trees of a target one behind the other.
        let (own, axis) = match grouped {
            true => {
                let each = (self.roots.len() / width) as i64;
                let rows = c.shape(x)[0].clone();
                (c.reshape(own, &[rows, targets.into(), each.into()])?, 2)
            }
            false => (own, 1),
        };
        let op = match aggregate {
            Aggregate::Mean | Aggregate::Sum => ReduceOp::Sum,
            Aggregate::Min => ReduceOp::Min,
            Aggregate::Max => ReduceOp::Max,
        };
        let combined = c.reduce(op, own, &[axis], false)?;
        match aggregate {
            Aggregate::Sum => Ok(combined),
            Aggregate::Mean => c.with(BinaryOp::Div, combined, trees as f64),
            // A target that no tree gives anything for is 0.
            Aggregate::Min | Aggregate::Max => {
                let none = c.with(BinaryOp::Eq, combined, absent)?;
                let zero = c.scalar_like(0.0, combined);
                c.select(none, zero, combined)
            }
        }
    }

    /// Where every tree is for one target, puts the trees of each target together, as many for each: those that are
    /// missing are a leaf that gives nothing. Says whether it did: not where that made more than twice the trees.
    fn group_by_target(&mut self, targets: usize) -> bool {
        let mut groups: Vec<Vec<i64>> = vec![Vec::new(); targets];
        for &root in &self.roots {
            match self.target_of(root) {
                Some(target) => groups[target].push(root),
                None => return false,
            }
        }
        let most = groups.iter().map(Vec::len).max().unwrap_or(0);
        if most * targets > 2 * self.roots.len() {
            return false;
        }
        if groups.iter().any(|group| group.len() < most) {
            let empty = self.count() as i64;
            self.leaves.push(Vec::new());
            self.next.iter_mut().for_each(|next| next.push(empty));
            groups.iter_mut().for_each(|group| group.resize(most, empty));
        }
        self.roots = groups.concat();
        true
    }

    /// The one target that all leaves of a tree give a number to (the first if they give none).
    fn target_of(&self, root: i64) -> Option<usize> {
        let inner = self.inner();
        let mut found = None;
        let mut seen = HashSet::from([root]);
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            match (node as usize).checked_sub(inner) {
                Some(leaf) => {
                    for (target, _) in &self.leaves[leaf] {
                        if *found.get_or_insert(*target) != *target {
                            return None;
                        }
                    }
                }
                None => {
                    let sides = self.next.iter().map(|side| side[node as usize]);
                    open.extend(sides.filter(|side| seen.insert(*side)));
                }
            }
        }
        usize::try_from(found.unwrap_or(0)).ok()
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
