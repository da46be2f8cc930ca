//! Where the time of runs goes.

use crate::{Failure, Opened};
use aot_runtime::InputRef;
use aot_tests::manifest::Entry;

/// A table for each of the entry's sizes.
pub(crate) fn show(opened: &Opened, entry: &Entry) -> Result<(), Failure> {
    for sizes in &entry.sizes {
        let inputs = entry.inputs(&opened.graph, sizes, 5);
        let bytes: Vec<Vec<u8>> = inputs.iter().map(|tensor| tensor.to_bytes()).collect();
        let refs = inputs.iter().zip(&bytes).map(|(t, b)| InputRef::host(t.dtype(), t.shape(), b));
        let refs = refs.collect::<Result<Vec<_>, _>>()?;
        println!("{} in {} at {sizes:?}", entry.name, entry.precision);
        println!("{}", opened.loaded.profile(&refs)?);
    }
    Ok(())
}
