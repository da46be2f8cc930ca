//! Fewer loop variables for the same group.
//!
//! Two variables `u`, `v` that every index map uses only as `u * extent(v) + v` are one variable of
//! extent `extent(u) * extent(v)`; a variable of extent 1 is none.

use super::{Anchor, Expr, FoldOp, Group};
use aot_ir::Dim;
use aot_ir::dim::{Atom, Cond, VarId};

impl Group {
    /// An equal group with adjacent loop variables merged where all index maps allow it, and without
    /// variables of extent 1. Variables keep their numbers; merged ones get the number of the first.
    pub fn merged(&self) -> Group {
        let mut group = self.clone();
        group.drop_trivial();
        while let Some(next) = group.merge_one() {
            group = next;
        }
        group
    }

    /// The lists of variables that are run over together, and whether their order matters.
    fn lists(&self) -> Vec<(Vec<VarId>, bool)> {
        let mut lists = Vec::new();
        match &self.anchor {
            Anchor::Map { space } => lists.push((space.clone(), false)),
            Anchor::Reduce { rows, over, stages } => {
                lists.push((rows.clone(), false));
                lists.push((over.clone(), stages.iter().any(|s| is_arg(s.op))));
            }
            Anchor::Scan { rows, along, .. } => {
                lists.push((rows.clone(), false));
                lists.push((vec![*along], true));
            }
            Anchor::Contraction(c) => {
                lists.extend([&c.batch, &c.m, &c.n, &c.k].map(|l| (l.clone(), false)));
            }
            Anchor::Attention(a) => lists.push((a.batch.clone(), false)),
            Anchor::Host(_) => {}
        }
        for typed in &self.exprs {
            if let Expr::Fold { op, vars, .. } = &typed.expr {
                lists.push((vars.clone(), is_arg(*op)));
            }
        }
        lists
    }

    fn each_list(&mut self, mut f: impl FnMut(&mut Vec<VarId>)) {
        match &mut self.anchor {
            Anchor::Map { space } => f(space),
            Anchor::Reduce { rows, over, .. } => {
                f(rows);
                f(over);
            }
            Anchor::Scan { rows, .. } => f(rows),
            Anchor::Contraction(c) => {
                [&mut c.batch, &mut c.m, &mut c.n, &mut c.k].into_iter().for_each(&mut f);
            }
            Anchor::Attention(a) => f(&mut a.batch),
            Anchor::Host(_) => {}
        }
        for typed in &mut self.exprs {
            if let Expr::Fold { vars, .. } = &mut typed.expr {
                f(vars);
            }
        }
    }

    /// Applies fallible rewritings to all index maps and conditions; `None` if one fails.
    fn rewritten(
        &self,
        dim: &dyn Fn(&Dim) -> Option<Dim>,
        cond: &dyn Fn(&Cond) -> Option<Cond>,
    ) -> Option<Group> {
        let mut group = self.clone();
        for typed in &mut group.exprs {
            match &mut typed.expr {
                Expr::Coord(d) => *d = dim(d)?,
                Expr::Load { offset, guard, .. } => {
                    *offset = dim(offset)?;
                    *guard = cond(guard)?;
                }
                _ => {}
            }
        }
        for store in &mut group.stores {
            store.offset = dim(&store.offset)?;
            store.guard = cond(&store.guard)?;
        }
        Some(group)
    }

    fn drop_trivial(&mut self) {
        let keep = match &self.anchor {
            Anchor::Attention(a) => vec![a.row, a.col, a.qk, a.width],
            Anchor::Scan { along, .. } => vec![*along],
            _ => Vec::new(),
        };
        let trivial: Vec<VarId> = (0..self.extents.len())
            .map(|i| VarId(i as u32))
            .filter(|v| self.extent(*v).is(1) && !keep.contains(v))
            .collect();
        if trivial.is_empty() {
            return;
        }
        let zero = |d: &Dim| without(d, &trivial);
        let zero_cond = |c: &Cond| map_cond(c, &zero);
        if let Some(group) = self.rewritten(&zero, &zero_cond) {
            *self = group;
            self.each_list(|list| list.retain(|v| !trivial.contains(v)));
        }
    }

    fn merge_one(&self) -> Option<Group> {
        let lists = self.lists();
        for (list, ordered) in &lists {
            for (i, u) in list.iter().enumerate() {
                for (j, v) in list.iter().enumerate() {
                    if i == j || (*ordered && j != i + 1) {
                        continue;
                    }
                    // Every list with one of them has both, in an order that allows it.
                    let together = lists.iter().all(|(l, ordered)| {
                        let at = |x: &VarId| l.iter().position(|y| y == x);
                        match (at(u), at(v)) {
                            (None, None) => true,
                            (Some(i), Some(j)) => !ordered || j == i + 1,
                            _ => false,
                        }
                    });
                    if !together {
                        continue;
                    }
                    let (u, v) = (*u, *v);
                    let extent = self.extent(v).clone();
                    let dim = |d: &Dim| join(d, u, v, &extent);
                    let cond = |c: &Cond| map_cond(c, &dim);
                    if let Some(mut group) = self.rewritten(&dim, &cond) {
                        group.extents[u.0 as usize] = self.extent(u) * &extent;
                        group.extents[v.0 as usize] = Dim::ONE;
                        group.each_list(|list| list.retain(|x| *x != v));
                        return Some(group);
                    }
                }
            }
        }
        None
    }
}

fn is_arg(op: FoldOp) -> bool {
    matches!(op, FoldOp::ArgMax { .. } | FoldOp::ArgMin { .. })
}

fn map_cond(cond: &Cond, dim: &dyn Fn(&Dim) -> Option<Dim>) -> Option<Cond> {
    Some(match cond {
        Cond::Cmp(cmp, a, b) => Cond::Cmp(*cmp, dim(a)?, dim(b)?),
        Cond::All(parts) => {
            Cond::All(parts.iter().map(|c| map_cond(c, dim)).collect::<Option<_>>()?)
        }
    })
}

/// Applies `dim` to the parts of an atom that is no leaf.
fn map_atom(atom: &Atom, dim: &dyn Fn(&Dim) -> Option<Dim>) -> Option<Atom> {
    Some(match atom {
        Atom::Sym(_) | Atom::Var(_) | Atom::Value(_) => atom.clone(),
        Atom::FloorDiv(a, b) => Atom::FloorDiv(dim(a)?, dim(b)?),
        Atom::Mod(a, b) => Atom::Mod(dim(a)?, dim(b)?),
        Atom::Min(a, b) => Atom::Min(dim(a)?, dim(b)?),
        Atom::Max(a, b) => Atom::Max(dim(a)?, dim(b)?),
        Atom::Select(c, a, b) => Atom::Select(map_cond(c, dim)?, dim(a)?, dim(b)?),
    })
}

/// The index map with variables set to 0.
fn without(dim: &Dim, vars: &[VarId]) -> Option<Dim> {
    let mut out = Dim::from(dim.constant_part());
    'terms: for term in dim.terms() {
        let mut product = Dim::from(term.coefficient);
        for atom in &term.factors {
            if let Atom::Var(v) = atom
                && vars.contains(v)
            {
                continue 'terms;
            }
            product = product * constant_folded(map_atom(atom, &|d| without(d, vars))?);
        }
        out = out + product;
    }
    Some(out)
}

/// An atom of constants as a constant.
fn constant_folded(atom: Atom) -> Dim {
    let dim = Dim::atom(atom);
    if dim.any(|a| matches!(a, Atom::Sym(_) | Atom::Var(_) | Atom::Value(_))) {
        return dim;
    }
    match dim.eval(&[][..]) {
        Ok(value) => Dim::from(value),
        Err(_) => dim,
    }
}

/// The index map with `u * extent + v` written as `u` alone; `None` if they occur otherwise.
fn join(dim: &Dim, u: VarId, v: VarId, extent: &Dim) -> Option<Dim> {
    let (mut of_u, mut of_v) = (Dim::ZERO, Dim::ZERO);
    let mut rest = Dim::from(dim.constant_part());
    for term in dim.terms() {
        let mut product = Dim::from(term.coefficient);
        let mut place = None;
        for atom in &term.factors {
            match atom {
                Atom::Var(x) if *x == u || *x == v => {
                    if place.replace(*x).is_some() {
                        return None;
                    }
                }
                _ => product = product * Dim::atom(map_atom(atom, &|d| join(d, u, v, extent))?),
            }
        }
        match place {
            Some(x) if x == u => of_u = of_u + product,
            Some(_) => of_v = of_v + product,
            None => rest = rest + product,
        }
    }
    (of_u == &of_v * extent).then(|| rest + of_v * Dim::var(u))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_pairs_become_one_variable() {
        let [u, v, w] = [0, 1, 2].map(VarId);
        let extent = Dim::from(12);
        let [a, b, c] = [u, v, w].map(Dim::var);
        let flat = (&a * 12 + &b) * 64 + &c;
        assert_eq!(join(&flat, u, v, &extent), Some(&a * 64 + &c));
        assert_eq!(join(&(&a * 13 + &b), u, v, &extent), None);
        assert_eq!(join(&b, u, v, &extent), None);
        let inner = Dim::atom(Atom::FloorDiv(&a * 12 + &b, Dim::from(5)));
        assert_eq!(
            join(&inner, u, v, &extent),
            Some(Dim::atom(Atom::FloorDiv(a.clone(), Dim::from(5))))
        );
        assert_eq!(join(&c, u, v, &extent), Some(c));
    }

    #[test]
    fn trivial_variables_vanish_from_nested_maps() {
        let [u, v] = [0, 1].map(VarId);
        let inner = Dim::atom(Atom::Min(Dim::var(u) + 3, Dim::from(2)));
        assert_eq!(without(&(inner + Dim::var(v)), &[u]), Some(Dim::var(v) + 2));
    }
}
