//! Operators of onnxruntime's own domain, as its optimisers and exporters write them
//! (<https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md>), a file per family.

pub(super) mod attention;
pub(super) mod bnb4;
pub(super) mod fused;
pub(super) mod grouped;
pub(super) mod linear;
pub(super) mod nbits;
pub(super) mod nhwc;
pub(super) mod norm;
pub(super) mod numeric;

use super::super::builder::{OpResult, Tensor, unsupported};
use super::super::call::Call;

/// ONNX's own rule of the same name, in its latest version.
fn relay(c: &mut Call<'_>, operator: &str) -> OpResult<Vec<Tensor>> {
    let Some(rule) = super::find("", operator, super::LATEST_OPSET) else {
        return unsupported(format!("{operator} has no rule"));
    };
    let own = std::mem::replace(&mut c.opset, super::LATEST_OPSET);
    let made = rule(c);
    c.opset = own;
    made
}

fn with_bias(c: &mut Call<'_>, x: Tensor, bias: Option<Tensor>) -> OpResult {
    match bias {
        Some(bias) => c.sum(x, bias),
        None => Ok(x),
    }
}
