//! Fewer loop variables: two that always occur together become one.

use crate::group::{Anchor, Expr, Group};
use aot_ir::Dim;
use aot_ir::dim::{Atom, Cond, Term, VarId};

/// The group with neighbouring variables of its contraction merged where every index map uses them as
/// one: a variable `x` and the next one `y` occur only as `x * extent(y) + y`.
pub(super) fn collapse(group: &Group) -> Group {
    let mut group = group.clone();
    for list in 0..4 {
        let mut at = 0;
        loop {
            let Anchor::Contraction(c) = &group.anchor else { return group };
            let vars = [&c.batch, &c.m, &c.n, &c.k][list];
            let Some(&[x, y]) = vars.get(at..at + 2) else { break };
            match merged(&group, x, y) {
                Some(mut next) => {
                    if let Anchor::Contraction(c) = &mut next.anchor {
                        [&mut c.batch, &mut c.m, &mut c.n, &mut c.k][list].remove(at);
                    }
                    group = next;
                }
                None => at += 1,
            }
        }
    }
    group
}

fn merged(group: &Group, x: VarId, y: VarId) -> Option<Group> {
    let mut next = group.clone();
    let inner = group.extent(y).clone();
    let dim = |d: &Dim| merge_dim(d, x, y, &inner);
    let cond = |c: &Cond| merge_cond(c, x, y, &inner);
    for typed in &mut next.exprs {
        match &mut typed.expr {
            Expr::Coord(d) => *d = dim(d)?,
            Expr::Load { offset, guard, .. } => {
                *offset = dim(offset)?;
                *guard = cond(guard)?;
            }
            _ => {}
        }
    }
    for store in &mut next.stores {
        store.offset = dim(&store.offset)?;
        store.guard = cond(&store.guard)?;
    }
    next.extents[y.0 as usize] = group.extent(x) * &inner;
    next.extents[x.0 as usize] = Dim::ONE;
    Some(next)
}

fn merge_cond(cond: &Cond, x: VarId, y: VarId, inner: &Dim) -> Option<Cond> {
    Some(match cond {
        Cond::Cmp(cmp, a, b) => {
            Cond::Cmp(*cmp, merge_dim(a, x, y, inner)?, merge_dim(b, x, y, inner)?)
        }
        Cond::All(parts) => {
            Cond::All(parts.iter().map(|c| merge_cond(c, x, y, inner)).collect::<Option<Vec<_>>>()?)
        }
    })
}

/// `d` without `x`, if `x` and `y` occur as `x * inner + y` only.
fn merge_dim(d: &Dim, x: VarId, y: VarId, inner: &Dim) -> Option<Dim> {
    if !d.uses(x) && !d.uses(y) {
        return Some(d.clone());
    }
    let (mut of_x, mut of_y, mut rest) = (Dim::ZERO, Dim::ZERO, Dim::from(d.constant_part()));
    for term in d.terms() {
        let whole = Dim::from_terms(0, [term.clone()]);
        if !whole.uses(x) && !whole.uses(y) {
            rest = rest + whole;
            continue;
        }
        let at = term.factors.iter().position(|f| *f == Atom::Var(x) || *f == Atom::Var(y))?;
        let mut factors = term.factors.clone();
        let factor = factors.remove(at);
        let coefficient = Dim::from_terms(0, [Term { factors, coefficient: term.coefficient }]);
        if coefficient.uses(x) || coefficient.uses(y) {
            return None;
        }
        if factor == Atom::Var(x) {
            of_x = of_x + coefficient;
        } else {
            of_y = of_y + coefficient;
        }
    }
    (of_x == &of_y * inner).then(|| rest + of_y * Dim::var(y))
}
