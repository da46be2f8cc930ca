//! Coordinates, loads and stores of a group in the making, through padding where there is some.

use super::super::LowerError;
use super::super::padding::{Padded, padded_to};
use super::super::plan::{Home, Padding};
use super::super::zero::is_zero_past;
use super::Builder;
use aot_ir::dim::{Cmp, Cond, VarId};
use aot_ir::op::ScatterReduction;
use aot_ir::{DType, Dim, Scalar, ValueId};
use aot_kernels::group::{Expr, ExprId, OperandId, Store, compute_type};

/// A variable that goes on past the extent of the axis that it numbers. There, groups store zeros.
#[derive(Clone, Debug)]
pub(super) struct PaddedVar {
    var: VarId,
    /// The axis' extent.
    from: i64,
    /// The variable's.
    to: i64,
}

impl PaddedVar {
    /// Where the variable numbers elements.
    fn inside(&self) -> Cond {
        Cond::Cmp(Cmp::Lt, Dim::var(self.var), self.from.into())
    }

    /// Whether `coords` go along the padding of a home as the variable does, and what it is.
    fn padding(&self, home: &Home, coords: &[Dim]) -> Option<Padding> {
        let here = Dim::var(self.var);
        let along = home.padding.filter(|p| p.from == self.from && coords[p.axis] == here)?;
        let others = coords.iter().enumerate().filter(|(axis, _)| *axis != along.axis);
        (!others.map(|(_, c)| c).any(|c| c.uses(self.var))).then_some(along)
    }
}

impl Builder<'_> {
    /// The coordinate along an axis and its variable, which is put into `list`. It goes on to `to`, if that is
    /// given, else an axis of extent 1 needs none.
    pub(in crate::lower) fn coordinate(
        &mut self,
        extent: &Dim,
        to: Option<i64>,
        list: &mut Vec<VarId>,
    ) -> Dim {
        let var = match (extent.as_const(), to) {
            (Some(from), Some(to)) if from < to => {
                let var = self.var(&to.into());
                self.padded.push(PaddedVar { var, from, to });
                var
            }
            (Some(1), _) => return Dim::ZERO,
            _ => self.var(extent),
        };
        list.push(var);
        Dim::var(var)
    }

    /// Coordinates over a shape and their variables; axes of extent 1 need none.
    pub(in crate::lower) fn space(&mut self, shape: &[Dim]) -> (Vec<VarId>, Vec<Dim>) {
        self.padded_space(shape, &[])
    }

    /// As [`Builder::space`], through the padding of some axes.
    pub(in crate::lower) fn padded_space(
        &mut self,
        shape: &[Dim],
        padded: &[Padded],
    ) -> (Vec<VarId>, Vec<Dim>) {
        let mut vars = Vec::new();
        let axes = shape.iter().enumerate();
        let coords = axes.map(|(i, d)| self.coordinate(d, padded_to(padded, i), &mut vars));
        let coords = coords.collect();
        (vars, coords)
    }

    fn operand(&mut self, buffer: u32) -> OperandId {
        let found = self.operands.iter().position(|o| o.buffer == buffer);
        let index = found.unwrap_or_else(|| {
            self.operands.push(self.plan.buffers[buffer as usize].operand(buffer));
            self.operands.len() - 1
        });
        OperandId(index as u32)
    }

    /// The element of a materialised value, under the current guard.
    pub(in crate::lower) fn load(&mut self, home: &Home, coords: &[Dim]) -> ExprId {
        let operand = self.operand(home.buffer);
        let dtype = compute_type(self.operands[operand.index()].dtype);
        let offset = home.offset_of(coords);
        let mut guard = self.guard.clone();
        for padded in &self.padded {
            let zeros = padded.padding(home, coords).is_some_and(|p| p.to >= padded.to);
            if offset.uses(padded.var) && !zeros {
                guard = guard.and(padded.inside());
            }
        }
        let other = match dtype {
            DType::Bool => Scalar::Bool(false),
            t if t.is_float() => Scalar::Float(0.0),
            _ => Scalar::Int(0),
        };
        self.push(Expr::Load { operand, offset, guard, other }, dtype)
    }

    /// Replaces what a guarded load gives where it may not read; `None` if `id` is no such load.
    pub(in crate::lower) fn with_other(
        &mut self,
        id: ExprId,
        guard: &Cond,
        value: Scalar,
    ) -> Option<ExprId> {
        let Expr::Load { operand, offset, guard: own, .. } = self.expr(id) else { return None };
        let mut whole = guard.clone();
        for padded in &self.padded {
            let inside = padded.inside();
            if matches!(own, Cond::All(parts) if parts.contains(&inside)) || *own == inside {
                whole = whole.and(inside);
            }
        }
        if *own != whole {
            return None;
        }
        let (operand, offset, guard) = (*operand, offset.clone(), own.clone());
        let dtype = self.dtype(id);
        let other = match dtype {
            DType::Bool => Scalar::Bool(value.as_f64() != 0.0),
            t if t.is_float() => Scalar::Float(value.as_f64()),
            _ => Scalar::Int(value.as_i64()),
        };
        Some(self.push(Expr::Load { operand, offset, guard, other }, dtype))
    }

    /// `value`, and zero where a variable is past its extent.
    fn zeroed(&mut self, value: ExprId, padded: &PaddedVar) -> ExprId {
        let inside = padded.inside();
        if is_zero_past(&self.exprs, value, padded.var, &inside) {
            return value;
        }
        let zero = self.constant(Scalar::Int(0), self.dtype(value));
        let inside = self.condition(&inside);
        self.select(inside, value, zero)
    }

    /// `value`, and zero where the coordinate `at` is past the extent of its axis.
    pub(in crate::lower) fn zeroed_past(&mut self, value: ExprId, at: &Dim) -> ExprId {
        match self.padded.iter().find(|p| *at == Dim::var(p.var)).cloned() {
            Some(padded) => self.zeroed(value, &padded),
            None => value,
        }
    }

    /// Writes a value to its home, and zeros to the padding of that.
    ///
    /// # Errors
    /// If no variable goes along the padding.
    pub(in crate::lower) fn store(
        &mut self,
        home: &Home,
        coords: &[Dim],
        value: ExprId,
        per_element: bool,
    ) -> Result<(), LowerError> {
        let (mut value, mut guard) = (value, Cond::always());
        let mut open = home.padding;
        for padded in self.padded.clone() {
            if !coords.iter().any(|c| c.uses(padded.var)) {
                continue;
            }
            match padded.padding(home, coords) {
                Some(padding) if padding.to <= padded.to => {
                    open = None;
                    value = self.zeroed(value, &padded);
                    if padding.to < padded.to {
                        let end = Cond::Cmp(Cmp::Lt, Dim::var(padded.var), padding.to.into());
                        guard = guard.and(end);
                    }
                }
                _ => guard = guard.and(padded.inside()),
            }
        }
        if open.is_some() {
            let name = &self.plan.buffers[home.buffer as usize].name;
            return Err(LowerError::internal(name, "its padding is not computed"));
        }
        let offset = home.offset_of(coords);
        self.store_at(home.buffer, offset, value, ScatterReduction::None, guard);
        if let Some(last) = self.stores.last_mut() {
            last.per_element = per_element;
        }
        Ok(())
    }

    /// Writes a value to its home, and to every further place where it is wanted.
    ///
    /// # Errors
    /// As [`Builder::store`].
    pub(in crate::lower) fn store_all(
        &mut self,
        value: ValueId,
        coords: &[Dim],
        result: ExprId,
        per_element: bool,
    ) -> Result<(), LowerError> {
        let plan = self.plan;
        let further = plan.also.get(&value).into_iter().flatten();
        let mut homes = plan.homes.get(&value).into_iter().chain(further);
        homes.try_for_each(|home| self.store(home, coords, result, per_element))
    }

    /// Writes to an offset of a buffer.
    pub(in crate::lower) fn store_at(
        &mut self,
        buffer: u32,
        offset: Dim,
        value: ExprId,
        combine: ScatterReduction,
        guard: Cond,
    ) {
        let operand = self.operand(buffer);
        self.stores.push(Store { operand, offset, guard, value, combine, per_element: true });
    }
}
