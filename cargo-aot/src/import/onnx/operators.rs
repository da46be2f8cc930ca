//! Which operators can be imported.

use super::super::options::Operator;
use super::{control, rules, sequences};

/// Every operator that can be imported, by domain and name.
pub fn operators() -> Vec<Operator> {
    let latest = |domain: &str| match domain {
        "" => rules::LATEST_OPSET,
        "ai.onnx.ml" => rules::LATEST_CLASSICAL,
        _ => 1,
    };
    let mut all: Vec<Operator> = rules::listed()
        .into_iter()
        .map(|(domain, name, since)| Operator { domain, name, since, until: latest(domain) })
        .collect();
    for &name in control::CONTROL.iter().chain(sequences::STRUCTURAL) {
        let known = all.iter().any(|o| o.domain.is_empty() && o.name == name);
        if !known {
            all.push(Operator { domain: "", name, since: vec![1], until: latest("") });
        }
    }
    all.sort_by(|a, b| (a.domain, a.name).cmp(&(b.domain, b.name)));
    all
}
