//! Expressions as text, in terms of the sizes that users know.

use super::expr::{Atom, Dim, Term};
use super::{SymId, Symbols};

impl Symbols {
    /// An expression of symbols as text, by their names: `2*h + 1`, and `h // 4` for eight times the
    /// atom of a size with the step 32.
    ///
    /// An atom within a product, a quotient or another operation stands as `(h/32)` or
    /// `((h - 1)/32)`.
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
    /// multiple of its atom. (Data-dependent values do not occur in shapes.)
    fn with_sizes(&self, dim: &Dim) -> Dim {
        if dim.any(|a| matches!(a, Atom::Value(_))) {
            return dim.clone();
        }
        let term = |term: &Term| {
            let [Atom::Sym(id)] = term.factors.as_slice() else { return None };
            let symbol = self.get(*id)?;
            // As many sizes as the term has atoms, times the scale.
            let sizes = Dim::atom(Atom::Value(id.0)) - symbol.offset;
            let common = gcd(term.coefficient, symbol.scale);
            let sizes = sizes.scaled((term.coefficient / common).saturating_abs());
            let quotient = match symbol.scale / common {
                1 => sizes,
                divisor => Dim::atom(Atom::FloorDiv(sizes, Dim::from(divisor))),
            };
            Some(quotient.scaled(term.coefficient.signum()))
        };
        dim.terms().iter().fold(Dim::from(dim.constant_part()), |sum, each| {
            sum + term(each).unwrap_or_else(|| Dim::from_terms(0, [each.clone()]))
        })
    }
}

/// The greatest common divisor; `b` is positive.
fn gcd(a: i64, b: i64) -> i64 {
    if a % b == 0 { b } else { gcd(b, (a % b).abs()) }
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
        assert_eq!(s.show(&scope.floor_div(&h, &Dim::from(4))), "h // 4");
        let eighth = scope.floor_div(&h, &Dim::from(8));
        assert_eq!(s.show(&(eighth * -3 + 1)), "-((3*h) // 8) + 1");
    }
}
