//! Before and after text detection: a picture becomes the network's input, its probability map
//! becomes boxes (Liao et al., "Real-time Scene Text Detection with Differentiable Binarization").

use image::RgbImage;

use crate::components::components;
use crate::pixels::Planes;
use crate::rectangle::{Quad, Rectangle, distance};
use crate::settings::{
    BOX_THRESHOLD, DETECT_MAX_SIDE, DETECT_STEP, MIN_SIDE, PIXEL_THRESHOLD, UNCLIP_RATIO,
};

/// Detection's input: the whole picture, its sides scaled to multiples of the step.
pub fn input(picture: &RgbImage) -> Planes {
    let (width, height) = (f64::from(picture.width()), f64::from(picture.height()));
    let scale = (DETECT_MAX_SIDE as f64 / width.max(height)).min(1.0);
    let side = |length: f64| {
        let steps = (length * scale / DETECT_STEP as f64 + 0.5).floor() as usize;
        (steps.max(1) * DETECT_STEP).min(DETECT_MAX_SIDE)
    };
    let (h, w) = (side(height), side(width));
    Planes::sample(picture, h, w, |x, y| {
        let x = (x as f64 + 0.5) * width / w as f64 - 0.5;
        let y = (y as f64 + 0.5) * height / h as f64 - 0.5;
        (x, y)
    })
}

/// Where text is: from a map of `map_width` columns, in the coordinates of a picture of the given
/// size, in reading order.
pub fn boxes(map: &[f32], map_width: usize, (width, height): (u32, u32)) -> Vec<Quad> {
    let map_height = map.len() / map_width;
    let (width, height) = (f64::from(width), f64::from(height));
    let (sx, sy) = (width / map_width as f64, height / map_height as f64);
    let quads = components(&grown_mask(map, map_width), map_width)
        .into_iter()
        .filter_map(|runs| {
            let ends = runs
                .iter()
                .flat_map(|run| [(run.first, run.y), (run.last, run.y)])
                .map(|(x, y)| (x as i64, y as i64));
            let rectangle = Rectangle::around(ends.collect())?;
            if rectangle.length.min(rectangle.breadth) < MIN_SIDE
                || mean_inside(map, map_width, &rectangle) < BOX_THRESHOLD
            {
                return None;
            }
            let (length, breadth) = (rectangle.length, rectangle.breadth);
            let out = length * breadth * UNCLIP_RATIO / (2.0 * (length + breadth));
            let clip = |(x, y): (f64, f64)| {
                ((x * sx).clamp(0.0, width - 1.0), (y * sy).clamp(0.0, height - 1.0))
            };
            Some(rectangle.grown(out).corners().map(clip))
        })
        .collect();
    reading_order(quads)
}

/// The pixels above the threshold, and their neighbours to the right and below, which joins the
/// letters of a word.
fn grown_mask(map: &[f32], width: usize) -> Vec<bool> {
    let set = |at: usize| f64::from(map[at]) > PIXEL_THRESHOLD;
    (0..map.len())
        .map(|at| {
            let (left, up) = (at % width > 0, at >= width);
            set(at)
                || (left && set(at - 1))
                || (up && set(at - width))
                || (left && up && set(at - width - 1))
        })
        .collect()
}

/// The mean of the map over the pixels whose centres lie in the rectangle.
fn mean_inside(map: &[f32], width: usize, rectangle: &Rectangle) -> f64 {
    let corners = rectangle.corners();
    let range = |coordinate: fn(&(f64, f64)) -> f64, size: usize| {
        let values = corners.iter().map(coordinate);
        let low = values.clone().fold(f64::INFINITY, f64::min).floor().max(0.0) as usize;
        let high = values.fold(f64::NEG_INFINITY, f64::max).ceil().max(0.0) as usize;
        low..(high + 1).min(size)
    };
    let (mut sum, mut count) = (0.0, 0.0);
    for y in range(|p| p.1, map.len() / width) {
        for x in range(|p| p.0, width) {
            if rectangle.contains((x as f64, y as f64)) {
                sum += f64::from(map[y * width + x]);
                count += 1.0;
            }
        }
    }
    if count == 0.0 { 0.0 } else { sum / count }
}

/// Rows from top to bottom, each from left to right: a box belongs to a row when its centre is
/// within half a height of the centre of the row's topmost box.
fn reading_order(mut quads: Vec<Quad>) -> Vec<Quad> {
    let centre = |q: &Quad| (q[0].1 + q[1].1 + q[2].1 + q[3].1) / 4.0;
    quads.sort_by(|a, b| centre(a).total_cmp(&centre(b)).then(a[0].0.total_cmp(&b[0].0)));
    let mut rows: Vec<Vec<Quad>> = Vec::new();
    for quad in quads {
        match rows.last_mut() {
            Some(row) if centre(&quad) - centre(&row[0]) < distance(row[0][0], row[0][3]) / 2.0 => {
                row.push(quad);
            }
            _ => rows.push(vec![quad]),
        }
    }
    for row in &mut rows {
        row.sort_by(|a, b| a[0].0.total_cmp(&b[0].0));
    }
    rows.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_multiples_of_the_step_within_bounds() {
        let size = |width, height| {
            let planes = input(&RgbImage::new(width, height));
            (planes.width, planes.height)
        };
        assert_eq!(size(1, 1), (32, 32));
        assert_eq!(size(100, 40), (96, 32));
        assert_eq!(size(1920, 1080), (960, 544));
    }

    #[test]
    fn a_bright_bar_becomes_a_box_around_it() {
        let (width, height) = (64, 32);
        let map: Vec<f32> = (0..width * height)
            .map(|at| {
                let (x, y) = (at % width, at / width);
                if (10..40).contains(&x) && (8..16).contains(&y) { 0.9 } else { 0.1 }
            })
            .collect();
        let quads = boxes(&map, width, (128, 64));
        let [quad] = quads[..] else { panic!("{quads:?}") };
        assert!(quad[0].0 < 20.0 && quad[0].1 < 16.0 && quad[2].0 > 78.0 && quad[2].1 > 30.0);
        assert!(quad[2].0 < 100.0 && quad[2].1 < 56.0);
    }

    #[test]
    fn boxes_side_by_side_are_read_from_left_to_right() {
        let quad = |x: f64, y: f64| [(x, y), (x + 9.0, y), (x + 9.0, y + 10.0), (x, y + 10.0)];
        let sorted = reading_order(vec![quad(50.0, 1.0), quad(0.0, 30.0), quad(0.0, 3.0)]);
        assert_eq!(sorted, [quad(0.0, 3.0), quad(50.0, 1.0), quad(0.0, 30.0)]);
    }
}
