//! Models as packs hold them.

use aot_ir::Graph;
use aot_tests::models::Model;
use cargo_aot::import::{DimSpec, ImportOptions, import};
use cargo_aot::passes;

use crate::error::{Error, Result};
use crate::layout::Layout;

/// A model, imported and simplified.
pub(super) fn graph(model: &Model, layout: &Layout) -> Result<Graph> {
    let mut options = ImportOptions::with_axes(model.name, model.inputs, model.dims);
    for (dim, size) in model.fixed {
        options.dims.insert((*dim).to_owned(), DimSpec::Fixed(*size));
    }
    let path = layout.assets().join("models").join(model.file);
    let other = |e: &dyn std::error::Error| Error::Other(format!("{}: {e}", model.name));
    let mut imported = import(&path, &options).map_err(|e| other(&e))?;
    model.keep_state(&mut imported.graph);
    passes::run(&imported.graph, &passes::Options::default()).map_err(|e| other(&e))
}
