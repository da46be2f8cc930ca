//! Expressions as text, in terms of the sizes that users know.

use super::expr::{Atom, Dim, Term};
use super::{SymId, Symbols};

impl Symbols {
    /// An expression of symbols as text, by their names: `2*h + 1`.
    ///
    /// An atom whose multiple is no multiple of its size stands as `(h/32)` or `((h - 1)/32)`.
    pub fn show(&self, dim: &Dim) -> String {
        let name = |atom: &Atom| match atom {
            Atom::Sym(id) => self.get(*id).map(|s| match (s.scale, s.offset) {
                (1, 0) => s.name.clone(),
                (scale, 0) => format!("({}/{scale})", s.name),
                (scale, offset) => format!("(({} - {offset})/{scale})", s.name),
            }),
            Atom::Value(id) => self.get(SymId(*id)).map(|s| s.name.clone()),
            _ => None,
        };
        self.with_sizes(dim).display(&name).to_string()
    }

    /// A shape as text: `[batch, 3, h]`.
    pub fn show_shape(&self, shape: &[Dim]) -> String {
        let dims: Vec<String> = shape.iter().map(|d| self.show(d)).collect();
        format!("[{}]", dims.join(", "))
    }

    /// The expression with `Value(i)` standing for the size of symbol `i` in every term that is a
    /// multiple of it. (Data-dependent values do not occur in shapes.)
    fn with_sizes(&self, dim: &Dim) -> Dim {
        if dim.any(|a| matches!(a, Atom::Value(_))) {
            return dim.clone();
        }
        let mut constant = dim.constant_part();
        let terms = dim.terms().iter().map(|term| {
            let [Atom::Sym(id)] = term.factors.as_slice() else { return term.clone() };
            let Some(symbol) = self.get(*id) else { return term.clone() };
            if term.coefficient.checked_rem(symbol.scale) != Some(0) {
                return term.clone();
            }
            let coefficient = term.coefficient / symbol.scale;
            constant = constant.saturating_sub(coefficient.saturating_mul(symbol.offset));
            Term { factors: vec![Atom::Value(id.0)], coefficient }
        });
        let terms: Vec<Term> = terms.collect();
        Dim::from_terms(constant, terms)
    }
}

#[cfg(test)]
mod tests {
    use crate::dim::{Dim, Scope, Symbol, Symbols};

    #[test]
    fn expressions_read_in_sizes() {
        let mut s = Symbols::default();
        let n = s.add(Symbol::new("n", 1, 64, 1));
        let h = s.add(Symbol::new("h", 32, 960, 32));
        let w = s.add(Symbol::new("w", 17, 97, 16));
        let (n, h, w) = (s.dim(n), s.dim(h), s.dim(w));
        let scope = Scope::new(&s);
        assert_eq!(s.show_shape(&[n.clone(), Dim::from(3), h.clone()]), "[n, 3, h]");
        assert_eq!(s.show(&(&n * 2 + &h + 1)), "2*n + h + 1");
        assert_eq!(s.show(&(w * 2 + 1)), "2*w + 1");
        assert_eq!(s.show(&scope.floor_div(&h, &Dim::from(4))), "8*(h/32)");
    }
}
