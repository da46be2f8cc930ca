//! Values of symbols from the shapes of tensors.

use super::expr::{Atom, Dim, SymId, Term};
use super::{BoundBy, DimError, Symbol, Symbols};

/// A tensor's symbolic shape beside the extents it has.
#[derive(Clone, Copy, Debug)]
pub struct ShapePattern<'a> {
    /// The tensor's name, for messages.
    pub name: &'a str,
    /// What the model says.
    pub dims: &'a [Dim],
    /// What was given.
    pub extents: &'a [usize],
}

/// Why extents do not fit symbolic shapes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// A size is outside its range.
    #[error("`{dim}` is {size}, outside {lo}..={hi}")]
    Range {
        /// The symbol's name.
        dim: String,
        /// What was given.
        size: i64,
        /// Least size.
        lo: i64,
        /// Greatest size.
        hi: i64,
    },
    /// A size is in range but not on the step.
    #[error("`{dim}` is {size}, but goes from {lo} to {hi} in steps of {step}")]
    Step {
        /// The symbol's name.
        dim: String,
        /// What was given.
        size: i64,
        /// Least size.
        lo: i64,
        /// Greatest size.
        hi: i64,
        /// Distance of allowed sizes.
        step: i64,
    },
    /// Two tensors disagree on a size.
    #[error("`{dim}` is {size} in `{input}` but {other_size} in `{other_input}`")]
    Conflict {
        /// The symbol's name.
        dim: String,
        /// What one has.
        size: i64,
        /// The one.
        input: String,
        /// What the other has.
        other_size: i64,
        /// The other.
        other_input: String,
    },
    /// An extent is not what the model's expression gives.
    #[error("axis {axis} of `{input}` has {found} elements, where the model has {expected}")]
    Extent {
        /// The tensor.
        input: String,
        /// Counted from 0, outermost first.
        axis: usize,
        /// What was given.
        found: usize,
        /// What the model says.
        expected: String,
    },
    /// The number of axes is another.
    #[error("`{input}` has {found} axes, where the model has {expected}: {shape}")]
    Rank {
        /// The tensor.
        input: String,
        /// How many were given.
        found: usize,
        /// How many the model has.
        expected: usize,
        /// The model's shape.
        shape: String,
    },
    /// No given tensor has an axis of this size.
    #[error("nothing gives `{0}` a size")]
    Unbound(String),
    /// An expression has no value.
    #[error(transparent)]
    Value(#[from] DimError),
}

/// Finds the atoms of all symbols from the shapes of tensors, by id, and checks every extent.
/// Symbols that are bound during a run get their greatest atom, which holds every size that they may take.
///
/// # Errors
/// The first extent that does not fit, or the first symbol that no axis determines.
pub fn bind(symbols: &Symbols, shapes: &[ShapePattern<'_>]) -> Result<Vec<i64>, BindError> {
    bind_or(symbols, shapes, &|_| None)
}

/// As [`bind`]; symbols that no axis determines get the atom that `otherwise` says.
///
/// # Errors
/// As [`bind`].
pub fn bind_or(
    symbols: &Symbols,
    shapes: &[ShapePattern<'_>],
    otherwise: &dyn Fn(&Symbol) -> Option<i64>,
) -> Result<Vec<i64>, BindError> {
    let mut found: Vec<Option<(i64, i64, &str)>> = vec![None; symbols.len()];
    let mut later = Vec::new();
    for pattern in shapes {
        if pattern.dims.len() != pattern.extents.len() {
            return Err(BindError::Rank {
                input: pattern.name.to_owned(),
                found: pattern.extents.len(),
                expected: pattern.dims.len(),
                shape: symbols.show_shape(pattern.dims),
            });
        }
        for (axis, (dim, &extent)) in pattern.dims.iter().zip(pattern.extents).enumerate() {
            let Some(id) = size_of(symbols, dim) else {
                later.push((pattern, axis));
                continue;
            };
            let size = i64::try_from(extent).unwrap_or(i64::MAX);
            let atom = atom_of(symbols, id, size)?;
            match found.get_mut(id.0 as usize) {
                Some(slot @ None) => *slot = Some((atom, size, pattern.name)),
                Some(Some((_, other, input))) if *other != size => {
                    return Err(BindError::Conflict {
                        dim: name_of(symbols, id),
                        size: *other,
                        input: (*input).to_owned(),
                        other_size: size,
                        other_input: pattern.name.to_owned(),
                    });
                }
                _ => {}
            }
        }
    }
    // Extents such as `2*n + 1`, where nothing else gives `n`.
    for &(pattern, axis) in &later {
        let (dim, extent) = (&pattern.dims[axis], pattern.extents[axis]);
        let Some((id, coefficient)) = linear(dim) else { continue };
        let Some(slot @ None) = found.get_mut(id.0 as usize) else { continue };
        let distance = i64::try_from(extent).unwrap_or(i64::MAX).checked_sub(dim.constant_part());
        let atom = distance.filter(|d| d.checked_rem(coefficient) == Some(0));
        let Some(atom) = atom.and_then(|d| d.checked_div(coefficient)) else { continue };
        let Some(symbol) = symbols.get(id) else { continue };
        let size = atom.saturating_mul(symbol.scale).saturating_add(symbol.offset);
        *slot = Some((atom_of(symbols, id, size)?, size, pattern.name));
    }
    let mut atoms = Vec::with_capacity(found.len());
    for ((id, symbol), slot) in symbols.iter().zip(&found) {
        match slot {
            _ if symbol.bound_by == BoundBy::Run => atoms.push(symbol.hi),
            Some((atom, _, _)) => atoms.push(*atom),
            None => match otherwise(symbol) {
                Some(atom) => atoms.push(atom),
                None => return Err(BindError::Unbound(name_of(symbols, id))),
            },
        }
    }
    for (pattern, axis) in later {
        let (dim, extent) = (&pattern.dims[axis], pattern.extents[axis]);
        let expected = dim.eval(atoms.as_slice())?;
        if usize::try_from(expected) != Ok(extent) {
            let shown = symbols.show(dim);
            return Err(BindError::Extent {
                input: pattern.name.to_owned(),
                axis,
                found: extent,
                expected: match dim.as_const() {
                    Some(_) => shown,
                    None => format!("{shown} = {expected}"),
                },
            });
        }
    }
    Ok(atoms)
}

/// The symbol whose size the expression is.
fn size_of(symbols: &Symbols, dim: &Dim) -> Option<SymId> {
    let (id, coefficient) = linear(dim)?;
    let symbol = symbols.get(id)?;
    (coefficient == symbol.scale && dim.constant_part() == symbol.offset).then_some(id)
}

/// The symbol and coefficient of `coefficient * symbol + constant`.
fn linear(dim: &Dim) -> Option<(SymId, i64)> {
    match dim.terms() {
        [Term { factors, coefficient }] => match factors.as_slice() {
            [Atom::Sym(id)] => Some((*id, *coefficient)),
            _ => None,
        },
        _ => None,
    }
}

fn name_of(symbols: &Symbols, id: SymId) -> String {
    symbols.get(id).map_or_else(|| format!("s{}", id.0), |s| s.name.clone())
}

/// The atom of a symbol at a size.
///
/// # Errors
/// When the size is outside the symbol's range or not on its step.
pub fn atom_of(symbols: &Symbols, id: SymId, size: i64) -> Result<i64, BindError> {
    let Some(symbol) = symbols.get(id) else {
        return Err(BindError::Unbound(name_of(symbols, id)));
    };
    symbol.atom_of(size).ok_or_else(|| {
        let (dim, lo, hi) = (symbol.name.clone(), symbol.min_size(), symbol.max_size());
        if (lo..=hi).contains(&size) {
            BindError::Step { dim, size, lo, hi, step: symbol.scale }
        } else {
            BindError::Range { dim, size, lo, hi }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols() -> (Symbols, Dim, Dim) {
        let mut s = Symbols::default();
        let b = s.add(Symbol::new("batch", 1, 64, 1));
        let h = s.add(Symbol::new("h", 32, 960, 32));
        let (b, h) = (s.dim(b), s.dim(h));
        (s, b, h)
    }

    #[test]
    fn the_nearest_size_is_in_range_and_on_the_step() {
        let height = Symbol::new("h", 32, 960, 32);
        let nearest = [i64::MIN, 31, 32, 95, 96, 961, i64::MAX].map(|size| height.nearest(size));
        assert_eq!(nearest, [32, 32, 32, 64, 96, 960, 960]);
        assert_eq!([0, 3, 9].map(|size| Symbol::new("n", 1, 8, 1).nearest(size)), [1, 3, 8]);
    }

    fn try_bind(shapes: &[(&str, &[Dim], &[usize])]) -> Result<Vec<i64>, String> {
        let patterns: Vec<_> = shapes
            .iter()
            .map(|&(name, dims, extents)| ShapePattern { name, dims, extents })
            .collect();
        bind(&symbols().0, &patterns).map_err(|e| e.to_string())
    }

    #[test]
    fn sizes_become_atoms() {
        let (_, b, h) = symbols();
        let x = [b.clone(), Dim::from(3), h.clone()];
        assert_eq!(try_bind(&[("x", &x, &[2, 3, 320])]), Ok(vec![2, 10]));
        let derived = [&b * 2 + 1, h.clone()];
        assert_eq!(try_bind(&[("x", &derived, &[9, 32])]), Ok(vec![4, 1]));
    }

    #[test]
    fn messages_name_the_dim_and_what_it_may_be() {
        let (_, b, h) = symbols();
        let x = [b.clone(), h.clone()];
        let says = |shapes: &[(&str, &[Dim], &[usize])], text: &str| {
            assert_eq!(try_bind(shapes), Err(text.to_owned()));
        };
        says(&[("x", &x, &[65, 32])], "`batch` is 65, outside 1..=64");
        says(&[("x", &x, &[1, 33])], "`h` is 33, but goes from 32 to 960 in steps of 32");
        says(&[("x", &x, &[1, 0])], "`h` is 0, outside 32..=960");
        says(&[("x", &x, &[1])], "`x` has 1 axes, where the model has 2: [batch, h]");
        says(
            &[("x", &x, &[1, 32]), ("y", std::slice::from_ref(&b), &[2])],
            "`batch` is 1 in `x` but 2 in `y`",
        );
        says(
            &[("x", &x, &[1, 32]), ("y", &[&b + &h], &[2])],
            "axis 0 of `y` has 2 elements, where the model has batch + h = 33",
        );
        says(&[("y", &[b * 2 + 1, h], &[2, 32])], "nothing gives `batch` a size");
    }

    #[test]
    fn what_nothing_gives_may_be_chosen() {
        let (symbols, b, _) = symbols();
        let pattern = ShapePattern { name: "x", dims: &[b], extents: &[3] };
        let atoms = bind_or(&symbols, &[pattern], &|symbol| Some(symbol.lo));
        assert_eq!(atoms, Ok(vec![3, 1]));
    }

    #[test]
    fn what_a_run_binds_takes_its_bound_until_then() {
        let mut symbols = Symbols::default();
        let n = symbols.add(Symbol::in_run("n", 0, 12));
        assert_eq!(bind(&symbols, &[]), Ok(vec![12]));
        assert_eq!(atom_of(&symbols, n, 0), Ok(0));
        let error = atom_of(&symbols, n, 13).map_err(|e| e.to_string());
        assert_eq!(error, Err("`n` is 13, outside 0..=12".to_owned()));
    }
}
