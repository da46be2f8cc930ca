//! Resizing one axis after the other: through matrices of weights, with a filter that widens where the result is
//! smaller (antialias), or of a region that is data (crop and resize).

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::generate::coordinates;
use aot_ir::op::{
    BinaryOp, CoordinateMap, NearestRounding, PadMode, ReduceOp, ResizeMode, UnaryOp,
};
use aot_ir::{DType, Dim, Op};

/// An axis to resize.
pub(super) struct Resampled {
    pub(super) axis: usize,
    pub(super) size: Dim,
    pub(super) factor: Factor,
}

/// By how much an axis grows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Factor {
    /// `size / extent`.
    Exact,
    /// So much.
    Given(f64),
    /// Data: a scalar `F32`.
    Data(Tensor),
}

impl Resampled {
    /// The factor as a scalar `F32`.
    pub(super) fn scale(&self, c: &mut Call<'_>, extent: &Dim) -> OpResult {
        match self.factor {
            Factor::Given(scale) => Ok(c.scalar(scale, DType::F32)),
            Factor::Data(scale) => Ok(scale),
            Factor::Exact => {
                let (to, from) = (number(c, &self.size)?, number(c, extent)?);
                c.quotient(to, from)
            }
        }
    }
}

/// A filter of distances in elements.
#[derive(Clone, Copy)]
pub(super) enum Filter {
    Linear,
    Cubic(f64),
}

impl Filter {
    pub(super) fn of(mode: ResizeMode) -> OpResult<Self> {
        match mode {
            ResizeMode::Linear => Ok(Self::Linear),
            ResizeMode::Cubic(a) => Ok(Self::Cubic(a.as_f64())),
            ResizeMode::Nearest(_) => wrong("antialias takes mode linear or cubic"),
        }
    }

    /// Distance from which on weights are 0.
    pub(super) fn reach(self) -> i64 {
        match self {
            Self::Linear => 1,
            Self::Cubic(_) => 2,
        }
    }

    /// Weights of distances that are not negative.
    pub(super) fn weigh(self, c: &mut Call<'_>, distance: Tensor) -> OpResult {
        match self {
            Self::Linear => {
                let one = c.scalar_like(1.0, distance);
                let weight = c.difference(one, distance)?;
                c.with(BinaryOp::Max, weight, 0.0)
            }
            Self::Cubic(a) => {
                let near = polynomial(c, distance, [a + 2.0, -(a + 3.0), 0.0, 1.0])?;
                let far = polynomial(c, distance, [a, -5.0 * a, 8.0 * a, -4.0 * a])?;
                let zero = c.scalar_like(0.0, distance);
                let outside = c.with(BinaryOp::Ge, distance, 2.0)?;
                let far = c.select(outside, zero, far)?;
                let inner = c.with(BinaryOp::Le, distance, 1.0)?;
                c.select(inner, near, far)
            }
        }
    }
}

fn polynomial(c: &mut Call<'_>, x: Tensor, coefficients: [f64; 4]) -> OpResult {
    let mut sum = c.scalar_like(coefficients[0], x);
    for &k in &coefficients[1..] {
        sum = c.product(sum, x)?;
        sum = c.with(BinaryOp::Add, sum, k)?;
    }
    Ok(sum)
}

/// An extent as a scalar `F32`.
pub(super) fn number(c: &mut Call<'_>, d: &Dim) -> OpResult {
    let t = c.dims(std::slice::from_ref(d));
    let t = c.reshape(t, &[])?;
    c.cast(t, DType::F32)
}

/// The axes resized with a filter that is as wide as the distance of the result's elements, where that is
/// more than one element.
pub(super) fn antialias(
    c: &mut Call<'_>,
    x: Tensor,
    axes: &[Resampled],
    mode: ResizeMode,
    map: CoordinateMap,
    exclude_outside: bool,
) -> OpResult {
    let filter = Filter::of(mode)?;
    let dtype = c.dtype(x);
    let mut y = c.cast(x, wide(dtype))?;
    for along in axes {
        let extent = c.shape(y)[along.axis].clone();
        let scale = along.scale(c, &extent)?;
        let at = position(c, along, &extent, scale, map)?;
        let shrink = c.with(BinaryOp::Min, scale, 1.0)?;
        // Every element within reach of an edge: ceil(reach / scale), and one for the fraction.
        let margin = match along.factor {
            Factor::Given(scale) => {
                Dim::from((filter.reach() as f64 / scale.min(1.0)).ceil() as i64)
            }
            // What data gives is no less than size / extent.
            Factor::Exact | Factor::Data(_) => {
                let scope = c.scope();
                let wide = scope.ceil_div(&extent.scaled(filter.reach()), &along.size);
                scope.max(&wide, &filter.reach().into())
            }
        } + 1;
        let weights = Weights { filter, at, shrink: Some(shrink), margin, exclude_outside };
        y = weights.apply(c, y, along.axis)?;
    }
    narrow(c, y, dtype)
}

/// Floats that are computed in.
pub(super) fn wide(dtype: DType) -> DType {
    if dtype == DType::F64 { dtype } else { DType::F32 }
}

/// Back to the operand's type: integers rounded and saturated.
pub(super) fn narrow(c: &mut Call<'_>, y: Tensor, dtype: DType) -> OpResult {
    let y = if dtype.is_float() { y } else { c.unary(UnaryOp::Round, y)? };
    c.cast(y, dtype)
}

/// Weights of an axis' elements in the elements of the result.
struct Weights {
    filter: Filter,
    /// `[size, 1]`: where the result's elements lie.
    at: Tensor,
    /// Factor on distances: a scalar.
    shrink: Option<Tensor>,
    /// How far elements beyond the edges count, as copies of those at the edges.
    margin: Dim,
    exclude_outside: bool,
}

impl Weights {
    fn apply(&self, c: &mut Call<'_>, x: Tensor, axis: usize) -> OpResult {
        let rank = c.rank(x);
        let extent = c.shape(x)[axis].clone();
        let margin = if self.exclude_outside { Dim::ZERO } else { self.margin.clone() };
        let padded = &extent + &margin.scaled(2);
        let element = coordinates(c, &[Dim::ONE, padded], 1, DType::I64)?;
        let margin_tensor = c.dims(std::slice::from_ref(&margin));
        let element = c.difference(element, margin_tensor)?;
        let element = c.cast(element, DType::F32)?;
        let distance = c.difference(element, self.at)?;
        let mut distance = c.unary(UnaryOp::Abs, distance)?;
        if let Some(shrink) = self.shrink {
            distance = c.product(distance, shrink)?;
        }
        let mut weights = self.filter.weigh(c, distance)?;
        if self.shrink.is_some() || self.exclude_outside {
            let total = c.reduce(ReduceOp::Sum, weights, &[1], true)?;
            weights = c.quotient(weights, total)?;
        }
        let weights = c.cast_like(weights, x)?;
        let weights = c.transpose_last(weights)?;
        let mut pads = vec![Dim::ZERO; rank];
        pads[axis] = margin;
        let x = c.pad(x, &pads, &pads, PadMode::Edge)?;
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(axis, rank - 1);
        let x = c.transpose(x, &perm)?;
        let x = if rank == 1 { c.unsqueeze(x, &[0])? } else { x };
        let y = c.op(Op::MatMul, &[x, weights])?;
        let y = if rank == 1 { c.squeeze(y, &[0])? } else { y };
        c.transpose(y, &perm)
    }
}

/// Where the elements of the result lie in the operand: `[size, 1]`.
pub(super) fn position(
    c: &mut Call<'_>,
    along: &Resampled,
    extent: &Dim,
    scale: Tensor,
    map: CoordinateMap,
) -> OpResult {
    let at = coordinates(c, &[along.size.clone(), Dim::ONE], 0, DType::I64)?;
    let at = c.cast(at, DType::F32)?;
    match map {
        CoordinateMap::Asymmetric => c.quotient(at, scale),
        CoordinateMap::AlignCorners => {
            let steps = c.scope().max(&(&along.size - 1), &Dim::ONE);
            let (steps, last) = (number(c, &steps)?, number(c, &(extent - 1))?);
            let at = c.product(at, last)?;
            c.quotient(at, steps)
        }
        _ => {
            let at = c.with(BinaryOp::Add, at, 0.5)?;
            let at = c.quotient(at, scale)?;
            if map == CoordinateMap::TfHalfPixelForNn {
                return Ok(at);
            }
            let at = c.with(BinaryOp::Sub, at, 0.5)?;
            match map {
                CoordinateMap::HalfPixel => Ok(at),
                CoordinateMap::PytorchHalfPixel => {
                    let single = is_one(c, &along.size)?;
                    let zero = c.scalar_like(0.0, at);
                    c.select(single, zero, at)
                }
                CoordinateMap::HalfPixelSymmetric => {
                    // The result is centred over one of fractional length scale · extent.
                    let (from, to) = (number(c, extent)?, number(c, &along.size)?);
                    let exact = c.product(from, scale)?;
                    let adjustment = c.quotient(to, exact)?;
                    let one = c.scalar(1.0, DType::F32);
                    let rest = c.difference(one, adjustment)?;
                    let centre = c.with(BinaryOp::Mul, from, 0.5)?;
                    let offset = c.product(centre, rest)?;
                    c.sum(at, offset)
                }
                other => unsupported(format!("antialias with {}", other.name())),
            }
        }
    }
}

/// Whether an extent is 1.
fn is_one(c: &mut Call<'_>, extent: &Dim) -> OpResult {
    let t = c.dims(std::slice::from_ref(extent));
    let t = c.reshape(t, &[])?;
    c.with(BinaryOp::Eq, t, 1.0)
}

/// The part of `x` between the relative positions `starts` and `ends` of its axes (scalars, one per entry of
/// `axes`), resized; what lies outside is `extrapolation`.
pub(super) fn crop(
    c: &mut Call<'_>,
    x: Tensor,
    axes: &[Resampled],
    (starts, ends): (&[Tensor], &[Tensor]),
    mode: ResizeMode,
    exclude_outside: bool,
    extrapolation: f64,
) -> OpResult {
    let dtype = c.dtype(x);
    let nearest = matches!(mode, ResizeMode::Nearest(_));
    let mut y = if nearest { x } else { c.cast(x, wide(dtype))? };
    let mut outside: Option<Tensor> = None;
    for (along, (&start, &end)) in axes.iter().zip(starts.iter().zip(ends)) {
        let rank = c.rank(y);
        let extent = c.shape(y)[along.axis].clone();
        let last = number(c, &(&extent - 1))?;
        let start = c.cast(start, DType::F32)?;
        let end = c.cast(end, DType::F32)?;
        let at = coordinates(c, &[along.size.clone(), Dim::ONE], 0, DType::I64)?;
        let at = c.cast(at, DType::F32)?;
        // A result of one element lies in the middle.
        let single = is_one(c, &along.size)?;
        let middle = c.scalar(0.5, DType::F32);
        let steps = c.scope().max(&(&along.size - 1), &Dim::ONE);
        let steps = number(c, &steps)?;
        let share = c.quotient(at, steps)?;
        let share = c.select(single, middle, share)?;
        let range = c.difference(end, start)?;
        let share = c.product(share, range)?;
        let share = c.sum(share, start)?;
        let at = c.product(share, last)?;
        let below = c.with(BinaryOp::Lt, at, 0.0)?;
        let above = c.binary(BinaryOp::Gt, at, last)?;
        let off = c.binary(BinaryOp::Or, below, above)?;
        let mut line = vec![Dim::ONE; rank];
        line[along.axis] = along.size.clone();
        let off = c.reshape(off, &line)?;
        outside = Some(match outside {
            None => off,
            Some(outside) => c.binary(BinaryOp::Or, outside, off)?,
        });
        let at = c.with(BinaryOp::Max, at, 0.0)?;
        let at = c.binary(BinaryOp::Min, at, last)?;
        y = match mode {
            ResizeMode::Nearest(rounding) => {
                let at = rounded(c, at, rounding)?;
                let at = c.cast(at, DType::I64)?;
                let at = c.reshape(at, std::slice::from_ref(&along.size))?;
                c.gather(y, at, along.axis)?
            }
            _ => {
                let filter = Filter::of(mode)?;
                let margin = Dim::from(filter.reach());
                let weights = Weights { filter, at, shrink: None, margin, exclude_outside };
                weights.apply(c, y, along.axis)?
            }
        };
    }
    if !nearest {
        y = narrow(c, y, dtype)?;
    }
    let Some(outside) = outside else { return Ok(y) };
    let fill = c.scalar_like(extrapolation, y);
    c.select(outside, fill, y)
}

pub(super) fn rounded(c: &mut Call<'_>, at: Tensor, rounding: NearestRounding) -> OpResult {
    match rounding {
        NearestRounding::Floor => c.unary(UnaryOp::Floor, at),
        NearestRounding::Ceil => c.unary(UnaryOp::Ceil, at),
        NearestRounding::PreferCeil => {
            let at = c.with(BinaryOp::Add, at, 0.5)?;
            c.unary(UnaryOp::Floor, at)
        }
        _ => {
            let at = c.with(BinaryOp::Sub, at, 0.5)?;
            c.unary(UnaryOp::Ceil, at)
        }
    }
}
