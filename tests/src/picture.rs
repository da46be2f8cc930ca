//! Pictures of text, for models that look for it.
//!
//! On noise such a model's results are the tails of sigmoids, whose relative error is the absolute error of
//! what comes before: they say little about arithmetic, and nothing about what the model is for.

use crate::net::Random;

/// Pixels of a cell, in which there is a digit or nothing.
const CELL: [usize; 2] = [22, 10];
/// Where the digit begins in its cell: row, column.
const MARGIN: [usize; 2] = [4, 2];
/// Seven bars of a digit: row, column, height, width.
const BARS: [[usize; 4]; 7] = [
    [0, 0, 2, 6],
    [0, 0, 8, 2],
    [0, 4, 8, 2],
    [6, 0, 2, 6],
    [6, 0, 8, 2],
    [6, 4, 8, 2],
    [12, 0, 2, 6],
];
/// Which bars the digits have, a bit each.
const DIGITS: [u8; 10] = [
    0b111_0111, 0b010_0100, 0b101_1101, 0b110_1101, 0b010_1110, 0b110_1011, 0b111_1011, 0b010_0101,
    0b111_1111, 0b110_1111,
];
/// Ink, ground and the noise on both, in standard deviations of photographs' pixels.
const INK: f64 = -1.8;
const GROUND: f64 = 2.0;
const NOISE: f64 = 0.05;

/// Grey pictures `[pictures, channels, height, width]` of dark random digits on a light ground.
pub fn digits(shape: [usize; 4], random: &mut Random) -> Vec<f64> {
    let [pictures, channels, height, width] = shape;
    let mut out = Vec::with_capacity(shape.iter().product());
    for _ in 0..pictures {
        let ink = ink(height, width, random);
        for _ in 0..channels {
            let level = |ink: &bool| if *ink { INK } else { GROUND };
            out.extend(ink.iter().map(|i| level(i) + NOISE * random.unit()));
        }
    }
    out
}

fn ink(height: usize, width: usize, random: &mut Random) -> Vec<bool> {
    let mut ink = vec![false; height * width];
    for top in (0..height).step_by(CELL[0]) {
        for left in (0..width).step_by(CELL[1]) {
            // Every sixth cell parts words.
            let digit = DIGITS.get(random.below(12) as usize).copied().unwrap_or(0);
            for (i, [row, column, bar_height, bar_width]) in BARS.into_iter().enumerate() {
                if digit >> i & 1 == 0 {
                    continue;
                }
                let (y, x) = (top + MARGIN[0] + row, left + MARGIN[1] + column);
                for y in y..(y + bar_height).min(height) {
                    let row = y * width;
                    ink[(row + x).min(row + width)..(row + x + bar_width).min(row + width)]
                        .fill(true);
                }
            }
        }
    }
    ink
}
