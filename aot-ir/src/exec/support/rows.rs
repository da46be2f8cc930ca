//! Walks over strided operands.

/// Strides of a dense tensor in row-major order.
pub(in crate::exec) fn contiguous(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut stride = 1usize;
    for (s, &extent) in strides.iter_mut().zip(shape).rev() {
        *s = stride as isize;
        stride = stride.saturating_mul(extent.max(1));
    }
    strides
}

/// Strides with which a dense tensor of shape `from` is read as one of shape `to`.
pub(in crate::exec) fn broadcast_strides(from: &[usize], to: &[usize]) -> Vec<isize> {
    let lead = to.len().saturating_sub(from.len());
    let mut strides = vec![0; to.len()];
    for (i, stride) in contiguous(from).into_iter().enumerate() {
        if from[i] != 1 {
            strides[lead + i] = stride;
        }
    }
    strides
}

/// A walk over a shape in row-major order with `N` strided operands, by rows: runs along the innermost
/// axis, after adjacent axes that every operand walks alike were merged.
#[derive(Debug)]
pub(in crate::exec) struct Rows<const N: usize> {
    outer: Vec<(usize, [isize; N])>,
    /// Elements of a row.
    pub(in crate::exec) len: usize,
    /// Distance of a row's elements, per operand.
    pub(in crate::exec) strides: [isize; N],
    /// Number of rows.
    pub(in crate::exec) count: usize,
}

impl<const N: usize> Rows<N> {
    pub(in crate::exec) fn new(shape: &[usize], strides: [&[isize]; N]) -> Self {
        let mut axes: Vec<(usize, [isize; N])> = Vec::with_capacity(shape.len());
        for (i, &extent) in shape.iter().enumerate() {
            if extent == 1 {
                continue;
            }
            let steps: [isize; N] = std::array::from_fn(|k| strides[k][i]);
            match axes.last_mut() {
                Some((outer, outer_steps))
                    if (0..N).all(|k| outer_steps[k] == steps[k] * extent as isize) =>
                {
                    *outer *= extent;
                    *outer_steps = steps;
                }
                _ => axes.push((extent, steps)),
            }
        }
        let (len, inner) = axes.pop().unwrap_or((1, [0; N]));
        let count = axes.iter().map(|(extent, _)| extent).product();
        Self { outer: axes, len, strides: inner, count }
    }

    /// Calls `f(i, offsets)` for the rows `first..first + n`, where `offsets` are those of the row's first
    /// element per operand.
    pub(in crate::exec) fn for_each(
        &self,
        first: usize,
        n: usize,
        mut f: impl FnMut(usize, [isize; N]),
    ) {
        let mut at = vec![0usize; self.outer.len()];
        let mut offsets = [0isize; N];
        let mut rest = first;
        for (i, (extent, steps)) in self.outer.iter().enumerate().rev() {
            at[i] = rest % extent;
            rest /= extent;
            for k in 0..N {
                offsets[k] += at[i] as isize * steps[k];
            }
        }
        for row in first..first + n {
            f(row, offsets);
            for (i, (extent, steps)) in self.outer.iter().enumerate().rev() {
                at[i] += 1;
                for k in 0..N {
                    offsets[k] += steps[k];
                }
                if at[i] < *extent {
                    break;
                }
                for k in 0..N {
                    offsets[k] -= at[i] as isize * steps[k];
                }
                at[i] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_merge_and_rows_advance() {
        let shape = [2, 3, 4];
        let (a, b) = (contiguous(&shape), broadcast_strides(&[3, 1], &shape));
        let rows = Rows::new(&shape, [&a, &b]);
        assert_eq!((rows.count, rows.len, rows.strides), (6, 4, [1, 0]));
        let mut seen = Vec::new();
        rows.for_each(2, 3, |i, o| seen.push((i, o)));
        assert_eq!(seen, [(2, [8, 2]), (3, [12, 0]), (4, [16, 1])]);
        let whole = Rows::new(&shape, [&a, &a]);
        assert_eq!((whole.count, whole.len), (1, 24));
    }
}
