//! Movement: reshape, transpose, slice, pad, expand, concat, gather.

use super::super::known::{Content, Elem};
use super::pointwise::broadcast_at;
use super::tensors::{Builder, OpResult, Tensor, wrong};
use aot_ir::dim::Cmp;
use aot_ir::op::PadMode;
use aot_ir::{Dim, Op, Scalar, Scope};

impl Builder {
    /// A known tensor whose elements are those of a known `x` at other coordinates.
    fn known_movement(
        &mut self,
        x: Tensor,
        shape: &[Dim],
        from: impl Fn(&[Dim], &Scope<'_>) -> Option<Vec<Dim>>,
    ) -> Option<Tensor> {
        let content = self.content(x)?;
        let moved =
            Content::make(shape, self.symbols(), |at, scope| content.at(&from(at, scope)?, scope))?;
        let dtype = self.dtype(x);
        Some(self.known(dtype, moved))
    }

    /// The same elements in another shape.
    pub(in super::super) fn reshape(&mut self, x: Tensor, shape: &[Dim]) -> OpResult {
        if self.shape(x) == shape {
            return Ok(x);
        }
        let old = self.shape(x).to_vec();
        let product = |s: &[Dim]| s.iter().fold(Dim::ONE, |p, d| p * d);
        if self.scope().proves_eq(&product(&old), &product(shape)) {
            let known = self.known_movement(x, shape, |at, scope| {
                let mut flat = Dim::ZERO;
                for (at, extent) in at.iter().zip(shape) {
                    flat = flat * extent + at;
                }
                let mut from = Vec::with_capacity(old.len());
                for extent in old.iter().rev() {
                    if !scope.proves_nonneg(&(extent - 1)) {
                        return None;
                    }
                    from.push(scope.modulo(&flat, extent));
                    flat = scope.floor_div(&flat, extent);
                }
                from.reverse();
                Some(from)
            });
            if let Some(t) = known {
                return Ok(t);
            }
        }
        let out = self.op(Op::Reshape { shape: shape.to_vec() }, &[x])?;
        self.set_made_of(out, &[x]);
        Ok(out)
    }

    /// `x` with axes of extent 1 inserted so that `axes` of the result are they.
    pub(in super::super) fn unsqueeze(&mut self, x: Tensor, axes: &[usize]) -> OpResult {
        let rank = self.rank(x) + axes.len();
        let mut old = self.shape(x).to_vec().into_iter();
        let shape: Option<Vec<Dim>> = (0..rank)
            .map(|i| if axes.contains(&i) { Some(Dim::ONE) } else { old.next() })
            .collect();
        match shape {
            Some(shape) if old.next().is_none() => self.reshape(x, &shape),
            _ => wrong(format!("axes {axes:?} can't be inserted: one occurs twice")),
        }
    }

    /// `x` without `axes`, which must have extent 1; where they may have another, every run checks it.
    pub(in super::super) fn squeeze(&mut self, x: Tensor, axes: &[usize]) -> OpResult {
        let mut x = x;
        for &axis in axes {
            let Some(extent) = self.shape(x).get(axis).cloned() else { continue };
            match self.scope().decide(Cmp::Eq, &extent, &Dim::ONE) {
                Some(true) => {}
                Some(false) => {
                    let extent = self.symbols().show(&extent);
                    return wrong(format!("axis {axis} can't be dropped: its extent is {extent}"));
                }
                None => {
                    self.guard(extent, Dim::ONE);
                    x = self.slice_axis(x, axis, Dim::ZERO, Dim::ONE, 1)?;
                }
            }
        }
        let shape: Vec<Dim> = self
            .shape(x)
            .iter()
            .enumerate()
            .filter(|(i, _)| !axes.contains(i))
            .map(|(_, d)| d.clone())
            .collect();
        self.reshape(x, &shape)
    }

    /// Axis `i` of the result is axis `perm[i]` of `x`.
    pub(in super::super) fn transpose(&mut self, x: Tensor, perm: &[usize]) -> OpResult {
        if perm.iter().enumerate().all(|(i, &p)| i == p) && perm.len() == self.rank(x) {
            return Ok(x);
        }
        let old = self.shape(x).to_vec();
        let shape: Option<Vec<Dim>> = perm.iter().map(|&p| old.get(p).cloned()).collect();
        if let Some(shape) = shape
            && perm.len() == old.len()
            && let Some(t) = self.known_movement(x, &shape, |at, _| {
                let mut from = vec![Dim::ZERO; at.len()];
                perm.iter().zip(at).for_each(|(&p, at)| from[p] = at.clone());
                Some(from)
            })
        {
            return Ok(t);
        }
        self.op(Op::Transpose { perm: perm.to_vec() }, &[x])
    }

    /// The last two axes exchanged.
    pub(in super::super) fn transpose_last(&mut self, x: Tensor) -> OpResult {
        let rank = self.rank(x);
        if rank < 2 {
            return wrong("a matrix is needed");
        }
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(rank - 2, rank - 1);
        self.transpose(x, &perm)
    }

    /// A window with steps; one entry per axis.
    pub(in super::super) fn slice(
        &mut self,
        x: Tensor,
        starts: &[Dim],
        sizes: &[Dim],
        steps: &[i64],
    ) -> OpResult {
        let whole = starts.iter().all(|s| s.is(0))
            && steps.iter().all(|&s| s == 1)
            && self.shape(x) == sizes;
        if whole {
            return Ok(x);
        }
        if let Some(t) = self.known_movement(x, sizes, |at, _| {
            let from = at.iter().zip(starts).zip(steps);
            Some(from.map(|((at, start), &step)| start + at.scaled(step)).collect())
        }) {
            return Ok(t);
        }
        let (starts, sizes, steps) = (starts.to_vec(), sizes.to_vec(), steps.to_vec());
        self.op(Op::Slice { starts, sizes, steps }, &[x])
    }

    /// A window along one axis.
    pub(in super::super) fn slice_axis(
        &mut self,
        x: Tensor,
        axis: usize,
        start: Dim,
        size: Dim,
        step: i64,
    ) -> OpResult {
        let rank = self.rank(x);
        let (mut starts, mut sizes, mut steps) =
            (vec![Dim::ZERO; rank], self.shape(x).to_vec(), vec![1; rank]);
        (starts[axis], sizes[axis], steps[axis]) = (start, size, step);
        self.slice(x, &starts, &sizes, &steps)
    }

    /// The elements at one coordinate of an axis, which goes.
    pub(in super::super) fn pick(&mut self, x: Tensor, axis: usize, at: Dim) -> OpResult {
        let x = self.slice_axis(x, axis, at, Dim::ONE, 1)?;
        self.squeeze(x, &[axis])
    }

    /// `x` cut along an axis into parts of these extents.
    pub(in super::super) fn split(
        &mut self,
        x: Tensor,
        axis: usize,
        sizes: &[Dim],
    ) -> OpResult<Vec<Tensor>> {
        let mut start = Dim::ZERO;
        let mut parts = Vec::with_capacity(sizes.len());
        for size in sizes {
            parts.push(self.slice_axis(x, axis, start.clone(), size.clone(), 1)?);
            start = start + size;
        }
        Ok(parts)
    }

    /// Grown or cropped ends; one entry per axis.
    pub(in super::super) fn pad(
        &mut self,
        x: Tensor,
        low: &[Dim],
        high: &[Dim],
        mode: PadMode,
    ) -> OpResult {
        if low.iter().chain(high).all(|d| d.is(0)) {
            return Ok(x);
        }
        let fill = match mode {
            PadMode::Constant(Scalar::Int(v)) => Some(Elem::Int(v.into())),
            PadMode::Constant(Scalar::Float(v)) => Some(Elem::Float(v)),
            PadMode::Constant(Scalar::Bool(v)) => Some(Elem::truth(v)),
            _ => None,
        };
        if let (Some(fill), Some(content)) = (fill, self.content(x)) {
            let extents = content.shape.clone();
            let shape: Vec<Dim> =
                extents.iter().zip(low).zip(high).map(|((d, l), h)| d + l + h).collect();
            let padded = Content::make(&shape, self.symbols(), |at, scope| {
                let from: Vec<Dim> = at.iter().zip(low).map(|(at, low)| at - low).collect();
                let mut inside = Elem::truth(true);
                for (at, extent) in from.iter().zip(&extents) {
                    let here = Content::inside(at, extent, scope);
                    inside = inside.binary(
                        aot_ir::op::BinaryOp::And,
                        &here,
                        aot_ir::DType::Bool,
                        scope,
                    )?;
                }
                match inside.as_bool() {
                    Some(true) => content.at(&from, scope),
                    Some(false) => Some(fill.clone()),
                    None => Elem::select(&inside, &content.at(&from, scope)?, &fill, scope),
                }
            });
            if let Some(padded) = padded {
                let dtype = self.dtype(x);
                return Ok(self.known(dtype, padded));
            }
        }
        self.op(Op::Pad { low: low.to_vec(), high: high.to_vec(), mode }, &[x])
    }

    /// Broadcast to a shape.
    pub(in super::super) fn expand(&mut self, x: Tensor, shape: &[Dim]) -> OpResult {
        if self.shape(x) == shape {
            return Ok(x);
        }
        let old = self.shape(x).to_vec();
        let fits = old.len() <= shape.len() && {
            let scope = self.scope();
            let lead = shape.len() - old.len();
            old.iter().zip(&shape[lead..]).all(|(a, b)| a.is(1) || scope.proves_eq(a, b))
        };
        if fits && let Some(t) = self.known_movement(x, shape, |at, _| Some(broadcast_at(&old, at)))
        {
            return Ok(t);
        }
        self.op(Op::Expand { shape: shape.to_vec() }, &[x])
    }

    /// Joined along an axis.
    pub(in super::super) fn concat(&mut self, parts: &[Tensor], axis: usize) -> OpResult {
        // Parts of no elements only matter for the type.
        let full: Vec<Tensor> = parts
            .iter()
            .copied()
            .filter(|&t| !self.shape(t).get(axis).is_some_and(|d| d.is(0)))
            .collect();
        let parts = if full.is_empty() { parts } else { full.as_slice() };
        if let [one] = parts {
            return Ok(*one);
        }
        if let Some(t) = self.known_concat(parts, axis) {
            return Ok(t);
        }
        let out = self.op(Op::Concat { axis }, parts)?;
        if self.rank(out) == 1 {
            self.set_made_of(out, parts);
        }
        Ok(out)
    }

    fn known_concat(&mut self, parts: &[Tensor], axis: usize) -> Option<Tensor> {
        let first = *parts.first()?;
        let dtype = self.dtype(first);
        let contents: Vec<_> = parts.iter().map(|&t| self.content(t)).collect::<Option<_>>()?;
        let mut shape = contents.first()?.shape.clone();
        shape.get(axis)?;
        for (content, &part) in contents.iter().zip(parts).skip(1) {
            let same = content.shape.len() == shape.len()
                && content
                    .shape
                    .iter()
                    .zip(&shape)
                    .enumerate()
                    .all(|(i, (a, b))| i == axis || a == b);
            if !same || self.dtype(part) != dtype {
                return None;
            }
            shape[axis] = &shape[axis] + &content.shape[axis];
        }
        let joined = Content::make(&shape, self.symbols(), |at, scope| {
            let mut end = shape[axis].clone();
            let mut out: Option<Elem> = None;
            for content in contents.iter().rev() {
                let start = &end - &content.shape[axis];
                let here = Content::inside(&(&at[axis] - &start), &content.shape[axis], scope);
                end = start.clone();
                if here.as_bool() == Some(false) {
                    continue;
                }
                let mut from = at.to_vec();
                from[axis] = &at[axis] - &start;
                let e = content.at(&from, scope)?;
                out = Some(match out {
                    Some(later) if here.as_bool().is_none() => {
                        Elem::select(&here, &e, &later, scope)?
                    }
                    _ => e,
                });
            }
            out
        })?;
        Some(self.known(dtype, joined))
    }

    /// `data` with an axis replaced by the axes of `indices`; negative indices count from the end.
    pub(in super::super) fn gather(
        &mut self,
        data: Tensor,
        indices: Tensor,
        axis: usize,
    ) -> OpResult {
        if let Some(t) = self.gather_known(data, indices, axis)? {
            return Ok(t);
        }
        self.op(Op::Gather { axis }, &[data, indices])
    }
}
