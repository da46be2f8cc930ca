//! The size expressions inside operators.

use super::{ConvAttrs, Op, PoolAttrs, ResizeAttrs};
use crate::Dim;
use crate::dim::Atom;

impl Op {
    /// The operator with `f` applied to every size expression in its attributes, those in bodies left out.
    ///
    /// # Errors
    /// The first error of `f`.
    pub fn map_dims<E>(&self, f: &mut dyn FnMut(&Dim) -> Result<Dim, E>) -> Result<Op, E> {
        let mut op = self.clone();
        for dim in op.dims_mut() {
            *dim = f(dim)?;
        }
        Ok(op)
    }

    /// Every size expression in the attributes, and in the bodies of loops.
    pub fn dims(&self) -> Vec<&Dim> {
        match self {
            Self::Iota { shape, .. }
            | Self::Fill { shape, .. }
            | Self::Reshape { shape }
            | Self::Expand { shape } => shape.iter().collect(),
            Self::Dims { dims, .. } => dims.iter().collect(),
            Self::Slice { starts, sizes, .. } => starts.iter().chain(sizes).collect(),
            Self::Pad { low, high, .. } => low.iter().chain(high).collect(),
            Self::Conv(ConvAttrs { pads, .. })
            | Self::ConvTranspose { conv: ConvAttrs { pads, .. }, .. } => {
                pads.iter().flat_map(|(low, high)| [low, high]).collect()
            }
            Self::Pool(PoolAttrs { kernel, pads, .. }) => {
                kernel.iter().chain(pads.iter().flat_map(|(l, h)| [l, h])).collect()
            }
            Self::Resize(ResizeAttrs { sizes, .. }) => sizes.iter().collect(),
            Self::Host(op) => op.dims(),
            Self::Loop(attrs) => {
                let body = &attrs.body;
                let guards = body.guards.iter().flat_map(|guard| [&guard.lhs, &guard.rhs]);
                let shapes = body.values().flat_map(|(_, value)| &value.shape);
                let nodes = body.nodes().flat_map(|(_, node)| node.op.dims());
                std::iter::once(&attrs.count).chain(guards).chain(shapes).chain(nodes).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether `atoms`, by id, have a value for every symbol that is mentioned in [`Op::dims`] and not bound inside.
    pub(crate) fn is_sized_by(&self, atoms: &[i64]) -> bool {
        let bound = match self {
            Self::Loop(attrs) => attrs.inner_symbols(),
            _ => Vec::new(),
        };
        let open = |atom: &Atom| match atom {
            Atom::Sym(id) => id.0 as usize >= atoms.len() && !bound.contains(id),
            _ => false,
        };
        !self.dims().into_iter().any(|dim| dim.any(open))
    }

    /// As [`Op::dims`] without bodies, to be changed.
    fn dims_mut(&mut self) -> Vec<&mut Dim> {
        match self {
            Self::Iota { shape, .. }
            | Self::Fill { shape, .. }
            | Self::Reshape { shape }
            | Self::Expand { shape } => shape.iter_mut().collect(),
            Self::Dims { dims, .. } => dims.iter_mut().collect(),
            Self::Slice { starts, sizes, .. } => starts.iter_mut().chain(sizes).collect(),
            Self::Pad { low, high, .. } => low.iter_mut().chain(high).collect(),
            Self::Conv(ConvAttrs { pads, .. })
            | Self::ConvTranspose { conv: ConvAttrs { pads, .. }, .. } => {
                pads.iter_mut().flat_map(|(low, high)| [low, high]).collect()
            }
            Self::Pool(PoolAttrs { kernel, pads, .. }) => {
                kernel.iter_mut().chain(pads.iter_mut().flat_map(|(l, h)| [l, h])).collect()
            }
            Self::Resize(ResizeAttrs { sizes, .. }) => sizes.iter_mut().collect(),
            Self::Host(op) => op.dims_mut(),
            Self::Loop(attrs) => vec![&mut attrs.count],
            _ => Vec::new(),
        }
    }
}
