//! Decision trees (domain ai.onnx.ml), in the form of version 5 and in that of before.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::classical::{Labels, binary_scores, matrix, post_transform, post_transform_of};
use super::forest::{Aggregate, Forest, MEMBER, floats};
use super::table::{Entry, classical};
use aot_ir::exec;
use aot_ir::op::BinaryOp;
use std::collections::HashMap;

pub(super) const RULES: &[Entry] = &[
    classical("TreeEnsemble", ensemble),
    classical("TreeEnsembleClassifier", classifier),
    classical("TreeEnsembleRegressor", regressor),
];

/// The numbers of an attribute: a list of floats, or a tensor of that name with `_as_tensor` behind it.
fn numbers(c: &mut Call<'_>, name: &str) -> OpResult<Vec<f64>> {
    for name in [name.to_owned(), format!("{name}_as_tensor")] {
        if let Some(list) = c.floats_attr(&name).filter(|list| !list.is_empty()) {
            return Ok(list.into_iter().map(f64::from).collect());
        }
        if !c.is_tensor_attr(&name) {
            continue;
        }
        if let Some(constant) = c.tensor_attr(&name)? {
            return match exec::Tensor::from_constant(&constant) {
                Ok(tensor) => Ok(tensor.to_f64()),
                Err(error) => wrong(format!("attribute `{name}`: {error}")),
            };
        }
    }
    Ok(Vec::new())
}

/// The form of version 5: a leaf gives one number.
fn ensemble(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = matrix(c)?;
    let list = |name: &str| c.ints_attr(name).unwrap_or_default();
    let (roots, features) = (list("tree_roots"), list("nodes_featureids"));
    let (inner, targets) = (features.len() as i64, list("leaf_targetids"));
    let side = |ids: &str, leafs: &str| -> OpResult<Vec<i64>> {
        let (ids, leafs) = (list(ids), list(leafs));
        if ids.len() != leafs.len() {
            return wrong("lists of nodes differ in length");
        }
        let places =
            ids.iter().zip(&leafs).map(|(id, leaf)| if *leaf != 0 { inner + id } else { *id });
        Ok(places.chain(inner..inner + targets.len() as i64).collect())
    };
    let next = [
        side("nodes_truenodeids", "nodes_trueleafs")?,
        side("nodes_falsenodeids", "nodes_falseleafs")?,
    ];
    let mut missing: Vec<bool> =
        list("nodes_missing_value_tracks_true").iter().map(|m| *m != 0).collect();
    missing.resize(features.len(), false);
    let (count, transform, aggregate) =
        (c.int("n_targets", 0), c.int("post_transform", 0), c.int("aggregate_function", 1));
    let modes: Vec<i64> = numbers(c, "nodes_modes")?.iter().map(|m| *m as i64).collect();
    // Sets stand one behind another, each ended by NaN.
    let members = numbers(c, "membership_values")?;
    let mut members = members.split(|v| v.is_nan()).map(<[f64]>::to_vec);
    let set =
        |mode: &i64| if *mode == MEMBER { members.next().unwrap_or_default() } else { Vec::new() };
    let sets = modes.iter().map(set).collect();
    let weights = numbers(c, "leaf_weights")?;
    if weights.len() != targets.len() {
        return wrong("lists of leaves differ in length");
    }
    let leaves = targets.iter().zip(weights).map(|(target, weight)| vec![(*target, weight)]);
    let leaves = leaves.collect();
    let splits = numbers(c, "nodes_splits")?;
    let forest = Forest { roots, next, features, modes, splits, missing, sets, leaves };
    let aggregate = match aggregate {
        0 => Aggregate::Mean,
        1 => Aggregate::Sum,
        2 => Aggregate::Min,
        3 => Aggregate::Max,
        other => return unsupported(format!("aggregate_function {other}")),
    };
    let names = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"];
    let Some(transform) = usize::try_from(transform).ok().and_then(|t| names.get(t)) else {
        return wrong(format!("post_transform is {transform}"));
    };
    let scores = forest.scores(c, x, count, aggregate)?;
    Ok(vec![post_transform(c, scores, transform)?])
}

/// The form of before: nodes and what leaves give, `kind` of which is a list of its own, name a tree and a node.
fn read(c: &mut Call<'_>, kind: &str) -> OpResult<Forest> {
    let list = |name: &str| c.ints_attr(name).unwrap_or_default();
    let (trees, nodes) = (list("nodes_treeids"), list("nodes_nodeids"));
    let modes = c.texts("nodes_modes").unwrap_or_default();
    let features = list("nodes_featureids");
    let sides = [list("nodes_truenodeids"), list("nodes_falsenodeids")];
    let tracks = list("nodes_missing_value_tracks_true");
    let given = [list(&format!("{kind}_treeids")), list(&format!("{kind}_nodeids"))];
    let ids = list(&format!("{kind}_ids"));
    let splits = numbers(c, "nodes_values")?;
    let weights = numbers(c, &format!("{kind}_weights"))?;
    let count = nodes.len();
    let lengths =
        [trees.len(), modes.len(), features.len(), sides[0].len(), sides[1].len(), splits.len()];
    if lengths.iter().any(|n| *n != count) || (!tracks.is_empty() && tracks.len() != count) {
        return wrong("lists of nodes differ in length");
    }
    if [given[0].len(), given[1].len(), ids.len()].iter().any(|n| *n != weights.len()) {
        return wrong("lists of leaves differ in length");
    }
    let mut forest = Forest::default();
    // Numbers of nodes, by tree and name.
    let is_leaf = |i: usize| modes[i] == "LEAF";
    let inner = (0..count).filter(|i| !is_leaf(*i)).count();
    let (mut branches, mut leaves) = (0, inner);
    let mut numbers: HashMap<(i64, i64), i64> = HashMap::new();
    for i in 0..count {
        let number = if is_leaf(i) { &mut leaves } else { &mut branches };
        if numbers.insert((trees[i], nodes[i]), *number as i64).is_some() {
            return wrong(format!("tree {} has two nodes {}", trees[i], nodes[i]));
        }
        *number += 1;
    }
    forest.leaves = vec![Vec::new(); count - inner];
    let find = |tree: i64, node: i64| match numbers.get(&(tree, node)) {
        Some(number) => Ok(*number),
        None => wrong(format!("tree {tree} has no node {node}")),
    };
    let mut led_to = vec![false; count];
    for i in (0..count).filter(|i| !is_leaf(*i)) {
        for (side, next) in sides.iter().zip(&mut forest.next) {
            let number = find(trees[i], side[i])?;
            led_to[number as usize] = true;
            next.push(number);
        }
        forest.features.push(features[i]);
        forest.splits.push(splits[i]);
        forest.missing.push(tracks.get(i).is_some_and(|t| *t != 0));
        forest.sets.push(Vec::new());
        forest.modes.push(match modes[i].as_str() {
            "BRANCH_LEQ" => 0,
            "BRANCH_LT" => 1,
            "BRANCH_GTE" => 2,
            "BRANCH_GT" => 3,
            "BRANCH_EQ" => 4,
            "BRANCH_NEQ" => 5,
            other => return wrong(format!("a node has mode `{other}`")),
        });
    }
    forest.next.iter_mut().for_each(|next| next.extend(inner as i64..count as i64));
    let starts = (0..count).map(|i| numbers[&(trees[i], nodes[i])]);
    forest.roots = starts.filter(|number| !led_to[*number as usize]).collect();
    for (i, weight) in weights.into_iter().enumerate() {
        // What inner nodes are said to give is not given.
        let number = find(given[0][i], given[1][i])? as usize;
        if let Some(leaf) = number.checked_sub(inner).and_then(|leaf| forest.leaves.get_mut(leaf)) {
            leaf.push((ids[i], weight));
        }
    }
    Ok(forest)
}

fn regressor(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = matrix(c)?;
    let forest = read(c, "target")?;
    let targets = c.int("n_targets", 1);
    let aggregate = match c.text("aggregate_function", "SUM").as_str() {
        "SUM" => Aggregate::Sum,
        "AVERAGE" => Aggregate::Mean,
        "MIN" => Aggregate::Min,
        "MAX" => Aggregate::Max,
        other => return wrong(format!("aggregate_function is `{other}`")),
    };
    let mut scores = forest.scores(c, x, targets, aggregate)?;
    let base = numbers(c, "base_values")?;
    if !base.is_empty() {
        let dtype = c.dtype(scores);
        let base = floats(c, &base, &[base.len()], dtype)?;
        scores = c.sum(scores, base)?;
    }
    let transform = post_transform_of(c);
    let scores = post_transform(c, scores, &transform)?;
    Ok(vec![c.cast(scores, aot_ir::DType::F32)?])
}

/// The label of the greatest score of every row, and the scores. Of two classes, trees may give one score.
fn classifier(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = matrix(c)?;
    let forest = read(c, "class")?;
    let labels = Labels::of(c)?;
    let classes = labels.count() as i64;
    let base = numbers(c, "base_values")?;
    let given = || forest.leaves.iter().flatten();
    let mut used: Vec<i64> = given().map(|(class, _)| *class).collect();
    used.sort_unstable();
    used.dedup();
    let positive = given().all(|(_, weight)| *weight >= 0.0);
    let scores = forest.scores(c, x, classes, Aggregate::Sum)?;
    let dtype = c.dtype(scores);
    let transform = post_transform_of(c);
    let (scores, class) = match (used.as_slice(), classes) {
        (&[given], 2) => {
            let mut one = c.slice_axis(scores, 1, given.into(), aot_ir::Dim::ONE, 1)?;
            match base.as_slice() {
                [] => {}
                [base] if given == 0 => one = c.with(BinaryOp::Add, one, *base)?,
                _ => return unsupported(format!("{} base values for one score", base.len())),
            }
            binary_scores(c, one, given == 1, positive, &transform)?
        }
        _ => {
            let scores = match base.len() {
                0 => scores,
                n if n as i64 == classes && classes > 2 => {
                    let base = floats(c, &base, &[n], dtype)?;
                    c.sum(scores, base)?
                }
                n => return unsupported(format!("{n} base values for {classes} classes")),
            };
            let class = labels.greatest(c, scores)?;
            (post_transform(c, scores, &transform)?, class)
        }
    };
    labels.results(c, class, scores)
}
