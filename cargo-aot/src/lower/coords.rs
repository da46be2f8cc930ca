//! Coordinates through changes of shape.

use aot_ir::{Dim, Scope};

/// The coordinates in `to` of the element whose coordinates in `from` are `coords`, where both
/// shapes hold the same elements in row-major order.
///
/// Axes are matched in runs of equal products, so that splitting an axis gives quotient and
/// remainder of that axis alone, and merging gives a sum.
pub(super) fn reshape(scope: &Scope<'_>, coords: &[Dim], from: &[Dim], to: &[Dim]) -> Vec<Dim> {
    let mut out = Vec::with_capacity(to.len());
    let (mut i, mut j) = (0, 0);
    while j < to.len() {
        if to[j].is(1) {
            out.push(Dim::ZERO);
            j += 1;
            continue;
        }
        if i < from.len() && from[i].is(1) {
            i += 1;
            continue;
        }
        if i == from.len() {
            // Products could not be matched; the rest has one element.
            out.push(Dim::ZERO);
            j += 1;
            continue;
        }
        // Grow both runs until their products are equal.
        let (i0, j0) = (i, j);
        let (mut left, mut right) = (from[i].clone(), to[j].clone());
        i += 1;
        j += 1;
        while !scope.proves_eq(&left, &right) {
            let shorter_left = match (left.as_const(), right.as_const()) {
                (Some(a), Some(b)) => a < b,
                _ => grows(scope, &left, &right),
            };
            if shorter_left && i < from.len() {
                left = left * &from[i];
                i += 1;
            } else if j < to.len() {
                right = right * &to[j];
                j += 1;
            } else if i < from.len() {
                left = left * &from[i];
                i += 1;
            } else {
                break;
            }
        }
        let flat = flatten(&coords[i0..i], &from[i0..i]);
        out.extend(unflatten(scope, &flat, &to[j0..j]));
    }
    out
}

/// Whether the left product is the one to extend.
fn grows(scope: &Scope<'_>, left: &Dim, right: &Dim) -> bool {
    if scope.proves_nonneg(&(right - left)) {
        return true;
    }
    if scope.proves_nonneg(&(left - right)) {
        return false;
    }
    left.terms().iter().map(|t| t.factors.len()).max()
        <= right.terms().iter().map(|t| t.factors.len()).max()
}

/// Row-major index of coordinates.
pub(super) fn flatten(coords: &[Dim], shape: &[Dim]) -> Dim {
    coords.iter().zip(shape).fold(Dim::ZERO, |flat, (c, d)| flat * d + c)
}

/// Coordinates of a row-major index.
pub(super) fn unflatten(scope: &Scope<'_>, flat: &Dim, shape: &[Dim]) -> Vec<Dim> {
    let mut out = vec![Dim::ZERO; shape.len()];
    let mut rest = flat.clone();
    for axis in (0..shape.len()).rev() {
        if axis == 0 {
            out[0] = rest;
            break;
        }
        if shape[axis].is(1) {
            continue;
        }
        out[axis] = scope.modulo(&rest, &shape[axis]);
        rest = scope.floor_div(&rest, &shape[axis]);
    }
    out
}

/// The coordinates at which an operand of shape `operand` is read for a broadcast result's place.
pub(super) fn broadcast(coords: &[Dim], operand: &[Dim]) -> Vec<Dim> {
    let skip = coords.len() - operand.len();
    coords[skip..]
        .iter()
        .zip(operand)
        .map(|(c, d)| if d.is(1) { Dim::ZERO } else { c.clone() })
        .collect()
}
