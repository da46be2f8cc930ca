//! Resize and its predecessors.

use super::super::builder::{Element, Most, OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::super::known::Elem;
use super::resample::{self, Factor, Resampled, number};
use super::resize_by_data::by_data;
use super::table::{Entry, onnx, since};
use aot_ir::dim::Cmp;
use aot_ir::op::{BinaryOp, CoordinateMap, NearestRounding, ResizeAttrs, ResizeMode, UnaryOp};
use aot_ir::{DType, Dim, Op, Scalar};

pub(super) const RULES: &[Entry] = &[
    onnx("Upsample", |c| {
        let scales = match c.floats_attr("scales") {
            Some(scales) => {
                let all: Vec<Elem> = scales.iter().map(|&s| Elem::Float(s.into())).collect();
                all.into_iter().map(Scale::Known).collect()
            }
            None => scales_input(c, 1)?,
        };
        scaled(c, scales, CoordinateMap::Asymmetric, NearestRounding::Floor)
    }),
    since(10, "Resize", |c| {
        let scales = scales_input(c, 1)?;
        scaled(c, scales, CoordinateMap::Asymmetric, NearestRounding::Floor)
    }),
    since(11, "Resize", resize),
];

/// A factor as the model has it.
enum Scale {
    /// A number, or a quotient of run-time sizes.
    Known(Elem),
    /// Data, of rank 0.
    Data(Tensor),
}

/// The factors.
fn scales_input(c: &mut Call<'_>, n: usize) -> OpResult<Vec<Scale>> {
    let Some(t) = c.opt(n) else { return wrong("scales are missing") };
    let scalars = c.scalars(t, "the scales of a resize")?;
    let scales = scalars.into_iter().map(|t| {
        let content = c.content(t);
        match content.as_ref().and_then(|content| content.list()) {
            Some([elem]) => Scale::Known(elem.clone()),
            _ => Scale::Data(t),
        }
    });
    Ok(scales.collect())
}

/// Result extents of factors: `floor(extent · factor)`. An extent that data gives goes by the output's axis.
fn extents(c: &mut Call<'_>, axes: &[usize], scales: &[Scale]) -> OpResult<Vec<(Dim, Factor)>> {
    if axes.len() != scales.len() {
        return wrong(format!("{} scales for {} axes", scales.len(), axes.len()));
    }
    let shape = c.shape(c.x(0)?).to_vec();
    let mut sizes = Vec::new();
    let mut factors = Vec::new();
    for (&axis, scale) in axes.iter().zip(scales) {
        let extent = &shape[axis];
        let (size, factor) = match scale {
            Scale::Data(t) => {
                let factor = c.cast(*t, DType::F32)?;
                let size = number(c, extent)?;
                let size = c.product(size, factor)?;
                let size = c.unary(UnaryOp::Floor, size)?;
                (Element::Data(c.cast(size, DType::I64)?), Factor::Data(factor))
            }
            Scale::Known(elem) => {
                let (size, factor) = known_extent(c, extent, elem)?;
                (Element::Known(size), factor)
            }
        };
        sizes.push(size);
        factors.push(factor);
    }
    let names: Vec<String> = axes.iter().map(|&axis| c.extent_name(&c.output(0), axis)).collect();
    let sizes = c.sizes(&sizes, 1, &Most::Unknown, &names)?;
    Ok(sizes.into_iter().zip(factors).collect())
}

fn known_extent(c: &Call<'_>, extent: &Dim, scale: &Elem) -> OpResult<(Dim, Factor)> {
    let scope = c.scope();
    Ok(match scale {
        Elem::Ratio(a, b) => (scope.floor_div(&(extent * a), b), Factor::Exact),
        Elem::Float(f) if *f > 0.0 && f.is_finite() => {
            let given = Factor::Given(*f);
            match (extent.as_const(), small_ratio(*f)) {
                (Some(n), _) => (Dim::from((n as f64 * f).floor() as i64), given),
                (None, Some((a, b))) => (scope.floor_div(&extent.scaled(a), &b.into()), given),
                (None, None) => return unsupported(format!("scale {f} over a run-time size")),
            }
        }
        other => return wrong(format!("scale {other:?} is not positive")),
    })
}

/// A factor as a fraction of small numbers, if it is exactly (in f32) one.
fn small_ratio(f: f64) -> Option<(i64, i64)> {
    (1..=1024).find_map(|b| {
        let a = (f * b as f64).round();
        ((1.0..1e9).contains(&a) && (a / b as f64) as f32 == f as f32).then_some((a as i64, b))
    })
}

fn mode(c: &Call<'_>, nearest: NearestRounding) -> OpResult<ResizeMode> {
    Ok(match c.text("mode", "nearest").as_str() {
        "nearest" => ResizeMode::Nearest(nearest),
        "linear" | "bilinear" => ResizeMode::Linear,
        "cubic" => ResizeMode::Cubic(Scalar::Float(c.float("cubic_coeff_a", -0.75))),
        other => return wrong(format!("mode is `{other}`")),
    })
}

fn scaled(
    c: &mut Call<'_>,
    scales: Vec<Scale>,
    coordinates: CoordinateMap,
    nearest: NearestRounding,
) -> OpResult<Vec<Tensor>> {
    let axes: Vec<usize> = (0..c.rank(c.x(0)?)).collect();
    let all = extents(c, &axes, &scales)?;
    let mode = mode(c, nearest)?;
    Ok(vec![sampled(c, all, mode, coordinates, false)?])
}

/// The first input, each axis resized.
fn sampled(
    c: &mut Call<'_>,
    all: Vec<(Dim, Factor)>,
    mode: ResizeMode,
    coordinates: CoordinateMap,
    exclude_outside: bool,
) -> OpResult {
    let x = c.x(0)?;
    let mut from_data = Vec::new();
    let (mut sizes, mut scales) = (Vec::new(), Vec::new());
    let shape = c.shape(x).to_vec();
    for (axis, ((size, factor), extent)) in all.into_iter().zip(&shape).enumerate() {
        let (size, scale) = match factor {
            Factor::Exact => (size, None),
            Factor::Given(scale) => (size, Some(Scalar::Float(scale))),
            Factor::Data(_) => {
                from_data.push(Resampled { axis, size, factor });
                (extent.clone(), Some(Scalar::Float(1.0)))
            }
        };
        sizes.push(size);
        scales.push(scale);
    }
    let mut y = x;
    if from_data.is_empty() || sizes != shape {
        let attrs = ResizeAttrs { mode, coordinates, sizes, scales, exclude_outside };
        y = c.op(Op::Resize(attrs), &[x])?;
    }
    match from_data.is_empty() {
        true => Ok(y),
        false => by_data(c, y, &from_data, mode, coordinates, exclude_outside),
    }
}

fn resize(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let shape = c.shape(x).to_vec();
    let nearest = match c.text("nearest_mode", "round_prefer_floor").as_str() {
        "round_prefer_floor" => NearestRounding::PreferFloor,
        "round_prefer_ceil" => NearestRounding::PreferCeil,
        "floor" => NearestRounding::Floor,
        "ceil" => NearestRounding::Ceil,
        other => return wrong(format!("nearest_mode is `{other}`")),
    };
    let coordinates = match c.text("coordinate_transformation_mode", "half_pixel").as_str() {
        "half_pixel" => CoordinateMap::HalfPixel,
        "half_pixel_symmetric" => CoordinateMap::HalfPixelSymmetric,
        "pytorch_half_pixel" => CoordinateMap::PytorchHalfPixel,
        "align_corners" => CoordinateMap::AlignCorners,
        "asymmetric" => CoordinateMap::Asymmetric,
        "tf_half_pixel_for_nn" => CoordinateMap::TfHalfPixelForNn,
        // The region of the whole is what is left when there is none.
        "tf_crop_and_resize" => CoordinateMap::AlignCorners,
        other => return wrong(format!("coordinate_transformation_mode is `{other}`")),
    };
    let axes = match c.ints_attr("axes") {
        Some(axes) => axes.iter().map(|&a| c.axis_of(a, shape.len())).collect::<OpResult<_>>()?,
        None => (0..shape.len()).collect::<Vec<_>>(),
    };
    let given = |t: Option<Tensor>, c: &Call<'_>| {
        t.is_some_and(|t| !c.shape(t).first().is_some_and(|d| d.is(0)))
    };
    let mut all: Vec<(Dim, Factor)> =
        shape.iter().map(|d| (d.clone(), Factor::Given(1.0))).collect();
    if given(c.opt(2), c) {
        let scales = scales_input(c, 2)?;
        let found = extents(c, &axes, &scales)?;
        axes.iter().zip(found).for_each(|(&a, found)| all[a] = found);
    } else {
        let Some(sizes) = c.input_sizes(3, "the sizes of Resize", 1, &Most::Unknown)? else {
            return wrong("scales and sizes are missing");
        };
        if sizes.len() != axes.len() {
            return wrong(format!("{} sizes for {} axes", sizes.len(), axes.len()));
        }
        let kept = keep_aspect(c, &axes, &sizes)?;
        let stretched = || sizes.iter().map(|size| (size.clone(), Factor::Exact)).collect();
        let found: Vec<(Dim, Factor)> = kept.unwrap_or_else(stretched);
        axes.iter().zip(found).for_each(|(&a, found)| all[a] = found);
    }
    let exclude_outside = c.flag("exclude_outside", false);
    let mode = mode(c, nearest)?;
    let resampled = |all: &[(Dim, Factor)], axis: usize| {
        let (size, factor) = all[axis].clone();
        Resampled { axis, size, factor }
    };
    if c.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" {
        let axes: Vec<Resampled> = axes.iter().map(|&axis| resampled(&all, axis)).collect();
        return Ok(vec![crop(c, x, axes, mode, exclude_outside)?]);
    }
    let mut smaller = Vec::new();
    if c.flag("antialias", false) {
        for (axis, extent) in shape.iter().enumerate() {
            let along = resampled(&all, axis);
            let grows = match along.factor {
                Factor::Given(scale) => scale >= 1.0,
                Factor::Exact => c.scope().decide(Cmp::Le, extent, &along.size) == Some(true),
                Factor::Data(_) => false,
            };
            if !grows {
                all[axis] = (extent.clone(), Factor::Given(1.0));
                smaller.push(along);
            }
        }
    }
    let mut y = x;
    if smaller.is_empty() || all.iter().zip(&shape).any(|((size, _), extent)| size != extent) {
        y = sampled(c, all, mode, coordinates, exclude_outside)?;
    }
    if !smaller.is_empty() {
        y = resample::antialias(c, y, &smaller, mode, coordinates, exclude_outside)?;
    }
    Ok(vec![y])
}

/// A region of `x`, given by `input 1 [2 · axes]`, resized.
fn crop(
    c: &mut Call<'_>,
    x: Tensor,
    mut axes: Vec<Resampled>,
    mode: ResizeMode,
    exclude_outside: bool,
) -> OpResult {
    let roi = c.x(1)?;
    let count = axes.len() as i64;
    if c.shape(roi) != [Dim::from(2 * count)] {
        return wrong(format!("roi has to have {} elements", 2 * count));
    }
    let extrapolation = c.float("extrapolation_value", 0.0);
    let (mut starts, mut ends, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for (i, along) in (0..count).zip(axes.drain(..)) {
        let start = c.pick(roi, 0, i.into())?;
        let end = c.pick(roi, 0, (count + i).into())?;
        let whole = c.uniform(start) == Some(0.0) && c.uniform(end) == Some(1.0);
        let extent = &c.shape(x)[along.axis];
        if *extent == along.size && (whole || extent.is(1)) {
            continue;
        }
        starts.push(start);
        ends.push(end);
        kept.push(along);
    }
    resample::crop(c, x, &kept, (&starts, &ends), mode, exclude_outside, extrapolation)
}

/// Sizes and factors where one factor for all axes is asked for.
fn keep_aspect(
    c: &mut Call<'_>,
    axes: &[usize],
    sizes: &[Dim],
) -> OpResult<Option<Vec<(Dim, Factor)>>> {
    let larger = match c.text("keep_aspect_ratio_policy", "stretch").as_str() {
        "stretch" => return Ok(None),
        "not_larger" => false,
        "not_smaller" => true,
        other => return wrong(format!("keep_aspect_ratio_policy is `{other}`")),
    };
    let shape = c.shape(c.x(0)?);
    let old: Vec<Dim> = axes.iter().map(|&axis| shape[axis].clone()).collect();
    let constants =
        old.iter().zip(sizes).map(|(old, new)| Some((old.as_const()?, new.as_const()?)));
    let Some(constants) = constants.collect::<Option<Vec<(i64, i64)>>>() else {
        return aspect_of_data(c, axes, &old, sizes, larger).map(Some);
    };
    if constants.iter().any(|(old, _)| *old < 1) {
        return wrong("a resize of nothing");
    }
    let factors = constants.iter().map(|&(old, new)| new as f64 / old as f64);
    let factor = factors.reduce(if larger { f64::max } else { f64::min }).unwrap_or(1.0);
    let size = |&(old, _): &(i64, i64)| Dim::from((old as f64 * factor).round() as i64);
    Ok(Some(constants.iter().map(|pair| (size(pair), Factor::Given(factor))).collect()))
}

/// The same at run time: the factor is data.
fn aspect_of_data(
    c: &mut Call<'_>,
    axes: &[usize],
    old: &[Dim],
    sizes: &[Dim],
    larger: bool,
) -> OpResult<Vec<(Dim, Factor)>> {
    let op = if larger { BinaryOp::Max } else { BinaryOp::Min };
    let mut factor: Option<Tensor> = None;
    for (from, to) in old.iter().zip(sizes) {
        let (from, to) = (number(c, from)?, number(c, to)?);
        let own = c.quotient(to, from)?;
        factor = Some(match factor {
            None => own,
            Some(factor) => c.binary(op, factor, own)?,
        });
    }
    let Some(factor) = factor else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for ((&axis, from), to) in axes.iter().zip(old).zip(sizes) {
        let from = number(c, from)?;
        let size = c.product(from, factor)?;
        let size = c.with(BinaryOp::Add, size, 0.5)?;
        let size = c.unary(UnaryOp::Floor, size)?;
        let size = c.cast(size, DType::I64)?;
        let most = if larger { Most::Unknown } else { Most::Valid(to.clone()) };
        let name = c.extent_name(&c.output(0), axis);
        found.push((c.size(size, &name, 1, &most)?, Factor::Data(factor)));
    }
    Ok(found)
}
