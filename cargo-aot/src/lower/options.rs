//! What the manifest says about lowering.

/// What matrix units compute in. Sums of products that flow into a logarithm are computed in binary32
/// unless `precision_for` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Binary32 throughout.
    F32,
    /// Operands of products rounded to TF32.
    Tf32,
    /// Operands of products, and activations in memory, in binary16.
    F16,
    /// Operands of products, and activations in memory, in bfloat16.
    Bf16,
}

/// Options of one model.
#[derive(Clone, Debug)]
pub struct LowerOptions {
    /// For everything that `precision_for` does not name.
    pub precision: Precision,
    /// Patterns over node names (`*` stands for any characters); the first that matches counts.
    pub precision_for: Vec<(String, Precision)>,
}

impl LowerOptions {
    /// The precision that `precision_for` gives the node of this name.
    pub fn named(&self, node: &str) -> Option<Precision> {
        let found = self.precision_for.iter().find(|(pattern, _)| matches(pattern, node));
        found.map(|(_, precision)| *precision)
    }
}

/// Whether a pattern with `*` for any characters matches the whole text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_whole_names() {
        assert!(matches("*/attention/*", "encoder/attention/q"));
        assert!(!matches("*/attention/*", "attention/q"));
        assert!(matches("exact", "exact") && !matches("exact", "exactly"));
        assert!(matches("a*a", "aba") && !matches("a*a", "a"));
        assert!(matches("*", ""));
    }
}
