//! Functions of single elements, comparisons, conversions.

use super::super::builder::{OpResult, Tensor, wrong};
use super::super::call::Call;
use super::table::{Entry, onnx, since};
use aot_ir::DType;
use aot_ir::exec::NarrowFloat;
use aot_ir::op::{BinaryOp, UnaryOp};

pub(super) const RULES: &[Entry] = &[
    onnx("Abs", |c| unary(c, UnaryOp::Abs)),
    onnx("Acos", |c| unary(c, UnaryOp::Acos)),
    onnx("Acosh", |c| unary(c, UnaryOp::Acosh)),
    onnx("Asin", |c| unary(c, UnaryOp::Asin)),
    onnx("Asinh", |c| unary(c, UnaryOp::Asinh)),
    onnx("Atan", |c| unary(c, UnaryOp::Atan)),
    onnx("Atanh", |c| unary(c, UnaryOp::Atanh)),
    onnx("BitwiseNot", |c| unary(c, UnaryOp::BitNot)),
    onnx("Ceil", |c| unary(c, UnaryOp::Ceil)),
    onnx("Cos", |c| unary(c, UnaryOp::Cos)),
    onnx("Cosh", |c| unary(c, UnaryOp::Cosh)),
    onnx("Erf", |c| unary(c, UnaryOp::Erf)),
    onnx("Exp", |c| unary(c, UnaryOp::Exp)),
    onnx("Floor", |c| unary(c, UnaryOp::Floor)),
    onnx("IsNaN", |c| unary(c, UnaryOp::IsNan)),
    onnx("Log", |c| unary(c, UnaryOp::Log)),
    onnx("Neg", |c| unary(c, UnaryOp::Neg)),
    onnx("Not", |c| unary(c, UnaryOp::Not)),
    onnx("Reciprocal", |c| unary(c, UnaryOp::Reciprocal)),
    onnx("Relu", |c| unary(c, UnaryOp::Relu)),
    onnx("Round", |c| unary(c, UnaryOp::Round)),
    onnx("Sigmoid", |c| unary(c, UnaryOp::Sigmoid)),
    onnx("Sign", |c| unary(c, UnaryOp::Sign)),
    onnx("Sin", |c| unary(c, UnaryOp::Sin)),
    onnx("Sinh", |c| unary(c, UnaryOp::Sinh)),
    onnx("Sqrt", |c| unary(c, UnaryOp::Sqrt)),
    onnx("Tan", |c| unary(c, UnaryOp::Tan)),
    onnx("Tanh", |c| unary(c, UnaryOp::Tanh)),
    onnx("Add", |c| binary(c, BinaryOp::Add)),
    onnx("And", |c| binary(c, BinaryOp::And)),
    onnx("BitwiseAnd", |c| binary(c, BinaryOp::BitAnd)),
    onnx("BitwiseOr", |c| binary(c, BinaryOp::BitOr)),
    onnx("BitwiseXor", |c| binary(c, BinaryOp::BitXor)),
    onnx("Div", |c| binary(c, BinaryOp::Div)),
    onnx("Equal", |c| binary(c, BinaryOp::Eq)),
    onnx("Greater", |c| binary(c, BinaryOp::Gt)),
    onnx("GreaterOrEqual", |c| binary(c, BinaryOp::Ge)),
    onnx("Less", |c| binary(c, BinaryOp::Lt)),
    onnx("LessOrEqual", |c| binary(c, BinaryOp::Le)),
    onnx("Mul", |c| binary(c, BinaryOp::Mul)),
    onnx("Or", |c| binary(c, BinaryOp::Or)),
    onnx("Sub", |c| binary(c, BinaryOp::Sub)),
    onnx("Xor", |c| binary(c, BinaryOp::Xor)),
    onnx("BitShift", bit_shift),
    onnx("Mod", modulo),
    onnx("Pow", power),
    onnx("IsInf", is_inf),
    onnx("Max", |c| variadic(c, BinaryOp::Max)),
    onnx("Min", |c| variadic(c, BinaryOp::Min)),
    onnx("Sum", |c| variadic(c, BinaryOp::Add)),
    onnx("Mean", mean),
    onnx("Where", |c| {
        let (condition, a, b) = (c.x(0)?, c.x(1)?, c.x(2)?);
        Ok(vec![c.select(condition, a, b)?])
    }),
    onnx("Cast", cast),
    onnx("CastLike", |c| {
        let (x, like) = (c.x(0)?, c.x(1)?);
        let to = c.dtype(like);
        Ok(vec![cast_as_asked(c, x, to)?])
    }),
    onnx("Clip", clip),
    since(11, "Clip", clip_inputs),
];

fn unary(c: &mut Call<'_>, op: UnaryOp) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    Ok(vec![c.unary(op, x)?])
}

fn binary(c: &mut Call<'_>, op: BinaryOp) -> OpResult<Vec<Tensor>> {
    let (a, b) = (c.x(0)?, c.x(1)?);
    Ok(vec![c.binary(op, a, b)?])
}

fn variadic(c: &mut Call<'_>, op: BinaryOp) -> OpResult<Vec<Tensor>> {
    let all = c.all()?;
    let mut total = all[0];
    for &next in &all[1..] {
        total = c.binary(op, total, next)?;
    }
    Ok(vec![total])
}

fn mean(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let count = c.all()?.len() as f64;
    let total = variadic(c, BinaryOp::Add)?[0];
    Ok(vec![c.with(BinaryOp::Div, total, count)?])
}

fn bit_shift(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    match c.text("direction", "").as_str() {
        "LEFT" => binary(c, BinaryOp::Shl),
        "RIGHT" => binary(c, BinaryOp::Shr),
        other => wrong(format!("direction is `{other}`")),
    }
}

fn modulo(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    binary(c, if c.flag("fmod", false) { BinaryOp::Rem } else { BinaryOp::Mod })
}

/// The exponent's type may differ from the base's, which is the result's.
fn power(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (a, b) = (c.x(0)?, c.x(1)?);
    let (ta, tb) = (c.dtype(a), c.dtype(b));
    if ta == tb || c.uniform(b).is_some_and(|v| v.fract() == 0.0) || !ta.is_int() {
        if c.uniform(b) == Some(2.0) {
            return Ok(vec![c.product(a, a)?]);
        }
        let b = c.cast(b, ta)?;
        return Ok(vec![c.binary(BinaryOp::Pow, a, b)?]);
    }
    let wide = if ta.bits() > 16 || tb == DType::F64 { DType::F64 } else { DType::F32 };
    let (a, b) = (c.cast(a, wide)?, c.cast(b, wide)?);
    let out = c.binary(BinaryOp::Pow, a, b)?;
    Ok(vec![c.cast(out, ta)?])
}

fn is_inf(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let (negative, positive) = (c.flag("detect_negative", true), c.flag("detect_positive", true));
    Ok(vec![match (negative, positive) {
        (true, true) => {
            let (a, b) = (c.unary(UnaryOp::IsPosInf, x)?, c.unary(UnaryOp::IsNegInf, x)?);
            c.binary(BinaryOp::Or, a, b)?
        }
        (false, true) => c.unary(UnaryOp::IsPosInf, x)?,
        (true, false) => c.unary(UnaryOp::IsNegInf, x)?,
        (false, false) => {
            let never = c.scalar(0.0, DType::Bool);
            let shape = c.shape(x).to_vec();
            c.expand(never, &shape)?
        }
    }])
}

fn cast(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    match c.dtype_attr("to")? {
        Some(to) => Ok(vec![cast_as_asked(c, x, to)?]),
        None => wrong("attribute `to` is missing"),
    }
}

/// ONNX's Cast: to narrow floats it saturates unless told not to, to integers of less than 8 bits it wraps.
fn cast_as_asked(c: &mut Call<'_>, x: Tensor, to: DType) -> OpResult {
    if to.is_int() && to.bits() < 8 && c.dtype(x) != to {
        let count = f64::from(1u32 << to.bits());
        let wide = c.cast(x, DType::I32)?;
        let low = c.with(BinaryOp::Mod, wide, count)?;
        if !to.is_signed_int() {
            return c.cast(low, to);
        }
        let negative = c.with(BinaryOp::Ge, low, count / 2.0)?;
        let wrapped = c.with(BinaryOp::Sub, low, count)?;
        let value = c.select(negative, wrapped, low)?;
        return c.cast(value, to);
    }
    let x = if to == DType::F8E8M0 { rounded_power(c, x)? } else { x };
    if c.flag("saturate", true) { cast_saturated(c, x, to) } else { c.cast(x, to) }
}

/// A power of two near `x`, as the attribute `round_mode` says; what is below the smallest one becomes it.
fn rounded_power(c: &mut Call<'_>, x: Tensor) -> OpResult {
    let mode = c.text("round_mode", "up");
    if !matches!(mode.as_str(), "up" | "down" | "nearest") {
        return wrong(format!("round_mode is `{mode}`"));
    }
    if mode == "nearest" || c.dtype(x) == DType::F8E8M0 {
        return Ok(x);
    }
    let mut x = c.cast(x, DType::F32)?;
    if c.flag("saturate", true) {
        x = c.with(BinaryOp::Min, x, 2f64.powi(127))?;
    }
    let power = c.cast(x, DType::F8E8M0)?;
    let power = c.cast(power, DType::F32)?;
    let (off, factor) = if mode == "up" { (BinaryOp::Lt, 2.0) } else { (BinaryOp::Gt, 0.5) };
    let off = c.binary(off, power, x)?;
    let other = c.with(BinaryOp::Mul, power, factor)?;
    c.select(off, other, power)
}

/// A conversion in which what is too large becomes the type's largest number.
pub(super) fn cast_saturated(c: &mut Call<'_>, x: Tensor, to: DType) -> OpResult {
    let Some(format) = NarrowFloat::of(to).filter(|_| c.dtype(x) != to) else {
        return c.cast(x, to);
    };
    let x = if c.dtype(x).is_float() { x } else { c.cast(x, DType::F32)? };
    let x = c.with(BinaryOp::Max, x, -format.max())?;
    let x = c.with(BinaryOp::Min, x, format.max())?;
    c.cast(x, to)
}

fn clip(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let (low, high) = (c.float("min", f64::NEG_INFINITY), c.float("max", f64::INFINITY));
    let mut out = x;
    if low > -f64::from(f32::MAX) {
        out = c.with(BinaryOp::Max, out, low)?;
    }
    if high < f64::from(f32::MAX) {
        out = c.with(BinaryOp::Min, out, high)?;
    }
    Ok(vec![out])
}

fn clip_inputs(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let mut x = c.x(0)?;
    if let Some(low) = c.opt(1) {
        x = c.binary(BinaryOp::Max, x, low)?;
    }
    if let Some(high) = c.opt(2) {
        x = c.binary(BinaryOp::Min, x, high)?;
    }
    Ok(vec![x])
}
