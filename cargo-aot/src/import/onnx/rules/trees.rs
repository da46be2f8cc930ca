//! Classical machine learning (domain ai.onnx.ml) over numbers: features and decision trees.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::table::{Entry, classical};
use aot_ir::op::{BinaryOp, ReduceOp};
use aot_ir::{Bytes, Constant, DType, Dim};

pub(super) const RULES: &[Entry] = &[
    classical("ArrayFeatureExtractor", |c| {
        let (x, indices) = (c.x(0)?, c.x(1)?);
        let Some(axis) = c.rank(x).checked_sub(1) else { return wrong("a scalar") };
        let flat = super::shape::product(c.shape(indices));
        let indices = c.reshape(indices, &[flat])?;
        Ok(vec![c.gather(x, indices, axis)?])
    }),
    classical("Binarizer", |c| {
        let (x, threshold) = (c.x(0)?, c.float("threshold", 0.0));
        let above = c.with(BinaryOp::Gt, x, threshold)?;
        Ok(vec![c.cast_like(above, x)?])
    }),
    classical("TreeEnsemble", ensemble),
];

/// How a node compares a feature with its number, by code.
const MODES: [BinaryOp; 6] =
    [BinaryOp::Le, BinaryOp::Lt, BinaryOp::Ge, BinaryOp::Gt, BinaryOp::Eq, BinaryOp::Ne];
/// The code of nodes that ask whether a feature is one of several numbers.
const MEMBER: f64 = 6.0;

/// Nodes as numbers: inner ones first, leaves behind them.
struct Trees {
    roots: Vec<i64>,
    /// Where to go from a node, when its condition holds and when not; leaves stay.
    next: [Vec<i64>; 2],
    inner: i64,
}

impl Trees {
    fn read(c: &Call<'_>) -> OpResult<Self> {
        let list = |name: &str| c.ints_attr(name).unwrap_or_default();
        let roots = list("tree_roots");
        let leaves = list("leaf_targetids").len() as i64;
        let inner = list("nodes_featureids").len() as i64;
        let side = |ids: &str, leafs: &str| -> OpResult<Vec<i64>> {
            let (ids, leafs) = (list(ids), list(leafs));
            if ids.len() as i64 != inner || leafs.len() as i64 != inner {
                return wrong("lists of nodes differ in length");
            }
            let mut next = Vec::new();
            for (&id, &leaf) in ids.iter().zip(&leafs) {
                let (count, first) = if leaf != 0 { (leaves, inner) } else { (inner, 0) };
                if !(0..count).contains(&id) {
                    return wrong(format!("a node leads to {id}, which does not exist"));
                }
                next.push(first + id);
            }
            next.extend(inner..inner + leaves);
            Ok(next)
        };
        let next = [
            side("nodes_truenodeids", "nodes_trueleafs")?,
            side("nodes_falsenodeids", "nodes_falseleafs")?,
        ];
        if roots.is_empty() || roots.iter().any(|r| !(0..inner).contains(r)) {
            return wrong(format!("tree_roots is {roots:?}"));
        }
        Ok(Self { roots, next, inner })
    }

    /// Most steps from a root to a leaf.
    fn depth(&self) -> OpResult<usize> {
        let mut at = self.roots.clone();
        let mut depth = 0;
        while at.iter().any(|&node| node < self.inner) {
            depth += 1;
            if depth > self.next[0].len() {
                return wrong("nodes lead to one another in a circle");
            }
            let inner = at.iter().filter(|&&node| node < self.inner);
            let reached =
                inner.flat_map(|&n| [&self.next[0], &self.next[1]].map(|s| s[n as usize]));
            let mut reached: Vec<i64> = reached.collect();
            reached.sort_unstable();
            reached.dedup();
            at = reached;
        }
        Ok(depth)
    }
}

fn ints(c: &mut Call<'_>, values: &[i64]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let (name, shape) = (String::new(), vec![values.len()]);
    c.constant(Constant { name, dtype: DType::I64, shape, bytes: Bytes::from(bytes) })
}

fn table(c: &mut Call<'_>, name: &str, dtype: DType) -> OpResult<Option<Tensor>> {
    match c.tensor_attr(name)? {
        Some(constant) => {
            let t = c.constant(constant);
            Ok(Some(c.cast(t, dtype)?))
        }
        None => Ok(None),
    }
}

/// Walks all trees at once: one gather per level.
fn ensemble(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let dtype = c.dtype(x);
    if c.rank(x) != 2 || !dtype.is_float() {
        return wrong("the input has to be a matrix of floats");
    }
    if c.int("post_transform", 0) != 0 {
        return unsupported("a function of the results (post_transform)");
    }
    let trees = Trees::read(c)?;
    let targets = c.int("n_targets", 0);
    let (Some(modes), Some(splits), Some(weights)) = (
        table(c, "nodes_modes", DType::I64)?,
        table(c, "nodes_splits", dtype)?,
        table(c, "leaf_weights", dtype)?,
    ) else {
        return wrong("a table of nodes or leaves is missing");
    };
    let mut features = c.ints_attr("nodes_featureids").unwrap_or_default();
    let leaves = trees.next[0].len() - features.len();
    // Leaves look at some feature, too.
    features.resize(trees.next[0].len(), 0);
    let features = ints(c, &features);
    let padded = |c: &mut Call<'_>, t: Tensor| -> OpResult {
        let zero = c.scalar_like(0.0, t);
        let zeros = c.expand(zero, &[Dim::from(leaves as i64)])?;
        c.concat(&[t, zeros], 0)
    };
    let sets = members(c, modes, dtype)?;
    let used = c.numbers(modes);
    let (modes, splits) = (padded(c, modes)?, padded(c, splits)?);
    let next = [ints(c, &trees.next[0]), ints(c, &trees.next[1])];
    let roots = ints(c, &trees.roots);
    let rows = c.shape(x)[0].clone();
    let mut at = c.expand(roots, &[rows, Dim::from(trees.roots.len() as i64)])?;
    for _ in 0..trees.depth()? {
        let feature = c.gather(features, at, 0)?;
        let value = c.gather_elements(x, feature, 1)?;
        let (mode, split) = (c.gather(modes, at, 0)?, c.gather(splits, at, 0)?);
        let mut holds: Option<Tensor> = None;
        for (code, op) in MODES.into_iter().enumerate() {
            let occurs = used.as_ref().is_none_or(|used| used.contains(&(code as f64)));
            if occurs {
                let here = c.binary(op, value, split)?;
                holds = Some(either(c, mode, code as f64, here, holds)?);
            }
        }
        if let Some(sets) = sets {
            let set = c.gather(sets, at, 0)?;
            let one = c.unsqueeze(value, &[2])?;
            let same = c.binary(BinaryOp::Eq, one, set)?;
            let here = c.reduce(ReduceOp::Max, same, &[2], false)?;
            holds = Some(either(c, mode, MEMBER, here, holds)?);
        }
        let Some(holds) = holds else { return unsupported("nodes of unknown modes") };
        let (yes, no) = (c.gather(next[0], at, 0)?, c.gather(next[1], at, 0)?);
        at = c.select(holds, yes, no)?;
    }
    let leaf = c.with(BinaryOp::Sub, at, trees.inner as f64)?;
    let ids = c.ints_attr("leaf_targetids").unwrap_or_default();
    let ids = ints(c, &ids);
    let (target, weight) = (c.gather(ids, leaf, 0)?, c.gather(weights, leaf, 0)?);
    let (target, weight) = (c.unsqueeze(target, &[2])?, c.unsqueeze(weight, &[2])?);
    let all: Vec<i64> = (0..targets.clamp(0, 1 << 20)).collect();
    let all = ints(c, &all);
    let own = c.binary(BinaryOp::Eq, target, all)?;
    let zero = c.scalar_like(0.0, weight);
    let own = c.select(own, weight, zero)?;
    let op = match c.int("aggregate_function", 1) {
        0 => ReduceOp::Mean,
        1 => ReduceOp::Sum,
        other => return unsupported(format!("aggregate_function {other}")),
    };
    Ok(vec![c.reduce(op, own, &[1], false)?])
}

/// `here` for nodes of a mode, else what was found for the others.
fn either(
    c: &mut Call<'_>,
    mode: Tensor,
    code: f64,
    here: Tensor,
    others: Option<Tensor>,
) -> OpResult {
    let Some(others) = others else { return Ok(here) };
    let own = c.with(BinaryOp::Eq, mode, code)?;
    c.select(own, here, others)
}

/// Per node the numbers of its set, filled up with NaN: `[nodes and leaves, most]`. The sets stand one behind
/// another, each ended by NaN.
fn members(c: &mut Call<'_>, modes: Tensor, dtype: DType) -> OpResult<Option<Tensor>> {
    let Some(values) = c.tensor_attr("membership_values")? else { return Ok(None) };
    let values = c.constant(values);
    let (Some(values), Some(modes)) = (c.numbers(values), c.numbers(modes)) else {
        return unsupported("sets of members that are too large");
    };
    let mut sets = values.split(|v| v.is_nan());
    let nodes = c.ints_attr("leaf_targetids").map_or(0, |l| l.len()) + modes.len();
    let of_node: Vec<&[f64]> = (0..nodes)
        .map(|i| match modes.get(i) {
            Some(&mode) if mode == MEMBER => sets.next().unwrap_or_default(),
            _ => &[],
        })
        .collect();
    let most = of_node.iter().map(|s| s.len()).max().unwrap_or(0).max(1);
    let filled = of_node.iter().flat_map(|set| {
        set.iter().copied().chain(std::iter::repeat(f64::NAN)).take(most).map(|v| v as f32)
    });
    let bytes: Vec<u8> = filled.flat_map(f32::to_le_bytes).collect();
    let (name, shape) = (String::new(), vec![nodes, most]);
    let sets = c.constant(Constant { name, dtype: DType::F32, shape, bytes: Bytes::from(bytes) });
    Ok(Some(c.cast(sets, dtype)?))
}
