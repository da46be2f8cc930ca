//! Floating-point numbers that kernels are generic over.

use super::super::support::Gemm;
use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Rem, Sub};

macro_rules! float {
    ($($name:ident => $inherent:ident),* $(,)?) => {
        /// `f32` or `f64`.
        pub(in crate::exec) trait Float:
            Copy + Default + Debug + PartialOrd + Gemm
            + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
            + Rem<Output = Self> + Neg<Output = Self> + AddAssign + MulAssign + 'static
        {
            const ZERO: Self;
            const ONE: Self;
            const NEG_INFINITY: Self;
            fn of(x: f64) -> Self;
            fn f64(self) -> f64;
            fn nan(self) -> bool;
            fn powf(self, exponent: Self) -> Self;
            fn atan2(self, other: Self) -> Self;
            fn erf(self) -> Self;
            fn exp(self) -> Self;
            $(fn $name(self) -> Self;)*

            /// The larger; NaN if either is.
            fn larger(self, other: Self) -> Self {
                if self > other || self.nan() { self } else { other }
            }

            /// The smaller; NaN if either is.
            fn smaller(self, other: Self) -> Self {
                if self < other || self.nan() { self } else { other }
            }
        }

        float!(@impl f32, libm::erff, super::exp::exp, $($name => $inherent),*);
        float!(@impl f64, libm::erf, f64::exp, $($name => $inherent),*);
    };
    (@impl $type:ident, $erf:path, $exp:path, $($name:ident => $inherent:ident),*) => {
        impl Float for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NEG_INFINITY: Self = $type::NEG_INFINITY;
            fn of(x: f64) -> Self { x as $type }
            fn f64(self) -> f64 { f64::from(self) }
            fn nan(self) -> bool { self.is_nan() }
            fn powf(self, exponent: Self) -> Self { $type::powf(self, exponent) }
            fn atan2(self, other: Self) -> Self { $type::atan2(self, other) }
            fn erf(self) -> Self { $erf(self) }
            fn exp(self) -> Self { $exp(self) }
            $(fn $name(self) -> Self { $type::$inherent(self) })*
        }
    };
}

float! {
    ln => ln, ln_1p => ln_1p, exp_m1 => exp_m1, sqrt => sqrt, abs => abs,
    floor => floor, ceil => ceil, round_even => round_ties_even, recip => recip,
    sin => sin, cos => cos, tan => tan, asin => asin, acos => acos, atan => atan,
    sinh => sinh, cosh => cosh, tanh => tanh, asinh => asinh, acosh => acosh, atanh => atanh,
}

/// Evaluates an expression with the elements of a tensor of floats, of either class.
macro_rules! floats {
    ($data:expr, $dtype:expr, $v:ident => $body:expr) => {
        match $data {
            $crate::exec::tensor::Data::F32($v) => $body,
            $crate::exec::tensor::Data::F64($v) => $body,
            _ => {
                return Err($crate::exec::ExecError::value(format!(
                    "expected floating-point numbers, found {}",
                    $dtype
                )));
            }
        }
    };
}

pub(in crate::exec) use floats;
