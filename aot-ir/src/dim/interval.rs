//! Numeric bounds of expressions whose atoms have known ranges.

use super::expr::{Atom, Dim};
use super::scope::Scope;
use crate::DType;

/// Bounds of an expression, both inclusive; they saturate at the ends of `i64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Least value.
    pub lo: i64,
    /// Greatest value.
    pub hi: i64,
}

impl Interval {
    /// Every integer.
    pub const ALL: Self = Self { lo: i64::MIN, hi: i64::MAX };

    fn point(v: i64) -> Self {
        Self { lo: v, hi: v }
    }

    fn hull(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    fn corners(self, other: Self, f: impl Fn(i64, i64) -> i64) -> Self {
        let all = [
            f(self.lo, other.lo),
            f(self.lo, other.hi),
            f(self.hi, other.lo),
            f(self.hi, other.hi),
        ];
        let lo = all.iter().copied().min().unwrap_or(i64::MIN);
        let hi = all.iter().copied().max().unwrap_or(i64::MAX);
        Self { lo, hi }
    }
}

impl Scope<'_> {
    /// Numeric bounds.
    pub fn interval(&self, a: &Dim) -> Interval {
        let mut sum = Interval::point(a.constant_part());
        for term in a.terms() {
            let mut product = Interval::point(term.coefficient);
            for atom in &term.factors {
                product = product.corners(self.atom_interval(atom), i64::saturating_mul);
            }
            sum = Interval {
                lo: sum.lo.saturating_add(product.lo),
                hi: sum.hi.saturating_add(product.hi),
            };
        }
        sum
    }

    /// Whether all values of an expression are proved to be of an integer type, so that arithmetic on it, which
    /// wraps, gives them. The ends of 64 bits stand for whatever lies beyond.
    pub fn holds(&self, dtype: DType, a: &Dim) -> bool {
        let bits = dtype.bits();
        let (lo, hi) = match (dtype.is_signed_int(), bits) {
            (true, 64) => (i64::MIN + 1, i64::MAX - 1),
            (false, 63..) => (0, i64::MAX - 1),
            (true, _) => (-1 << (bits - 1), (1 << (bits - 1)) - 1),
            (false, _) => (0, (1 << bits) - 1),
        };
        let range = self.interval(a);
        dtype.is_int() && range.lo >= lo && range.hi <= hi
    }

    fn atom_interval(&self, atom: &Atom) -> Interval {
        match atom {
            Atom::Sym(id) => self
                .symbols
                .get(*id)
                .map_or(Interval { lo: 0, hi: i64::MAX }, |s| Interval { lo: s.lo, hi: s.hi }),
            Atom::Var(v) => Interval {
                lo: 0,
                hi: self.extent(*v).map_or(i64::MAX, |e| self.interval(e).hi.saturating_sub(1)),
            },
            Atom::Value(_) => Interval::ALL,
            Atom::FloorDiv(a, b) => {
                let divisor = self.interval(b);
                if divisor.lo <= 0 {
                    return Interval::ALL;
                }
                self.interval(a).corners(divisor, i64::div_euclid)
            }
            Atom::Mod(a, b) => {
                let (a, b) = (self.interval(a), self.interval(b));
                let hi = b.hi.saturating_sub(1).max(0);
                Interval { lo: 0, hi: if a.lo >= 0 { hi.min(a.hi) } else { hi } }
            }
            Atom::Min(a, b) => {
                let (a, b) = (self.interval(a), self.interval(b));
                Interval { lo: a.lo.min(b.lo), hi: a.hi.min(b.hi) }
            }
            Atom::Max(a, b) => {
                let (a, b) = (self.interval(a), self.interval(b));
                Interval { lo: a.lo.max(b.lo), hi: a.hi.max(b.hi) }
            }
            Atom::Select(_, a, b) => self.interval(a).hull(self.interval(b)),
        }
    }
}
