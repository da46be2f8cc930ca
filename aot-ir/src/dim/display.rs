//! Expressions as text: `(w + 1) // 2`, with parentheses where `*`, `//` and `%`, which bind alike,
//! or sums need them.

use std::fmt;

use super::expr::{Atom, Cmp, Cond, Dim, Term};

impl Dim {
    /// Writes it with names for symbols and variables.
    pub fn display<'a>(
        &'a self,
        name: &'a dyn Fn(&Atom) -> Option<String>,
    ) -> impl fmt::Display + 'a {
        Named { dim: self, name }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Named { dim: self, name: &|_| None }.fmt(f)
    }
}

#[derive(Clone, Copy)]
struct Named<'a> {
    dim: &'a Dim,
    name: &'a dyn Fn(&Atom) -> Option<String>,
}

impl<'a> Named<'a> {
    fn of(self, dim: &'a Dim) -> Self {
        Self { dim, ..self }
    }

    /// Writes it so that any operator may stand beside it.
    fn operand(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = match (self.dim.terms(), self.dim.constant_part()) {
            ([], constant) => constant >= 0,
            ([Term { factors, coefficient: 1 }], 0) => match factors.as_slice() {
                [atom @ (Atom::FloorDiv(..) | Atom::Mod(..))] => (self.name)(atom).is_some(),
                [_] => true,
                _ => false,
            },
            _ => false,
        };
        if whole { write!(f, "{self}") } else { write!(f, "({self})") }
    }

    /// An atom; `alone` when no factor stands beside it.
    fn atom(self, f: &mut fmt::Formatter<'_>, atom: &'a Atom, alone: bool) -> fmt::Result {
        match (atom, (self.name)(atom)) {
            (_, Some(text)) => f.write_str(&text),
            (Atom::Sym(s), _) => write!(f, "s{}", s.0),
            (Atom::Var(v), _) => write!(f, "i{}", v.0),
            (Atom::Value(v), _) => write!(f, "v{v}"),
            (Atom::FloorDiv(..) | Atom::Mod(..), _) if !alone => {
                f.write_str("(")?;
                self.atom(f, atom, true)?;
                f.write_str(")")
            }
            (Atom::FloorDiv(a, b), _) => self.quotient(f, a, "//", b),
            (Atom::Mod(a, b), _) => self.quotient(f, a, "%", b),
            (Atom::Min(a, b), _) => write!(f, "min({}, {})", self.of(a), self.of(b)),
            (Atom::Max(a, b), _) => write!(f, "max({}, {})", self.of(a), self.of(b)),
            (Atom::Select(c, a, b), _) => {
                f.write_str("(if ")?;
                self.condition(f, c)?;
                write!(f, " then {} else {})", self.of(a), self.of(b))
            }
        }
    }

    fn quotient(
        self,
        f: &mut fmt::Formatter<'_>,
        a: &'a Dim,
        sign: &str,
        b: &'a Dim,
    ) -> fmt::Result {
        self.of(a).operand(f)?;
        write!(f, " {sign} ")?;
        self.of(b).operand(f)
    }

    fn condition(self, f: &mut fmt::Formatter<'_>, cond: &'a Cond) -> fmt::Result {
        match cond {
            Cond::Cmp(cmp, a, b) => {
                let sign = match cmp {
                    Cmp::Eq => "==",
                    Cmp::Ne => "!=",
                    Cmp::Lt => "<",
                    Cmp::Le => "<=",
                };
                write!(f, "{} {sign} {}", self.of(a), self.of(b))
            }
            Cond::All(parts) if parts.is_empty() => f.write_str("true"),
            Cond::All(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    if i > 0 {
                        f.write_str(" and ")?;
                    }
                    self.condition(f, part)?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for term in self.dim.terms() {
            let sign = match (first, term.coefficient < 0) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            };
            f.write_str(sign)?;
            let magnitude = term.coefficient.unsigned_abs();
            if magnitude != 1 {
                write!(f, "{magnitude}*")?;
            }
            // A leading `-` would take the quotient's first part only.
            let alone = magnitude == 1 && term.factors.len() == 1 && sign != "-";
            for (i, atom) in term.factors.iter().enumerate() {
                if i > 0 {
                    f.write_str("*")?;
                }
                self.atom(f, atom, alone)?;
            }
            first = false;
        }
        match (first, self.dim.constant_part()) {
            (true, c) => write!(f, "{c}"),
            (false, 0) => Ok(()),
            (false, c) if c < 0 => write!(f, " - {}", c.unsigned_abs()),
            (false, c) => write!(f, " + {c}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::dim::{Dim, Scope, Symbol, Symbols};

    #[test]
    fn parentheses_stand_where_they_are_needed() {
        let mut s = Symbols::default();
        let (n, w) = (s.add(Symbol::new("n", 1, 64, 1)), s.add(Symbol::new("w", 8, 97, 1)));
        let (n, w) = (s.dim(n), s.dim(w));
        let scope = Scope::new(&s);
        let half = |dim: &Dim| scope.floor_div(dim, &Dim::from(2));
        let quarter = scope.floor_div(&(half(&(&w + 1)) + 1), &Dim::from(4));
        assert_eq!(s.show(&half(&w)), "w // 2");
        assert_eq!(s.show(&quarter), "((w + 1) // 2 + 1) // 4");
        assert_eq!(s.show(&(half(&w) * 3 + 1)), "3*(w // 2) + 1");
        assert_eq!(s.show(&(-&half(&w) + &n)), "n - w // 2");
        assert_eq!(s.show(&(-&half(&w))), "-(w // 2)");
        assert_eq!(s.show(&(half(&w) * &n)), "n*(w // 2)");
        assert_eq!(s.show(&scope.modulo(&(&w + 1), &Dim::from(3))), "(w + 1) % 3");
    }
}
