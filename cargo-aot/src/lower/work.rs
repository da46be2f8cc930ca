//! How much a group has to compute and to move, as expressions of sizes.

use aot_ir::dim::{Scope, VarId};
use aot_ir::{Dim, Symbols};
use aot_kernels::group::{Anchor, Expr, Group, MathType};
use aot_runtime::program::{LaunchWork, Unit};

/// What a group has to do at least: see [`LaunchWork`].
pub fn work(group: &Group, symbols: &Symbols) -> LaunchWork {
    let volume = |vars: &[VarId]| group.volume(vars);
    let extent = |var: VarId| group.extent(var).clone();
    let places = |places: Dim| (places.clone(), Some(places), Unit::Plain);
    let (flop, places, unit) = match &group.anchor {
        Anchor::Map { space } => places(volume(space)),
        Anchor::Reduce { rows, over, stages } => {
            let each = volume(rows) * volume(over);
            (each.scaled(stages.len() as i64), Some(each), Unit::Plain)
        }
        Anchor::Scan { rows, along, .. } => places(volume(rows) * extent(*along)),
        Anchor::Contraction(c) => {
            let products = volume(&c.batch) * volume(&c.m) * volume(&c.n) * volume(&c.k);
            (products.scaled(2), Some(products), unit(c.math))
        }
        Anchor::Attention(a) => {
            let widths = extent(a.qk) + extent(a.width);
            let products = volume(&a.batch) * extent(a.row) * extent(a.col) * widths;
            (products.scaled(2), Some(products), unit(a.math))
        }
        Anchor::Host(_) => (Dim::ZERO, Some(Dim::ZERO), Unit::Plain),
        _ => (Dim::ZERO, None, Unit::Plain),
    };
    LaunchWork { flop, bytes: bytes(group, symbols, places), unit }
}

fn unit(math: MathType) -> Unit {
    match math {
        MathType::Tf32 => Unit::Tf32,
        MathType::F16 | MathType::Bf16 => Unit::Half,
        _ => Unit::Plain,
    }
}

/// Every operand once, but no more than its accesses at so many places, where that is known.
fn bytes(group: &Group, symbols: &Symbols, places: Option<Dim>) -> Dim {
    let scope = Scope::new(symbols);
    let mut accesses = vec![0i64; group.operands.len()];
    for typed in &group.exprs {
        if let Expr::Load { operand, .. } = &typed.expr {
            accesses[operand.index()] += 1;
        }
    }
    for store in &group.stores {
        accesses[store.operand.index()] += 1;
    }
    let folds = group.exprs.iter().filter_map(|typed| match &typed.expr {
        Expr::Fold { vars, .. } => Some(group.volume(vars)),
        _ => None,
    });
    let most = folds.fold(Dim::ONE, |most, fold| scope.max(&most, &fold));
    let places = places.map(|places| places * most);
    let bits = group.operands.iter().zip(accesses).map(|(operand, accesses)| {
        let touched = match &places {
            Some(places) => scope.min(&operand.elements, &places.scaled(accesses)),
            None => operand.elements.clone(),
        };
        touched.scaled(i64::from(operand.dtype.bits()))
    });
    scope.floor_div(&bits.sum(), &Dim::from(8))
}
