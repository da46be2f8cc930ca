//! The algebra of dims against plain integers, for every value of every symbol and loop variable.

use aot_ir::dim::{Atom, Cmp, Cond, Scope, VarId};
use aot_ir::{Dim, SymId, Symbol, Symbols};
use proptest::prelude::*;

/// An expression before the algebra sees it.
#[derive(Clone, Debug)]
enum Expr {
    Const(i64),
    Leaf(usize),
    Add(Box<Expr>, Box<Expr>),
    Sub(Box<Expr>, Box<Expr>),
    Mul(Box<Expr>, Box<Expr>),
    Div(Box<Expr>, Divisor),
    Mod(Box<Expr>, Divisor),
    Min(Box<Expr>, Box<Expr>),
    Max(Box<Expr>, Box<Expr>),
    Select(Cmp, Box<[Expr; 4]>),
}

/// A constant times a symbol's size (or 1): always positive.
#[derive(Clone, Copy, Debug)]
struct Divisor(i64, Option<usize>);

const SYMBOLS: usize = 3;
const LEAVES: usize = 5;

fn symbols() -> Symbols {
    let mut s = Symbols::default();
    s.add(Symbol::new("a", 1, 5, 1));
    s.add(Symbol::new("b", 32, 96, 32));
    s.add(Symbol::new("c", 3, 11, 4));
    s
}

/// `i` below `a` and `j` below 7.
fn extents(symbols: &Symbols) -> Vec<Dim> {
    vec![symbols.dim(SymId(0)), Dim::from(7)]
}

fn divisor() -> impl Strategy<Value = Divisor> {
    (prop_oneof![1..=8i64, Just(32)], proptest::option::weighted(0.3, 0..SYMBOLS))
        .prop_map(|(c, s)| Divisor(c, s))
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![(-40..40i64).prop_map(Expr::Const), (0..LEAVES).prop_map(Expr::Leaf)];
    leaf.prop_recursive(5, 24, 4, |inner| {
        let pair = || (inner.clone(), inner.clone()).prop_map(|(a, b)| (Box::new(a), Box::new(b)));
        let cmp = prop_oneof![Just(Cmp::Eq), Just(Cmp::Ne), Just(Cmp::Lt), Just(Cmp::Le)];
        let four = proptest::array::uniform4(inner.clone());
        prop_oneof![
            3 => pair().prop_map(|(a, b)| Expr::Add(a, b)),
            2 => pair().prop_map(|(a, b)| Expr::Sub(a, b)),
            2 => pair().prop_map(|(a, b)| Expr::Mul(a, b)),
            2 => (inner.clone(), divisor()).prop_map(|(a, d)| Expr::Div(Box::new(a), d)),
            2 => (inner.clone(), divisor()).prop_map(|(a, d)| Expr::Mod(Box::new(a), d)),
            1 => pair().prop_map(|(a, b)| Expr::Min(a, b)),
            1 => pair().prop_map(|(a, b)| Expr::Max(a, b)),
            1 => (cmp, four).prop_map(|(c, e)| Expr::Select(c, Box::new(e))),
        ]
    })
}

fn leaf_dim(symbols: &Symbols, leaf: usize) -> Dim {
    match leaf.checked_sub(SYMBOLS) {
        None => symbols.dim(SymId(leaf as u32)),
        Some(var) => Dim::var(VarId(var as u32)),
    }
}

fn build(e: &Expr, scope: &Scope<'_>) -> Dim {
    let go = |e: &Expr| build(e, scope);
    let divisor = |d: &Divisor| match d.1 {
        Some(s) => leaf_dim(scope.symbols, s).scaled(d.0),
        None => Dim::from(d.0),
    };
    match e {
        Expr::Const(c) => Dim::from(*c),
        Expr::Leaf(i) => leaf_dim(scope.symbols, *i),
        Expr::Add(a, b) => go(a) + go(b),
        Expr::Sub(a, b) => go(a) - go(b),
        Expr::Mul(a, b) => go(a) * go(b),
        Expr::Div(a, d) => scope.floor_div(&go(a), &divisor(d)),
        Expr::Mod(a, d) => scope.modulo(&go(a), &divisor(d)),
        Expr::Min(a, b) => scope.min(&go(a), &go(b)),
        Expr::Max(a, b) => scope.max(&go(a), &go(b)),
        Expr::Select(c, e) => {
            let cond = scope.cond(*c, &go(&e[0]), &go(&e[1]));
            scope.select(&cond, &go(&e[2]), &go(&e[3]))
        }
    }
}

fn value(e: &Expr, leaves: &[i64; LEAVES]) -> i64 {
    let go = |e: &Expr| value(e, leaves);
    let divisor = |d: &Divisor| d.0 * d.1.map_or(1, |s| leaves[s]);
    match e {
        Expr::Const(c) => *c,
        Expr::Leaf(i) => leaves[*i],
        Expr::Add(a, b) => go(a) + go(b),
        Expr::Sub(a, b) => go(a) - go(b),
        Expr::Mul(a, b) => go(a).saturating_mul(go(b)),
        Expr::Div(a, d) => go(a).div_euclid(divisor(d)),
        Expr::Mod(a, d) => go(a).rem_euclid(divisor(d)),
        Expr::Min(a, b) => go(a).min(go(b)),
        Expr::Max(a, b) => go(a).max(go(b)),
        Expr::Select(c, e) => {
            let (a, b) = (go(&e[0]), go(&e[1]));
            let holds = match c {
                Cmp::Eq => a == b,
                Cmp::Ne => a != b,
                Cmp::Lt => a < b,
                Cmp::Le => a <= b,
            };
            go(if holds { &e[2] } else { &e[3] })
        }
    }
}

/// Calls `f` with sizes of symbols and values of variables, and with the atoms' values.
fn all_values(symbols: &Symbols, mut f: impl FnMut(&[i64; LEAVES], &[i64; LEAVES])) {
    let range = |s: u32| symbols.get(SymId(s)).map_or(0..=0, |s| s.lo..=s.hi);
    let size = |s: u32, atom: i64| symbols.get(SymId(s)).map_or(0, |s| s.scale * atom + s.offset);
    for a in range(0) {
        for b in range(1) {
            for c in range(2) {
                for i in 0..size(0, a) {
                    for j in 0..7 {
                        f(&[size(0, a), size(1, b), size(2, c), i, j], &[a, b, c, i, j]);
                    }
                }
            }
        }
    }
}

fn env(atoms: &[i64; LEAVES]) -> impl Fn(&Atom) -> Option<i64> {
    |atom| match atom {
        Atom::Sym(SymId(s)) => atoms.get(*s as usize).copied(),
        Atom::Var(VarId(v)) => atoms.get(SYMBOLS + *v as usize).copied(),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn simplified_expressions_keep_their_values(e in expr()) {
        let symbols = symbols();
        let extents = extents(&symbols);
        let scope = Scope { symbols: &symbols, extents: &extents };
        let dim = build(&e, &scope);
        let (interval, nonneg) = (scope.interval(&dim), scope.proves_nonneg(&dim));
        let mut wrong = None;
        all_values(&symbols, |leaves, atoms| {
            let expected = value(&e, leaves);
            let found = dim.eval(&env(atoms));
            let inside = (interval.lo..=interval.hi).contains(&expected);
            if found != Ok(expected) || !inside || (nonneg && expected < 0) {
                wrong.get_or_insert((*leaves, expected, found));
            }
        });
        prop_assert!(wrong.is_none(), "{dim} {interval:?} {nonneg}: {wrong:?}");
    }

    #[test]
    fn decisions_hold_everywhere(a in expr(), b in expr()) {
        let symbols = symbols();
        let extents = extents(&symbols);
        let scope = Scope { symbols: &symbols, extents: &extents };
        let (x, y) = (build(&a, &scope), build(&b, &scope));
        let cmps = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le];
        let decided = cmps.map(|cmp| scope.decide(cmp, &x, &y));
        let mut wrong = None;
        all_values(&symbols, |leaves, _| {
            let (p, q) = (value(&a, leaves), value(&b, leaves));
            for (decided, holds) in decided.iter().zip([p == q, p != q, p < q, p <= q]) {
                if decided.is_some_and(|d| d != holds) {
                    wrong.get_or_insert((*leaves, p, q));
                }
            }
        });
        prop_assert!(wrong.is_none(), "{x} and {y}, {decided:?}: {wrong:?}");
    }

    #[test]
    fn substitution_agrees_with_evaluation(e in expr(), by in -3..4i64) {
        let symbols = symbols();
        let extents = extents(&symbols);
        let scope = Scope { symbols: &symbols, extents: &extents };
        let dim = build(&e, &scope);
        // Loop variable 1 becomes a function of loop variable 0.
        let replaced = Dim::var(VarId(0)).scaled(by) + 2;
        let wide = Scope { symbols: &symbols, extents: &extents[..1] };
        let result = dim.substitute(&wide, &|atom| {
            (*atom == Atom::Var(VarId(1))).then(|| replaced.clone())
        });
        let mut wrong = None;
        all_values(&symbols, |_, atoms| {
            let mut atoms = *atoms;
            atoms[4] = atoms[3] * by + 2;
            // What was simplified by the old variable's range holds inside that range only.
            if (0..7).contains(&atoms[4]) && dim.eval(&env(&atoms)) != result.eval(&env(&atoms)) {
                wrong.get_or_insert(atoms);
            }
        });
        prop_assert!(wrong.is_none(), "{dim} became {result}: {wrong:?}");
    }

    #[test]
    fn conditions_keep_their_values(a in expr(), b in expr()) {
        let symbols = symbols();
        let extents = extents(&symbols);
        let scope = Scope { symbols: &symbols, extents: &extents };
        let cond = scope
            .cond(Cmp::Le, &build(&a, &scope), &build(&b, &scope))
            .and(Cond::Cmp(Cmp::Ne, leaf_dim(&symbols, 0), Dim::from(3)));
        let mut wrong = None;
        all_values(&symbols, |leaves, atoms| {
            let expected = value(&a, leaves) <= value(&b, leaves) && leaves[0] != 3;
            if cond.eval(&env(atoms)) != Ok(expected) {
                wrong.get_or_insert(*leaves);
            }
        });
        prop_assert!(wrong.is_none(), "{cond:?}: {wrong:?}");
    }
}
