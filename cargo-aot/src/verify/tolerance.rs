//! How far results may be from the reference.

use super::report::Subject;
use crate::lower::{LowerOptions, Precision};

/// Greatest `‖Δ‖ / ‖reference‖` of an output of a whole model. What is computed in binary32 or
/// wider on the CPU has no more than rounding to lose; kernels sum in another order, and what they
/// multiply is rounded to the model's precision. Where parts have precisions of their own, the
/// loosest counts.
pub(super) fn tolerance(subject: Subject, options: &LowerOptions) -> f64 {
    let rules = options.precision_for.iter().map(|(_, precision)| *precision);
    match subject {
        Subject::Graph | Subject::Cpu => 1e-4,
        Subject::Groups | Subject::Kernels => {
            rules.map(of_kernels).fold(of_kernels(options.precision), f64::max)
        }
    }
}

fn of_kernels(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => 1e-3,
        Precision::Tf32 | Precision::F16 => 1e-2,
        Precision::Bf16 => 7.5e-2,
    }
}

/// One row may be this many times worse than the whole.
pub(super) const ROW: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loosest_precision_counts_for_kernels_alone() {
        let options = LowerOptions {
            precision: Precision::F32,
            precision_for: vec![("*/head/*".to_owned(), Precision::F16)],
        };
        assert_eq!(tolerance(Subject::Kernels, &options), 1e-2);
        assert_eq!(tolerance(Subject::Cpu, &options), 1e-4);
    }
}
