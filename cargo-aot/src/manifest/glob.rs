//! Patterns over the names of a model's nodes.

/// A pattern in which `*` stands for any text, `/` included, and `?` for any one character.
///
/// Exporters nest scopes with `/` or `.` to any depth, so no separator is special.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// The pattern `text`; every text is a pattern.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern covers the whole of `name`.
    pub fn matches(&self, name: &str) -> bool {
        let pattern: Vec<char> = self.0.chars().collect();
        let name: Vec<char> = name.chars().collect();
        let (mut p, mut n) = (0, 0);
        // Where to resume with the last `*` taking one character more.
        let mut resume: Option<(usize, usize)> = None;
        while n < name.len() {
            match pattern.get(p) {
                Some('*') => {
                    resume = Some((p, n));
                    p += 1;
                }
                Some(c) if *c == '?' || *c == name[n] => {
                    p += 1;
                    n += 1;
                }
                _ => match resume {
                    Some((star, from)) => {
                        resume = Some((star, from + 1));
                        p = star + 1;
                        n = from + 1;
                    }
                    None => return false,
                },
            }
        }
        pattern[p..].iter().all(|c| *c == '*')
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn stars_cross_separators() {
        let glob = Glob::new("*/attention/*");
        assert!(glob.matches("/encoder/layer.0/attention/self/MatMul"));
        assert!(!glob.matches("/encoder/layer.0/intermediate/MatMul"));
        assert!(!glob.matches("attention/x"));
    }

    #[test]
    fn backtracks_and_anchors() {
        assert!(Glob::new("a*b?d").matches("axxbxbcd"));
        assert!(Glob::new("*").matches(""));
        assert!(Glob::new("exact").matches("exact"));
        assert!(!Glob::new("exact").matches("exactly"));
        assert!(!Glob::new("").matches("a"));
        assert!(!Glob::new("a?").matches("a"));
    }
}
