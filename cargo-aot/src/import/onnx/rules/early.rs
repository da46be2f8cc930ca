//! Operators as they were before version 7 of the operator set, where they differ from later ones.
//!
//! Up to version 6 an elementwise operator broadcasts only where its attribute `broadcast` says so;
//! the axes of the second operand then are those of the first from `axis` on, or its last ones.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::convolution::per_channel;
use super::table::{Entry, find_in, onnx};
use super::{activation, elementwise, norm, slicing};
use aot_ir::Dim;
use aot_ir::op::BinaryOp;

/// The first version that these rules are not for.
pub(super) const LATER: i64 = 7;

pub(super) const RULES: &[Entry] = &[
    onnx("Add", |c| aligned(c, BinaryOp::Add)),
    onnx("Sub", |c| aligned(c, BinaryOp::Sub)),
    onnx("Mul", |c| aligned(c, BinaryOp::Mul)),
    onnx("Div", |c| aligned(c, BinaryOp::Div)),
    onnx("Pow", |c| aligned(c, BinaryOp::Pow)),
    onnx("And", |c| aligned(c, BinaryOp::And)),
    onnx("Or", |c| aligned(c, BinaryOp::Or)),
    onnx("Xor", |c| aligned(c, BinaryOp::Xor)),
    onnx("Equal", |c| aligned(c, BinaryOp::Eq)),
    onnx("Greater", |c| aligned(c, BinaryOp::Gt)),
    onnx("Less", |c| aligned(c, BinaryOp::Lt)),
    onnx("BatchNormalization", |c| match c.flag("is_test", false) {
        true => later(c, norm::RULES, "BatchNormalization"),
        false => unsupported("is_test is 0, which trains; export the model for inference"),
    }),
    onnx("Dropout", |c| match c.flag("is_test", false) {
        true => later(c, super::random::RULES, "Dropout"),
        false => unsupported("is_test is 0, which trains; export the model for inference"),
    }),
    onnx("PRelu", |c| {
        let (x, mut slope) = (c.x(0)?, c.x(1)?);
        if c.rank(slope) == 1 && c.rank(x) > 2 {
            slope = per_channel(c, slope, c.rank(x))?;
        }
        Ok(vec![activation::leaky(c, x, slope)?])
    }),
    onnx("Concat", |c| match c.opset < 4 && !c.has("axis") {
        true => unsupported("without attribute `axis`; convert it with onnx.version_converter"),
        false => later(c, slicing::RULES, "Concat"),
    }),
    onnx("Cast", |c| match c.opset < 6 {
        true => changed("Cast"),
        false => later(c, elementwise::RULES, "Cast"),
    }),
    onnx("Pad", |c| match c.opset < 2 {
        true => changed("Pad"),
        false => later(c, slicing::RULES, "Pad"),
    }),
    onnx("Tile", |c| match c.opset < 6 {
        true => changed("Tile"),
        false => later(c, super::shape::RULES, "Tile"),
    }),
    onnx("Upsample", |_| changed("Upsample")),
];

fn changed(operator: &str) -> OpResult<Vec<Tensor>> {
    unsupported(format!(
        "{operator} of this old operator set takes other attributes; convert the model with \
         onnx.version_converter"
    ))
}

/// What the first of the later rules does.
fn later(c: &mut Call<'_>, family: &[Entry], operator: &str) -> OpResult<Vec<Tensor>> {
    match find_in(family, "", operator, LATER) {
        Some(rule) => rule(c),
        None => unsupported("no rule"),
    }
}

fn aligned(c: &mut Call<'_>, op: BinaryOp) -> OpResult<Vec<Tensor>> {
    let (a, mut b) = (c.x(0)?, c.x(1)?);
    let (rank, own) = (c.rank(a), c.rank(b));
    if c.flag("broadcast", false)
        && let Some(axis) = c.int_opt("axis")
    {
        let first = c.axis_of(axis, rank)?;
        let Some(after) = rank.checked_sub(first + own) else {
            return wrong(format!("{own} axes do not fit from axis {axis} on into {rank}"));
        };
        let mut shape = c.shape(b).to_vec();
        shape.extend(std::iter::repeat_n(Dim::ONE, after));
        b = c.reshape(b, &shape)?;
    }
    Ok(vec![c.binary(op, a, b)?])
}
