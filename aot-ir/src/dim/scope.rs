//! What can be proved about expressions whose atoms have known ranges, and simplification by it.

use super::expr::{Atom, Cmp, Cond, Dim, Term, VarId};
use super::prove;
use super::symbols::Symbols;

/// Ranges of symbols, and extents of loop variables: variable `i` is in `0..extents[i]`.
///
/// Proofs assume that every extent is at least one (else no coordinate exists).
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The symbols that expressions speak of.
    pub symbols: &'a Symbols,
    /// Extents by variable index; each may use symbols only.
    pub extents: &'a [Dim],
}

impl<'a> Scope<'a> {
    /// A scope without loop variables.
    pub fn new(symbols: &'a Symbols) -> Self {
        Self { symbols, extents: &[] }
    }

    pub(super) fn extent(&self, var: VarId) -> Option<&Dim> {
        self.extents.get(var.0 as usize)
    }

    /// `a / b` rounded down; `b` must be positive.
    pub fn floor_div(&self, a: &Dim, b: &Dim) -> Dim {
        self.div_rem(a, b).0
    }

    /// `a / b` rounded up; `b` must be positive.
    pub fn ceil_div(&self, a: &Dim, b: &Dim) -> Dim {
        self.floor_div(&(a + &(b - 1)), b)
    }

    /// The remainder of `a / b` in `0..b`; `b` must be positive.
    pub fn modulo(&self, a: &Dim, b: &Dim) -> Dim {
        self.div_rem(a, b).1
    }

    /// Quotient rounded down and remainder.
    fn div_rem(&self, a: &Dim, b: &Dim) -> (Dim, Dim) {
        if b.is(1) {
            return (a.clone(), Dim::ZERO);
        }
        if let (Some(x), Some(y)) = (a.as_const(), b.as_const())
            && y > 0
        {
            return (x.div_euclid(y).into(), x.rem_euclid(y).into());
        }
        let (quotient, rest) = split_multiple(a, b);
        if self.proves_nonneg(&rest) && self.proves_nonneg(&(b - &rest - 1)) {
            return (quotient, rest);
        }
        if let (Some(x), Some(y)) = (rest.as_const(), b.as_const())
            && y > 0
        {
            return (quotient + x.div_euclid(y), x.rem_euclid(y).into());
        }
        let modulo = Dim::atom(Atom::Mod(rest.clone(), b.clone()));
        (quotient + self.plain_floor_div(&rest, b), modulo)
    }

    /// A quotient whose dividend holds no multiple of the divisor: takes out common factors.
    fn plain_floor_div(&self, a: &Dim, b: &Dim) -> Dim {
        if let Some(d) = b.as_const()
            && d > 1
        {
            let g = a.terms().iter().fold(d, |g, t| gcd(g, t.coefficient));
            if g > 1 {
                let terms = a
                    .terms()
                    .iter()
                    .map(|t| Term { factors: t.factors.clone(), coefficient: t.coefficient / g });
                let inner = Dim::from_terms(a.constant_part().div_euclid(g), terms);
                return self.floor_div(&inner, &Dim::from(d / g));
            }
            if let Some(Atom::FloorDiv(x, y)) = a.as_atom() {
                return self.floor_div(x, &y.scaled(d));
            }
        }
        Dim::atom(Atom::FloorDiv(a.clone(), b.clone()))
    }

    /// The smaller of two.
    pub fn min(&self, a: &Dim, b: &Dim) -> Dim {
        if self.proves_nonneg(&(b - a)) {
            a.clone()
        } else if self.proves_nonneg(&(a - b)) {
            b.clone()
        } else {
            let (a, b) = if a <= b { (a, b) } else { (b, a) };
            Dim::atom(Atom::Min(a.clone(), b.clone()))
        }
    }

    /// The larger of two.
    pub fn max(&self, a: &Dim, b: &Dim) -> Dim {
        if self.proves_nonneg(&(a - b)) {
            a.clone()
        } else if self.proves_nonneg(&(b - a)) {
            b.clone()
        } else {
            let (a, b) = if a <= b { (a, b) } else { (b, a) };
            Dim::atom(Atom::Max(a.clone(), b.clone()))
        }
    }

    /// An expression without needless maxima that is `a` where `a` is positive, and not positive elsewhere.
    pub fn above_zero(&self, a: &Dim) -> Dim {
        for term in a.terms() {
            let ([Atom::Max(x, y)], 1) = (term.factors.as_slice(), term.coefficient) else {
                continue;
            };
            let rest = a - &Dim::from_terms(0, [term.clone()]);
            let (x, y) = (&rest + x, &rest + y);
            for (dropped, kept) in [(&x, &y), (&y, &x)] {
                if self.proves_nonneg(&(Dim::ZERO - dropped)) {
                    return self.above_zero(kept);
                }
            }
        }
        a.clone()
    }

    /// `a` where the condition holds, else `b`.
    pub fn select(&self, cond: &Cond, a: &Dim, b: &Dim) -> Dim {
        match self.decide_cond(cond) {
            Some(true) => a.clone(),
            Some(false) => b.clone(),
            None if a == b => a.clone(),
            None => Dim::atom(Atom::Select(cond.clone(), a.clone(), b.clone())),
        }
    }

    /// A condition, simplified: [`Cond::always`] when it is proved; an unsatisfiable one becomes `1 <= 0`.
    pub fn cond(&self, cmp: Cmp, a: &Dim, b: &Dim) -> Cond {
        match self.decide(cmp, a, b) {
            Some(true) => Cond::always(),
            Some(false) => Cond::Cmp(Cmp::Le, Dim::ONE, Dim::ZERO),
            None => Cond::Cmp(cmp, a.clone(), b.clone()),
        }
    }

    /// Whether a condition always (`Some(true)`) or never (`Some(false)`) holds.
    pub fn decide_cond(&self, cond: &Cond) -> Option<bool> {
        match cond {
            Cond::Cmp(cmp, a, b) => self.decide(*cmp, a, b),
            Cond::All(parts) => {
                let mut all = Some(true);
                for part in parts {
                    match self.decide_cond(part) {
                        Some(false) => return Some(false),
                        Some(true) => {}
                        None => all = None,
                    }
                }
                all
            }
        }
    }

    /// Whether a comparison always or never holds.
    pub fn decide(&self, cmp: Cmp, a: &Dim, b: &Dim) -> Option<bool> {
        let difference = b - a;
        let (le, lt) =
            (|| self.proves_nonneg(&difference), || self.proves_nonneg(&(&difference - 1)));
        let (ge, gt) =
            (|| self.proves_nonneg(&-&difference), || self.proves_nonneg(&(-&difference - 1)));
        let equal = difference.is(0);
        match cmp {
            Cmp::Eq if equal => Some(true),
            Cmp::Ne if equal => Some(false),
            Cmp::Eq if lt() || gt() => Some(false),
            Cmp::Ne if lt() || gt() => Some(true),
            Cmp::Le if le() => Some(true),
            Cmp::Le if gt() => Some(false),
            Cmp::Lt if lt() => Some(true),
            Cmp::Lt if ge() => Some(false),
            _ => None,
        }
    }

    /// Whether two expressions are proved equal.
    pub fn proves_eq(&self, a: &Dim, b: &Dim) -> bool {
        self.decide(Cmp::Eq, a, b) == Some(true)
            || (self.proves_nonneg(&(a - b)) && self.proves_nonneg(&(b - a)))
    }

    /// Whether an expression is proved to be at least zero.
    pub fn proves_nonneg(&self, a: &Dim) -> bool {
        prove::nonneg(self, a)
    }

    /// As [`Scope::proves_nonneg`], without looking into divisions, minima and the like.
    pub(super) fn proves_nonneg_directly(&self, a: &Dim) -> bool {
        if let Some(c) = a.as_const() {
            return c >= 0;
        }
        if self.interval(a).lo >= 0 {
            return true;
        }
        let Some(bound) = self.without_vars(a) else { return false };
        if bound == *a && !bound.any(|x| matches!(x, Atom::Sym(_))) {
            return false;
        }
        // With every symbol written as its least value plus something, no negative term may be left. What is not made
        // of symbols alone stays as it is, so that nothing within it is worth looking at here.
        let simple = |t: &Term| t.factors.iter().all(|f| matches!(f, Atom::Sym(_)));
        if bound.terms().iter().all(simple) {
            let shifted = bound.substitute(
                &Scope { symbols: &Symbols::default(), extents: &[] },
                &|x| match x {
                    Atom::Sym(s) => {
                        Some(Dim::atom(x.clone()) + self.symbols.get(*s).map_or(0, |s| s.lo))
                    }
                    _ => None,
                },
            );
            if shifted.constant_part() >= 0 && shifted.terms().iter().all(|t| t.coefficient >= 0) {
                return true;
            }
        }
        self.interval(&bound).lo >= 0
    }

    /// The range of what varies below an extent: its least value and the extent; `None` for other atoms, and
    /// nothing within where the extent is unknown.
    fn below(&self, atom: &Atom) -> Option<Option<(i64, &Dim)>> {
        match atom {
            Atom::Var(v) => Some(self.extent(*v).map(|extent| (0, extent))),
            Atom::Sym(id) => {
                let symbol = self.symbols.get(*id)?;
                symbol.below.as_ref().map(|extent| Some((symbol.lo, extent)))
            }
            _ => None,
        }
    }

    /// A lower bound without loop variables at the top level; `None` if one can't be had.
    fn without_vars(&self, a: &Dim) -> Option<Dim> {
        let mut bound = a.clone();
        for _ in 0..64 {
            let mut factors = bound.terms().iter().flat_map(|t| &t.factors);
            let Some(atom) = factors.find(|f| self.below(f).is_some()).cloned() else {
                return Some(bound);
            };
            let (least, extent) = self.below(&atom)??;
            let (with, without): (Vec<&Term>, Vec<&Term>) =
                bound.terms().iter().partition(|t| t.factors.contains(&atom));
            // Linear in the variable: coefficient * var + rest.
            let mut coefficient = Dim::ZERO;
            for term in with {
                let mut factors = term.factors.clone();
                let at = factors.iter().position(|f| *f == atom)?;
                factors.remove(at);
                if factors.contains(&atom) {
                    return None;
                }
                let c = Term { factors, coefficient: term.coefficient };
                coefficient = coefficient + Dim::from_terms(0, [c]);
            }
            let rest = Dim::from_terms(bound.constant_part(), without.into_iter().cloned());
            if self.interval(&coefficient).lo >= 0 {
                bound = rest + coefficient.scaled(least);
            } else if self.interval(&coefficient).hi <= 0 {
                bound = rest + coefficient * (extent - 1);
            } else {
                return None;
            }
        }
        None
    }
}

/// Writes `a` as `quotient * b + rest`, taking out what is visibly a multiple of `b`.
fn split_multiple(a: &Dim, b: &Dim) -> (Dim, Dim) {
    let mut quotient = Dim::ZERO;
    if let Some(d) = b.as_const() {
        if d == 0 {
            return (quotient, a.clone());
        }
        let mut rest = Vec::new();
        for t in a.terms() {
            if t.coefficient % d == 0 {
                let term = Term { factors: t.factors.clone(), coefficient: t.coefficient / d };
                quotient = quotient + Dim::from_terms(0, [term]);
            } else {
                rest.push(t.clone());
            }
        }
        let constant = a.constant_part();
        quotient = quotient + constant.div_euclid(d);
        return (quotient, Dim::from_terms(constant.rem_euclid(d), rest));
    }
    // Polynomial division by the term of `b` with the most factors.
    let Some(lead) = b.terms().iter().max_by_key(|t| t.factors.len()) else {
        return (quotient, a.clone());
    };
    let mut rest = a.clone();
    for _ in 0..32 {
        let step = rest.terms().iter().find_map(|t| {
            if t.coefficient % lead.coefficient != 0 {
                return None;
            }
            let mut factors = t.factors.clone();
            for f in &lead.factors {
                let at = factors.iter().position(|x| x == f)?;
                factors.remove(at);
            }
            Some(Dim::from_terms(
                0,
                [Term { factors, coefficient: t.coefficient / lead.coefficient }],
            ))
        });
        let Some(step) = step else { break };
        let next = &rest - &(&step * b);
        if next.terms().len() > rest.terms().len() {
            break;
        }
        quotient = quotient + step;
        rest = next;
    }
    (quotient, rest)
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::Symbol;

    fn symbols() -> (Symbols, Dim, Dim) {
        let mut s = Symbols::default();
        let h = s.add(Symbol::new("h", 32, 960, 32));
        let n = s.add(Symbol::new("n", 1, 64, 1));
        let (h, n) = (s.dim(h), s.dim(n));
        (s, h, n)
    }

    #[test]
    fn a_step_proves_that_downsampling_and_upsampling_meet() {
        let (symbols, h, _) = symbols();
        let scope = Scope::new(&symbols);
        let mut down = h.clone();
        for _ in 0..5 {
            down = scope.floor_div(&(&down - 1), &Dim::from(2)) + 1;
        }
        assert_eq!(down.scaled(32), h);
    }

    #[test]
    fn coordinates_split_and_merge_to_themselves() {
        let (symbols, _, n) = symbols();
        let extents = [n.clone(), Dim::from(12), Dim::from(32)];
        let scope = Scope { symbols: &symbols, extents: &extents };
        let [b, h, d] = [0, 1, 2].map(|i| Dim::var(VarId(i)));
        let flat = (&b * 12 + &h) * 32 + &d;
        let merged = scope.modulo(&flat, &Dim::from(384));
        assert_eq!(merged, &h * 32 + &d);
        assert_eq!(scope.floor_div(&merged, &Dim::from(32)), h);
        assert_eq!(scope.modulo(&merged, &Dim::from(32)), d);
        assert_eq!(scope.floor_div(&flat, &Dim::from(384)), b);
    }

    /// Pools of an extent that may be a single place: each gives at least one window.
    #[test]
    fn extents_of_many_pools_take_no_time() {
        let mut symbols = Symbols::default();
        let h = symbols.add(Symbol::new("h", 1, 4096, 1));
        let h = symbols.dim(h);
        let scope = Scope::new(&symbols);
        let start = std::time::Instant::now();
        let mut size = h.clone();
        for _ in 0..8 {
            let windows = scope.floor_div(&(&size - 2), &Dim::from(2)) + 1;
            size = scope.max(&windows, &Dim::ONE);
        }
        assert!(scope.proves_nonneg(&(&size - 1)));
        assert!(!scope.proves_nonneg(&(&size - &h)));
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }

    #[test]
    fn symbolic_extents_divide() {
        let (symbols, h, n) = symbols();
        let extents = [n.clone(), h.clone()];
        let scope = Scope { symbols: &symbols, extents: &extents };
        let [i, j] = [0, 1].map(|i| Dim::var(VarId(i)));
        let flat = &i * &h + &j;
        assert_eq!(scope.floor_div(&flat, &h), i);
        assert_eq!(scope.modulo(&flat, &h), j);
        assert!(scope.proves_nonneg(&(&h - &j - 1)));
        assert!(!scope.proves_nonneg(&(&j - 1)));
        assert_eq!(scope.max(&Dim::ONE, &n), n);
    }
}
