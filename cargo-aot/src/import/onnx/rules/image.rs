//! Files that hold images.

use super::super::builder::{Most, OpResult, Tensor, unsupported};
use super::super::call::Call;
use super::table::{Entry, onnx};
use aot_ir::Op;
use aot_ir::op::{HostOp, PixelFormat};

pub(super) const RULES: &[Entry] = &[onnx("ImageDecoder", image_decoder)];

/// The host decodes, once height and width, which the file says, are known.
fn image_decoder(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let file = c.x(0)?;
    let format = match c.text("pixel_format", "RGB").as_str() {
        "RGB" => PixelFormat::Rgb,
        "BGR" => PixelFormat::Bgr,
        "Grayscale" => PixelFormat::Grayscale,
        other => return unsupported(format!("pixel_format `{other}` is not supported")),
    };
    let size = c.op(Op::Host(HostOp::ImageSize), &[file])?;
    let elements = c.elements(size, "the size of an image")?;
    let names = [0, 1].map(|axis| c.extent_name(&c.output(0), axis));
    let sizes = c.sizes(&elements, 1, &Most::Unknown, &names)?;
    let (height, width) = (sizes[0].clone(), sizes[1].clone());
    let decode = HostOp::DecodeImage { height, width, format };
    Ok(vec![c.op(Op::Host(decode), &[file])?])
}
