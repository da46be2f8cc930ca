//! Sampling at positions that are data.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::shape::product;
use super::table::{Entry, onnx};
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{DType, Dim};

pub(super) const RULES: &[Entry] = &[onnx("GridSample", grid_sample)];

/// Coefficient of the cubic kernel.
const CUBIC: f64 = -0.75;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// How one spatial axis is sampled.
pub(super) struct Axis {
    /// Its extent as a scalar of the type of positions.
    pub(super) extent: Tensor,
    pub(super) outside: Outside,
    /// Whether -1 and 1 stand for the centres of the outermost elements, or else for their outer edges.
    pub(super) corners: bool,
}

/// A sample along one axis: the place, what it weighs, and whether it lies inside.
#[derive(Clone, Copy)]
pub(super) struct Tap {
    place: Tensor,
    weight: Option<Tensor>,
    inside: Option<Tensor>,
}

impl Axis {
    fn last(&self, c: &mut Call<'_>) -> OpResult {
        c.with(BinaryOp::Sub, self.extent, 1.0)
    }

    /// The position in elements of a grid value in -1..1.
    fn position(&self, c: &mut Call<'_>, grid: Tensor) -> OpResult {
        let shifted = c.with(BinaryOp::Add, grid, 1.0)?;
        if self.corners {
            let last = self.last(c)?;
            let x = c.product(shifted, last)?;
            return c.with(BinaryOp::Mul, x, 0.5);
        }
        let x = c.product(shifted, self.extent)?;
        let x = c.with(BinaryOp::Sub, x, 1.0)?;
        c.with(BinaryOp::Mul, x, 0.5)
    }

    /// A position brought inside, as far as the mode does so.
    fn bring(&self, c: &mut Call<'_>, x: Tensor) -> OpResult {
        match self.outside {
            Outside::Zeros => Ok(x),
            Outside::Border => self.clamp(c, x),
            Outside::Reflection => {
                // Between the centres of the outermost elements, or between their outer edges.
                let (low, range) =
                    if self.corners { (0.0, self.last(c)?) } else { (-0.5, self.extent) };
                let range = c.with(BinaryOp::Max, range, f64::from(f32::MIN_POSITIVE))?;
                let period = c.with(BinaryOp::Mul, range, 2.0)?;
                let x = c.with(BinaryOp::Sub, x, low)?;
                let x = c.unary(UnaryOp::Abs, x)?;
                let x = c.binary(BinaryOp::Rem, x, period)?;
                let back = c.difference(period, x)?;
                let x = c.binary(BinaryOp::Min, x, back)?;
                c.with(BinaryOp::Add, x, low)
            }
        }
    }

    fn clamp(&self, c: &mut Call<'_>, x: Tensor) -> OpResult {
        let x = c.with(BinaryOp::Max, x, 0.0)?;
        let last = self.last(c)?;
        c.binary(BinaryOp::Min, x, last)
    }

    /// The sample at a whole position.
    fn tap(&self, c: &mut Call<'_>, at: Tensor, weight: Option<Tensor>) -> OpResult<Tap> {
        let inside = if self.outside == Outside::Zeros {
            let low = c.with(BinaryOp::Ge, at, 0.0)?;
            let high = c.binary(BinaryOp::Lt, at, self.extent)?;
            Some(c.binary(BinaryOp::And, low, high)?)
        } else {
            None
        };
        let at = self.bring(c, at)?;
        let at = self.clamp(c, at)?;
        Ok(Tap { place: c.cast(at, DType::I64)?, weight, inside })
    }

    /// The samples at positions in elements.
    pub(super) fn taps(&self, c: &mut Call<'_>, x: Tensor, mode: &str) -> OpResult<Vec<Tap>> {
        let x = self.bring(c, x)?;
        if mode == "nearest" {
            let at = c.unary(UnaryOp::Round, x)?;
            return Ok(vec![self.tap(c, at, None)?]);
        }
        let floor = c.unary(UnaryOp::Floor, x)?;
        let t = c.difference(x, floor)?;
        let mut taps = Vec::new();
        if mode.ends_with("cubic") {
            for i in -1..=2 {
                let at = c.with(BinaryOp::Add, floor, f64::from(i))?;
                let weight = cubic(c, t, f64::from(i))?;
                taps.push(self.tap(c, at, Some(weight))?);
            }
            return Ok(taps);
        }
        let one = c.scalar_like(1.0, t);
        let rest = c.difference(one, t)?;
        taps.push(self.tap(c, floor, Some(rest))?);
        let next = c.with(BinaryOp::Add, floor, 1.0)?;
        taps.push(self.tap(c, next, Some(t))?);
        Ok(taps)
    }
}

/// Weight of the element `i` from the floor, for the fraction `t`: the cubic kernel at `|t - i|`.
fn cubic(c: &mut Call<'_>, t: Tensor, i: f64) -> OpResult {
    let d = c.with(BinaryOp::Sub, t, i)?;
    let d = c.unary(UnaryOp::Abs, d)?;
    // As polynomials by Horner's rule: within 1 of the element, else within 2.
    let coefficients = if (0.0..=1.0).contains(&i) {
        [CUBIC + 2.0, -(CUBIC + 3.0), 0.0, 1.0]
    } else {
        [CUBIC, -5.0 * CUBIC, 8.0 * CUBIC, -4.0 * CUBIC]
    };
    let mut sum = c.with(BinaryOp::Mul, d, coefficients[0])?;
    for &k in &coefficients[1..3] {
        sum = c.with(BinaryOp::Add, sum, k)?;
        sum = c.product(sum, d)?;
    }
    c.with(BinaryOp::Add, sum, coefficients[3])
}

fn grid_sample(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, grid) = (c.x(0)?, c.x(1)?);
    let shape = c.shape(x).to_vec();
    let axes = shape.len().saturating_sub(2);
    let mode = c.text("mode", "linear");
    let outside = match c.text("padding_mode", "zeros").as_str() {
        "zeros" => Outside::Zeros,
        "border" => Outside::Border,
        "reflection" => Outside::Reflection,
        other => return wrong(format!("padding_mode is `{other}`")),
    };
    if axes == 0 || c.rank(grid) != axes + 2 {
        return wrong(format!("ranks {} and {}", shape.len(), c.rank(grid)));
    }
    if axes > 3 || (axes > 2 && mode.ends_with("cubic")) {
        return unsupported(format!("mode {mode} over {axes} axes"));
    }
    let corners = c.flag("align_corners", false);
    let out = c.shape(grid)[1..=axes].to_vec();
    let dtype = c.dtype(grid);
    let mut per_axis = Vec::new();
    for axis in 0..axes {
        // The grid names the last axis first.
        let at = c.pick(grid, axes + 1, Dim::from((axes - 1 - axis) as i64))?;
        let extent = extent(c, &shape[2 + axis])?;
        let extent = c.cast(extent, dtype)?;
        let along = Axis { extent, outside, corners };
        let position = along.position(c, at)?;
        per_axis.push(along.taps(c, position, &mode)?);
    }
    Ok(vec![sample(c, x, &per_axis, &out)?])
}

/// An extent as a scalar.
pub(super) fn extent(c: &mut Call<'_>, d: &Dim) -> OpResult {
    let t = c.dims(std::slice::from_ref(d));
    c.reshape(t, &[])
}

/// The weighted sums of samples of `x [n, channels, ..]`: `[n, channels, out..]`. The taps per spatial axis have
/// the shape `[n, out..]`.
pub(super) fn sample(c: &mut Call<'_>, x: Tensor, per_axis: &[Vec<Tap>], out: &[Dim]) -> OpResult {
    let shape = c.shape(x).to_vec();
    let (n, channels) = (shape[0].clone(), shape[1].clone());
    let flat = c.reshape(x, &[n.clone(), channels.clone(), product(&shape[2..])])?;
    let places = [n.clone(), channels.clone(), product(out)];
    let mut total: Option<Tensor> = None;
    let combinations: usize = per_axis.iter().map(Vec::len).product();
    for combination in 0..combinations {
        let mut rest = combination;
        let (mut place, mut weight, mut inside) = (None, None, None);
        for (axis, taps) in per_axis.iter().enumerate() {
            let tap = taps[rest % taps.len()];
            rest /= taps.len();
            place = Some(match place {
                None => tap.place,
                Some(place) => {
                    let extent = extent(c, &shape[2 + axis])?;
                    let line = c.product(place, extent)?;
                    c.sum(line, tap.place)?
                }
            });
            weight = match (weight, tap.weight) {
                (Some(a), Some(b)) => Some(c.product(a, b)?),
                (a, b) => a.or(b),
            };
            inside = match (inside, tap.inside) {
                (Some(a), Some(b)) => Some(c.binary(BinaryOp::And, a, b)?),
                (a, b) => a.or(b),
            };
        }
        let Some(place) = place else { return wrong("no spatial axes") };
        let line = [n.clone(), Dim::ONE, product(out)];
        let place = c.reshape(place, &line)?;
        let place = c.expand(place, &places)?;
        let mut value = c.gather_elements(flat, place, 2)?;
        if let Some(inside) = inside {
            let inside = c.reshape(inside, &line)?;
            let zero = c.scalar_like(0.0, value);
            value = c.select(inside, value, zero)?;
        }
        if let Some(weight) = weight {
            let weight = c.reshape(weight, &line)?;
            let weight = c.cast_like(weight, value)?;
            value = c.product(value, weight)?;
        }
        total = Some(match total {
            None => value,
            Some(total) => c.sum(total, value)?,
        });
    }
    let Some(total) = total else { return wrong("nothing to sample") };
    let mut result = vec![n, channels];
    result.extend_from_slice(out);
    c.reshape(total, &result)
}
