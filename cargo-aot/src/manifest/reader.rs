//! Typed access to a parsed TOML document that notes every mistake instead of stopping at one.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostic::{Diagnostic, Span};

/// Collects diagnostics while values are taken out of a document.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// A table with its place and its name in messages.
#[derive(Clone, Debug)]
pub(super) struct Table<'a> {
    /// As in `` `models.minilm` ``, without the backquotes.
    pub(super) path: String,
    /// The header, or the braces of an inline table.
    pub(super) span: Span,
    entries: Vec<Entry<'a>>,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry<'a> {
    pub(super) key: Spanned<&'a str>,
    pub(super) value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Table<'a> {
    /// `table` with its entries in the order of the file.
    pub(super) fn new(path: impl Into<String>, span: Span, table: &'a DeTable<'a>) -> Self {
        let mut entries: Vec<_> = table
            .iter()
            .map(|(key, value)| Entry { key: Spanned::new(key.span(), key.get_ref()), value })
            .collect();
        entries.sort_by_key(|entry| entry.key.span().start);
        Self { path: path.into(), span, entries }
    }

    /// The value of `key`.
    pub(super) fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.entry(key).map(|entry| entry.value)
    }

    /// The entry of `key`.
    pub(super) fn entry(&self, key: &str) -> Option<&Entry<'a>> {
        self.entries.iter().find(|entry| *entry.key.get_ref() == key)
    }

    /// All entries in the order of the file.
    pub(super) fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }
}

impl Reader {
    /// Notes a diagnostic.
    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Notes every key of `table` that is not in `known`.
    pub(super) fn known_keys(&mut self, table: &Table<'_>, known: &[&str]) {
        for entry in &table.entries {
            let key = *entry.key.get_ref();
            if known.contains(&key) {
                continue;
            }
            let place = if table.path.is_empty() {
                "at the top of the manifest".to_owned()
            } else {
                format!("in `{}`", table.path)
            };
            let diagnostic = Diagnostic::error(format!("unknown key `{key}` {place}"));
            self.push(match nearest(key, known.iter().copied()) {
                Some(name) => diagnostic.at(entry.key.span(), format!("did you mean `{name}`?")),
                None => diagnostic
                    .at(entry.key.span(), "not a key of this table")
                    .help(format!("the keys are {}", list(known))),
            });
        }
    }

    /// `value` as a table called `path`.
    pub(super) fn table<'a>(
        &mut self,
        path: &str,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Option<Table<'a>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(Table::new(path, value.span(), table)),
            _ => self.wrong_type(path, "a table", value),
        }
    }

    /// `value` as a string that is not empty.
    pub(super) fn string<'a>(
        &mut self,
        path: &str,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Option<Spanned<&'a str>> {
        match value.get_ref() {
            DeValue::String(text) if text.is_empty() => {
                self.push(
                    Diagnostic::error(format!("`{path}` is empty"))
                        .at(value.span(), "expected some text"),
                );
                None
            }
            DeValue::String(text) => Some(Spanned::new(value.span(), text)),
            _ => self.wrong_type(path, "a string", value),
        }
    }

    /// `value` as `true` or `false`.
    pub(super) fn boolean(&mut self, path: &str, value: &Spanned<DeValue<'_>>) -> Option<bool> {
        match value.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            _ => self.wrong_type(path, "`true` or `false`", value),
        }
    }

    /// `value` as an array.
    pub(super) fn array<'a>(
        &mut self,
        path: &str,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Option<Vec<&'a Spanned<DeValue<'a>>>> {
        match value.get_ref() {
            DeValue::Array(array) => Some(array.iter().collect()),
            _ => self.wrong_type(path, "an array", value),
        }
    }

    /// `value` as an array of strings.
    pub(super) fn strings<'a>(
        &mut self,
        path: &str,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Option<Vec<Spanned<&'a str>>> {
        let values = self.array(path, value)?;
        let count = values.len();
        let strings: Vec<_> = values.iter().filter_map(|value| self.string(path, value)).collect();
        (strings.len() == count).then_some(strings)
    }

    /// `value` as one of the given spellings.
    pub(super) fn one_of<T: Copy>(
        &mut self,
        path: &str,
        value: &Spanned<DeValue<'_>>,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        let expected = format!("one of {}", list(&names));
        let DeValue::String(text) = value.get_ref() else {
            return self.wrong_type(path, &expected, value);
        };
        if let Some((_, choice)) = choices.iter().find(|(name, _)| name == text) {
            return Some(*choice);
        }
        let label = match nearest(text, names.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("expected {expected}"),
        };
        let mut diagnostic = Diagnostic::error(format!("unknown value `{text}` of `{path}`"))
            .at(value.span(), label);
        if nearest(text, names.iter().copied()).is_some() {
            diagnostic = diagnostic.help(format!("the values are {}", list(&names)));
        }
        self.push(diagnostic);
        None
    }

    /// Notes that `value` is not what `path` takes.
    pub(super) fn wrong_type<T>(
        &mut self,
        path: &str,
        expected: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<T> {
        let found = match value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        self.push(
            Diagnostic::error(format!("wrong type of `{path}`"))
                .at(value.span(), format!("expected {expected}, found {found}")),
        );
        None
    }

    /// Notes that what lies at `span` is for a later version.
    pub(super) fn not_supported(&mut self, what: &str, span: Span) {
        self.push(Diagnostic::error(format!("{what} not supported yet")).at(span, ""));
    }
}

/// The candidate nearest to `text` in edit distance, if it is near enough to be a slip.
pub(crate) fn nearest<'n>(
    text: &str,
    candidates: impl Iterator<Item = &'n str>,
) -> Option<&'n str> {
    let limit = match text.chars().count() {
        0..=2 => 1,
        3..=5 => 2,
        n => n / 3,
    };
    candidates
        .map(|name| (strsim::damerau_levenshtein(text, name), name))
        .filter(|(distance, name)| *distance <= limit && *distance < name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// `` `a`, `b` and `c` ``
pub(super) fn list(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "none".to_owned(),
    }
}
