//! Texts from the templates of the generated crate.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value};

/// `template` with the values of `context`, every one of which it must have.
pub(crate) fn render(template: &str, context: Value) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).trim_blocks(true).build()?;
    environment.set_syntax(syntax);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.render_str(template, context)
}

/// `text` as a Rust string literal.
pub(super) fn literal(text: &str) -> String {
    format!("{text:?}")
}

/// `text` for a line of a doc comment between backquotes.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '`' { ' ' } else { c }).collect()
}

/// `text` as code in a cell of a table of a doc comment.
pub(super) fn code_cell(text: &str) -> String {
    format!("`{}`", plain(text).replace('|', "\\|"))
}
