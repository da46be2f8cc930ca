//! Probabilities of classes from those of each class against each other one, by the second algorithm of Wu, Lin and Weng,
//! "Probability Estimates for Multi-class Classification by Pairwise Coupling" (2004).

use super::super::builder::{OpResult, Tensor, unsupported};
use super::super::call::Call;
use super::forest::{floats, ints};
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{DType, Dim};

/// Most rounds of improvement.
const ROUNDS: i64 = 100;
/// Least and greatest probability between two classes, from either end.
const MARGIN: f64 = 1e-7;
/// A row whose error is below this, divided by the number of classes, stays as it is.
const CLOSE: f64 = 0.005;
/// Most classes: every round has a few nodes for each.
const MOST: usize = 128;

/// The probabilities `[rows, classes]` for those `[rows, pairs]` of the first class of each pair against the second, the
/// pairs in the order (0, 1), (0, 2) … (1, 2) ….
pub(super) fn coupled(c: &mut Call<'_>, first: Tensor, classes: usize) -> OpResult {
    if classes > MOST {
        return unsupported(format!("probabilities of {classes} classes; {MOST} are supported"));
    }
    let quadratic = quadratic(c, first, classes)?;
    let rows = c.shape(first)[0].clone();
    let even = c.scalar(1.0 / classes as f64, DType::F32);
    let even = c.expand(even, &[rows, Dim::from(classes as i64)])?;
    let open = c.begin_loop(&Dim::from(ROUNDS), false, &[even]);
    let before = open.carried()[0];
    match round(c, quadratic, before, classes) {
        Ok(after) => Ok(c.end_loop(open, None, &[even], &[after], &[])?[0]),
        Err(error) => {
            c.abandon_loop(open);
            Err(error)
        }
    }
}

/// The form to minimise, `[rows, classes, classes]`: with r(i, j) the probability of i against j, -r(j, i) r(i, j) beside
/// the diagonal and the sum of all r(j, i)² on it.
fn quadratic(c: &mut Call<'_>, first: Tensor, classes: usize) -> OpResult {
    let first = c.with(BinaryOp::Max, first, MARGIN)?;
    let first = c.with(BinaryOp::Min, first, 1.0 - MARGIN)?;
    let one = c.scalar_like(1.0, first);
    let second = c.difference(one, first)?;
    let pairs = classes * (classes - 1) / 2;
    let place = |i: usize, j: usize| match i.cmp(&j) {
        std::cmp::Ordering::Less => i * (2 * classes - i - 1) / 2 + j - i - 1,
        std::cmp::Ordering::Greater => pairs + j * (2 * classes - j - 1) / 2 + i - j - 1,
        std::cmp::Ordering::Equal => 0,
    };
    let places = (0..classes).flat_map(|i| (0..classes).map(move |j| (i, j)));
    let places: Vec<i64> = places.map(|(i, j)| place(i, j) as i64).collect();
    let places = ints(c, &places);
    let both = c.concat(&[first, second], 1)?;
    let square = c.gather(both, places, 1)?;
    let (rows, side) = (c.shape(first)[0].clone(), Dim::from(classes as i64));
    let square = c.reshape(square, &[rows, side.clone(), side])?;
    let unit = |i: usize| (0..classes).map(move |j| f64::from(u8::from(i == j)));
    let unit: Vec<f64> = (0..classes).flat_map(unit).collect();
    let off: Vec<f64> = unit.iter().map(|x| 1.0 - x).collect();
    let unit = floats(c, &unit, &[classes, classes], DType::F32)?;
    let off = floats(c, &off, &[classes, classes], DType::F32)?;
    let r = c.product(square, off)?;
    let turned = c.transpose_last(r)?;
    let beside = c.product(r, turned)?;
    let squares = c.product(r, r)?;
    let sums = c.reduce(ReduceOp::Sum, squares, &[1], true)?;
    let diagonal = c.product(sums, unit)?;
    c.difference(diagonal, beside)
}

/// One round for probabilities `p [rows, classes]`: each class in turn, with all of them scaled to a sum of 1. Rows that
/// are close enough stay.
fn round(c: &mut Call<'_>, quadratic: Tensor, before: Tensor, classes: usize) -> OpResult {
    let row = c.unsqueeze(before, &[1])?;
    let weighted = c.product(quadratic, row)?;
    let mut slope = c.reduce(ReduceOp::Sum, weighted, &[2], false)?;
    let parts = c.product(before, slope)?;
    let mut value = c.reduce(ReduceOp::Sum, parts, &[1], true)?;
    let error = c.difference(slope, value)?;
    let error = c.unary(UnaryOp::Abs, error)?;
    let error = c.reduce(ReduceOp::Max, error, &[1], true)?;
    let close = c.with(BinaryOp::Lt, error, CLOSE / classes as f64)?;
    let mut p = before;
    for i in 0..classes {
        let at = Dim::from(i as i64);
        let own_row = c.pick(quadratic, 1, at.clone())?;
        let own = c.slice_axis(own_row, 1, at.clone(), Dim::ONE, 1)?;
        let own_slope = c.slice_axis(slope, 1, at, Dim::ONE, 1)?;
        let step = c.difference(value, own_slope)?;
        let step = c.quotient(step, own)?;
        let scale = c.with(BinaryOp::Add, step, 1.0)?;
        // Of the form at the new place: (value + step (step own + 2 slope)) / (1 + step)².
        let bend = c.product(step, own)?;
        let twice = c.with(BinaryOp::Mul, own_slope, 2.0)?;
        let change = c.sum(bend, twice)?;
        let change = c.product(step, change)?;
        value = c.sum(value, change)?;
        value = c.quotient(value, scale)?;
        value = c.quotient(value, scale)?;
        let along = c.product(step, own_row)?;
        slope = c.sum(slope, along)?;
        slope = c.quotient(slope, scale)?;
        let unit: Vec<f64> = (0..classes).map(|j| f64::from(u8::from(i == j))).collect();
        let unit = floats(c, &unit, &[classes], DType::F32)?;
        let moved = c.product(step, unit)?;
        p = c.sum(p, moved)?;
        p = c.quotient(p, scale)?;
    }
    c.select(close, before, p)
}
