//! Weights of four bits that are places in a table of floats, with a scale per block of the flat tensor.

use super::super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::super::call::Call;
use super::super::forest::floats;
use super::super::matmul::matmul;
use super::super::table::{Entry, microsoft};
use aot_ir::op::BinaryOp;
use aot_ir::{DType, Dim};

pub(in super::super) const RULES: &[Entry] = &[microsoft("MatMulBnb4", matmul_bnb4)];

/// Floats of one sign bit, two of exponent and one of mantissa, divided by the greatest.
const FP4: [f64; 16] = [
    0.0,
    0.005_208_333_333,
    0.666_666_67,
    1.0,
    0.333_333_33,
    0.5,
    0.166_666_67,
    0.25,
    0.0,
    -0.005_208_333_333,
    -0.666_666_67,
    -1.0,
    -0.333_333_33,
    -0.5,
    -0.166_666_67,
    -0.25,
];

/// Quantiles of the normal distribution, scaled to end at -1 and 1.
const NF4: [f64; 16] = [
    -1.0,
    -0.696_192_800_998_687_7,
    -0.525_073_051_452_636_7,
    -0.394_917_488_098_144_53,
    -0.284_441_381_692_886_35,
    -0.184_773_430_228_233_34,
    -0.091_050_036_251_544_95,
    0.0,
    0.079_580_299_556_255_34,
    0.160_930_201_411_247_25,
    0.246_112_301_945_686_34,
    0.337_915_241_718_292_24,
    0.440_709_829_330_444_34,
    0.562_617_003_917_694_1,
    0.722_956_836_223_602_3,
    1.0,
];

/// `a · bᵀ` with the elements of `b [n, k]`, one behind the other, packed by twos in bytes: the first in the upper half.
fn matmul_bnb4(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (a, packed, scales) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let (n, k, block) = (c.int("N", 0), c.int("K", 0), c.int("block_size", 0));
    if n < 1 || k < 1 || block < 1 {
        return wrong(format!("N = {n}, K = {k}, block_size = {block}; all have to be positive"));
    }
    if c.int("transB", 1) == 0 {
        return unsupported("weights that are not transposed");
    }
    let table = match c.int("quant_type", 1) {
        0 => &FP4,
        1 => &NF4,
        other => return wrong(format!("quant_type is {other}; 0 and 1 are known")),
    };
    let dtype = c.dtype(a);
    let elements = n * k;
    let packed = c.reshape(packed, &[Dim::from((elements + 1) / 2)])?;
    let mut halves = Vec::new();
    for half in [c.with(BinaryOp::Shr, packed, 4.0)?, c.with(BinaryOp::BitAnd, packed, 15.0)?] {
        halves.push(c.unsqueeze(half, &[1])?);
    }
    let places = c.concat(&halves, 1)?;
    let places = c.reshape(places, &[Dim::from((elements + 1) / 2 * 2)])?;
    let places = c.slice_axis(places, 0, Dim::ZERO, elements.into(), 1)?;
    let places = c.cast(places, DType::I32)?;
    let table = floats(c, table, &[table.len()], DType::F32)?;
    let values = c.gather(table, places, 0)?;
    // A scale for each block of elements.
    let blocks = (elements + block - 1) / block;
    let scales = c.reshape(scales, &[blocks.into(), Dim::ONE])?;
    let scales = c.cast(scales, DType::F32)?;
    let scales = c.expand(scales, &[blocks.into(), block.into()])?;
    let scales = c.reshape(scales, &[Dim::from(blocks * block)])?;
    let scales = c.slice_axis(scales, 0, Dim::ZERO, elements.into(), 1)?;
    let values = c.product(values, scales)?;
    let b = c.reshape(values, &[n.into(), k.into()])?;
    let b = c.cast(b, dtype)?;
    let b = c.transpose_last(b)?;
    Ok(vec![matmul(c, a, b)?])
}
