//! Before and after text recognition: boxes become lines pulled straight, lines become batches, and
//! the network's probabilities become text.

use image::RgbImage;

use crate::pixels::Planes;
use crate::rectangle::{Quad, distance};
use crate::settings::{
    LINE_BATCH, LINE_HEIGHT, LINE_MAX_WIDTH, LINE_MIN_WIDTH, LINE_WIDTH_STEP, VERTICAL_RATIO,
};

/// The text of a box, pulled straight to [`LINE_HEIGHT`] and the width that keeps its shape.
pub fn straighten(picture: &RgbImage, quad: Quad) -> Planes {
    let mut quad = quad;
    let mut width = distance(quad[0], quad[1]).max(distance(quad[3], quad[2]));
    let mut height = distance(quad[0], quad[3]).max(distance(quad[1], quad[2]));
    if height >= width * VERTICAL_RATIO {
        quad.rotate_left(1);
        (width, height) = (height, width);
    }
    let pixels = (LINE_HEIGHT as f64 * width / height.max(1.0)).ceil() as usize;
    let pixels = pixels.clamp(1, LINE_MAX_WIDTH);
    let map = Projection::onto(quad);
    Planes::sample(picture, LINE_HEIGHT, pixels, |x, y| {
        let u = (x as f64 + 0.5) / pixels as f64;
        let v = (y as f64 + 0.5) / LINE_HEIGHT as f64;
        map.apply(u, v)
    })
}

/// The projective map of the unit square onto a quadrilateral (Heckbert, "Fundamentals of Texture
/// Mapping and Image Warping", 1989, section 2.2.3).
struct Projection {
    x: [f64; 3],
    y: [f64; 3],
    w: [f64; 2],
}

impl Projection {
    fn onto([(x0, y0), (x1, y1), (x2, y2), (x3, y3)]: Quad) -> Self {
        let (sx, sy) = (x0 - x1 + x2 - x3, y0 - y1 + y2 - y3);
        let (dx1, dy1, dx2, dy2) = (x1 - x2, y1 - y2, x3 - x2, y3 - y2);
        let det = dx1 * dy2 - dx2 * dy1;
        let (g, h) = if det == 0.0 {
            (0.0, 0.0)
        } else {
            ((sx * dy2 - dx2 * sy) / det, (dx1 * sy - sx * dy1) / det)
        };
        Self {
            x: [x1 - x0 + g * x1, x3 - x0 + h * x3, x0],
            y: [y1 - y0 + g * y1, y3 - y0 + h * y3, y0],
            w: [g, h],
        }
    }

    fn apply(&self, u: f64, v: f64) -> (f64, f64) {
        let w = self.w[0] * u + self.w[1] * v + 1.0;
        (
            (self.x[0] * u + self.x[1] * v + self.x[2]) / w,
            (self.y[0] * u + self.y[1] * v + self.y[2]) / w,
        )
    }
}

/// Lines that are recognised at once.
#[derive(Debug)]
pub struct Batch {
    /// Which lines, by index.
    pub lines: Vec<usize>,
    /// Width of the input: the widest line's, rounded up.
    pub width: usize,
    /// The input, [lines, 3, LINE_HEIGHT, width]; zeros on the right of shorter lines.
    pub input: Vec<f32>,
}

/// Groups lines of similar width.
pub fn batches(lines: &[Planes]) -> impl Iterator<Item = Batch> {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|&i| lines[i].width);
    let groups: Vec<Vec<usize>> = order.chunks(LINE_BATCH).map(<[usize]>::to_vec).collect();
    groups.into_iter().map(|group| {
        let widest = group.iter().map(|&i| lines[i].width).max().unwrap_or(0);
        let width = widest.next_multiple_of(LINE_WIDTH_STEP).max(LINE_MIN_WIDTH);
        let mut input = vec![0.0; group.len() * 3 * LINE_HEIGHT * width];
        for (rows, &i) in input.chunks_mut(3 * LINE_HEIGHT * width).zip(&group) {
            for (to, from) in rows.chunks_mut(width).zip(lines[i].values.chunks(lines[i].width)) {
                to[..from.len()].copy_from_slice(from);
            }
        }
        Batch { lines: group, width, input }
    })
}

/// The characters that a recognition network knows: class 0 is the blank between characters.
#[derive(Debug)]
pub struct Characters(Vec<String>);

impl Characters {
    /// From the list in the model's metadata, one character a line; the space comes last.
    pub fn from_metadata(list: &str) -> Self {
        Self(list.split('\n').chain([" "]).map(str::to_owned).collect())
    }

    /// Classes that the network must have, the blank included.
    pub fn classes(&self) -> usize {
        self.0.len() + 1
    }

    /// Greedy CTC decoding of one line's probabilities [steps, classes]: the likeliest class of each
    /// step, repeats merged, blanks dropped. Returns the text without spaces around it, and the mean
    /// probability of its characters.
    pub fn decode(&self, probabilities: &[f32]) -> (String, f64) {
        let (mut text, mut sum, mut count, mut last) = (String::new(), 0.0, 0.0, 0);
        for step in probabilities.chunks_exact(self.classes()) {
            let first = (0, f32::NEG_INFINITY);
            let (best, score) =
                (0..).zip(step).fold(first, |best, (i, &p)| if p > best.1 { (i, p) } else { best });
            if best != 0 && best != last {
                text.push_str(&self.0[best - 1]);
                sum += f64::from(score);
                count += 1.0;
            }
            last = best;
        }
        (text.trim_matches(' ').to_owned(), if count == 0.0 { 0.0 } else { sum / count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_projection_meets_the_corners() {
        let quad = [(1.0, 2.0), (9.0, 1.0), (8.0, 7.0), (0.0, 5.0)];
        let map = Projection::onto(quad);
        for ((u, v), (x, y)) in
            [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)].into_iter().zip(quad)
        {
            let (px, py) = map.apply(u, v);
            assert!((px - x).abs() < 1e-12 && (py - y).abs() < 1e-12);
        }
    }

    #[test]
    fn text_that_runs_downwards_is_turned() {
        let picture = RgbImage::new(20, 90);
        let quad = [(0.0, 0.0), (10.0, 0.0), (10.0, 80.0), (0.0, 80.0)];
        assert_eq!(straighten(&picture, quad).width, 8 * LINE_HEIGHT);
    }

    #[test]
    fn batches_hold_lines_of_similar_width_padded_with_zeros() {
        let line = |width| Planes {
            height: LINE_HEIGHT,
            width,
            values: vec![1.0; 3 * LINE_HEIGHT * width],
        };
        let lines: Vec<Planes> = (0..9).map(|i| line(if i == 0 { 500 } else { 20 + i })).collect();
        let made: Vec<Batch> = batches(&lines).collect();
        assert_eq!(made.len(), 2);
        assert_eq!((made[0].lines.len(), made[0].width), (8, 320));
        assert_eq!((made[1].lines.as_slice(), made[1].width), ([0].as_slice(), 512));
        assert_eq!(made[1].input[499..501], [1.0, 0.0]);
        assert_eq!(made[1].input.iter().filter(|v| **v == 1.0).count(), 500 * 3 * LINE_HEIGHT);
    }

    #[test]
    fn repeats_merge_and_blanks_part() {
        let characters = Characters::from_metadata("a\nb");
        let steps = [3, 1, 1, 0, 1, 2, 3];
        let probabilities: Vec<f32> = steps
            .iter()
            .flat_map(|&best| (0..4).map(move |i| if i == best { 0.8 } else { 0.1 }))
            .collect();
        let (text, score) = characters.decode(&probabilities);
        assert_eq!(text, "aab");
        assert!((score - 0.8).abs() < 1e-6);
        assert_eq!(characters.decode(&[]), (String::new(), 0.0));
    }
}
