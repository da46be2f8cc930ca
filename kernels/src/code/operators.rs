//! Operators on scalars as C++ text. Operands can stand anywhere without parentheses.

use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{DType, Scalar};

/// A constant of a compute type.
pub(super) fn literal(dtype: DType, value: Scalar) -> String {
    match dtype {
        DType::Bool => (value.as_f64() != 0.0).to_string(),
        DType::F64 => double_literal(value.as_f64()),
        t if t.is_float() => float_literal(value.as_f64() as f32),
        DType::I64 => match value.as_i64() {
            i64::MIN => "(-9223372036854775807ll - 1)".to_owned(),
            v => signed(format!("{v}ll")),
        },
        DType::U64 => format!("{}ull", value.as_i64() as u64),
        DType::U32 => format!("{}u", value.as_i64() as u32),
        _ => match value.as_i64() as i32 {
            i32::MIN => "(-2147483647 - 1)".to_owned(),
            v => signed(v.to_string()),
        },
    }
}

fn signed(text: String) -> String {
    if text.starts_with('-') { format!("({text})") } else { text }
}

fn float_literal(value: f32) -> String {
    if value.is_finite() {
        signed(format!("{value:?}f"))
    } else {
        format!("__int_as_float(0x{:08x})", value.to_bits())
    }
}

fn double_literal(value: f64) -> String {
    if value.is_finite() {
        signed(format!("{value:?}"))
    } else {
        format!("__longlong_as_double(0x{:016x}ll)", value.to_bits())
    }
}

/// The greatest or least value of a compute type: ±∞ for floats.
pub(super) fn extreme(dtype: DType, greatest: bool) -> String {
    let pick = |hi: i64, lo: i64| Scalar::Int(if greatest { hi } else { lo });
    match dtype {
        DType::Bool => literal(dtype, Scalar::Bool(greatest)),
        DType::I64 => literal(dtype, pick(i64::MAX, i64::MIN)),
        DType::U64 | DType::U32 => literal(dtype, pick(-1, 0)),
        t if t.is_float() => {
            let infinity = if greatest { f64::INFINITY } else { f64::NEG_INFINITY };
            literal(dtype, Scalar::Float(infinity))
        }
        _ => literal(dtype, pick(i64::from(i32::MAX), i64::from(i32::MIN))),
    }
}

/// A unary operator on a value of compute type `dtype`; `None` if it takes no such values.
pub(super) fn unary(op: UnaryOp, dtype: DType, x: &str) -> Option<String> {
    use UnaryOp as U;
    let float = dtype.is_float();
    if let (true, Some(name)) = (float, library_name(op)) {
        let suffix = if dtype == DType::F64 { "" } else { "f" };
        return Some(format!("{name}{suffix}({x})"));
    }
    let one = if dtype == DType::F64 { "1.0" } else { "1.0f" };
    let zero = literal(dtype, Scalar::Int(0));
    let unsigned = matches!(dtype, DType::U32 | DType::U64);
    Some(match op {
        U::Not => format!("!{x}"),
        _ if dtype == DType::Bool => match op {
            U::BitNot => format!("!{x}"),
            U::IsNan | U::IsPosInf | U::IsNegInf => "false".to_owned(),
            U::Abs | U::Sign | U::Relu | U::Floor | U::Ceil | U::Round => x.to_owned(),
            _ => return None,
        },
        U::Neg if float => format!("-{x}"),
        U::Neg => format!("wrap_sub({zero}, {x})"),
        U::Sign if float => format!("float_sign({x})"),
        U::Sign if unsigned => format!("{x} != 0 ? 1 : 0"),
        U::Sign => format!("int_sign({x})"),
        U::Relu => format!("{x} < {zero} ? {zero} : {x}"),
        U::Abs if unsigned => x.to_owned(),
        U::Abs => format!("int_abs({x})"),
        U::Floor | U::Ceil | U::Round => x.to_owned(),
        U::BitNot if !float => format!("~{x}"),
        U::Reciprocal if float => format!("{one} / {x}"),
        U::Sigmoid if float => format!("sigmoid({x})"),
        U::IsNan if float => format!("{x} != {x}"),
        U::IsPosInf if float => format!("{x} == {}", extreme(dtype, true)),
        U::IsNegInf if float => format!("{x} == {}", extreme(dtype, false)),
        U::IsNan | U::IsPosInf | U::IsNegInf => "false".to_owned(),
        _ => return None,
    })
}

/// The C function, without the suffix for `float`.
fn library_name(op: UnaryOp) -> Option<&'static str> {
    use UnaryOp as U;
    Some(match op {
        U::Abs => "fabs",
        U::Floor => "floor",
        U::Ceil => "ceil",
        U::Round => "rint",
        U::Sqrt => "sqrt",
        U::Exp => "exp",
        U::Log => "log",
        U::Log1p => "log1p",
        U::Expm1 => "expm1",
        U::Sin => "sin",
        U::Cos => "cos",
        U::Tan => "tan",
        U::Asin => "asin",
        U::Acos => "acos",
        U::Atan => "atan",
        U::Sinh => "sinh",
        U::Cosh => "cosh",
        U::Tanh => "tanh",
        U::Asinh => "asinh",
        U::Acosh => "acosh",
        U::Atanh => "atanh",
        U::Erf => "erf",
        _ => return None,
    })
}

/// A binary operator on values of compute type `dtype`; `None` if it takes no such values.
pub(super) fn binary(op: BinaryOp, dtype: DType, a: &str, b: &str) -> Option<String> {
    use BinaryOp as B;
    let float = dtype.is_float();
    let suffix = if dtype == DType::F64 { "" } else { "f" };
    if dtype == DType::Bool {
        return Some(match op {
            B::And | B::BitAnd | B::Mul | B::Min => format!("{a} && {b}"),
            B::Or | B::BitOr | B::Add | B::Max => format!("{a} || {b}"),
            B::Xor | B::BitXor | B::Ne => format!("{a} != {b}"),
            B::Eq => format!("{a} == {b}"),
            B::Lt => format!("!{a} && {b}"),
            B::Le => format!("!{a} || {b}"),
            B::Gt => format!("{a} && !{b}"),
            B::Ge => format!("{a} || !{b}"),
            _ => return None,
        });
    }
    Some(match op {
        B::Add if float => format!("{a} + {b}"),
        B::Sub if float => format!("{a} - {b}"),
        B::Mul if float => format!("{a} * {b}"),
        B::Div if float => format!("{a} / {b}"),
        B::Mod if float => format!("float_floor_mod({a}, {b})"),
        B::Rem if float => format!("fmod{suffix}({a}, {b})"),
        B::Pow if float => format!("pow{suffix}({a}, {b})"),
        B::Atan2 if float => format!("atan2{suffix}({a}, {b})"),
        B::Add => format!("wrap_add({a}, {b})"),
        B::Sub => format!("wrap_sub({a}, {b})"),
        B::Mul => format!("wrap_mul({a}, {b})"),
        B::Div => format!("int_div({a}, {b})"),
        B::Mod => format!("int_floor_mod({a}, {b})"),
        B::Rem => format!("int_rem({a}, {b})"),
        B::Pow => format!("int_pow({a}, {b})"),
        B::Min => format!("smaller({a}, {b})"),
        B::Max => format!("larger({a}, {b})"),
        B::And | B::BitAnd if !float => format!("{a} & {b}"),
        B::Or | B::BitOr if !float => format!("{a} | {b}"),
        B::Xor | B::BitXor if !float => format!("{a} ^ {b}"),
        B::Shl if !float => format!("int_shl({a}, {b})"),
        B::Shr if !float => format!("int_shr({a}, {b})"),
        B::Eq => format!("{a} == {b}"),
        B::Ne => format!("{a} != {b}"),
        B::Lt => format!("{a} < {b}"),
        B::Le => format!("{a} <= {b}"),
        B::Gt => format!("{a} > {b}"),
        B::Ge => format!("{a} >= {b}"),
        _ => return None,
    })
}

/// The value `x` of compute type `from` converted to type `to` and widened again.
pub(super) fn cast(from: DType, to: DType, x: &str) -> String {
    let float = from.is_float();
    let narrowed = |storage: &str, x: String| format!("widen(narrow<{storage}>({x}))");
    match to {
        DType::Bool if from == DType::Bool => x.to_owned(),
        DType::Bool => format!("{x} != 0"),
        DType::F64 => format!("(double){x}"),
        DType::F32 => format!("(float){x}"),
        DType::F4E2M1 => narrowed("f4e2m1", format!("(float){x}")),
        t if t.is_float() => narrowed(super::ctype::storage_type(t), format!("(float){x}")),
        DType::I32 if float => format!("to_int({x})"),
        DType::U32 if float => format!("to_uint({x})"),
        DType::I64 if float => format!("to_long({x})"),
        DType::U64 if float => format!("to_ulong({x})"),
        DType::I32 => format!("(int){x}"),
        DType::U32 => format!("(unsigned){x}"),
        DType::I64 => format!("(long long){x}"),
        DType::U64 => format!("(unsigned long long){x}"),
        _ => {
            let (lo, hi) = narrow_range(to);
            match (float, to) {
                (true, _) => format!("float_to_int({x}, {lo}, {hi})"),
                (false, DType::I4) => format!("((int)((unsigned){x} << 28) >> 28)"),
                (false, DType::I2) => format!("((int)((unsigned){x} << 30) >> 30)"),
                (false, DType::U4 | DType::U2) => format!("((int){x} & {hi})"),
                _ => narrowed(super::ctype::storage_type(to), format!("(int){x}")),
            }
        }
    }
}

fn narrow_range(dtype: DType) -> (i32, i32) {
    match dtype {
        DType::I2 => (-2, 1),
        DType::U2 => (0, 3),
        DType::I4 => (-8, 7),
        DType::U4 => (0, 15),
        DType::I8 => (-128, 127),
        DType::U8 => (0, 255),
        DType::I16 => (-32768, 32767),
        _ => (0, 65535),
    }
}
