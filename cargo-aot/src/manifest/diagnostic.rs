//! Messages that point into a text file, printed as rustc prints them.

use std::ops::Range;
use std::path::PathBuf;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// Byte range within a [`SourceFile`]'s text.
pub type Span = Range<usize>;

/// A text that diagnostics point into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// As shown to the user.
    pub path: PathBuf,
    /// The whole content.
    pub text: String,
}

impl SourceFile {
    /// The line, counted from 1, that byte `offset` lies in.
    pub fn line_of(&self, offset: usize) -> usize {
        let end = offset.min(self.text.len());
        1 + self.text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count()
    }

    /// The column in characters, counted from 1, of byte `offset`.
    pub fn column_of(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        1 + String::from_utf8_lossy(&before[start..]).chars().count()
    }

    /// `span` brought within the text and onto character boundaries.
    fn clamp(&self, span: &Span) -> Span {
        let floor = |mut at: usize| {
            at = at.min(self.text.len());
            while !self.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = floor(span.start);
        start..floor(span.end).max(start)
    }
}

/// How grave a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing can be built.
    Error,
    /// Worth a look; the build goes on.
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// A place in the text and what to say there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What; may be empty.
    pub text: String,
}

/// One problem, with places and remedies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How grave it is.
    pub severity: Severity,
    /// A lower-case sentence without a full stop.
    pub message: String,
    /// The first is where the problem lies, the others are context. May be empty.
    pub labels: Vec<Label>,
    /// What would be right, one remedy each.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// An error at no particular place.
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            labels: Vec::new(),
            help: Vec::new(),
        }
    }

    /// A warning at no particular place.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message) }
    }

    /// Adds a place; the first one added is the main one.
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds a remedy.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// Where the main label begins; the end of the file for a diagnostic without a place.
    pub fn position(&self) -> usize {
        self.labels.first().map_or(usize::MAX, |label| label.span.start)
    }

    /// The text for a terminal, without a trailing newline. ANSI styles only with `color`.
    pub fn render(&self, file: &SourceFile, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(&self.message));
        if !self.labels.is_empty() {
            let mut snippet = Snippet::source(&file.text).path(file.path.to_string_lossy());
            for (index, label) in self.labels.iter().enumerate() {
                let kind =
                    if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
                let text = (!label.text.is_empty()).then_some(label.text.as_str());
                snippet = snippet.annotation(kind.span(file.clamp(&label.span)).label(text));
            }
            group = group.element(snippet);
        }
        for help in &self.help {
            group = group.element(Level::HELP.message(help));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }

    /// The diagnostic as a JSON object: `severity`, `message`, `file`, `labels` with 1-based
    /// lines and columns, `help`, and `rendered`, the plain text of [`Diagnostic::render`].
    pub fn to_json(&self, file: &SourceFile) -> serde_json::Value {
        let labels: Vec<_> = self
            .labels
            .iter()
            .map(|label| {
                serde_json::json!({
                    "line": file.line_of(label.span.start),
                    "column": file.column_of(label.span.start),
                    "byte_start": label.span.start,
                    "byte_end": label.span.end,
                    "text": label.text,
                })
            })
            .collect();
        serde_json::json!({
            "severity": self.severity.name(),
            "message": self.message,
            "file": file.path.to_string_lossy(),
            "labels": labels,
            "help": self.help,
            "rendered": self.render(file, false),
        })
    }
}

/// All of `diagnostics` as terminal text, with an empty line after each.
pub fn render_all(diagnostics: &[Diagnostic], file: &SourceFile, color: bool) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        text.push_str(&diagnostic.render(file, color));
        text.push_str("\n\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_one() {
        let file = SourceFile { path: "a".into(), text: "é = 1\nb = 2\n".into() };
        assert_eq!((file.line_of(0), file.column_of(0)), (1, 1));
        assert_eq!((file.line_of(3), file.column_of(3)), (1, 3));
        assert_eq!((file.line_of(7), file.column_of(7)), (2, 1));
        assert_eq!(file.line_of(1000), 3);
    }

    #[test]
    fn spans_outside_the_text_are_drawn_at_its_end() {
        let file = SourceFile { path: "a".into(), text: "é".into() };
        let diagnostic = Diagnostic::error("odd").at(1..99, "here");
        assert!(diagnostic.render(&file, false).contains("here"));
    }
}
