//! Reports as text for people.

use std::fmt::{self, Display};

use super::model::size_text;
use super::report::{LayerReport, ModelReport, RunReport};

impl Display for ModelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} on {}, {}", self.name, self.device, self.precision)?;
        let mut before = None;
        for run in &self.runs {
            if before.replace(&run.sizes) != Some(&run.sizes) {
                writeln!(f, "  {}", size_text(&run.sizes))?;
            }
            run_text(f, run)?;
        }
        let mut before = None;
        for layer in &self.layers {
            if before.replace(layer.subject) != Some(layer.subject) {
                writeln!(f, "  worst values of {}", layer.subject.name())?;
            }
            layer_text(f, layer)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))
    }
}

fn run_text(f: &mut fmt::Formatter<'_>, run: &RunReport) -> fmt::Result {
    let subject = run.subject.name();
    if let Some(failure) = &run.failure {
        return writeln!(f, "    FAILED {subject:8}{failure}");
    }
    for output in &run.outputs {
        let mark = if output.ok { "ok    " } else { "FAILED" };
        writeln!(
            f,
            "    {mark} {subject:8}{:.1e} of {:e}, worst row {:.1e}  {}",
            output.error, output.tolerance, output.row_error, output.name
        )?;
    }
    Ok(())
}

fn layer_text(f: &mut fmt::Formatter<'_>, layer: &LayerReport) -> fmt::Result {
    let LayerReport { error, node, op, stored, shape, sizes, .. } = layer;
    writeln!(f, "    {error:.1e}  {node} ({op}) {stored}{shape:?} at {}", size_text(sizes))
}
