//! Geometry of sliding windows, shared by convolution and pooling.

use super::infer::ShapeError;
use super::rule::{Rule, fail};
use crate::Dim;

/// Windows over one shape's spatial axes; lists have one entry per spatial axis.
pub(super) struct Windows<'a> {
    pub(super) kernel: &'a [Dim],
    pub(super) strides: &'a [i64],
    pub(super) pads: &'a [(Dim, Dim)],
    pub(super) dilations: &'a [i64],
}

impl Windows<'_> {
    /// Requires lists of the right length, positive strides and dilations, windows with elements, and
    /// padding that is not negative.
    pub(super) fn check(&self, rule: &mut Rule<'_>, spatial: usize) -> Result<(), ShapeError> {
        let lengths = [
            ("kernel", self.kernel.len()),
            ("strides", self.strides.len()),
            ("pads", self.pads.len()),
            ("dilations", self.dilations.len()),
        ];
        for (what, len) in lengths {
            if len != spatial {
                return fail(format!(
                    "{what} has {len} entries, expected one per spatial axis: {spatial}"
                ));
            }
        }
        for (what, list) in [("stride", self.strides), ("dilation", self.dilations)] {
            if let Some(bad) = list.iter().find(|&&v| v < 1) {
                return fail(format!("a {what} is {bad}, expected a positive number"));
            }
        }
        for (low, high) in self.pads {
            rule.extent(low, "padding")?;
            rule.extent(high, "padding")?;
        }
        for extent in self.kernel {
            rule.uniform(extent, "the kernel's extent")?;
            rule.at_most(&Dim::ONE, extent, || "the kernel has no elements".to_owned())?;
        }
        Ok(())
    }

    /// Distance from a window's first element to one past its last.
    pub(super) fn span(&self, axis: usize) -> Dim {
        (&self.kernel[axis] - 1).scaled(self.dilations[axis]) + 1
    }

    /// How far the first window can move along a spatial axis of this extent.
    fn room(&self, axis: usize, extent: &Dim) -> Dim {
        let (low, high) = &self.pads[axis];
        extent + low + high - self.span(axis)
    }

    /// How many windows there are along a spatial axis of this extent.
    pub(super) fn count(&self, rule: &Rule<'_>, axis: usize, extent: &Dim) -> Dim {
        rule.scope.floor_div(&self.room(axis, extent), &Dim::from(self.strides[axis])) + 1
    }

    /// As [`Windows::count`] for pooling: there is at least one window, and with `ceil` those that begin
    /// inside but end outside count.
    pub(super) fn count_partial(
        &self,
        rule: &Rule<'_>,
        axis: usize,
        extent: &Dim,
        ceil: bool,
    ) -> Dim {
        let scope = rule.scope;
        let low = &self.pads[axis].0;
        let stride = Dim::from(self.strides[axis]);
        let room = scope.above_zero(&self.room(axis, extent));
        if ceil {
            let room = scope.max(&room, &Dim::ZERO);
            let all = scope.ceil_div(&room, &stride) + 1;
            scope.min(&all, &scope.ceil_div(&(extent + low), &stride))
        } else {
            // The maximum stays outermost, where the next layer's finds it.
            scope.max(&(scope.floor_div(&room, &stride) + 1), &Dim::ONE)
        }
    }
}
