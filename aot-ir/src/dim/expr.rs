//! The canonical form: a polynomial over atoms.

use serde::{Deserialize, Serialize};
use std::ops::{Add, Mul, Neg, Sub};

/// Index of a symbol in [`Symbols`](super::Symbols).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SymId(pub u32);

/// A loop variable of an index map; whoever uses one knows its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VarId(pub u32);

/// What polynomials are made of. Divisors are positive.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Atom {
    /// A symbol's atom.
    Sym(SymId),
    /// A loop variable.
    Var(VarId),
    /// An integer computed by a scalar expression, for data-dependent coordinates.
    Value(u32),
    /// Quotient rounded down.
    FloorDiv(Dim, Dim),
    /// Remainder in `0..divisor`.
    Mod(Dim, Dim),
    /// The smaller.
    Min(Dim, Dim),
    /// The larger.
    Max(Dim, Dim),
    /// The second where the condition holds, else the third.
    Select(Cond, Dim, Dim),
}

impl Atom {
    /// Whether it is made of no other atoms.
    pub fn is_leaf(&self) -> bool {
        matches!(self, Self::Sym(_) | Self::Var(_) | Self::Value(_))
    }
}

/// A comparison of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cmp {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
}

/// A condition on integers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cond {
    /// A comparison.
    Cmp(Cmp, Dim, Dim),
    /// All hold (true when empty).
    All(#[serde(deserialize_with = "super::depth::nested")] Vec<Cond>),
}

/// A product of atoms with a coefficient.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Term {
    /// Ascending; an atom's power is its number of occurrences. Not empty.
    pub factors: Vec<Atom>,
    /// Not zero.
    pub coefficient: i64,
}

/// An integer expression: a constant and terms, ascending by factors, each product at most once.
///
/// Equality of the canonical form is what `==` decides; expressions that are equal for other
/// reasons may differ ([`Scope`](super::Scope) can prove more). Arithmetic on coefficients saturates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Dim {
    constant: i64,
    #[serde(deserialize_with = "super::depth::nested")]
    terms: Vec<Term>,
}

impl Dim {
    /// Zero.
    pub const ZERO: Self = Self { constant: 0, terms: Vec::new() };
    /// One.
    pub const ONE: Self = Self { constant: 1, terms: Vec::new() };

    /// An atom by itself.
    pub fn atom(atom: Atom) -> Self {
        Self { constant: 0, terms: vec![Term { factors: vec![atom], coefficient: 1 }] }
    }

    /// A loop variable by itself.
    pub fn var(var: VarId) -> Self {
        Self::atom(Atom::Var(var))
    }

    /// A constant and terms in any order, with any repetition.
    pub fn from_terms(constant: i64, terms: impl IntoIterator<Item = Term>) -> Self {
        let mut terms: Vec<Term> = terms.into_iter().collect();
        terms.sort_by(|a, b| a.factors.cmp(&b.factors));
        let mut out: Vec<Term> = Vec::with_capacity(terms.len());
        let mut constant = constant;
        for term in terms {
            if term.factors.is_empty() {
                constant = constant.saturating_add(term.coefficient);
                continue;
            }
            match out.last_mut() {
                Some(last) if last.factors == term.factors => {
                    last.coefficient = last.coefficient.saturating_add(term.coefficient);
                }
                _ => out.push(term),
            }
        }
        out.retain(|t| t.coefficient != 0);
        Self { constant, terms: out }
    }

    /// The constant part.
    pub fn constant_part(&self) -> i64 {
        self.constant
    }

    /// The terms, ascending by factors.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The value, if it is a constant.
    pub fn as_const(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The atom, if it is just one.
    pub fn as_atom(&self) -> Option<&Atom> {
        match (self.constant, self.terms.as_slice()) {
            (0, [Term { factors, coefficient: 1 }]) if factors.len() == 1 => Some(&factors[0]),
            _ => None,
        }
    }

    /// Whether it is this constant.
    pub fn is(&self, value: i64) -> bool {
        self.as_const() == Some(value)
    }

    /// The product with a constant.
    pub fn scaled(&self, factor: i64) -> Self {
        if factor == 0 {
            return Self::ZERO;
        }
        let mut out = self.clone();
        out.constant = out.constant.saturating_mul(factor);
        for term in &mut out.terms {
            term.coefficient = term.coefficient.saturating_mul(factor);
        }
        out
    }

    /// Calls `f` on every atom, outermost first, entering divisions and the like.
    pub fn visit(&self, f: &mut impl FnMut(&Atom)) {
        for atom in self.terms.iter().flat_map(|t| &t.factors) {
            f(atom);
            match atom {
                Atom::Sym(_) | Atom::Var(_) | Atom::Value(_) => {}
                Atom::FloorDiv(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                    a.visit(f);
                    b.visit(f);
                }
                Atom::Select(c, a, b) => {
                    c.visit(f);
                    a.visit(f);
                    b.visit(f);
                }
            }
        }
    }

    /// Whether some atom, at any depth, satisfies `f`.
    pub fn any(&self, mut f: impl FnMut(&Atom) -> bool) -> bool {
        let mut found = false;
        self.visit(&mut |atom| found |= f(atom));
        found
    }

    /// Whether it depends on run-time sizes only: neither loop variables nor data.
    pub fn is_uniform(&self) -> bool {
        !self.any(|a| matches!(a, Atom::Var(_) | Atom::Value(_)))
    }

    /// Whether a loop variable occurs.
    pub fn uses(&self, var: VarId) -> bool {
        self.any(|a| *a == Atom::Var(var))
    }
}

impl Cond {
    /// Always true.
    pub fn always() -> Self {
        Self::All(Vec::new())
    }

    /// Both hold.
    pub fn and(self, other: Self) -> Self {
        let mut parts = Vec::new();
        for cond in [self, other] {
            match cond {
                Self::All(inner) => parts.extend(inner),
                cmp => parts.push(cmp),
            }
        }
        parts.dedup();
        if parts.len() == 1 { parts.remove(0) } else { Self::All(parts) }
    }

    /// `0 <= x < extent`.
    pub fn within(x: &Dim, extent: &Dim) -> Self {
        Self::Cmp(Cmp::Le, Dim::ZERO, x.clone()).and(Self::Cmp(Cmp::Lt, x.clone(), extent.clone()))
    }

    /// Whether it is [`Cond::always`].
    pub fn is_always(&self) -> bool {
        matches!(self, Self::All(parts) if parts.is_empty())
    }

    /// Calls `f` on every atom.
    pub fn visit(&self, f: &mut impl FnMut(&Atom)) {
        match self {
            Self::Cmp(_, a, b) => {
                a.visit(f);
                b.visit(f);
            }
            Self::All(parts) => parts.iter().for_each(|c| c.visit(f)),
        }
    }
}

impl From<i64> for Dim {
    fn from(constant: i64) -> Self {
        Self { constant, terms: Vec::new() }
    }
}

impl From<Atom> for Dim {
    fn from(atom: Atom) -> Self {
        Self::atom(atom)
    }
}

impl Add<&Dim> for &Dim {
    type Output = Dim;
    fn add(self, other: &Dim) -> Dim {
        if other.terms.is_empty() {
            let mut out = self.clone();
            out.constant = out.constant.saturating_add(other.constant);
            return out;
        }
        Dim::from_terms(
            self.constant.saturating_add(other.constant),
            self.terms.iter().chain(&other.terms).cloned(),
        )
    }
}

impl Neg for &Dim {
    type Output = Dim;
    fn neg(self) -> Dim {
        self.scaled(-1)
    }
}

impl Sub<&Dim> for &Dim {
    type Output = Dim;
    fn sub(self, other: &Dim) -> Dim {
        self + &-other
    }
}

impl Mul<&Dim> for &Dim {
    type Output = Dim;
    fn mul(self, other: &Dim) -> Dim {
        if let Some(c) = other.as_const() {
            return self.scaled(c);
        }
        if let Some(c) = self.as_const() {
            return other.scaled(c);
        }
        let constant = Term { factors: Vec::new(), coefficient: 0 };
        let all = |d: &Dim| {
            let c = Term { coefficient: d.constant, ..constant.clone() };
            std::iter::once(c).chain(d.terms.iter().cloned()).collect::<Vec<_>>()
        };
        let (left, right) = (all(self), all(other));
        let products = left.iter().flat_map(|a| {
            right.iter().map(|b| {
                let mut factors = a.factors.clone();
                factors.extend(b.factors.iter().cloned());
                factors.sort();
                Term { factors, coefficient: a.coefficient.saturating_mul(b.coefficient) }
            })
        });
        Dim::from_terms(0, products)
    }
}

macro_rules! owned_operators {
    ($($trait:ident :: $method:ident),*) => {$(
        impl $trait for Dim {
            type Output = Dim;
            fn $method(self, other: Dim) -> Dim { $trait::$method(&self, &other) }
        }
        impl $trait<&Dim> for Dim {
            type Output = Dim;
            fn $method(self, other: &Dim) -> Dim { $trait::$method(&self, other) }
        }
        impl $trait<Dim> for &Dim {
            type Output = Dim;
            fn $method(self, other: Dim) -> Dim { $trait::$method(self, &other) }
        }
        impl $trait<i64> for Dim {
            type Output = Dim;
            fn $method(self, other: i64) -> Dim { $trait::$method(&self, &Dim::from(other)) }
        }
        impl $trait<i64> for &Dim {
            type Output = Dim;
            fn $method(self, other: i64) -> Dim { $trait::$method(self, &Dim::from(other)) }
        }
    )*};
}
owned_operators!(Add::add, Sub::sub, Mul::mul);

impl std::iter::Sum for Dim {
    fn sum<I: Iterator<Item = Dim>>(iter: I) -> Dim {
        iter.fold(Dim::ZERO, |a, b| a + b)
    }
}

impl std::iter::Product for Dim {
    fn product<I: Iterator<Item = Dim>>(iter: I) -> Dim {
        iter.fold(Dim::ONE, |a, b| a * b)
    }
}

impl<'a> std::iter::Product<&'a Dim> for Dim {
    fn product<I: Iterator<Item = &'a Dim>>(iter: I) -> Dim {
        iter.fold(Dim::ONE, |a, b| a * b)
    }
}
