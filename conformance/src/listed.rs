//! The cases that are known not to pass.

use std::collections::BTreeMap;

use crate::import::Sizes;

/// Names of `listed.txt` with the reason: `# reason` starts a section of case names; those that begin with `symbolic`
/// are for run-time sizes alone.
///
/// # Panics
/// When a name stands under no reason.
pub fn listed(sizes: Sizes) -> BTreeMap<&'static str, &'static str> {
    let mut reason = "";
    let mut listed = BTreeMap::new();
    for line in include_str!("listed.txt").lines() {
        match line.strip_prefix("# ") {
            Some(text) => reason = text,
            None if !line.is_empty() => {
                assert!(!reason.is_empty(), "`{line}` stands under no reason");
                match line.strip_prefix("symbolic ") {
                    Some(_) if sizes == Sizes::Constant => {}
                    name => drop(listed.insert(name.unwrap_or(line), reason)),
                }
            }
            None => {}
        }
    }
    listed
}
