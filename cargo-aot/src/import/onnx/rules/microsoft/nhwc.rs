//! Operators over channels that come last, through those over channels that come second.

use super::super::super::builder::{OpResult, Tensor, wrong};
use super::super::super::call::Call;
use super::super::convolution::conv;
use super::super::pooling::max_pool_of;
use super::super::quantized::qlinear_conv;
use super::super::table::{Entry, microsoft};
use super::fused::conv_activation;

pub(in super::super) const RULES: &[Entry] = &[
    microsoft("NhwcConv", nhwc_conv),
    microsoft("NhwcFusedConv", nhwc_conv),
    microsoft("NhwcMaxPool", |c| {
        let x = c.x(0)?;
        let x = channels_second(c, x)?;
        let y = max_pool_of(c, x)?;
        Ok(vec![channels_last(c, y)?])
    }),
    microsoft("QLinearConv", |c| {
        let x = c.x(0)?;
        if !c.flag("channels_last", false) {
            return Ok(vec![qlinear_conv(c, x)?]);
        }
        let x = channels_second(c, x)?;
        let y = qlinear_conv(c, x)?;
        Ok(vec![channels_last(c, y)?])
    }),
];

/// `[n, spatial.., c]` as `[n, c, spatial..]`.
pub(super) fn channels_second(c: &mut Call<'_>, x: Tensor) -> OpResult {
    let rank = c.rank(x);
    if rank < 3 {
        return wrong(format!("rank {rank}, expected at least 3"));
    }
    let order: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    c.transpose(x, &order)
}

/// `[n, c, spatial..]` as `[n, spatial.., c]`.
pub(super) fn channels_last(c: &mut Call<'_>, x: Tensor) -> OpResult {
    let rank = c.rank(x);
    let order: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
    c.transpose(x, &order)
}

/// Weights are `[o, c, kernel..]` all the same.
fn nhwc_conv(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, w, bias) = (c.x(0)?, c.x(1)?, c.opt(2));
    let x = channels_second(c, x)?;
    let y = conv(c, x, w, bias)?;
    let mut y = channels_last(c, y)?;
    if let Some(residual) = c.opt(3) {
        y = c.sum(y, residual)?;
    }
    Ok(vec![conv_activation(c, y)?])
}
