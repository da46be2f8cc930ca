//! Values of expressions, and substitution.

use super::expr::{Atom, Cmp, Cond, Dim, Term};
use super::{Scope, SymId};

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DimError {
    /// It exceeds 64 bits.
    #[error("size expression {0} overflows")]
    Overflow(String),
    /// A divisor is zero or negative.
    #[error("size expression {0} divides by a number that is not positive")]
    Division(String),
    /// An atom without a value occurs.
    #[error("size expression {0} contains something without a value")]
    Unbound(String),
}

/// Values for atoms.
pub trait Env {
    /// The value of a symbol, variable or data-dependent coordinate.
    fn atom(&self, atom: &Atom) -> Option<i64>;
}

/// Values of the symbols' atoms, by id.
impl Env for [i64] {
    fn atom(&self, atom: &Atom) -> Option<i64> {
        match atom {
            Atom::Sym(SymId(i)) => self.get(*i as usize).copied(),
            _ => None,
        }
    }
}

impl<F: Fn(&Atom) -> Option<i64>> Env for F {
    fn atom(&self, atom: &Atom) -> Option<i64> {
        self(atom)
    }
}

impl Dim {
    /// The value where the atoms have the values that `env` gives.
    ///
    /// # Errors
    /// On overflow, division by a non-positive number, or an atom without a value.
    pub fn eval<E: Env + ?Sized>(&self, env: &E) -> Result<i64, DimError> {
        let overflow = || DimError::Overflow(self.to_string());
        let mut sum = self.constant_part();
        for term in self.terms() {
            let mut product = term.coefficient;
            for atom in &term.factors {
                product = product.checked_mul(eval_atom(atom, env)?).ok_or_else(overflow)?;
            }
            sum = sum.checked_add(product).ok_or_else(overflow)?;
        }
        Ok(sum)
    }

    /// The expression with atoms replaced, simplified by what `scope` knows.
    ///
    /// `f` sees leaves (symbols, variables, data); `None` keeps one as it is.
    pub fn substitute(&self, scope: &Scope<'_>, f: &dyn Fn(&Atom) -> Option<Dim>) -> Dim {
        let mut out = Dim::from(self.constant_part());
        for Term { factors, coefficient } in self.terms() {
            let mut product = Dim::from(*coefficient);
            for atom in factors {
                product = product * substitute_atom(atom, scope, f);
            }
            out = out + product;
        }
        out
    }
}

impl Cond {
    /// Whether it holds where the atoms have the values that `env` gives.
    ///
    /// # Errors
    /// As [`Dim::eval`].
    pub fn eval<E: Env + ?Sized>(&self, env: &E) -> Result<bool, DimError> {
        Ok(match self {
            Self::Cmp(cmp, a, b) => {
                let (a, b) = (a.eval(env)?, b.eval(env)?);
                match cmp {
                    Cmp::Eq => a == b,
                    Cmp::Ne => a != b,
                    Cmp::Lt => a < b,
                    Cmp::Le => a <= b,
                }
            }
            Self::All(parts) => {
                for part in parts {
                    if !part.eval(env)? {
                        return Ok(false);
                    }
                }
                true
            }
        })
    }

    /// The condition with atoms replaced, simplified; see [`Dim::substitute`].
    pub fn substitute(&self, scope: &Scope<'_>, f: &dyn Fn(&Atom) -> Option<Dim>) -> Cond {
        match self {
            Self::Cmp(cmp, a, b) => {
                scope.cond(*cmp, &a.substitute(scope, f), &b.substitute(scope, f))
            }
            Self::All(parts) => {
                parts.iter().map(|part| part.substitute(scope, f)).fold(Cond::always(), Cond::and)
            }
        }
    }
}

fn eval_atom<E: Env + ?Sized>(atom: &Atom, env: &E) -> Result<i64, DimError> {
    let describe = || Dim::atom(atom.clone()).to_string();
    let divisor = |d: &Dim| match d.eval(env)? {
        d if d > 0 => Ok(d),
        _ => Err(DimError::Division(describe())),
    };
    Ok(match atom {
        Atom::Sym(_) | Atom::Var(_) | Atom::Value(_) => {
            env.atom(atom).ok_or_else(|| DimError::Unbound(describe()))?
        }
        Atom::FloorDiv(a, b) => a.eval(env)?.div_euclid(divisor(b)?),
        Atom::Mod(a, b) => a.eval(env)?.rem_euclid(divisor(b)?),
        Atom::Min(a, b) => a.eval(env)?.min(b.eval(env)?),
        Atom::Max(a, b) => a.eval(env)?.max(b.eval(env)?),
        Atom::Select(c, a, b) => {
            if c.eval(env)? {
                a.eval(env)?
            } else {
                b.eval(env)?
            }
        }
    })
}

fn substitute_atom(atom: &Atom, scope: &Scope<'_>, f: &dyn Fn(&Atom) -> Option<Dim>) -> Dim {
    let go = |d: &Dim| d.substitute(scope, f);
    match atom {
        Atom::Sym(_) | Atom::Var(_) | Atom::Value(_) => {
            f(atom).unwrap_or_else(|| Dim::atom(atom.clone()))
        }
        Atom::FloorDiv(a, b) => scope.floor_div(&go(a), &go(b)),
        Atom::Mod(a, b) => scope.modulo(&go(a), &go(b)),
        Atom::Min(a, b) => scope.min(&go(a), &go(b)),
        Atom::Max(a, b) => scope.max(&go(a), &go(b)),
        Atom::Select(c, a, b) => scope.select(&c.substitute(scope, f), &go(a), &go(b)),
    }
}
