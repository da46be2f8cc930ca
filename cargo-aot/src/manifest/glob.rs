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

    /// How many stars it has.
    pub fn stars(&self) -> usize {
        self.0.matches('*').count()
    }

    /// The name that the pattern stands for with these texts in place of its stars.
    pub fn filled(&self, texts: &[String]) -> String {
        let mut texts = texts.iter();
        let fill = |c: char| match c {
            '*' => texts.next().cloned().unwrap_or_default(),
            c => c.to_string(),
        };
        self.0.chars().map(fill).collect()
    }

    /// The texts that the stars stand for in `name`, each as short as can be; none where the pattern does not cover it.
    pub fn captures(&self, name: &str) -> Option<Vec<String>> {
        fn covers(pattern: &[char], name: &[char], out: &mut Vec<String>) -> bool {
            match pattern {
                [] => name.is_empty(),
                ['*', rest @ ..] => (0..=name.len()).any(|length| {
                    out.push(name[..length].iter().collect());
                    let found = covers(rest, &name[length..], out);
                    if !found {
                        out.pop();
                    }
                    found
                }),
                [c, rest @ ..] => {
                    name.first().is_some_and(|n| *c == '?' || c == n)
                        && covers(rest, &name[1..], out)
                }
            }
        }
        // What is not covered at all is told fast.
        let (pattern, letters): (Vec<char>, Vec<char>) =
            (self.0.chars().collect(), name.chars().collect());
        let mut out = Vec::new();
        (self.matches(name) && covers(&pattern, &letters, &mut out)).then_some(out)
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
    fn stars_are_filled_in_again() {
        let (past, present) = (Glob::new("past.*.k*"), Glob::new("present/*/*"));
        let texts = past.captures("past.12.key").unwrap();
        assert_eq!(texts, ["12", "ey"]);
        assert_eq!(present.filled(&texts), "present/12/ey");
        assert_eq!((past.captures("past.12.value"), past.stars()), (None, 2));
        assert_eq!(Glob::new("h").captures("h"), Some(Vec::new()));
        assert_eq!(Glob::new("*a*b").captures("aab").unwrap(), ["", "a"]);
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
