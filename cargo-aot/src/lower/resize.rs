//! Interpolation as index maps and weights. Coordinates follow ONNX's Resize (opset 19).

use super::LowerError;
use super::builder::Builder;
use aot_ir::op::{BinaryOp, CoordinateMap, NearestRounding, ResizeAttrs, ResizeMode, UnaryOp};
use aot_ir::{DType, Dim, Scalar, ValueId};
use aot_kernels::group::ExprId;

/// A source coordinate with the weight of the element there.
struct Tap {
    at: Dim,
    weight: ExprId,
}

pub(super) fn resize(
    b: &mut Builder<'_>,
    attrs: &ResizeAttrs,
    x: ValueId,
    coords: &[Dim],
) -> Result<ExprId, LowerError> {
    let graph = b.plan.graph;
    let shape = &graph[x].shape;
    let mut source = coords.to_vec();
    let mut taps: Vec<(usize, Vec<Tap>)> = Vec::new();
    for axis in 0..coords.len() {
        let (from, to) = (&shape[axis], &attrs.sizes[axis]);
        let neutral = attrs.scales[axis].is_none_or(|s| s.as_f64() == 1.0);
        if neutral && b.scope().proves_eq(from, to) {
            continue;
        }
        if let ResizeMode::Nearest(rounding) = attrs.mode {
            source[axis] = match whole_factor(b, attrs, axis, from, rounding) {
                Some(factor) => b.scope().floor_div(&coords[axis], &factor.into()),
                None => nearest(b, attrs, axis, &coords[axis], from, rounding)?,
            };
            continue;
        }
        let position = position(b, attrs, axis, &coords[axis], from)?;
        taps.push((
            axis,
            match attrs.mode {
                ResizeMode::Cubic(a) => cubic(b, position, from, a.as_f64(), attrs.exclude_outside),
                _ => linear(b, position, from),
            },
        ));
    }
    interpolate(b, x, &mut source, &taps)
}

/// Weighted sum over the taps of every interpolated axis.
fn interpolate(
    b: &mut Builder<'_>,
    x: ValueId,
    source: &mut Vec<Dim>,
    taps: &[(usize, Vec<Tap>)],
) -> Result<ExprId, LowerError> {
    let Some(((axis, here), rest)) = taps.split_first() else { return b.value_at(x, source) };
    let mut sum = None;
    for tap in here {
        source[*axis] = tap.at.clone();
        let value = interpolate(b, x, source, rest)?;
        let weight = b.cast(tap.weight, b.plan.graph[x].dtype);
        let part = b.binary(BinaryOp::Mul, value, weight);
        sum = Some(match sum {
            None => part,
            Some(sum) => b.binary(BinaryOp::Add, sum, part),
        });
    }
    sum.ok_or_else(|| LowerError::internal("resize", "an axis without samples"))
}

/// The factor of an enlargement that repeats every element a whole number of times.
fn whole_factor(
    b: &Builder<'_>,
    attrs: &ResizeAttrs,
    axis: usize,
    from: &Dim,
    rounding: NearestRounding,
) -> Option<i64> {
    let repeats = matches!(
        (attrs.coordinates, rounding),
        (CoordinateMap::Asymmetric | CoordinateMap::TfHalfPixelForNn, NearestRounding::Floor)
            | (
                CoordinateMap::HalfPixel | CoordinateMap::HalfPixelSymmetric,
                NearestRounding::PreferFloor | NearestRounding::PreferCeil,
            )
    );
    let scale = match attrs.scales[axis] {
        Some(s) => (s.as_f64().fract() == 0.0 && s.as_f64() >= 1.0).then(|| s.as_f64() as i64)?,
        None => b.scope().floor_div(&attrs.sizes[axis], from).as_const()?,
    };
    let whole = scale >= 1 && b.scope().proves_eq(&from.scaled(scale), &attrs.sizes[axis]);
    (repeats && whole).then_some(scale)
}

fn float(b: &mut Builder<'_>, value: f64) -> ExprId {
    b.float(value, DType::F32)
}

/// `out / in`, or as the model says.
fn scale(b: &mut Builder<'_>, attrs: &ResizeAttrs, axis: usize, from: &Dim) -> ExprId {
    match attrs.scales[axis] {
        Some(s) => float(b, s.as_f64()),
        None => {
            let out = b.coord(&attrs.sizes[axis], DType::F32);
            let from = b.coord(from, DType::F32);
            b.binary(BinaryOp::Div, out, from)
        }
    }
}

/// The source position of a result coordinate, in elements.
fn position(
    b: &mut Builder<'_>,
    attrs: &ResizeAttrs,
    axis: usize,
    coord: &Dim,
    from: &Dim,
) -> Result<ExprId, LowerError> {
    let to = &attrs.sizes[axis];
    let x = b.coord(coord, DType::F32);
    let half = float(b, 0.5);
    Ok(match attrs.coordinates {
        CoordinateMap::Asymmetric => {
            let s = scale(b, attrs, axis, from);
            b.binary(BinaryOp::Div, x, s)
        }
        CoordinateMap::TfHalfPixelForNn => {
            let s = scale(b, attrs, axis, from);
            let x = b.binary(BinaryOp::Add, x, half);
            b.binary(BinaryOp::Div, x, s)
        }
        CoordinateMap::AlignCorners => {
            let steps = b.scope().max(&(to - 1), &Dim::ONE);
            let steps = b.coord(&steps, DType::F32);
            let last = b.coord(&(from - 1), DType::F32);
            let product = b.binary(BinaryOp::Mul, x, last);
            b.binary(BinaryOp::Div, product, steps)
        }
        CoordinateMap::PytorchHalfPixel if to.is(1) => float(b, 0.0),
        CoordinateMap::HalfPixel | CoordinateMap::PytorchHalfPixel => {
            let s = scale(b, attrs, axis, from);
            let center = b.binary(BinaryOp::Add, x, half);
            let center = b.binary(BinaryOp::Div, center, s);
            let position = b.binary(BinaryOp::Sub, center, half);
            if attrs.coordinates == CoordinateMap::HalfPixel {
                return Ok(position);
            }
            let one = b.coord(&Dim::ONE, DType::I64);
            let extent = b.coord(to, DType::I64);
            let single = b.binary(BinaryOp::Eq, extent, one);
            let zero = float(b, 0.0);
            b.select(single, zero, position)
        }
        CoordinateMap::HalfPixelSymmetric => {
            // The output is centred over an exact output of fractional length scale * in.
            let s = scale(b, attrs, axis, from);
            let from = b.coord(from, DType::F32);
            let to = b.coord(to, DType::F32);
            let exact = b.binary(BinaryOp::Mul, from, s);
            let adjustment = b.binary(BinaryOp::Div, to, exact);
            let center = b.binary(BinaryOp::Mul, from, half);
            let one = float(b, 1.0);
            let rest = b.binary(BinaryOp::Sub, one, adjustment);
            let offset = b.binary(BinaryOp::Mul, center, rest);
            let x = b.binary(BinaryOp::Add, x, half);
            let x = b.binary(BinaryOp::Div, x, s);
            let x = b.binary(BinaryOp::Add, x, offset);
            b.binary(BinaryOp::Sub, x, half)
        }
        other => return Err(LowerError::internal("resize", other.name())),
    })
}

fn nearest(
    b: &mut Builder<'_>,
    attrs: &ResizeAttrs,
    axis: usize,
    coord: &Dim,
    from: &Dim,
    rounding: NearestRounding,
) -> Result<Dim, LowerError> {
    let position = position(b, attrs, axis, coord, from)?;
    let half = float(b, 0.5);
    let rounded = match rounding {
        NearestRounding::Floor => b.unary(UnaryOp::Floor, position),
        NearestRounding::Ceil => b.unary(UnaryOp::Ceil, position),
        NearestRounding::PreferCeil => {
            let up = b.binary(BinaryOp::Add, position, half);
            b.unary(UnaryOp::Floor, up)
        }
        _ => {
            let down = b.binary(BinaryOp::Sub, position, half);
            b.unary(UnaryOp::Ceil, down)
        }
    };
    let at = b.cast(rounded, DType::I64);
    let at = b.index(at);
    Ok(b.clamped(&at, from))
}

fn linear(b: &mut Builder<'_>, position: ExprId, from: &Dim) -> Vec<Tap> {
    let zero = float(b, 0.0);
    let last = b.coord(&(from - 1), DType::F32);
    let position = b.binary(BinaryOp::Max, position, zero);
    let position = b.binary(BinaryOp::Min, position, last);
    let floor = b.unary(UnaryOp::Floor, position);
    let high = b.binary(BinaryOp::Sub, position, floor);
    let one = float(b, 1.0);
    let low = b.binary(BinaryOp::Sub, one, high);
    let at = b.cast(floor, DType::I64);
    let at = b.index(at);
    let next = b.clamped(&(&at + 1), from);
    let at = b.clamped(&at, from);
    vec![Tap { at, weight: low }, Tap { at: next, weight: high }]
}

/// Cubic convolution, Keys 1981: taps at -1, 0, 1 and 2 from the element below the position.
fn cubic(
    b: &mut Builder<'_>,
    position: ExprId,
    from: &Dim,
    a: f64,
    exclude_outside: bool,
) -> Vec<Tap> {
    let floor = b.unary(UnaryOp::Floor, position);
    let t = b.binary(BinaryOp::Sub, position, floor);
    let at = b.floor_to_int(position);
    let at = b.index(at);
    let one = float(b, 1.0);
    let u = b.binary(BinaryOp::Sub, one, t);
    let polynomial = |b: &mut Builder<'_>, x: ExprId, coefficients: [f64; 4]| {
        let mut out = float(b, coefficients[0]);
        for c in &coefficients[1..] {
            let c = float(b, *c);
            let product = b.binary(BinaryOp::Mul, out, x);
            out = b.binary(BinaryOp::Add, product, c);
        }
        out
    };
    let near = [a + 2.0, -(a + 3.0), 0.0, 1.0];
    let far = [a, -5.0 * a, 8.0 * a, -4.0 * a];
    let t1 = b.binary(BinaryOp::Add, t, one);
    let u1 = b.binary(BinaryOp::Add, u, one);
    let weights = [
        polynomial(b, t1, far),
        polynomial(b, t, near),
        polynomial(b, u, near),
        polynomial(b, u1, far),
    ];
    let places = [-1, 0, 1, 2].map(|d| &at + d);
    if !exclude_outside {
        let taps = places.iter().zip(weights);
        return taps.map(|(at, weight)| Tap { at: b.clamped(at, from), weight }).collect();
    }
    let zero = b.constant(Scalar::Float(0.0), DType::F32);
    let mut kept = Vec::new();
    let mut total = zero;
    for (at, weight) in places.iter().zip(weights) {
        let inside = b.within(at, from);
        let inside = b.condition(&inside);
        let weight = b.select(inside, weight, zero);
        total = b.binary(BinaryOp::Add, total, weight);
        kept.push((b.clamped(at, from), weight));
    }
    let scaled = kept.into_iter().map(|(at, weight)| {
        let weight = b.binary(BinaryOp::Div, weight, total);
        Tap { at, weight }
    });
    scaled.collect()
}
