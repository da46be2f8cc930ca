//! Classical machine learning (domain ai.onnx.ml) over numbers: features, linear models, and what becomes of scores.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::forest::{floats, ints};
use super::matmul::matmul;
use super::table::{Entry, classical};
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{DType, Dim, Op};

pub(super) const RULES: &[Entry] = &[
    classical("ArrayFeatureExtractor", |c| {
        let (x, indices) = (c.x(0)?, c.x(1)?);
        let Some(axis) = c.rank(x).checked_sub(1) else { return wrong("a scalar") };
        let flat = super::shape::product(c.shape(indices));
        let indices = c.reshape(indices, &[flat])?;
        let y = c.gather(x, indices, axis)?;
        // A vector counts as one row.
        Ok(vec![if axis == 0 { c.unsqueeze(y, &[0])? } else { y }])
    }),
    classical("Binarizer", |c| {
        let (x, threshold) = (c.x(0)?, c.float("threshold", 0.0));
        let above = c.with(BinaryOp::Gt, x, threshold)?;
        Ok(vec![c.cast_like(above, x)?])
    }),
    classical("FeatureVectorizer", |c| {
        let mut parts = Vec::new();
        for x in c.all()? {
            let x = c.cast(x, DType::F32)?;
            parts.push(if c.rank(x) == 1 { c.unsqueeze(x, &[1])? } else { x });
        }
        Ok(vec![c.concat(&parts, 1)?])
    }),
    classical("Imputer", imputer),
    classical("LabelEncoder", label_encoder),
    classical("LinearClassifier", linear_classifier),
    classical("LinearRegressor", |c| {
        let targets = c.int("targets", 1);
        let scores = linear(c, targets)?;
        let transform = post_transform_of(c);
        Ok(vec![post_transform(c, scores, &transform)?])
    }),
    classical("Normalizer", normalizer),
    classical("OneHotEncoder", |c| {
        let x = c.x(0)?;
        let Some(labels) = c.ints_attr("cats_int64s").filter(|list| !list.is_empty()) else {
            return unsupported("categories that are strings");
        };
        let (rank, labels) = (c.rank(x), ints(c, &labels));
        let labels = c.cast_like(labels, x)?;
        let element = c.unsqueeze(x, &[rank])?;
        let same = c.binary(BinaryOp::Eq, element, labels)?;
        Ok(vec![c.cast(same, DType::F32)?])
    }),
    classical("Scaler", |c| {
        let x = c.x(0)?;
        let x = c.cast(x, DType::F32)?;
        let list = |c: &mut Call<'_>, name: &str, neutral: f64| -> OpResult {
            match c.floats_attr(name).filter(|list| !list.is_empty()) {
                Some(list) => {
                    let list: Vec<f64> = list.into_iter().map(f64::from).collect();
                    floats(c, &list, &[list.len()], DType::F32)
                }
                None => Ok(c.scalar(neutral, DType::F32)),
            }
        };
        let (offset, scale) = (list(c, "offset", 0.0)?, list(c, "scale", 1.0)?);
        let centred = c.difference(x, offset)?;
        Ok(vec![c.product(centred, scale)?])
    }),
    // A row as a map from labels to scores: the scores as they are, a column per label.
    classical("ZipMap", |c| Ok(vec![c.x(0)?])),
];

/// The first input as a matrix of floats: one row if it is a vector.
pub(super) fn matrix(c: &mut Call<'_>) -> OpResult {
    let x = c.x(0)?;
    let x = if c.dtype(x) == DType::F64 { x } else { c.cast(x, DType::F32)? };
    match c.rank(x) {
        1 => c.unsqueeze(x, &[0]),
        2 => Ok(x),
        _ => wrong("the input has to be a matrix"),
    }
}

/// The function that is applied to scores.
pub(super) fn post_transform_of(c: &Call<'_>) -> String {
    c.text("post_transform", "NONE")
}

/// Scores `[rows, classes]` as they are given out. As onnxruntime does, a single one stays as it is.
pub(super) fn post_transform(c: &mut Call<'_>, scores: Tensor, transform: &str) -> OpResult {
    let single = c.shape(scores).last().is_some_and(|n| n.is(1));
    match transform {
        "NONE" => Ok(scores),
        "SOFTMAX" | "LOGISTIC" | "SOFTMAX_ZERO" if single => Ok(scores),
        "LOGISTIC" => c.unary(UnaryOp::Sigmoid, scores),
        "SOFTMAX" => c.op(Op::Softmax { axis: 1, log: false }, &[scores]),
        "SOFTMAX_ZERO" => {
            // What is zero stays so.
            let most = c.reduce(ReduceOp::Max, scores, &[1], true)?;
            let shifted = c.difference(scores, most)?;
            let powers = c.unary(UnaryOp::Exp, shifted)?;
            let size = c.unary(UnaryOp::Abs, scores)?;
            let some = c.with(BinaryOp::Gt, size, 1e-7)?;
            let zero = c.scalar_like(0.0, powers);
            let powers = c.select(some, powers, zero)?;
            let total = c.reduce(ReduceOp::Sum, powers, &[1], true)?;
            c.quotient(powers, total)
        }
        other => unsupported(format!("post_transform `{other}`")),
    }
}

/// The scores of two classes of which the trees give one, `[rows, 1]`, and the class, `[rows]`. Where all weights are
/// positive, the score is a probability. That of the second class stands alone, that of the first one is the second's.
pub(super) fn binary_scores(
    c: &mut Call<'_>,
    one: Tensor,
    second: bool,
    positive: bool,
    transform: &str,
) -> OpResult<(Tensor, Tensor)> {
    let class = c.with(BinaryOp::Gt, one, if positive { 0.5 } else { 0.0 })?;
    let class = c.cast(class, DType::I64)?;
    let class = c.squeeze(class, &[1])?;
    let other = match (second, positive && transform != "LOGISTIC") {
        (true, _) => c.with(BinaryOp::Mul, one, 0.0)?,
        (false, true) => {
            let whole = c.scalar_like(1.0, one);
            c.difference(whole, one)?
        }
        (false, false) => c.unary(UnaryOp::Neg, one)?,
    };
    let both = c.concat(&[other, one], 1)?;
    let both = match transform {
        "LOGISTIC" => c.unary(UnaryOp::Sigmoid, both)?,
        "NONE" | "SOFTMAX" | "SOFTMAX_ZERO" if !second => both,
        _ => post_transform(c, both, transform)?,
    };
    Ok((both, class))
}

/// What a classifier calls its classes.
#[derive(Debug)]
pub(super) enum Labels {
    Numbers(Vec<i64>),
    Texts(Vec<String>),
}

impl Labels {
    pub(super) fn of(c: &Call<'_>) -> OpResult<Self> {
        for name in ["classlabels_int64s", "classlabels_ints"] {
            if let Some(numbers) = c.ints_attr(name).filter(|list| !list.is_empty()) {
                return Ok(Self::Numbers(numbers));
            }
        }
        match c.texts("classlabels_strings") {
            Some(texts) if !texts.is_empty() => Ok(Self::Texts(texts)),
            _ => wrong("the labels of classes are missing"),
        }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// The class with the greatest score of every row of `[rows, classes]`.
    pub(super) fn greatest(&self, c: &mut Call<'_>, scores: Tensor) -> OpResult {
        // Of two classes, the second if its score is positive.
        if self.count() == 2 {
            let second = c.slice_axis(scores, 1, Dim::ONE, Dim::ONE, 1)?;
            let second = c.squeeze(second, &[1])?;
            let class = c.with(BinaryOp::Gt, second, 0.0)?;
            return c.cast(class, DType::I64);
        }
        largest(c, scores)
    }

    /// The outputs of a classifier: the labels of `class [rows]`, and the scores.
    pub(super) fn results(
        &self,
        c: &mut Call<'_>,
        class: Tensor,
        scores: Tensor,
    ) -> OpResult<Vec<Tensor>> {
        let scores = c.cast(scores, DType::F32)?;
        let label = match self {
            Self::Numbers(numbers) if (0..).zip(numbers).all(|(i, n)| i == *n) => class,
            Self::Numbers(numbers) => {
                let numbers = ints(c, numbers);
                c.gather(numbers, class, 0)?
            }
            Self::Texts(texts) => {
                c.stand_for(class, texts.as_slice().into());
                class
            }
        };
        Ok(vec![label, scores])
    }
}

/// The place of the greatest element of every row, the first of several.
pub(super) fn largest(c: &mut Call<'_>, scores: Tensor) -> OpResult {
    c.op(Op::ArgReduce { max: true, axis: 1, keep_dims: false, last: false }, &[scores])
}

/// `x · coefficientsᵀ + intercepts`, `[rows, targets]`.
fn linear(c: &mut Call<'_>, targets: i64) -> OpResult {
    let x = matrix(c)?;
    let x = c.cast(x, DType::F32)?;
    let list = |c: &Call<'_>, name: &str| -> Vec<f64> {
        c.floats_attr(name).unwrap_or_default().into_iter().map(f64::from).collect()
    };
    let (weights, bias) = (list(c, "coefficients"), list(c, "intercepts"));
    let rows = usize::try_from(targets).unwrap_or(0).max(1);
    if weights.is_empty() || weights.len() % rows != 0 {
        return wrong(format!("{} coefficients for {targets} results", weights.len()));
    }
    let weights = floats(c, &weights, &[rows, weights.len() / rows], DType::F32)?;
    let weights = c.transpose_last(weights)?;
    let y = matmul(c, x, weights)?;
    if bias.is_empty() {
        return Ok(y);
    }
    let bias = floats(c, &bias, &[bias.len()], DType::F32)?;
    c.sum(y, bias)
}

fn linear_classifier(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let labels = Labels::of(c)?;
    let intercepts = c.floats_attr("intercepts").map_or(0, |list| list.len());
    let scores = linear(c, intercepts as i64)?;
    let transform = post_transform_of(c);
    if intercepts == 1 && labels.count() == 2 {
        let class = c.with(BinaryOp::Gt, scores, 0.0)?;
        let class = c.cast(class, DType::I64)?;
        let class = c.squeeze(class, &[1])?;
        let whole = c.scalar_like(1.0, scores);
        let rest = c.difference(whole, scores)?;
        let both = c.concat(&[rest, scores], 1)?;
        return labels.results(c, class, both);
    }
    if intercepts != labels.count() {
        return unsupported(format!("{intercepts} scores for {} classes", labels.count()));
    }
    let class = largest(c, scores)?;
    let scores = post_transform(c, scores, &transform)?;
    labels.results(c, class, scores)
}

/// Rows divided by a norm, where it is not zero.
fn normalizer(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let x = c.cast(x, DType::F32)?;
    let Some(axis) = c.rank(x).checked_sub(1) else { return wrong("a scalar") };
    let norm = match c.text("norm", "MAX").as_str() {
        "MAX" => c.reduce(ReduceOp::Max, x, &[axis], true)?,
        "L1" => {
            let size = c.unary(UnaryOp::Abs, x)?;
            c.reduce(ReduceOp::Sum, size, &[axis], true)?
        }
        "L2" => {
            let square = c.product(x, x)?;
            let total = c.reduce(ReduceOp::Sum, square, &[axis], true)?;
            c.unary(UnaryOp::Sqrt, total)?
        }
        other => return wrong(format!("norm is `{other}`")),
    };
    let none = c.with(BinaryOp::Eq, norm, 0.0)?;
    let one = c.scalar_like(1.0, norm);
    let norm = c.select(none, one, norm)?;
    Ok(vec![c.quotient(x, norm)?])
}

/// Numbers in the place of what is missing.
fn imputer(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let (missing, values) = if c.dtype(x).is_float() {
        let replaced = c.float("replaced_value_float", 0.0);
        let missing = match replaced.is_nan() {
            true => c.unary(UnaryOp::IsNan, x)?,
            false => c.with(BinaryOp::Eq, x, replaced)?,
        };
        let values = c.floats_attr("imputed_value_floats").unwrap_or_default();
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let dtype = c.dtype(x);
        (missing, floats(c, &values, &[values.len()], dtype)?)
    } else {
        let replaced = c.int("replaced_value_int64", 0);
        let missing = c.with(BinaryOp::Eq, x, replaced as f64)?;
        let values = c.ints_attr("imputed_value_int64s").unwrap_or_default();
        let values = ints(c, &values);
        (missing, c.cast_like(values, x)?)
    };
    Ok(vec![c.select(missing, values, x)?])
}

/// Numbers or texts by numbers: the value of the key that an element is, or the default.
fn label_encoder(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let dtype = c.dtype(x);
    let list = |c: &mut Call<'_>, kind: &str| -> OpResult<Option<Tensor>> {
        if let Some(list) = c.ints_attr(&format!("{kind}_int64s")).filter(|l| !l.is_empty()) {
            return Ok(Some(ints(c, &list)));
        }
        match c.floats_attr(&format!("{kind}_floats")).filter(|l| !l.is_empty()) {
            Some(list) => {
                let list: Vec<f64> = list.into_iter().map(f64::from).collect();
                Ok(Some(floats(c, &list, &[list.len()], DType::F32)?))
            }
            None => match c.tensor_attr(&format!("{kind}_tensor"))? {
                Some(constant) if constant.shape.len() == 1 => Ok(Some(c.constant(constant))),
                _ => Ok(None),
            },
        }
    };
    let texts = c.texts("values_strings").filter(|list| !list.is_empty());
    let values = match &texts {
        Some(texts) => Some(ints(c, &(0..texts.len() as i64).collect::<Vec<_>>())),
        None => list(c, "values")?,
    };
    let (Some(keys), Some(values)) = (list(c, "keys")?, values) else {
        return unsupported("keys that are no numbers");
    };
    if c.shape(keys) != c.shape(values) {
        return wrong("there are not as many values as keys");
    }
    let default = match (&texts, c.tensor_attr("default_tensor")?) {
        // Behind all others.
        (Some(texts), None) => c.scalar(texts.len() as f64, DType::I64),
        (Some(_), Some(_)) => return unsupported("a default_tensor for texts"),
        (None, Some(constant)) => {
            let default = c.constant(constant);
            c.reshape(default, &[])?
        }
        (None, None) => {
            let default = match c.dtype(values).is_float() {
                true => c.float("default_float", 0.0),
                false => c.int("default_int64", -1) as f64,
            };
            c.scalar_like(default, values)
        }
    };
    let rank = c.rank(x);
    let element = c.unsqueeze(x, &[rank])?;
    let keys = c.cast(keys, dtype)?;
    let same = c.binary(BinaryOp::Eq, element, keys)?;
    let found = c.reduce(ReduceOp::Max, same, &[rank], false)?;
    let same = c.cast(same, DType::I32)?;
    let at = Op::ArgReduce { max: true, axis: rank, keep_dims: false, last: false };
    let at = c.op(at, &[same])?;
    let value = c.gather(values, at, 0)?;
    let value = c.select(found, value, default)?;
    if let Some(mut texts) = texts {
        texts.push(c.text("default_string", "_Unused"));
        c.stand_for(value, texts.into());
    }
    Ok(vec![value])
}
