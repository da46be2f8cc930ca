//! At which sizes a model is tried.

use std::collections::BTreeSet;

use aot_ir::dim::{Atom, BindError};
use aot_ir::{BoundBy, Dim, Graph, Symbol};

use super::error::VerifyError;
use crate::manifest::nearest;

/// Steps between the least and the greatest sizes, at one of which a run is affordable.
const STEPS: i64 = 1024;

/// Sizes tried around those wanted until one satisfies the graph's guards.
const MOST_TRIES: i64 = 4096;

/// Atoms of the symbols: the least sizes, an odd choice in between, and the greatest ones at which
/// `cost` is at most `budget`, or fewer where these are the same.
pub(super) fn choose(
    graph: &Graph,
    cost: &dyn Fn(&[i64]) -> f64,
    budget: f64,
) -> Result<Vec<Vec<i64>>, VerifyError> {
    let at = |step: i64| -> Vec<i64> {
        let atom = |s: &Symbol| match s.bound_by {
            BoundBy::Run => s.hi,
            BoundBy::Shapes => {
                s.lo + ((i128::from(s.hi) - i128::from(s.lo)) * i128::from(step)
                    / i128::from(STEPS)) as i64
            }
        };
        graph.symbols.iter().map(|(_, symbol)| atom(symbol)).collect()
    };
    let (mut affordable, mut tried) = (0, STEPS + 1);
    while tried - affordable > 1 {
        let middle = affordable + (tried - affordable) / 2;
        if cost(&at(middle)) <= budget {
            affordable = middle;
        } else {
            tried = middle;
        }
    }
    let (least, greatest) = (at(0), at(affordable));
    let between = least.iter().zip(&greatest).map(|(&lo, &hi)| {
        let middle = lo + (hi - lo) / 2;
        if middle % 2 == 0 && middle < hi { middle + 1 } else { middle }
    });
    let mut chosen: Vec<Vec<i64>> = Vec::new();
    for atoms in [least.clone(), between.collect(), greatest] {
        let atoms = allowed(graph, atoms)?;
        if !chosen.contains(&atoms) {
            chosen.push(atoms);
        }
    }
    Ok(chosen)
}

/// Atoms of the symbols for sizes given by name; the least ones of those not given.
pub(super) fn given(graph: &Graph, sizes: &[(String, i64)]) -> Result<Vec<i64>, VerifyError> {
    let least = |s: &Symbol| if s.bound_by == BoundBy::Run { s.hi } else { s.lo };
    let mut atoms: Vec<i64> = graph.symbols.iter().map(|(_, symbol)| least(symbol)).collect();
    for (name, size) in sizes {
        let found = graph.symbols.find(name).filter(|id| !graph.symbols.in_run(*id));
        let Some(id) = found else {
            let shaped = graph.symbols.iter().filter(|(_, s)| s.bound_by == BoundBy::Shapes);
            let names = shaped.map(|(_, symbol)| symbol.name.as_str());
            let near = nearest(name, names).map(str::to_owned);
            return Err(VerifyError::NoDim { name: name.clone(), near });
        };
        let Some(symbol) = graph.symbols.get(id) else { continue };
        atoms[id.0 as usize] = symbol.atom_of(*size).ok_or_else(|| {
            let (dim, size) = (name.clone(), *size);
            let (lo, hi, step) = (symbol.min_size(), symbol.max_size(), symbol.scale);
            if (lo..=hi).contains(&size) {
                BindError::Step { dim, size, lo, hi, step }
            } else {
                BindError::Range { dim, size, lo, hi }
            }
        })?;
    }
    check(graph, &atoms)?;
    Ok(atoms)
}

/// Checks the guards that can be checked before a run.
fn check(graph: &Graph, atoms: &[i64]) -> Result<(), VerifyError> {
    for guard in graph.guards.iter().filter(|guard| guard.before_run(&graph.symbols)) {
        guard.check(&graph.symbols, atoms)?;
    }
    Ok(())
}

/// The sizes that atoms stand for, by name, without those that the run computes.
pub(super) fn named(graph: &Graph, atoms: &[i64]) -> Vec<(String, i64)> {
    let symbols = graph.symbols.iter().zip(atoms);
    let symbols = symbols.filter(|((_, s), _)| s.bound_by == BoundBy::Shapes);
    symbols.map(|((_, s), atom)| (s.name.clone(), s.scale * atom + s.offset)).collect()
}

/// The nearest atoms that satisfy the graph's guards, each symbol moved by itself.
fn allowed(graph: &Graph, mut atoms: Vec<i64>) -> Result<Vec<i64>, VerifyError> {
    for (id, symbol) in graph.symbols.iter().filter(|(_, s)| s.bound_by == BoundBy::Shapes) {
        let i = id.0 as usize;
        let own: Vec<_> = graph
            .guards
            .iter()
            .filter(|guard| {
                let mut used = symbols_of(&guard.lhs);
                used.extend(symbols_of(&guard.rhs));
                used.iter().eq([&i])
            })
            .collect();
        let wanted = atoms[i];
        let near = (0..MOST_TRIES).flat_map(|distance| [wanted - distance, wanted + distance]);
        let near = near.filter(|atom| (symbol.lo..=symbol.hi).contains(atom));
        for atom in near {
            atoms[i] = atom;
            if own.iter().all(|guard| guard.check(&graph.symbols, &atoms).is_ok()) {
                break;
            }
        }
    }
    check(graph, &atoms)?;
    Ok(atoms)
}

/// Indices of the symbols that an expression depends on.
fn symbols_of(dim: &Dim) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    dim.visit(&mut |atom| {
        if let Atom::Sym(id) = atom {
            found.insert(id.0 as usize);
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use aot_ir::{Guard, Scope};

    use super::*;

    fn graph(symbols: &[(&str, i64, i64, i64)]) -> Graph {
        let mut graph = Graph::new("g");
        for (name, lo, hi, step) in symbols {
            graph.symbols.add(Symbol::new(*name, *lo, *hi, *step));
        }
        graph
    }

    #[test]
    fn least_odd_and_greatest_affordable() {
        let graph = graph(&[("batch", 1, 64, 1), ("h", 32, 960, 32)]);
        let cost = |atoms: &[i64]| (atoms[0] * atoms[1]) as f64;
        let all = choose(&graph, &cost, f64::INFINITY).unwrap();
        assert_eq!(all, [vec![1, 1], vec![33, 15], vec![64, 30]]);
        assert_eq!(named(&graph, &all[1]), [("batch".to_owned(), 33), ("h".to_owned(), 480)]);
        let some = choose(&graph, &cost, 100.0).unwrap();
        assert!(cost(&some[2]) <= 100.0 && cost(&some[2]) > 50.0, "{some:?}");
        assert_eq!(choose(&graph, &cost, 0.0).unwrap(), [vec![1, 1]]);
    }

    #[test]
    fn a_model_of_fixed_sizes_is_tried_once() {
        assert_eq!(choose(&graph(&[]), &|_| 1e30, 1.0).unwrap(), [Vec::<i64>::new()]);
    }

    #[test]
    fn guards_hold() {
        let mut graph = graph(&[("n", 1, 4, 1), ("w", 1, 100, 1)]);
        let w = graph.symbols.dim(graph.symbols.find("w").unwrap());
        let up = Scope::new(&graph.symbols).ceil_div(&w, &Dim::from(8)).scaled(8);
        graph.guards.push(Guard { lhs: w.clone(), rhs: up, node: "add".into() });
        let chosen = choose(&graph, &|_| 0.0, 1.0).unwrap();
        assert_eq!(chosen, [vec![1, 8], vec![3, 48], vec![4, 96]]);
        let n = graph.symbols.dim(graph.symbols.find("n").unwrap());
        graph.guards.push(Guard { lhs: n, rhs: w, node: "mul".into() });
        let error = choose(&graph, &|_| 0.0, 1.0).unwrap_err().to_string();
        assert!(error.contains("`mul` needs n = w") && error.contains("--dims"), "{error}");
    }

    #[test]
    fn sizes_by_name() {
        let graph = graph(&[("batch", 1, 64, 1), ("h", 32, 960, 32)]);
        let given = |name: &str, size| given(&graph, &[(name.to_owned(), size)]);
        assert_eq!(given("h", 64).unwrap(), [1, 2]);
        let message = |result: Result<_, VerifyError>| result.unwrap_err().to_string();
        assert_eq!(
            message(given("bacth", 1)),
            "the model has no dim `bacth`; did you mean `batch`?"
        );
        assert_eq!(message(given("batch", 65)), "`batch` is 65, outside 1..=64");
        assert!(message(given("h", 33)).contains("in steps of 32"));
    }
}
