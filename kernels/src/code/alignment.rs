//! Divisibility of index maps, from which alignment of addresses follows.

use aot_ir::Dim;
use aot_ir::dim::{Atom, SymId, VarId};
use std::collections::BTreeMap;

/// What is known to divide symbols' atoms and loop variables; 1 where nothing is said.
#[derive(Clone, Debug, Default)]
pub struct Divisors {
    vars: BTreeMap<VarId, i64>,
    syms: BTreeMap<SymId, i64>,
}

impl Divisors {
    /// States that a loop variable takes multiples of `divisor` only.
    pub fn set_var(&mut self, var: VarId, divisor: i64) {
        self.vars.insert(var, divisor.max(1));
    }

    /// Forgets what was stated about a variable.
    pub fn clear_var(&mut self, var: VarId) {
        self.vars.remove(&var);
    }

    /// States that a symbol's atom is a multiple of `divisor`; whoever launches must see to it.
    pub fn set_sym(&mut self, sym: SymId, divisor: i64) {
        self.syms.insert(sym, divisor.max(1));
    }

    /// A number that divides every value of `dim`; 0 if that is always zero.
    pub fn of(&self, dim: &Dim) -> i64 {
        let mut divisor = dim.constant_part().saturating_abs();
        for term in dim.terms() {
            let mut product = term.coefficient.saturating_abs();
            for atom in &term.factors {
                product = product.checked_mul(self.of_atom(atom)).unwrap_or(product);
            }
            divisor = gcd(divisor, product);
        }
        divisor
    }

    /// Whether every value of `dim` is a multiple of `n`.
    pub fn divides(&self, n: i64, dim: &Dim) -> bool {
        n > 0 && self.of(dim) % n == 0
    }

    /// The largest power of two up to `limit` that divides every value of `dim`.
    pub fn power_of_two(&self, dim: &Dim, limit: i64) -> i64 {
        let mut n = 1;
        while n * 2 <= limit && self.divides(n * 2, dim) {
            n *= 2;
        }
        n
    }

    fn of_atom(&self, atom: &Atom) -> i64 {
        match atom {
            Atom::Sym(s) => self.syms.get(s).copied().unwrap_or(1),
            Atom::Var(v) => self.vars.get(v).copied().unwrap_or(1),
            Atom::Value(_) => 1,
            Atom::FloorDiv(a, b) => match b.as_const() {
                Some(b) if b > 0 && self.divides(b, a) => self.of(a) / b,
                _ => 1,
            },
            Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) | Atom::Select(_, a, b) => {
                gcd(self.of(a), self.of(b))
            }
        }
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aot_ir::{Scope, Symbol, Symbols};

    #[test]
    fn strides_and_steps_align_rows() {
        let mut symbols = Symbols::default();
        let w = symbols.add(Symbol::new("w", 32, 960, 32));
        let w = symbols.dim(w);
        let (i, j) = (Dim::var(VarId(0)), Dim::var(VarId(1)));
        let mut divisors = Divisors::default();
        assert_eq!(divisors.power_of_two(&(&i * &w + &j), 8), 1);
        divisors.set_var(VarId(1), 8);
        assert_eq!(divisors.power_of_two(&(&i * &w + &j), 8), 8);
        let half = Scope::new(&symbols).floor_div(&w, &Dim::from(2));
        assert_eq!(divisors.power_of_two(&(&i * &half), 64), 16);
        assert_eq!(divisors.power_of_two(&(&i * &half + 4), 64), 4);
        assert_eq!(divisors.power_of_two(&Dim::ZERO, 16), 16);
    }

    #[test]
    fn quotients_and_remainders() {
        let mut divisors = Divisors::default();
        let x = Dim::var(VarId(0));
        divisors.set_var(VarId(0), 8);
        let quotient = Dim::atom(Atom::FloorDiv(x.scaled(3), Dim::from(4)));
        assert_eq!(divisors.of(&quotient), 6);
        let rest = Dim::atom(Atom::Mod(x.clone(), Dim::from(12)));
        assert_eq!(divisors.of(&rest), 4);
        divisors.clear_var(VarId(0));
        assert_eq!(divisors.of(&x), 1);
    }
}
