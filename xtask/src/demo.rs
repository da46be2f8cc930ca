//! `cargo xtask demo`: from nothing to an answer.

use crate::catalogue::Use;
use crate::error::Result;
use crate::layout::Layout;
use crate::{example, fetch};

/// The question that the demo asks of `examples/embed/data/sentences.txt`.
const QUESTION: &str = "How do I get to Austria by rail?";

/// Fetches the model, compiles its kernels, and asks examples/embed a question; on the GPU if there
/// is one.
pub fn demo(layout: &Layout) -> Result<()> {
    fetch::fetch(layout, Use::Demo)?;
    example::build_kernels(layout, "embed")?;
    example::run(layout, "embed", &[QUESTION])
}
