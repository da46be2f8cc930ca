//! Values of symbols from the shapes of inputs.

use crate::dim::{Atom, Env, Term};
use crate::{Dim, DimError, Guard, Symbols};

/// Why shapes do not fit a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// An input has the wrong number of axes.
    #[error("input `{input}` has {found} axes, expected {expected}")]
    Rank {
        /// Name of the input.
        input: String,
        /// Axes of the input.
        found: usize,
        /// Axes that the model takes.
        expected: usize,
    },
    /// A named size is not one that the model was made for.
    #[error("`{name}` is {found} (axis {axis} of input `{input}`), {allowed}")]
    Range {
        /// Name of the size.
        name: String,
        /// The size.
        found: i64,
        /// What would fit: `outside 1..=512` or `not one of …`.
        allowed: String,
        /// Name of the input it was taken from.
        input: String,
        /// Axis of the input.
        axis: usize,
    },
    /// An extent is not what it must be.
    #[error("axis {axis} of input `{input}` is {found}, expected {expected}")]
    Extent {
        /// Name of the input.
        input: String,
        /// Axis of the input.
        axis: usize,
        /// Extent of the input.
        found: usize,
        /// What the model takes: a number, or an expression with its value.
        expected: String,
    },
    /// No input says how large a symbol is.
    #[error("no input determines the size `{0}`")]
    Unbound(String),
    /// Two sizes that must be equal are not.
    #[error("`{node}` needs {lhs} = {rhs}, but they are {left} and {right}")]
    Guard {
        /// Name of the node that needs it.
        node: String,
        /// One side.
        lhs: String,
        /// The other side.
        rhs: String,
        /// Value of `lhs`.
        left: i64,
        /// Value of `rhs`.
        right: i64,
    },
    /// A size expression has no value.
    #[error(transparent)]
    Dim(#[from] DimError),
}

/// An input's declared and actual shape.
#[derive(Clone, Copy, Debug)]
pub struct Shaped<'a> {
    /// Name of the input.
    pub name: &'a str,
    /// Declared extents.
    pub declared: &'a [Dim],
    /// Actual extents.
    pub actual: &'a [usize],
}

impl Symbols {
    /// Solves for the atoms of all symbols (by id) from the shapes of inputs, and checks ranges, steps
    /// and every extent.
    ///
    /// # Errors
    /// When a shape does not fit: the error names the size, its value and the allowed range.
    pub fn bind(&self, inputs: &[Shaped<'_>]) -> Result<Vec<i64>, BindError> {
        let mut atoms: Vec<Option<i64>> = vec![None; self.len()];
        for input in inputs {
            if input.declared.len() != input.actual.len() {
                return Err(BindError::Rank {
                    input: input.name.to_owned(),
                    found: input.actual.len(),
                    expected: input.declared.len(),
                });
            }
        }
        // Each round binds at least one symbol or is the last.
        while self.round(inputs, &mut atoms)? {}
        let atoms: Vec<i64> = (self.iter().zip(&atoms))
            .map(|((_, s), atom)| match atom {
                Some(atom) => Ok(*atom),
                None if s.lo == s.hi => Ok(s.lo),
                None => Err(BindError::Unbound(s.name.clone())),
            })
            .collect::<Result<_, _>>()?;
        for input in inputs {
            for (axis, (declared, &found)) in input.declared.iter().zip(input.actual).enumerate() {
                let expected = declared.eval(atoms.as_slice())?;
                if usize::try_from(expected) != Ok(found) {
                    let expected = match declared.as_const() {
                        Some(c) => c.to_string(),
                        None => format!("{} = {expected}", self.show(declared)),
                    };
                    let input = input.name.to_owned();
                    return Err(BindError::Extent { input, axis, found, expected });
                }
            }
        }
        Ok(atoms)
    }

    /// Binds what one pass over all dims determines; whether that was anything.
    fn round(&self, inputs: &[Shaped<'_>], atoms: &mut [Option<i64>]) -> Result<bool, BindError> {
        let mut progress = false;
        for input in inputs {
            for (axis, (declared, &actual)) in input.declared.iter().zip(input.actual).enumerate() {
                let Some((symbol, factor, rest)) = unknown(declared, atoms) else { continue };
                let Some(s) = self.iter().nth(symbol).map(|(_, s)| s) else { continue };
                let size = i64::try_from(actual).unwrap_or(i64::MAX);
                let distance = size.saturating_sub(rest);
                let exact = distance.checked_rem(factor) == Some(0);
                let atom = distance.checked_div(factor).unwrap_or(0);
                if !exact || !(s.lo..=s.hi).contains(&atom) {
                    let of_symbol = factor == s.scale && rest == s.offset;
                    if of_symbol {
                        return Err(BindError::Range {
                            name: s.name.clone(),
                            found: size,
                            allowed: self.allowed(symbol),
                            input: input.name.to_owned(),
                            axis,
                        });
                    }
                    return Err(BindError::Extent {
                        input: input.name.to_owned(),
                        axis,
                        found: actual,
                        expected: format!(
                            "{} where `{}` is {}",
                            self.show(declared),
                            s.name,
                            self.allowed(symbol)
                        ),
                    });
                }
                atoms[symbol] = Some(atom);
                progress = true;
            }
        }
        Ok(progress)
    }

    fn allowed(&self, symbol: usize) -> String {
        let Some((_, s)) = self.iter().nth(symbol) else { return String::new() };
        let (lo, hi) = (s.min_size(), s.max_size());
        match s.scale {
            1 => format!("outside {lo}..={hi}"),
            step => format!("expected {lo}..={hi} in steps of {step}"),
        }
    }
}

/// The one symbol that has no value yet, when the dim is `factor * symbol + rest`.
fn unknown(dim: &Dim, atoms: &[Option<i64>]) -> Option<(usize, i64, i64)> {
    let env = |atom: &Atom| match atom {
        Atom::Sym(s) => atoms.get(s.0 as usize).copied().flatten(),
        _ => None,
    };
    let mut rest = dim.constant_part();
    let mut found: Option<(usize, i64)> = None;
    for Term { factors, coefficient } in dim.terms() {
        let product = factors.iter().try_fold(*coefficient, |product, factor| {
            product.checked_mul(Dim::atom(factor.clone()).eval(&env).ok()?)
        });
        if let Some(value) = product {
            rest = rest.checked_add(value)?;
            continue;
        }
        let mut factor = *coefficient;
        let mut symbol = None;
        for atom in factors {
            match (env.atom(atom), atom) {
                (Some(value), _) => factor = factor.checked_mul(value)?,
                (None, Atom::Sym(s)) if symbol.is_none() => symbol = Some(s.0 as usize),
                (None, other) => {
                    factor = factor.checked_mul(Dim::atom(other.clone()).eval(&env).ok()?)?;
                }
            }
        }
        match found {
            None => found = Some((symbol?, factor)),
            Some((other, total)) if Some(other) == symbol => {
                found = Some((other, total.checked_add(factor)?));
            }
            Some(_) => return None,
        }
    }
    found.filter(|(_, factor)| *factor != 0).map(|(symbol, factor)| (symbol, factor, rest))
}

impl Guard {
    /// Checks the equality for these atoms of symbols.
    ///
    /// # Errors
    /// When it does not hold.
    pub fn check(&self, symbols: &Symbols, atoms: &[i64]) -> Result<(), BindError> {
        let (left, right) = (self.lhs.eval(atoms)?, self.rhs.eval(atoms)?);
        if left == right {
            return Ok(());
        }
        Err(BindError::Guard {
            node: self.node.clone(),
            lhs: symbols.show(&self.lhs),
            rhs: symbols.show(&self.rhs),
            left,
            right,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Symbol;

    #[test]
    fn sizes_are_solved_and_checked() {
        let mut symbols = Symbols::default();
        let n = symbols.add(Symbol::new("n", 1, 64, 1));
        let h = symbols.add(Symbol::new("h", 32, 960, 32));
        let (n, h) = (symbols.dim(n), symbols.dim(h));
        let declared = [&n * &h, n.clone(), h.clone()];
        let bind = |actual: [usize; 3]| {
            let input = Shaped { name: "x", declared: &declared, actual: &actual };
            symbols.bind(&[input]).map_err(|e| e.to_string())
        };
        assert_eq!(bind([320, 2, 160]), Ok(vec![2, 5]));
        let error = |actual| bind(actual).unwrap_err();
        assert_eq!(error([65, 65, 32]), "`n` is 65 (axis 1 of input `x`), outside 1..=64");
        assert_eq!(
            error([80, 2, 40]),
            "`h` is 40 (axis 2 of input `x`), expected 32..=960 in steps of 32"
        );
        assert!(error([64, 2, 64]).contains("axis 0 of input `x` is 64, expected"));
    }

    #[test]
    fn guards_name_both_sides() {
        let mut symbols = Symbols::default();
        let n = symbols.add(Symbol::new("n", 1, 64, 1));
        let guard = Guard { lhs: symbols.dim(n), rhs: Dim::from(7), node: "add".into() };
        assert_eq!(guard.check(&symbols, &[7]), Ok(()));
        let error = guard.check(&symbols, &[8]).unwrap_err();
        assert_eq!(error.to_string(), "`add` needs n = 7, but they are 8 and 7");
    }
}
