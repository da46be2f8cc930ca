//! Resize and its predecessors.

use super::super::builder::{Most, OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::super::known::Elem;
use super::resample::{self, Resampled};
use super::table::{Entry, onnx, since};
use aot_ir::dim::Cmp;
use aot_ir::op::{CoordinateMap, NearestRounding, ResizeAttrs, ResizeMode};
use aot_ir::{Dim, Op, Scalar};

pub(super) const RULES: &[Entry] = &[
    onnx("Upsample", |c| {
        let scales = match c.floats_attr("scales") {
            Some(scales) => scales.iter().map(|&s| Elem::Float(s.into())).collect(),
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

/// The factors, which may be quotients of run-time sizes.
fn scales_input(c: &mut Call<'_>, n: usize) -> OpResult<Vec<Elem>> {
    let Some(t) = c.opt(n) else { return wrong("scales are missing") };
    match c.content(t).as_ref().and_then(|content| content.list()) {
        Some(list) => Ok(list.to_vec()),
        None => super::super::call::depends("the scales of a resize"),
    }
}

/// Result extents of factors: `floor(extent · factor)`.
fn extents(c: &Call<'_>, shape: &[Dim], scales: &[Elem]) -> OpResult<Vec<(Dim, Option<Scalar>)>> {
    if shape.len() != scales.len() {
        return wrong(format!("{} scales for rank {}", scales.len(), shape.len()));
    }
    let scope = c.scope();
    let mut out = Vec::new();
    for (extent, scale) in shape.iter().zip(scales) {
        out.push(match scale {
            Elem::Ratio(a, b) => (scope.floor_div(&(extent * a), b), None),
            Elem::Float(f) if *f > 0.0 && f.is_finite() => {
                let given = Some(Scalar::Float(*f));
                match (extent.as_const(), small_ratio(*f)) {
                    (Some(n), _) => {
                        // The product in f32, as the reference does it.
                        let size = (n as f64 * f).floor();
                        (Dim::from(size as i64), given)
                    }
                    (None, Some((a, b))) => (scope.floor_div(&extent.scaled(a), &b.into()), given),
                    (None, None) => {
                        return unsupported(format!("scale {f} over a run-time size"));
                    }
                }
            }
            other => return wrong(format!("scale {other:?} is not positive")),
        });
    }
    Ok(out)
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
    scales: Vec<Elem>,
    coordinates: CoordinateMap,
    nearest: NearestRounding,
) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let mode = mode(c, nearest)?;
    let (sizes, scales) = extents(c, c.shape(x), &scales)?.into_iter().unzip();
    let attrs = ResizeAttrs { mode, coordinates, sizes, scales, exclude_outside: false };
    Ok(vec![c.op(Op::Resize(attrs), &[x])?])
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
    let mut all: Vec<(Dim, Option<Scalar>)> =
        shape.iter().map(|d| (d.clone(), Some(Scalar::Float(1.0)))).collect();
    let part: Vec<Dim> = axes.iter().map(|&a| shape[a].clone()).collect();
    if given(c.opt(2), c) {
        let scales = scales_input(c, 2)?;
        let found = extents(c, &part, &scales)?;
        axes.iter().zip(found).for_each(|(&a, found)| all[a] = found);
    } else {
        let Some(sizes) = c.input_sizes(3, "the sizes of Resize", 1, &Most::Unknown)? else {
            return wrong("scales and sizes are missing");
        };
        if sizes.len() != axes.len() {
            return wrong(format!("{} sizes for {} axes", sizes.len(), axes.len()));
        }
        let kept = keep_aspect(c, &part, &sizes)?;
        for (i, &axis) in axes.iter().enumerate() {
            all[axis] = match &kept {
                Some((sizes, scale)) => (sizes[i].clone(), Some(*scale)),
                None => (sizes[i].clone(), None),
            };
        }
    }
    let exclude_outside = c.flag("exclude_outside", false);
    let mode = mode(c, nearest)?;
    let resampled = |all: &[(Dim, Option<Scalar>)], axis: usize| Resampled {
        axis,
        size: all[axis].0.clone(),
        scale: all[axis].1.map(Scalar::as_f64),
    };
    if c.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" {
        let axes: Vec<Resampled> = axes.iter().map(|&axis| resampled(&all, axis)).collect();
        return Ok(vec![crop(c, x, axes, mode, exclude_outside)?]);
    }
    let mut smaller = Vec::new();
    if c.flag("antialias", false) {
        for (axis, extent) in shape.iter().enumerate() {
            let along = resampled(&all, axis);
            let grows = match along.scale {
                Some(scale) => scale >= 1.0,
                None => c.scope().decide(Cmp::Le, extent, &along.size) == Some(true),
            };
            if !grows {
                all[axis] = (extent.clone(), Some(Scalar::Float(1.0)));
                smaller.push(along);
            }
        }
    }
    let mut y = x;
    if smaller.is_empty() || all.iter().zip(&shape).any(|((size, _), extent)| size != extent) {
        let (sizes, scales) = all.into_iter().unzip();
        let attrs = ResizeAttrs { mode, coordinates, sizes, scales, exclude_outside };
        y = c.op(Op::Resize(attrs), &[x])?;
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

/// Sizes and factor where one factor for all axes is asked for.
fn keep_aspect(c: &Call<'_>, shape: &[Dim], sizes: &[Dim]) -> OpResult<Option<(Vec<Dim>, Scalar)>> {
    let larger = match c.text("keep_aspect_ratio_policy", "stretch").as_str() {
        "stretch" => return Ok(None),
        "not_larger" => false,
        "not_smaller" => true,
        other => return wrong(format!("keep_aspect_ratio_policy is `{other}`")),
    };
    let mut factor: Option<f64> = None;
    let mut old = Vec::new();
    for (extent, size) in shape.iter().zip(sizes) {
        let (Some(n), Some(size)) = (extent.as_const(), size.as_const()) else {
            return unsupported("keep_aspect_ratio_policy over run-time sizes");
        };
        if n < 1 {
            return wrong("a resize of nothing");
        }
        old.push(n);
        let f = size as f64 / n as f64;
        factor = Some(factor.map_or(f, |g| if larger { g.max(f) } else { g.min(f) }));
    }
    let factor = factor.unwrap_or(1.0);
    let sizes = old.iter().map(|&n| Dim::from((n as f64 * factor).round() as i64)).collect();
    Ok(Some((sizes, Scalar::Float(factor))))
}
