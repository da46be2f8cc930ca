//! Texts from the templates folder.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value};

use super::error::CliError;

/// `template` with the values of `context`, every one of which it must have.
pub(super) fn render(template: &str, context: Value) -> Result<String, CliError> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).trim_blocks(true).build()?;
    environment.set_syntax(syntax);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    Ok(environment.render_str(template, context)?)
}
