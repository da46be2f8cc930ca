//! Names of packages and models, and the Rust names made of them.
//!
//! A name begins with an ASCII letter and goes on with ASCII letters, digits, `-` and `_`; the
//! last character is a letter or a digit. From it come
//!
//! * the module (or crate) name: lower case, each `-` a `_`: `MiniLM-v2` gives `minilm_v2`;
//! * the type name: the pieces between `-` and `_`, each with its first letter in upper case and
//!   the rest as written: `MiniLM-v2` gives `MiniLMV2`, `ppocr_det` gives `PpocrDet`.
//!
//! Neither may be a Rust keyword, and no two models may have the same module name.

/// What is wrong with a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is empty.
    #[error("the name is empty")]
    Empty,
    /// The first character is no ASCII letter.
    #[error("a name begins with an ASCII letter, not with `{0}`")]
    First(char),
    /// A character that no name has.
    #[error("`{0}` may not be part of a name: use ASCII letters, digits, `-` and `_`")]
    Character(char),
    /// The last character is `-` or `_`.
    #[error("a name ends with a letter or a digit, not with `{0}`")]
    Last(char),
    /// The module name is a keyword.
    #[error("`{0}` is a reserved word of Rust")]
    Keyword(String),
    /// The name means something else where it would be used.
    #[error("`{name}` is taken: {taken_by}")]
    Taken {
        /// The Rust name.
        name: String,
        /// What has it already.
        taken_by: &'static str,
    },
}

/// A model's names in the generated crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RustName {
    /// The module: `minilm_v2`.
    pub module: String,
    /// The type: `MinilmV2`.
    pub type_name: String,
}

impl RustName {
    /// The names for a model called `name` in the manifest.
    pub fn new(name: &str) -> Result<Self, NameError> {
        let module = module_name(name)?;
        let type_name = type_name(name);
        match type_name.as_str() {
            "Inputs" | "Outputs" | "OutputsMut" | "DeviceOutputs" => {
                Err(NameError::Taken { name: type_name, taken_by: "every model has such a type" })
            }
            _ => Ok(Self { module, type_name }),
        }
    }
}

/// The generated package's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageName {
    /// For Cargo.toml, as written in the manifest.
    pub package: String,
    /// For Rust code.
    pub krate: String,
}

impl PackageName {
    /// The names for a package called `name` in the manifest.
    pub fn new(name: &str) -> Result<Self, NameError> {
        let krate = module_name(name)?;
        let taken_by = match krate.as_str() {
            "std" | "core" | "alloc" | "proc_macro" | "test" => {
                Some("a crate that comes with Rust")
            }
            "aot_runtime" | "aot_ir" => Some("a dependency of the generated crate"),
            "build" | "deps" | "examples" | "incremental" => Some("a folder of cargo's"),
            _ => None,
        };
        match taken_by {
            Some(taken_by) => Err(NameError::Taken { name: krate, taken_by }),
            None => Ok(Self { package: name.to_owned(), krate }),
        }
    }
}

/// Whether `word` is reserved in Rust's 2024 edition, strictly or for later.
pub fn is_keyword(word: &str) -> bool {
    const KEYWORDS: [&str; 53] = [
        "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue",
        "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if",
        "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv",
        "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true", "try",
        "type", "typeof", "union", "unsafe", "unsized", "use", "virtual", "where", "while",
        "yield",
    ];
    KEYWORDS.contains(&word)
}

fn module_name(name: &str) -> Result<String, NameError> {
    let first = name.chars().next().ok_or(NameError::Empty)?;
    let last = name.chars().next_back().unwrap_or(first);
    if !first.is_ascii_alphabetic() {
        return Err(NameError::First(first));
    }
    if let Some(bad) = name.chars().find(|c| !c.is_ascii_alphanumeric() && !"-_".contains(*c)) {
        return Err(NameError::Character(bad));
    }
    if !last.is_ascii_alphanumeric() {
        return Err(NameError::Last(last));
    }
    let module = name.to_ascii_lowercase().replace('-', "_");
    if is_keyword(&module) { Err(NameError::Keyword(module)) } else { Ok(module) }
}

fn type_name(name: &str) -> String {
    let mut result = String::new();
    for piece in name.split(['-', '_']) {
        let mut chars = piece.chars();
        result.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        result.push_str(chars.as_str());
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_types() {
        for (name, module, type_name) in [
            ("minilm", "minilm", "Minilm"),
            ("MiniLM-v2", "minilm_v2", "MiniLMV2"),
            ("ppocr_det", "ppocr_det", "PpocrDet"),
            ("resnet-50", "resnet_50", "Resnet50"),
            ("a--b", "a__b", "AB"),
        ] {
            let expected = RustName { module: module.into(), type_name: type_name.into() };
            assert_eq!(RustName::new(name), Ok(expected));
        }
    }

    #[test]
    fn refusals() {
        assert_eq!(RustName::new(""), Err(NameError::Empty));
        assert_eq!(RustName::new("3d"), Err(NameError::First('3')));
        assert_eq!(RustName::new("_x"), Err(NameError::First('_')));
        assert_eq!(RustName::new("a.b"), Err(NameError::Character('.')));
        assert_eq!(RustName::new("naïve"), Err(NameError::Character('ï')));
        assert_eq!(RustName::new("a-"), Err(NameError::Last('-')));
        assert_eq!(RustName::new("Type"), Err(NameError::Keyword("type".into())));
        for name in ["inputs", "Outputs", "outputs-mut", "device_outputs"] {
            assert!(matches!(RustName::new(name), Err(NameError::Taken { .. })), "{name}");
        }
        assert!(matches!(PackageName::new("core"), Err(NameError::Taken { .. })));
        assert!(matches!(PackageName::new("aot-runtime"), Err(NameError::Taken { .. })));
    }
}
