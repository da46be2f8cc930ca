//! The cases that are known not to pass.

use std::collections::BTreeMap;

/// Names of `listed.txt` with the reason: `# reason` starts a section of case names.
///
/// # Panics
/// When a name stands under no reason.
pub fn listed() -> BTreeMap<&'static str, &'static str> {
    let mut reason = "";
    let mut listed = BTreeMap::new();
    for line in include_str!("listed.txt").lines() {
        match line.strip_prefix("# ") {
            Some(text) => reason = text,
            None if !line.is_empty() => {
                assert!(!reason.is_empty(), "`{line}` stands under no reason");
                listed.insert(line, reason);
            }
            None => {}
        }
    }
    listed
}
