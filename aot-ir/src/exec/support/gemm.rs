//! Matrix products, `c += a b` or `c = a b`, with any strides.
//!
//! The one place that calls the library's unsafe functions.

use super::threads::parts;

/// A read-only matrix inside a slice.
#[derive(Clone, Copy, Debug)]
pub(in crate::exec) struct Matrix<'a, T> {
    pub(in crate::exec) data: &'a [T],
    pub(in crate::exec) rows: usize,
    pub(in crate::exec) columns: usize,
    pub(in crate::exec) row_stride: usize,
    pub(in crate::exec) column_stride: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// A dense matrix.
    pub(in crate::exec) fn dense(data: &'a [T], rows: usize, columns: usize) -> Self {
        Self { data, rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// The transpose.
    pub(in crate::exec) fn t(self) -> Self {
        Self {
            data: self.data,
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }

    fn fits(&self) -> bool {
        self.rows == 0
            || self.columns == 0
            || last(self.rows, self.row_stride)
                .checked_add(last(self.columns, self.column_stride))
                .is_some_and(|last| last < self.data.len())
    }

    fn starting_at(&self, row: usize, rows: usize) -> Self {
        Self { data: &self.data[row * self.row_stride..], rows, ..*self }
    }
}

fn last(extent: usize, stride: usize) -> usize {
    (extent - 1).saturating_mul(stride)
}

/// A matrix to write, with adjacent elements in a row.
#[derive(Debug)]
pub(in crate::exec) struct MatrixMut<'a, T> {
    pub(in crate::exec) data: &'a mut [T],
    pub(in crate::exec) row_stride: usize,
}

/// Number types with matrix products.
pub(in crate::exec) trait Gemm: Copy + Send + Sync {
    /// `c = a b`, or `c += a b` when `add`, on one thread.
    fn gemm_on_one(a: Matrix<'_, Self>, b: Matrix<'_, Self>, c: MatrixMut<'_, Self>, add: bool);

    /// `c = a b`, or `c += a b` when `add`.
    ///
    /// # Panics
    /// When shapes differ or a matrix exceeds its slice: bugs of the caller.
    fn gemm(a: Matrix<'_, Self>, b: Matrix<'_, Self>, c: MatrixMut<'_, Self>, add: bool) {
        if a.rows == 0 || b.columns == 0 {
            return;
        }
        let stride = c.row_stride;
        let end = last(a.rows, stride) + b.columns;
        let cost = a.columns.saturating_mul(b.columns) / 16;
        parts(&mut c.data[..end], stride, cost, |row, part| {
            let rows = part.len().div_ceil(stride);
            let a = a.starting_at(row, rows);
            Self::gemm_on_one(a, b, MatrixMut { data: part, row_stride: stride }, add);
        });
    }
}

fn check<T>(a: &Matrix<'_, T>, b: &Matrix<'_, T>, c: &MatrixMut<'_, T>) {
    assert_eq!(a.columns, b.rows, "inner extents differ");
    assert!(a.fits() && b.fits(), "a matrix exceeds its slice");
    assert!(c.row_stride >= b.columns, "rows of the result overlap");
    assert!(
        a.rows == 0 || b.columns == 0 || last(a.rows, c.row_stride) + b.columns <= c.data.len(),
        "the result exceeds its slice"
    );
    for extent in [a.rows, a.columns, b.columns, a.row_stride, a.column_stride, b.row_stride] {
        assert!(isize::try_from(extent).is_ok(), "an extent exceeds isize");
    }
}

macro_rules! float_gemm {
    ($type:ty, $function:path) => {
        impl Gemm for $type {
            #[allow(unsafe_code)]
            fn gemm_on_one(
                a: Matrix<'_, Self>,
                b: Matrix<'_, Self>,
                c: MatrixMut<'_, Self>,
                add: bool,
            ) {
                check(&a, &b, &c);
                let beta = if add { 1.0 } else { 0.0 };
                // SAFETY: `check` has proved that every element addressed by the extents and strides
                // lies in its slice, that the extents fit, and that rows of `c` do not overlap; `c` is
                // borrowed mutably, so it aliases neither operand.
                unsafe {
                    $function(
                        a.rows,
                        a.columns,
                        b.columns,
                        1.0,
                        a.data.as_ptr(),
                        a.row_stride as isize,
                        a.column_stride as isize,
                        b.data.as_ptr(),
                        b.row_stride as isize,
                        b.column_stride as isize,
                        beta,
                        c.data.as_mut_ptr(),
                        c.row_stride as isize,
                        1,
                    );
                }
            }
        }
    };
}

float_gemm!(f32, matrixmultiply::sgemm);
float_gemm!(f64, matrixmultiply::dgemm);

impl Gemm for i64 {
    fn gemm_on_one(a: Matrix<'_, Self>, b: Matrix<'_, Self>, c: MatrixMut<'_, Self>, add: bool) {
        check(&a, &b, &c);
        for i in 0..a.rows {
            let row = &mut c.data[i * c.row_stride..][..b.columns];
            if !add {
                row.fill(0);
            }
            for k in 0..a.columns {
                let x = a.data[i * a.row_stride + k * a.column_stride];
                let other = &b.data[k * b.row_stride..];
                for (j, out) in row.iter_mut().enumerate() {
                    *out = out.wrapping_add(x.wrapping_mul(other[j * b.column_stride]));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_transposes_and_accumulation() {
        let a: Vec<f32> = (0..6).map(|v| v as f32).collect();
        let mut c = vec![0.0f32; 5];
        let m = Matrix::dense(&a, 2, 3);
        f32::gemm(m, m.t(), MatrixMut { data: &mut c, row_stride: 3 }, false);
        assert_eq!(c, [5.0, 14.0, 0.0, 14.0, 50.0]);
        f32::gemm(m, m.t(), MatrixMut { data: &mut c, row_stride: 3 }, true);
        assert_eq!(c, [10.0, 28.0, 0.0, 28.0, 100.0]);
        let (x, y) = ([1i64, 2, 3, 4], [5i64, 6, 7, 8]);
        let mut z = [0; 4];
        let out = MatrixMut { data: &mut z, row_stride: 2 };
        i64::gemm(Matrix::dense(&x, 2, 2), Matrix::dense(&y, 2, 2), out, false);
        assert_eq!(z, [19, 22, 43, 50]);
    }
}
