//! Support vector machines (domain ai.onnx.ml).

use super::super::builder::{OpResult, Tensor, wrong};
use super::super::call::Call;
use super::classical::{Labels, largest, matrix, post_transform, post_transform_of};
use super::coupling::coupled;
use super::forest::floats;
use super::matmul::matmul;
use super::table::{Entry, classical};
use aot_ir::DType;
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};

pub(super) const RULES: &[Entry] =
    &[classical("SVMClassifier", classifier), classical("SVMRegressor", regressor)];

fn list(c: &Call<'_>, name: &str) -> Vec<f64> {
    c.floats_attr(name).unwrap_or_default().into_iter().map(f64::from).collect()
}

/// The first input as a matrix of `F32`.
fn rows(c: &mut Call<'_>) -> OpResult {
    let x = matrix(c)?;
    c.cast(x, DType::F32)
}

/// `count` rows of `values` as columns: `[values / count, count]`.
fn columns(c: &mut Call<'_>, values: &[f64], count: usize) -> OpResult {
    if count == 0 || values.is_empty() || !values.len().is_multiple_of(count) {
        return wrong(format!("{} coefficients for {count} vectors", values.len()));
    }
    let rows = floats(c, values, &[count, values.len() / count], DType::F32)?;
    c.transpose_last(rows)
}

/// What the kernel function gives for each row of `x [rows, features]` and each of `count` support vectors:
/// `[rows, count]`.
fn kernels(c: &mut Call<'_>, x: Tensor, count: usize) -> OpResult {
    let vectors = list(c, "support_vectors");
    let vectors = columns(c, &vectors, count)?;
    let parameters = list(c, "kernel_params");
    let parameter = |i: usize| parameters.get(i).copied().unwrap_or(0.0);
    let (gamma, shift, degree) = (parameter(0), parameter(1), parameter(2));
    let kind = c.text("kernel_type", "LINEAR");
    if kind == "RBF" {
        let vectors = c.transpose_last(vectors)?;
        let x = c.unsqueeze(x, &[1])?;
        let between = c.difference(x, vectors)?;
        let square = c.product(between, between)?;
        let distance = c.reduce(ReduceOp::Sum, square, &[2], false)?;
        let power = c.with(BinaryOp::Mul, distance, -gamma)?;
        return c.unary(UnaryOp::Exp, power);
    }
    let products = matmul(c, x, vectors)?;
    if kind == "LINEAR" {
        return Ok(products);
    }
    let products = c.with(BinaryOp::Mul, products, gamma)?;
    let products = c.with(BinaryOp::Add, products, shift)?;
    match kind.as_str() {
        "POLY" => c.with(BinaryOp::Pow, products, degree),
        "SIGMOID" => c.unary(UnaryOp::Tanh, products),
        other => wrong(format!("kernel_type is `{other}`")),
    }
}

fn regressor(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = rows(c)?;
    let count = usize::try_from(c.int("n_supports", 0)).unwrap_or(0);
    let coefficients = list(c, "coefficients");
    let x = if count > 0 { kernels(c, x, count)? } else { x };
    let weights = columns(c, &coefficients, 1)?;
    let y = matmul(c, x, weights)?;
    let shift = list(c, "rho").first().copied().unwrap_or(0.0);
    let y = c.with(BinaryOp::Add, y, shift)?;
    if c.int("one_class", 0) == 0 {
        return Ok(vec![y]);
    }
    let (inside, outside) = (c.scalar_like(1.0, y), c.scalar_like(-1.0, y));
    let positive = c.with(BinaryOp::Gt, y, 0.0)?;
    Ok(vec![c.select(positive, inside, outside)?])
}

fn classifier(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let labels = Labels::of(c)?;
    let per_class = c.ints_attr("vectors_per_class").unwrap_or_default();
    let per_class: Vec<usize> =
        per_class.into_iter().map(|n| usize::try_from(n).unwrap_or(0)).collect();
    let (class, scores) = match per_class.iter().sum() {
        0 => linear(c, labels.count())?,
        count if per_class.len() == labels.count() => pairwise(c, &per_class, count)?,
        _ => {
            let given = per_class.len();
            return wrong(format!(
                "vectors_per_class has {given} entries for {} classes",
                labels.count()
            ));
        }
    };
    labels.results(c, class, scores)
}

/// A score per class, without support vectors: the class `[rows]` and the scores `[rows, classes]`.
fn linear(c: &mut Call<'_>, classes: usize) -> OpResult<(Tensor, Tensor)> {
    let x = rows(c)?;
    let coefficients = list(c, "coefficients");
    let weights = columns(c, &coefficients, classes)?;
    let scores = matmul(c, x, weights)?;
    let shift = list(c, "rho").first().copied().unwrap_or(0.0);
    let scores = c.with(BinaryOp::Add, scores, shift)?;
    let mut class = largest(c, scores)?;
    if classes == 2 && list(c, "prob_a").is_empty() {
        // A great enough score is the second class's, whoever has it.
        let positive = coefficients.iter().all(|w| *w >= 0.0);
        let most = c.reduce(ReduceOp::Max, scores, &[1], false)?;
        let great = match positive {
            true => c.with(BinaryOp::Ge, most, 0.5)?,
            false => c.with(BinaryOp::Gt, most, 0.0)?,
        };
        let second = c.scalar_like(1.0, class);
        class = c.select(great, second, class)?;
    }
    let transform = post_transform_of(c);
    Ok((class, post_transform(c, scores, &transform)?))
}

/// A decision between each two classes, by `count` support vectors, those of each class together: the class `[rows]`
/// that most of them are for, and the scores. These are probabilities of classes where the model says how to make them,
/// else of two classes the decision with either sign, and of more the decisions.
fn pairwise(c: &mut Call<'_>, per_class: &[usize], count: usize) -> OpResult<(Tensor, Tensor)> {
    let x = rows(c)?;
    let classes = per_class.len();
    let pairs: Vec<(usize, usize)> =
        (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j))).collect();
    let (coefficients, shifts) = (list(c, "coefficients"), list(c, "rho"));
    if pairs.is_empty() || coefficients.len() < (classes - 1) * count || shifts.len() < pairs.len()
    {
        let (found, shifts) = (coefficients.len(), shifts.len());
        return wrong(format!(
            "{found} coefficients and {shifts} of rho for {count} vectors of {classes} classes"
        ));
    }
    // Row r has each vector's weight in the decision against the r-th of the other classes.
    let start = |class: usize| per_class[..class].iter().sum::<usize>();
    let mut weights = vec![0.0; count * pairs.len()];
    let mut votes = vec![0.0; pairs.len() * classes];
    for (at, &(i, j)) in pairs.iter().enumerate() {
        for (class, row) in [(i, j - 1), (j, i)] {
            for vector in start(class)..start(class) + per_class[class] {
                weights[vector * pairs.len() + at] = coefficients[row * count + vector];
            }
        }
        votes[at * classes + i] = 1.0;
        votes[at * classes + j] = -1.0;
    }
    let kernels = kernels(c, x, count)?;
    let weights = floats(c, &weights, &[count, pairs.len()], DType::F32)?;
    let decisions = matmul(c, kernels, weights)?;
    let shifts = floats(c, &shifts[..pairs.len()], &[pairs.len()], DType::F32)?;
    let decisions = c.sum(decisions, shifts)?;

    // The second class of a pair has the vote that the first one has not.
    let first = c.with(BinaryOp::Gt, decisions, 0.0)?;
    let first = c.cast(first, DType::F32)?;
    let votes = floats(c, &votes, &[pairs.len(), classes], DType::F32)?;
    let votes = matmul(c, first, votes)?;
    let seconds: Vec<f64> = (0..classes).map(|class| class as f64).collect();
    let seconds = floats(c, &seconds, &[classes], DType::F32)?;
    let votes = c.sum(votes, seconds)?;
    let class = largest(c, votes)?;

    let transform = post_transform_of(c);
    let scores = match (list(c, "prob_a"), classes) {
        (slopes, _) if !slopes.is_empty() => {
            let shifts = list(c, "prob_b");
            if slopes.len() < pairs.len() || shifts.len() < pairs.len() {
                return wrong(format!("prob_a and prob_b are not of {} pairs", pairs.len()));
            }
            let slopes = floats(c, &slopes[..pairs.len()], &[pairs.len()], DType::F32)?;
            let shifts = floats(c, &shifts[..pairs.len()], &[pairs.len()], DType::F32)?;
            let power = c.product(decisions, slopes)?;
            let power = c.sum(power, shifts)?;
            let power = c.unary(UnaryOp::Neg, power)?;
            let first = c.unary(UnaryOp::Sigmoid, power)?;
            let scores = coupled(c, first, classes)?;
            post_transform(c, scores, &transform)?
        }
        (_, 2) => {
            let other = match transform.as_str() {
                "NONE" | "LOGISTIC" => c.unary(UnaryOp::Neg, decisions)?,
                _ => {
                    let whole = c.scalar_like(1.0, decisions);
                    c.difference(whole, decisions)?
                }
            };
            let both = c.concat(&[other, decisions], 1)?;
            if transform == "LOGISTIC" { c.unary(UnaryOp::Sigmoid, both)? } else { both }
        }
        _ => post_transform(c, decisions, &transform)?,
    };
    Ok((class, scores))
}
