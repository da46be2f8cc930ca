//! Encoded images.

use super::HostError;
use crate::op::PixelFormat;
use hayro_jpeg2000 as jpeg2000;
use image::{ImageReader, Limits};
use libjpeg_turbo_rs as jpeg;
use std::fmt::Display;
use std::io::Cursor;

type Result<T> = std::result::Result<T, HostError>;

/// What a file is, by its first bytes.
enum Kind {
    Jpeg,
    Jpeg2000,
    /// One of those that have one decoder.
    Other,
}

impl Kind {
    fn of(file: &[u8]) -> Self {
        const BOXES: &[u8] = b"\0\0\0\x0cjP  ";
        const CODE_STREAM: &[u8] = b"\xff\x4f\xff\x51";
        match file {
            [0xff, 0xd8, 0xff, ..] => Self::Jpeg,
            _ if file.starts_with(BOXES) || file.starts_with(CODE_STREAM) => Self::Jpeg2000,
            _ => Self::Other,
        }
    }
}

fn refused(reason: impl Display) -> HostError {
    HostError::Image(reason.to_string())
}

fn reader(file: &[u8]) -> Result<ImageReader<Cursor<&[u8]>>> {
    ImageReader::new(Cursor::new(file)).with_guessed_format().map_err(refused)
}

fn open_jpeg2000(file: &[u8]) -> Result<jpeg2000::Image<'_>> {
    jpeg2000::Image::new(file, &jpeg2000::DecodeSettings::default()).map_err(refused)
}

/// Height and width as the file's header says.
pub(super) fn size(file: &[u8]) -> Result<(u32, u32)> {
    match Kind::of(file) {
        Kind::Jpeg => {
            let info = jpeg::probe(file).map_err(refused)?;
            let extent = |n: usize| u32::try_from(n).map_err(refused);
            Ok((extent(info.height)?, extent(info.width)?))
        }
        Kind::Jpeg2000 => open_jpeg2000(file).map(|image| (image.height(), image.width())),
        Kind::Other => {
            let (width, height) = reader(file)?.into_dimensions().map_err(refused)?;
            Ok((height, width))
        }
    }
}

/// The pixels of an image of this height and width, row by row.
pub(super) fn decode(file: &[u8], expected: (i64, i64), format: PixelFormat) -> Result<Vec<u8>> {
    let (height, width) = size(file)?;
    if (i64::from(height), i64::from(width)) != expected {
        let found = format!("{height} × {width}");
        let expected = format!("{} × {}", expected.0, expected.1);
        return Err(HostError::ImageSize { found, expected });
    }
    let rgb = match Kind::of(file) {
        Kind::Jpeg => jpeg::decompress_to(file, jpeg::PixelFormat::Rgb).map_err(refused)?.data,
        Kind::Jpeg2000 => decode_jpeg2000(&open_jpeg2000(file)?)?,
        Kind::Other => {
            let mut reader = reader(file)?;
            let mut limits = Limits::no_limits();
            (limits.max_image_width, limits.max_image_height) = (Some(width), Some(height));
            reader.limits(limits);
            reader.decode().map_err(refused)?.into_rgb8().into_raw()
        }
    };
    if rgb.len() as u64 != 3 * u64::from(height) * u64::from(width) {
        return Err(refused("it has another size than its header says"));
    }
    Ok(convert(rgb, format))
}

fn decode_jpeg2000(image: &jpeg2000::Image<'_>) -> Result<Vec<u8>> {
    let mut context = jpeg2000::DecoderContext::default();
    let decoded = image.decode(&mut context).map_err(refused)?;
    let (channels, samples) = (decoded.components().len(), decoded.data_u8());
    // What is not gray or red, green and blue is alpha, the last one.
    match (image.color_space().num_channels(), channels) {
        (1, 1..=2) => Ok(samples.chunks_exact(channels).flat_map(|pixel| [pixel[0]; 3]).collect()),
        (3, 3) => Ok(samples),
        (3, 4) => Ok(samples.chunks_exact(4).flat_map(|p| [p[0], p[1], p[2]]).collect()),
        _ => Err(refused(format!("{channels} channels of JPEG 2000 are no RGB or gray"))),
    }
}

fn convert(mut rgb: Vec<u8>, format: PixelFormat) -> Vec<u8> {
    let (pixels, _) = rgb.as_chunks_mut::<3>();
    match format {
        PixelFormat::Rgb => rgb,
        PixelFormat::Bgr => {
            pixels.iter_mut().for_each(|pixel| pixel.swap(0, 2));
            rgb
        }
        PixelFormat::Grayscale => pixels.iter().map(luma).collect(),
    }
}

/// As ITU-R BT.601 has it, in units of 2⁻¹⁶, to nearest.
fn luma(pixel: &[u8; 3]) -> u8 {
    const WEIGHTS: [u32; 3] = [19595, 38470, 7471];
    let weighted = pixel.iter().zip(WEIGHTS).map(|(channel, weight)| u32::from(*channel) * weight);
    ((weighted.sum::<u32>() + (1 << 15)) >> 16) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::HostOp;
    use crate::{Dim, Symbol, Symbols};

    /// One row: red, green, and a gray.
    const FILE: &[u8] = b"P6\n3 1\n255\n\xff\0\0\0\xff\0\x40\x40\x40";

    #[test]
    fn pixels_are_in_the_order_that_is_asked_for() {
        let size = HostOp::ImageSize.evaluate(&[FILE], &[]).unwrap();
        assert_eq!(size, [1i64, 3].map(i64::to_le_bytes).concat());
        let mut symbols = Symbols::default();
        let width = symbols.add(Symbol::in_run("w", 1, 9));
        let width = symbols.dim(width);
        let decoded = |format| {
            let op = HostOp::DecodeImage { height: Dim::ONE, width: width.clone(), format };
            op.evaluate(&[FILE], &[3])
        };
        let rgb = [255, 0, 0, 0, 255, 0, 64, 64, 64];
        assert_eq!(decoded(PixelFormat::Rgb).unwrap(), rgb);
        assert_eq!(decoded(PixelFormat::Bgr).unwrap(), [0, 0, 255, 0, 255, 0, 64, 64, 64]);
        assert_eq!(decoded(PixelFormat::Grayscale).unwrap(), [76, 150, 64]);
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let text = |file: &[u8]| {
            let of = |op: HostOp| op.evaluate(&[file], &[]).unwrap_err().to_string();
            let (height, width) = (Dim::ONE, Dim::from(3));
            let decode = HostOp::DecodeImage { height, width, format: PixelFormat::Rgb };
            assert_eq!(of(HostOp::ImageSize), of(decode.clone()));
            of(decode)
        };
        let starts = "the file can't be decoded as an image: ";
        for file in [b"".as_slice(), b"no image", b"\xff\xd8\xff\xe0", b"\0\0\0\x0cjP  \r\n\x87\n"]
        {
            assert!(text(file).starts_with(starts), "{}", text(file));
        }
        let of = |height: i64, file: &[u8]| {
            let (height, width) = (height.into(), 3.into());
            let decode = HostOp::DecodeImage { height, width, format: PixelFormat::Rgb };
            decode.evaluate(&[file], &[]).unwrap_err().to_string()
        };
        let other = "the image has 1 × 3 pixels (height, width), expected 2 × 3";
        assert_eq!(of(2, FILE), other);
        assert!(of(1, &FILE[..15]).starts_with(starts));
    }
}
