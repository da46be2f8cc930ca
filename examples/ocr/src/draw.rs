//! Marking boxes in a picture.

use image::{Rgb, RgbImage};

use crate::pixels::Point;
use crate::rectangle::{Quad, distance};

/// Draws the outline of a box, `width` pixels wide, with smooth edges.
pub fn outline(picture: &mut RgbImage, quad: &Quad, colour: Rgb<u8>, width: f64) {
    for i in 0..4 {
        stroke(picture, quad[i], quad[(i + 1) % 4], colour, width);
    }
}

fn stroke(picture: &mut RgbImage, a: Point, b: Point, colour: Rgb<u8>, width: f64) {
    let reach = width / 2.0 + 1.0;
    let range = |a: f64, b: f64, size: u32| {
        let low = (a.min(b) - reach).floor().max(0.0) as u32;
        let high = (a.max(b) + reach).ceil().max(0.0) as u32;
        low..high.saturating_add(1).min(size)
    };
    for y in range(a.1, b.1, picture.height()) {
        for x in range(a.0, b.0, picture.width()) {
            let away = distance_to_segment((f64::from(x), f64::from(y)), a, b);
            let cover = (width / 2.0 + 0.5 - away).clamp(0.0, 1.0);
            if cover > 0.0 {
                let pixel = picture.get_pixel_mut(x, y);
                for (p, c) in pixel.0.iter_mut().zip(colour.0) {
                    *p = (f64::from(*p) * (1.0 - cover) + f64::from(c) * cover).round() as u8;
                }
            }
        }
    }
}

fn distance_to_segment(p: Point, a: Point, b: Point) -> f64 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let square = dx * dx + dy * dy;
    let t = if square == 0.0 { 0.0 } else { ((p.0 - a.0) * dx + (p.1 - a.1) * dy) / square };
    let t = t.clamp(0.0, 1.0);
    distance(p, (a.0 + t * dx, a.1 + t * dy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outline_marks_its_sides_alone_and_may_leave_the_picture() {
        let mut picture = RgbImage::new(20, 20);
        let quad = [(4.0, 4.0), (40.0, 4.0), (40.0, 15.0), (4.0, 15.0)];
        outline(&mut picture, &quad, Rgb([200, 0, 0]), 2.0);
        assert_eq!(picture.get_pixel(4, 9).0, [200, 0, 0]);
        assert_eq!(picture.get_pixel(19, 4).0, [200, 0, 0]);
        assert_eq!(picture.get_pixel(10, 10).0, [0, 0, 0]);
    }
}
