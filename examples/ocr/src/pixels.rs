//! Sampling pictures between their pixels, and the networks' view of them.

use image::RgbImage;

/// A point in pixels: x to the right, y downwards; pixel centres have whole coordinates.
pub type Point = (f64, f64);

/// Three planes [blue, green, red] of `height` × `width` values in -1..=1, as the networks were
/// trained, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Planes {
    pub height: usize,
    pub width: usize,
    pub values: Vec<f32>,
}

impl Planes {
    /// Samples `picture` at `place(x, y)` for each pixel (x, y) of the planes.
    pub fn sample(
        picture: &RgbImage,
        height: usize,
        width: usize,
        place: impl Fn(usize, usize) -> Point,
    ) -> Self {
        let area = height * width;
        let mut values = vec![0.0; 3 * area];
        for y in 0..height {
            for x in 0..width {
                let [red, green, blue] = bilinear(picture, place(x, y)).map(normalise);
                let at = y * width + x;
                values[at] = blue;
                values[area + at] = green;
                values[2 * area + at] = red;
            }
        }
        Self { height, width, values }
    }
}

fn normalise(sample: f64) -> f32 {
    ((sample / 255.0 - 0.5) / 0.5) as f32
}

/// The bilinear sample of `picture` at a point; outside, the border is repeated.
fn bilinear(picture: &RgbImage, (x, y): Point) -> [f64; 3] {
    let (last_x, last_y) = (picture.width() - 1, picture.height() - 1);
    let x = x.clamp(0.0, f64::from(last_x));
    let y = y.clamp(0.0, f64::from(last_y));
    let (x0, y0) = (x.floor() as u32, y.floor() as u32);
    let (x1, y1) = ((x0 + 1).min(last_x), (y0 + 1).min(last_y));
    let (fx, fy) = (x - f64::from(x0), y - f64::from(y0));
    std::array::from_fn(|channel| {
        let at = |x, y| f64::from(picture.get_pixel(x, y).0[channel]);
        let top = at(x0, y0) * (1.0 - fx) + at(x1, y0) * fx;
        let bottom = at(x0, y1) * (1.0 - fx) + at(x1, y1) * fx;
        top * (1.0 - fy) + bottom * fy
    })
}

#[cfg(test)]
mod tests {
    use image::Rgb;

    use super::*;

    #[test]
    fn samples_lie_between_pixels_and_the_border_is_repeated() {
        let picture = RgbImage::from_fn(2, 1, |x, _| Rgb([255 * x as u8, 0, 255]));
        assert_eq!(bilinear(&picture, (0.25, 0.0)), [63.75, 0.0, 255.0]);
        assert_eq!(bilinear(&picture, (9.0, -4.0)), [255.0, 0.0, 255.0]);
    }

    #[test]
    fn planes_are_blue_green_red_around_zero() {
        let picture = RgbImage::from_pixel(1, 1, Rgb([255, 0, 0]));
        let planes = Planes::sample(&picture, 1, 1, |_, _| (0.0, 0.0));
        assert_eq!(planes.values, [-1.0, -1.0, 1.0]);
    }
}
