//! What TOML itself refuses, in our words.

use super::diagnostic::{Diagnostic, SourceFile, Span};

/// Whether a bracket is left open: the parser then stumbles over everything up to the end of the
/// file, and only its first error means anything.
pub(super) fn open_bracket(errors: &[toml::de::Error]) -> bool {
    errors.iter().any(|error| error.message().starts_with("unclosed"))
}

/// A diagnostic for each of `errors` that is not a mere consequence of an earlier one.
pub(super) fn syntax_errors(file: &SourceFile, errors: &[toml::de::Error]) -> Vec<Diagnostic> {
    let unclosed = open_bracket(errors);
    let mut lines = Vec::new();
    let mut diagnostics = Vec::new();
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let line = file.line_of(span.start);
        if error.message() == "duplicate key" {
            diagnostics.extend(duplicate(file, span));
        } else if !lines.contains(&line) && (!unclosed || lines.is_empty()) {
            lines.push(line);
            let diagnostic =
                Diagnostic::error("the manifest is not valid TOML").at(span, error.message());
            diagnostics.push(if unclosed {
                diagnostic.help("a bracket that opens before this is never closed")
            } else {
                diagnostic
            });
        }
    }
    diagnostics
}

/// A key or table header that is there twice; `span` is the key where it comes again. `None` for
/// a key within a table that is there twice, of which the table's header tells.
fn duplicate(file: &SourceFile, span: Span) -> Option<Diagnostic> {
    let line_start = file.text.get(..span.start)?.rfind('\n').map_or(0, |at| at + 1);
    let line = file.text[line_start..].lines().next().unwrap_or_default();
    let key = file.text.get(span.clone())?;
    let before = &file.text[..line_start];
    let message = match header_path(line) {
        Some(path) => match path.strip_prefix("models.") {
            Some(model) if !model.contains('.') => format!("two models are called `{model}`"),
            _ => format!("the table `{path}` is there twice"),
        },
        None if in_repeated_table(before) => return None,
        None => format!("the key `{key}` is there twice"),
    };
    let diagnostic = Diagnostic::error(message).at(span, "here again");
    Some(match first_use(before, line, key) {
        Some(at) => diagnostic.at(at, "first here"),
        None => diagnostic,
    })
}

/// `a.b` of a line `[a.b]`.
fn header_path(line: &str) -> Option<String> {
    let inner = line.trim_start().strip_prefix('[')?.split(']').next()?;
    Some(inner.split('.').map(str::trim).collect::<Vec<_>>().join("."))
}

/// Whether the last header in `text` is one that came before.
fn in_repeated_table(text: &str) -> bool {
    let headers: Vec<String> = text.lines().filter_map(header_path).collect();
    headers.split_last().is_some_and(|(last, earlier)| earlier.contains(last))
}

/// Where in the text `before` the header of `line`, or else `key` in the same table, was written.
fn first_use(before: &str, line: &str, key: &str) -> Option<Span> {
    let wanted = header_path(line);
    let mut found = None;
    let mut offset = 0;
    for earlier in before.split_inclusive('\n') {
        let this = header_path(earlier);
        let indent = earlier.len() - earlier.trim_start().len();
        match (&wanted, &this) {
            (Some(wanted), Some(this)) if wanted == this => {
                let at = offset + earlier.rfind(key)?;
                return Some(at..at + key.len());
            }
            (None, Some(_)) => found = None,
            (None, None) => {
                let name = earlier.trim_start().split('=').next().unwrap_or_default().trim_end();
                if name == key && earlier.contains('=') {
                    let at = offset + indent;
                    found = found.or(Some(at..at + name.len()));
                }
            }
            _ => {}
        }
        offset += earlier.len();
    }
    found
}
