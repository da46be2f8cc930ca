//! The models that tests run, imported.

use crate::reference::asset;
use aot_ir::Graph;
use aot_tests::models::Model;
use cargo_aot::import::{ImportOptions, import};

/// A model as it is imported.
///
/// # Panics
/// When the import fails.
pub(crate) fn imported(model: &Model) -> Graph {
    let options = ImportOptions::with_axes(model.name, model.inputs, model.dims);
    match import(&asset("models").join(model.file), &options) {
        Ok(mut imported) => {
            model.keep_state(&mut imported.graph);
            imported.graph
        }
        Err(error) => panic!("{}: {error}", model.name),
    }
}
