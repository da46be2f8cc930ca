//! Index maps as C++ integer expressions.
//!
//! A polynomial is written as sums of products; every maximal part that depends on sizes alone is one
//! argument. Arithmetic is in `int` where bounds prove that nothing exceeds it, else in `long long`.

use super::arguments::Role;
use super::emitter::{Emit, Emitter};
use super::prelude::Part;
use super::value::Int;
use crate::group::ExprId;
use aot_ir::Dim;
use aot_ir::dim::{Atom, Cmp, Cond, Term, VarId};
use std::collections::BTreeMap;

/// An integer at all lanes.
#[derive(Clone, Debug)]
pub struct Index {
    /// At lane 0.
    pub base: Int,
    /// How it goes on.
    pub step: Step,
}

/// How an integer changes from lane to lane.
#[derive(Clone, Debug)]
pub enum Step {
    /// Not at all.
    Same,
    /// By one.
    One,
    /// By an amount that depends on sizes only.
    Uniform(Dim),
    /// In some other way: the values at lanes 1 and up follow.
    Each(Vec<Int>),
}

impl<'a> Emitter<'a> {
    /// Takes the innermost of nested coordinates off a flat number: the remainder by its extent, which
    /// is returned; `rest` becomes the quotient.
    pub fn split(&mut self, rest: &mut Int, extent: &Int) -> Int {
        let wide = rest.wide || extent.wide;
        let (number, unsigned) =
            if wide { ("long long", "unsigned long long") } else { ("int", "unsigned") };
        let (a, b) = (&rest.text, &extent.text);
        let quotient =
            self.constant(number, "n", &format!("({number})(({unsigned}){a} / ({unsigned}){b})"));
        let inner = Int { text: format!("{a} - {quotient} * {b}"), wide };
        *rest = Int { text: quotient, wide };
        self.constant_int("n", &inner)
    }

    /// An index map's value at every lane.
    pub fn index(&mut self, dim: &Dim, role: Role) -> Emit<Index> {
        let base = self.int_at(dim, 0, role)?;
        let step = match self.lane_step(dim) {
            Some(step) if step.is(0) => Step::Same,
            Some(step) if step.is(1) => Step::One,
            Some(step) => Step::Uniform(step),
            None => {
                let lanes = 1..self.width();
                Step::Each(lanes.map(|l| self.int_at(dim, l, role)).collect::<Emit<_>>()?)
            }
        };
        Ok(Index { base, step })
    }

    /// An index map's value at one lane.
    pub fn index_at(&mut self, index: &Index, lane: usize, role: Role) -> Int {
        if lane == 0 {
            return index.base.clone();
        }
        let (base, wide) = (&index.base.text, index.base.wide);
        match &index.step {
            Step::Same => index.base.clone(),
            Step::One => Int { text: format!("({base} + {lane})"), wide },
            Step::Uniform(step) => {
                let step = self.uniform(step, role);
                let by = format!("{lane} * {}", step.widened());
                if wide || step.wide {
                    Int::wide(format!("({} + {by})", index.base.widened()))
                } else {
                    Int::narrow(format!("({base} + {lane} * {})", step.text))
                }
            }
            Step::Each(lanes) => lanes[lane - 1].clone(),
        }
    }

    /// The value of an index map that is the same at all lanes, or at lane 0.
    pub fn int(&mut self, dim: &Dim, role: Role) -> Emit<Int> {
        self.int_at(dim, 0, role)
    }

    /// By how much an index map grows from lane to lane, if that depends on sizes only.
    pub fn lane_step(&self, dim: &Dim) -> Option<Dim> {
        let Some(lanes) = &self.lanes else { return Some(Dim::ZERO) };
        if self.same_at_all_lanes(dim) {
            return Some(Dim::ZERO);
        }
        self.step_along(dim, lanes.var, lanes.width as i64)
    }

    /// Whether an index map has one value at all lanes for want of anything that varies.
    fn same_at_all_lanes(&self, dim: &Dim) -> bool {
        let Some(lanes) = &self.lanes else { return true };
        let uses = self.uses.of_dim(dim);
        !uses.vars.contains(&lanes.var)
            && uses.accs.iter().all(|n| self.acc(*n).is_none_or(|v| v.is_same()))
    }

    /// By how much an index map grows when `var` goes from a multiple of `width` through the next
    /// `width` values, if that depends on sizes only.
    pub fn step_along(&self, dim: &Dim, var: VarId, width: i64) -> Option<Dim> {
        let mut total = Dim::ZERO;
        for term in dim.terms() {
            let mut steps = Vec::new();
            for (i, atom) in term.factors.iter().enumerate() {
                let step = self.atom_step(atom, var, width)?;
                if !step.is(0) {
                    steps.push((i, step));
                }
            }
            match steps.as_slice() {
                [] => {}
                [(at, step)] => {
                    let mut factors = term.factors.clone();
                    factors.remove(*at);
                    let rest =
                        Dim::from_terms(0, [Term { factors, coefficient: term.coefficient }]);
                    total = total + rest * step;
                }
                _ => return None,
            }
        }
        total.is_uniform().then_some(total)
    }

    fn atom_step(&self, atom: &Atom, var: VarId, width: i64) -> Option<Dim> {
        let of = |d: &Dim| self.step_along(d, var, width);
        match atom {
            Atom::Sym(_) => Some(Dim::ZERO),
            Atom::Var(v) => Some(if *v == var { Dim::ONE } else { Dim::ZERO }),
            Atom::Value(n) => {
                let id = ExprId(*n);
                let uses = self.uses.of(id);
                let same = self.known_value(id).is_some_and(|v| v.is_same());
                let free = !uses.vars.contains(&var)
                    && uses.accs.iter().all(|n| self.acc(*n).is_none_or(|v| v.is_same()));
                (same || free).then_some(Dim::ZERO)
            }
            Atom::FloorDiv(a, b) | Atom::Mod(a, b) => {
                let (step, divisor) = (of(a)?, of(b)?);
                if !divisor.is(0) {
                    return None;
                }
                if step.is(0) {
                    return Some(Dim::ZERO);
                }
                // From one multiple of the width to the next, no multiple of `b` is crossed.
                let together = step.is(1)
                    && self.divisors.divides(width, a)
                    && self.divisors.divides(width, b);
                let quotient = matches!(atom, Atom::FloorDiv(..));
                together.then_some(if quotient { Dim::ZERO } else { Dim::ONE })
            }
            Atom::Min(a, b) | Atom::Max(a, b) => {
                (of(a)?.is(0) && of(b)?.is(0)).then_some(Dim::ZERO)
            }
            Atom::Select(c, a, b) => {
                let (a, b) = (of(a)?, of(b)?);
                (self.cond_is_steady(c, var, width) && a == b).then_some(a)
            }
        }
    }

    /// Whether a condition is the same at all lanes.
    pub fn lanes_agree(&self, cond: &Cond) -> bool {
        match &self.lanes {
            Some(lanes) => self.cond_is_steady(cond, lanes.var, lanes.width as i64),
            None => true,
        }
    }

    fn cond_is_steady(&self, cond: &Cond, var: VarId, width: i64) -> bool {
        match cond {
            Cond::All(parts) => parts.iter().all(|c| self.cond_is_steady(c, var, width)),
            Cond::Cmp(cmp, a, b) => {
                let difference = b - a;
                let Some(step) = self.step_along(&difference, var, width) else { return false };
                if step.is(0) {
                    return true;
                }
                // With d a multiple of the width w at lane 0 and steps of s:
                // 0 <= d + s l is the same for all l if s = 1, 0 < d + s l if s = -1.
                let whole = self.divisors.divides(width, &difference);
                match cmp {
                    Cmp::Le => whole && step.is(1),
                    Cmp::Lt => whole && step.is(-1),
                    Cmp::Eq | Cmp::Ne => false,
                }
            }
        }
    }

    /// A condition at one lane, as a C++ `bool` that can stand as an operand.
    pub fn cond_at(&mut self, cond: &Cond, lane: usize, role: Role) -> Emit<String> {
        let lane = if self.lanes_agree(cond) { 0 } else { lane };
        if let Some(known) = self.known_cond(cond, lane) {
            return Ok(known);
        }
        let mut parts = Vec::new();
        self.cond_parts(cond, lane, role, &mut parts)?;
        let text = match parts.len() {
            0 => return Ok("true".to_owned()),
            _ => self.constant("bool", "q", &parts.join(" && ")),
        };
        self.remember_cond(cond, lane, text.clone());
        Ok(text)
    }

    fn cond_parts(
        &mut self,
        cond: &Cond,
        lane: usize,
        role: Role,
        parts: &mut Vec<String>,
    ) -> Emit<()> {
        match cond {
            Cond::All(inner) => {
                inner.iter().try_for_each(|c| self.cond_parts(c, lane, role, parts))?;
            }
            Cond::Cmp(cmp, a, b) => {
                match self.scope.decide(*cmp, a, b) {
                    Some(true) => return Ok(()),
                    Some(false) => {
                        parts.push("false".to_owned());
                        return Ok(());
                    }
                    None => {}
                }
                let (a, b) = (self.int_at(a, lane, role)?, self.int_at(b, lane, role)?);
                let symbol = match cmp {
                    Cmp::Eq => "==",
                    Cmp::Ne => "!=",
                    Cmp::Lt => "<",
                    Cmp::Le => "<=",
                };
                parts.push(format!("{} {symbol} {}", a.text, b.text));
            }
        }
        Ok(())
    }

    /// An index map's value at one lane.
    pub(super) fn int_at(&mut self, dim: &Dim, lane: usize, role: Role) -> Emit<Int> {
        if dim.is_uniform() {
            return Ok(self.uniform(dim, role));
        }
        let lane = if lane > 0 && self.same_at_all_lanes(dim) { 0 } else { lane };
        if let Some(known) = self.known_int(dim, lane) {
            return Ok(known);
        }
        let value = match dim.as_atom() {
            Some(atom) => self.atom(atom, lane, role)?,
            None => self.polynomial(dim, lane, role)?,
        };
        self.remember_int(dim, lane, value.clone());
        Ok(value)
    }

    fn polynomial(&mut self, dim: &Dim, lane: usize, role: Role) -> Emit<Int> {
        // Coefficients that depend on sizes only, by the product that they multiply.
        let mut products: BTreeMap<Vec<Atom>, Dim> = BTreeMap::new();
        for term in dim.terms() {
            let (varying, sizes): (Vec<Atom>, Vec<Atom>) =
                term.factors.iter().cloned().partition(|a| !Dim::atom(a.clone()).is_uniform());
            let part = Dim::from_terms(0, [Term { factors: sizes, coefficient: term.coefficient }]);
            let sum = products.entry(varying).or_default();
            *sum = &*sum + &part;
        }
        let rest = products.remove(&Vec::new()).unwrap_or_default() + dim.constant_part();
        let mut total: i64 = self.magnitude(&rest);
        let mut terms: Vec<(String, Int)> = Vec::new();
        let mut wide = false;
        for (factors, coefficient) in products {
            let mut bound = self.magnitude(&coefficient);
            let mut operands = Vec::new();
            for factor in &factors {
                operands.push(self.atom(factor, lane, role)?);
                bound = bound.saturating_mul(self.magnitude(&Dim::atom(factor.clone())).max(1));
            }
            total = total.saturating_add(bound);
            let coefficient = self.uniform(&coefficient, role);
            wide |= coefficient.wide || operands.iter().any(|o| o.wide);
            let mut product = operands.first().map_or("1".to_owned(), |o| o.text.clone());
            for operand in operands.iter().skip(1) {
                product = format!("{product} * {}", operand.text);
            }
            terms.push((product, coefficient));
        }
        wide |= total > i64::from(i32::MAX);
        let cast = if wide { "(long long)" } else { "" };
        let mut text = String::new();
        for (product, coefficient) in terms {
            let (sign, part) = match coefficient.text.as_str() {
                "1" => ('+', format!("{cast}{product}")),
                "(-1)" => ('-', format!("{cast}{product}")),
                c => ('+', format!("{cast}{product} * {c}")),
            };
            text = match (text.is_empty(), sign) {
                (true, '-') => format!("-{part}"),
                (true, _) => part,
                (false, _) => format!("{text} {sign} {part}"),
            };
        }
        if !rest.is(0) {
            let rest = self.uniform(&rest, role);
            text = match rest.text.as_str() {
                "(-1)" => format!("{text} - 1"),
                r => format!("{text} + {r}"),
            };
        }
        let value = Int { text, wide };
        Ok(self.constant_int("n", &value))
    }

    /// A bound on the absolute value.
    fn magnitude(&self, dim: &Dim) -> i64 {
        let range = self.scope.interval(dim);
        range.lo.saturating_abs().max(range.hi.saturating_abs())
    }

    fn atom(&mut self, atom: &Atom, lane: usize, role: Role) -> Emit<Int> {
        let dim = Dim::atom(atom.clone());
        let lane = if lane > 0 && self.same_at_all_lanes(&dim) { 0 } else { lane };
        if let Some(known) = self.known_int(&dim, lane) {
            return Ok(known);
        }
        let value = match atom {
            Atom::Sym(_) => return Ok(self.uniform(&dim, role)),
            Atom::Var(v) => {
                let Some(base) = self.var(*v).cloned() else {
                    return Err(self.unsupported(format!("variable {} has no value here", v.0)));
                };
                let runs = self.lanes.as_ref().is_some_and(|l| l.var == *v);
                if runs && lane > 0 {
                    let sum = Int { text: format!("{} + {lane}", base.text), wide: base.wide };
                    self.constant_int("n", &sum)
                } else {
                    return Ok(base);
                }
            }
            Atom::Value(n) => {
                let value = self.value(ExprId(*n))?;
                let text = value.lane(lane).to_owned();
                match value.dtype {
                    aot_ir::DType::I32 | aot_ir::DType::Bool => {
                        Int::narrow(self.constant("int", "n", &text))
                    }
                    _ => Int::wide(self.constant("long long", "n", &text)),
                }
            }
            Atom::FloorDiv(a, b) => self.division(a, b, lane, role, true)?,
            Atom::Mod(a, b) => self.division(a, b, lane, role, false)?,
            Atom::Min(a, b) => self.choice(a, b, "<", lane, role)?,
            Atom::Max(a, b) => self.choice(a, b, ">", lane, role)?,
            Atom::Select(c, a, b) => {
                let c = self.cond_at(c, lane, role)?;
                let (a, b) = (self.int_at(a, lane, role)?, self.int_at(b, lane, role)?);
                let value =
                    Int { text: format!("{c} ? {} : {}", a.text, b.text), wide: a.wide || b.wide };
                self.constant_int("n", &value)
            }
        };
        let value = self.shrunk(&dim, value);
        self.remember_int(&dim, lane, value.clone());
        Ok(value)
    }

    /// As `int` if the value is proved to fit.
    fn shrunk(&mut self, dim: &Dim, value: Int) -> Int {
        if value.wide && self.magnitude(dim) <= i64::from(i32::MAX) {
            return Int::narrow(self.constant("int", "n", &format!("(int){}", value.text)));
        }
        value
    }

    fn choice(&mut self, a: &Dim, b: &Dim, cmp: &str, lane: usize, role: Role) -> Emit<Int> {
        let (a, b) = (self.int_at(a, lane, role)?, self.int_at(b, lane, role)?);
        let wide = a.wide || b.wide;
        let (a, b) = if wide { (a.widened(), b.widened()) } else { (a.text, b.text) };
        let value = Int { text: format!("{a} {cmp} {b} ? {a} : {b}"), wide };
        Ok(self.constant_int("n", &value))
    }

    fn division(&mut self, a: &Dim, b: &Dim, lane: usize, role: Role, quotient: bool) -> Emit<Int> {
        let positive = self.scope.proves_nonneg(a);
        let (x, y) = (self.int_at(a, lane, role)?, self.int_at(b, lane, role)?);
        let wide = x.wide || y.wide;
        let operator = if quotient { "/" } else { "%" };
        let text = if positive && !wide {
            format!("(int)((unsigned){} {operator} (unsigned){})", x.text, y.text)
        } else if positive {
            format!(
                "(long long)((unsigned long long){} {operator} (unsigned long long){})",
                x.text, y.text
            )
        } else {
            self.require(Part::Math);
            let function = if quotient { "floor_div" } else { "floor_mod" };
            let type_name = if wide { "long long" } else { "int" };
            format!("{function}<{type_name}>({}, {})", x.text, y.text)
        };
        Ok(self.constant_int("n", &Int { text, wide }))
    }
}
