//! What commands say, and where: people read stderr, programs read JSON lines on stdout.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use super::args::Global;
use crate::manifest::{Diagnostic, SourceFile};

/// `--color`
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorChoice {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// `--message-format`
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum MessageFormat {
    /// Text on stderr.
    Human,
    /// JSON lines on stdout, each with a `reason`, instead of text.
    Json,
}

/// How much to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}

/// The one way to stderr, and to stdout for messages that programs read.
#[derive(Clone, Debug)]
pub struct Shell {
    verbosity: Verbosity,
    color: bool,
    format: MessageFormat,
    terminal: bool,
}

impl Shell {
    /// As the command line and the environment want it.
    pub fn new(global: &Global) -> Self {
        let terminal = io::stderr().is_terminal();
        let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            verbosity: match (global.verbose, global.quiet) {
                (true, _) => Verbosity::Verbose,
                (_, true) => Verbosity::Quiet,
                _ => Verbosity::Normal,
            },
            color: wants_color(
                global.color,
                environment("CARGO_TERM_COLOR").as_deref(),
                environment("NO_COLOR").is_some(),
                terminal && environment("TERM").as_deref() != Some("dumb"),
            ),
            format: global.message_format,
            terminal: terminal && environment("CI").is_none(),
        }
    }

    /// Whether to style text on stderr.
    pub fn color(&self) -> bool {
        self.color
    }

    /// Whether moving progress may be drawn on stderr.
    pub fn draws_progress(&self) -> bool {
        self.terminal && self.verbosity != Verbosity::Quiet && self.format == MessageFormat::Human
    }

    /// Whether to say more than usual.
    pub fn verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    /// Whether only warnings and errors are wanted.
    pub fn quiet(&self) -> bool {
        self.verbosity == Verbosity::Quiet
    }

    /// How to report.
    pub fn format(&self) -> MessageFormat {
        self.format
    }

    /// A line with a verb in the margin, as cargo writes them. Not said when quiet.
    pub fn status(&self, verb: &str, what: impl Display) {
        if self.verbosity >= Verbosity::Normal && self.format == MessageFormat::Human {
            self.line(&format!("{} {what}", self.paint("1;32", &format!("{verb:>12}"))));
        }
    }

    /// A hint after the work is done. Not said when quiet.
    pub fn note(&self, text: impl Display) {
        if self.verbosity >= Verbosity::Normal && self.format == MessageFormat::Human {
            self.line(&format!("{}: {text}", self.paint("1;32", "note")));
        }
    }

    /// Something odd that stops nothing.
    pub fn warn(&self, text: impl Display) {
        match self.format {
            MessageFormat::Human => {
                self.line(&format!("{}: {text}", self.paint("1;33", "warning")))
            }
            MessageFormat::Json => self.message(&serde_json::json!({
                "reason": "message", "severity": "warning", "message": text.to_string(),
            })),
        }
    }

    /// An error with all of its causes.
    pub fn error(&self, error: &dyn Error) {
        self.error_in("", error);
    }

    /// An error with all of its causes, and what it is about.
    pub fn error_in(&self, what: &str, error: &dyn Error) {
        let what = if what.is_empty() { String::new() } else { format!("{what}: ") };
        let mut causes = Vec::new();
        let mut next = error.source();
        while let Some(cause) = next {
            causes.push(cause.to_string());
            next = cause.source();
        }
        match self.format {
            MessageFormat::Human => {
                self.line(&format!("{}: {what}{error}", self.paint("1;31", "error")));
                if !causes.is_empty() {
                    self.line("\nCaused by:");
                }
                for cause in causes {
                    self.line(&format!("  {}", cause.replace('\n', "\n  ")));
                }
            }
            MessageFormat::Json => self.message(&serde_json::json!({
                "reason": "message", "severity": "error",
                "message": format!("{what}{error}"), "causes": causes,
            })),
        }
    }

    /// Diagnostics that point into `file`.
    pub fn diagnostics(&self, file: &SourceFile, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics {
            match self.format {
                MessageFormat::Human => {
                    self.line(&format!("{}\n", diagnostic.render(file, self.color)));
                }
                MessageFormat::Json => {
                    let mut message = diagnostic.to_json(file);
                    message["reason"] = "diagnostic".into();
                    self.message(&message);
                }
            }
        }
    }

    /// One JSON line on stdout, whatever the format.
    pub fn message(&self, message: &serde_json::Value) {
        self.print(&format!("{message}\n"));
    }

    /// Text on stdout. A reader that has gone away is no error.
    pub fn print(&self, text: &str) {
        let mut stdout = io::stdout().lock();
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }

    fn line(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// `text` in an SGR style.
    pub fn paint(&self, style: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{style}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// `--color` decides, then CARGO_TERM_COLOR, then NO_COLOR, then whether stderr is a terminal.
fn wants_color(
    flag: Option<ColorChoice>,
    cargo_term_color: Option<&str>,
    no_color: bool,
    terminal: bool,
) -> bool {
    match (flag, cargo_term_color) {
        (Some(ColorChoice::Always), _) | (None, Some("always")) => true,
        (Some(ColorChoice::Never), _) | (None, Some("never")) => false,
        _ => terminal && !no_color,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_precedence() {
        assert!(wants_color(Some(ColorChoice::Always), Some("never"), true, false));
        assert!(!wants_color(Some(ColorChoice::Never), Some("always"), false, true));
        assert!(wants_color(None, Some("always"), true, false));
        assert!(!wants_color(None, None, true, true));
        assert!(wants_color(None, Some("auto"), false, true));
        assert!(wants_color(Some(ColorChoice::Auto), Some("always"), false, true));
        assert!(!wants_color(None, None, false, false));
    }
}
