//! What the model declares of its outputs, against what was found.

use super::super::options::DimInfo;
use super::builder::Builder;
use super::inputs::describe;
use super::item::Item;
use super::proto::GraphProto;

/// Warns of tensors among the outputs whose declared type or shape is not the one that was found.
pub(super) fn compare(
    graph: &GraphProto,
    builder: &Builder,
    found: &[(String, Item)],
    warnings: &mut Vec<String>,
) {
    for (declared, (name, item)) in graph.output.iter().zip(found) {
        let Item::Tensor(tensor) = item else { continue };
        let info = describe(declared);
        let (dtype, shape) = (builder.dtype(*tensor), builder.shape(*tensor));
        if let Some(t) = info.dtype
            && t != dtype
        {
            warnings.push(format!("output `{name}` is declared as {t} but is {dtype}"));
        }
        let Some(dims) = info.dims else { continue };
        let same = dims.len() == shape.len()
            && dims.iter().zip(shape).all(|(d, s)| match (d, s.as_const()) {
                (DimInfo::Fixed(declared), Some(found)) => *declared == found,
                _ => true,
            });
        if !same {
            let text = |d: &DimInfo| match d {
                DimInfo::Fixed(size) => size.to_string(),
                DimInfo::Named(name) => name.clone(),
                DimInfo::Expression { text, .. } => text.clone(),
                DimInfo::Unnamed(_) => "?".to_owned(),
            };
            let declared: Vec<String> = dims.iter().map(text).collect();
            let found: Vec<String> = shape.iter().map(|d| builder.symbols().show(d)).collect();
            warnings.push(format!(
                "output `{name}` is declared with shape [{}] but has [{}]",
                declared.join(", "),
                found.join(", ")
            ));
        }
    }
}
