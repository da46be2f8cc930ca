//! Gathers whose indices are known: moved coordinates instead of look-ups.

use super::super::known::{Content, Elem, coordinates};
use super::tensors::{Builder, OpResult, Tensor};
use aot_ir::dim::{Atom, Cmp};
use aot_ir::op::ScatterReduction;
use aot_ir::{Dim, Op, Scope};

/// Where an axis of the data is read.
enum At {
    /// At one place for the whole result.
    Fixed(Dim),
    /// At `start + step * coordinate` along an axis of the result.
    Along { axis: usize, start: Dim, step: i64 },
}

impl Builder {
    /// [`Builder::gather`] where the indices are known, if that helps.
    pub(super) fn gather_known(
        &mut self,
        data: Tensor,
        indices: Tensor,
        axis: usize,
    ) -> OpResult<Option<Tensor>> {
        let Some(index) = self.content(indices) else { return Ok(None) };
        let old = self.shape(data).to_vec();
        if axis >= old.len() {
            return Ok(None);
        }
        let rank = index.shape.len();
        let mut shape = old.clone();
        shape.splice(axis..=axis, index.shape.iter().cloned());
        self.read_at(data, &shape, |at, scope| {
            let here = index.at(&at[axis..axis + rank], scope)?;
            let mut from = at.to_vec();
            from.splice(axis..axis + rank, [here.as_int()?.clone()]);
            Some(from)
        })
    }

    /// ONNX's GatherND: the last axis of `indices` addresses axes of `data`.
    pub(in super::super) fn gather_nd(
        &mut self,
        data: Tensor,
        indices: Tensor,
        batch_dims: usize,
    ) -> OpResult {
        if let Some(index) = self.content(indices)
            && let Some((last, lead)) = index.shape.split_last()
            && let Some(k) = last.as_const().and_then(|k| usize::try_from(k).ok())
            && batch_dims <= lead.len()
            && batch_dims + k <= self.rank(data)
        {
            let lead_rank = lead.len();
            let mut shape = lead.to_vec();
            shape.extend_from_slice(&self.shape(data)[batch_dims + k..]);
            let found = self.read_at(data, &shape, |at, scope| {
                let mut from = at[..batch_dims].to_vec();
                for i in 0..k {
                    let mut place = at[..lead_rank].to_vec();
                    place.push(Dim::from(i as i64));
                    from.push(index.at(&place, scope)?.as_int()?.clone());
                }
                from.extend_from_slice(&at[lead_rank..]);
                Some(from)
            })?;
            if let Some(t) = found {
                return Ok(t);
            }
        }
        self.op(Op::GatherNd { batch_dims }, &[data, indices])
    }

    /// A list of known elements of which constant places get other known elements: a place per element of `updates`.
    pub(in super::super) fn scatter_known(
        &mut self,
        data: Tensor,
        indices: Tensor,
        updates: Tensor,
        reduction: ScatterReduction,
    ) -> Option<Tensor> {
        let (old, new) = (self.content(data)?, self.content(updates)?);
        if reduction != ScatterReduction::None || old.shape.len() != 1 || new.shape.len() != 1 {
            return None;
        }
        let mut list = old.list()?.to_vec();
        let places = self.ints(indices)?;
        let new = new.list()?;
        if places.len() != new.len() {
            return None;
        }
        for (place, element) in places.iter().zip(new) {
            let place = place.as_const()?;
            let place = if place < 0 { place + list.len() as i64 } else { place };
            *list.get_mut(usize::try_from(place).ok()?)? = element.clone();
        }
        let dtype = self.dtype(data);
        Some(self.known(dtype, Content::vector(list)))
    }

    /// ONNX's GatherElements: `out[.., i, ..] = data[.., indices[.., i, ..], ..]`.
    pub(in super::super) fn gather_elements(
        &mut self,
        data: Tensor,
        indices: Tensor,
        axis: usize,
    ) -> OpResult {
        if let Some(index) = self.content(indices)
            && index.shape.len() == self.rank(data)
        {
            let shape = index.shape.clone();
            let found = self.read_at(data, &shape, |at, scope| {
                let mut from = at.to_vec();
                from[axis] = index.at(at, scope)?.as_int()?.clone();
                Some(from)
            })?;
            if let Some(t) = found {
                return Ok(t);
            }
        }
        self.op(Op::GatherElements { axis }, &[data, indices])
    }

    /// `out[at] = data[from(at)]` as a known tensor, or as movement; `None` when it is neither.
    fn read_at(
        &mut self,
        data: Tensor,
        shape: &[Dim],
        from: impl Fn(&[Dim], &Scope<'_>) -> Option<Vec<Dim>>,
    ) -> OpResult<Option<Tensor>> {
        let extents = self.shape(data).to_vec();
        let wrapped = |at: &[Dim], scope: &Scope<'_>| -> Option<Vec<Dim>> {
            let from = from(at, scope)?;
            from.iter().zip(&extents).map(|(at, extent)| in_range(at, extent, scope)).collect()
        };
        if let Some(content) = self.content(data) {
            let dtype = self.dtype(data);
            let moved = Content::make(shape, self.symbols(), |at, scope| {
                content.at(&wrapped(at, scope)?, scope)
            });
            if let Some(moved) = moved {
                return Ok(Some(self.known(dtype, moved)));
            }
        }
        let coordinates = coordinates(shape);
        let places = {
            let scope = Scope { symbols: self.symbols(), extents: shape };
            let Some(from) = wrapped(&coordinates, &scope) else { return Ok(None) };
            match from.iter().map(linear).collect::<Option<Vec<At>>>() {
                Some(places) => places,
                None => return Ok(None),
            }
        };
        let mut seen = vec![false; shape.len()];
        for place in &places {
            if let At::Along { axis, .. } = place
                && std::mem::replace(&mut seen[*axis], true)
            {
                return Ok(None);
            }
        }
        self.move_to(data, shape, &places).map(Some)
    }

    /// Slices, transposes and expands `data` so that each of its axes is read at its place.
    fn move_to(&mut self, data: Tensor, shape: &[Dim], places: &[At]) -> OpResult {
        let (mut starts, mut sizes, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        let mut axes = Vec::new();
        for place in places {
            let (start, size, step) = match place {
                At::Fixed(at) => (at.clone(), Dim::ONE, 1),
                At::Along { axis, start, step } => {
                    axes.push(*axis);
                    (start.clone(), shape[*axis].clone(), *step)
                }
            };
            starts.push(start);
            sizes.push(size);
            steps.push(step);
        }
        let mut x = self.slice(data, &starts, &sizes, &steps)?;
        let fixed: Vec<usize> =
            (0..places.len()).filter(|&i| matches!(places[i], At::Fixed(_))).collect();
        x = self.squeeze(x, &fixed)?;
        let mut perm: Vec<usize> = (0..axes.len()).collect();
        perm.sort_by_key(|&i| axes[i]);
        x = self.transpose(x, &perm)?;
        let missing: Vec<usize> = (0..shape.len()).filter(|i| !axes.contains(i)).collect();
        x = self.unsqueeze(x, &missing)?;
        self.expand(x, shape)
    }
}

/// A coordinate proved to lie in `0..extent`, after counting negative ones from the end.
fn in_range(at: &Dim, extent: &Dim, scope: &Scope<'_>) -> Option<Dim> {
    let at = match scope.decide(Cmp::Lt, at, &Dim::ZERO) {
        Some(true) => at + extent,
        Some(false) => at.clone(),
        None => {
            let negative = scope.cond(Cmp::Lt, at, &Dim::ZERO);
            let wrapped = scope.select(&negative, &(at + extent), at);
            // Without a proof for either case there is none for both.
            scope.proves_nonneg(&wrapped).then_some(wrapped)?
        }
    };
    let inside = Content::inside(&at, extent, scope);
    (inside == Elem::truth(true)).then_some(at)
}

/// A coordinate that is constant or linear in one coordinate of the result.
fn linear(at: &Dim) -> Option<At> {
    if at.is_uniform() {
        return Some(At::Fixed(at.clone()));
    }
    let (mut along, mut start) = (None, Dim::from(at.constant_part()));
    for term in at.terms() {
        let alone = Dim::from_terms(0, [term.clone()]);
        match term.factors.as_slice() {
            _ if alone.is_uniform() => start = start + alone,
            [Atom::Var(v)] if along.is_none() => along = Some((v.0 as usize, term.coefficient)),
            _ => return None,
        }
    }
    along.map(|(axis, step)| At::Along { axis, start, step })
}
