//! Sliding windows over planes of any number of spatial axes.

use super::super::error::ExecError;
use crate::Dim;

/// One plane of the operand and one of the result, and the windows between them.
#[derive(Debug)]
pub(super) struct Geometry {
    pub(super) input: Vec<usize>,
    pub(super) output: Vec<usize>,
    pub(super) kernel: Vec<usize>,
    pub(super) strides: Vec<usize>,
    pub(super) dilations: Vec<usize>,
    /// Padding before and after.
    pub(super) pads: Vec<(usize, usize)>,
}

/// A position in the window, and where it meets the operand.
pub(super) struct Tap<'a> {
    /// Index of the position in the window, in row-major order.
    pub(super) position: usize,
    /// For each row of the result, where the operand's row starts; `None` in the padding.
    pub(super) rows: &'a [Option<usize>],
    /// Which elements of a result's row lie inside the operand's.
    pub(super) inside: std::ops::Range<usize>,
    /// The operand's coordinate in its row that the first of `inside` meets.
    pub(super) start: usize,
}

pub(super) fn constants(dims: impl IntoIterator<Item = Dim>) -> Result<Vec<usize>, ExecError> {
    let number = |dim: Dim| match dim.as_const().and_then(|c| usize::try_from(c).ok()) {
        Some(number) => Ok(number),
        None => Err(ExecError::value(format!("{dim} is no size"))),
    };
    dims.into_iter().map(number).collect()
}

impl Geometry {
    pub(super) fn new(
        input: &[usize],
        output: &[usize],
        kernel: &[usize],
        strides: &[i64],
        dilations: &[i64],
        pads: &[(Dim, Dim)],
    ) -> Result<Self, ExecError> {
        let low = constants(pads.iter().map(|p| p.0.clone()))?;
        let high = constants(pads.iter().map(|p| p.1.clone()))?;
        Ok(Self {
            input: input.to_vec(),
            output: output.to_vec(),
            kernel: kernel.to_vec(),
            strides: constants(strides.iter().map(|&s| Dim::from(s)))?,
            dilations: constants(dilations.iter().map(|&d| Dim::from(d)))?,
            pads: low.into_iter().zip(high).collect(),
        })
    }

    /// Elements of an operand's plane.
    pub(super) fn input_len(&self) -> usize {
        self.input.iter().product()
    }

    /// Elements of a result's plane.
    pub(super) fn output_len(&self) -> usize {
        self.output.iter().product()
    }

    /// Elements of a window.
    pub(super) fn window_len(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Extent of a result's row.
    pub(super) fn row_len(&self) -> usize {
        self.output.last().copied().unwrap_or(1)
    }

    /// Whether every window is one element, the one at its own place.
    pub(super) fn is_identity(&self) -> bool {
        self.kernel.iter().all(|&k| k == 1)
            && self.strides.iter().all(|&s| s == 1)
            && self.pads.iter().all(|&p| p == (0, 0))
    }

    /// The operand's coordinate along an axis, if it is inside.
    fn coordinate(&self, axis: usize, out: usize, tap: usize) -> Option<usize> {
        let i = out * self.strides[axis] + tap * self.dilations[axis];
        i.checked_sub(self.pads[axis].0).filter(|&i| i < self.input[axis])
    }

    /// For each position of the window's outer axes and each result row, where the operand's row starts.
    pub(super) fn row_starts(&self) -> Vec<Vec<Option<usize>>> {
        let outer = self.input.len() - 1;
        let mut tables = vec![vec![Some(0usize)]];
        for axis in 0..outer {
            let (extent, taps) = (self.input[axis], self.kernel[axis]);
            let mut next = Vec::with_capacity(tables.len() * taps);
            for table in &tables {
                for tap in 0..taps {
                    let rows = table.iter().flat_map(|start| {
                        (0..self.output[axis]).map(move |out| {
                            Some((*start)? * extent + self.coordinate(axis, out, tap)?)
                        })
                    });
                    next.push(rows.collect());
                }
            }
            tables = next;
        }
        let width = self.input[outer];
        for start in tables.iter_mut().flatten().flatten() {
            *start *= width;
        }
        tables
    }

    /// All positions of the window; `rows` come from [`Geometry::row_starts`].
    pub(super) fn taps<'a>(
        &'a self,
        rows: &'a [Vec<Option<usize>>],
    ) -> impl Iterator<Item = Tap<'a>> {
        let last = self.input.len() - 1;
        let (width, stride) = (self.input[last], self.strides[last].max(1));
        let (pad, out) = (self.pads[last].0, self.output[last]);
        let taps = self.kernel[last];
        rows.iter().enumerate().flat_map(move |(i, rows)| {
            (0..taps).map(move |tap| {
                let shift = tap * self.dilations[last];
                let lo = pad.saturating_sub(shift).div_ceil(stride).min(out);
                let hi = (width + pad).saturating_sub(shift).div_ceil(stride).clamp(lo, out);
                Tap {
                    position: i * taps + tap,
                    rows,
                    inside: lo..hi,
                    start: if hi > lo { lo * stride + shift - pad } else { 0 },
                }
            })
        })
    }

    /// Step between the operand's elements that adjacent elements of a result's row meet.
    pub(super) fn row_stride(&self) -> usize {
        self.strides[self.strides.len() - 1]
    }
}
