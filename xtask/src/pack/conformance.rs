//! ONNX's backend tests as a pack.

use std::path::Path;

use aot_conformance::{Case, Sizes, Trial};
use aot_ir::Constant;
use aot_tests::manifest::{Entry, Recorded, Value};
use cargo_aot::lower::Precision;
use cargo_aot::passes;
use rayon::prelude::*;

use super::packer::Packer;
use crate::error::{Error, Result};
use crate::layout::Layout;

/// Writes a pack of cases with what they must give. Cases that can't be compiled are recorded as
/// failures.
pub(crate) fn conformance_pack(
    layout: &Layout,
    dir: &Path,
    targets: &[String],
    cases: &[Case],
    sizes: Sizes,
) -> Result<()> {
    let mut packer = Packer::new(dir, targets)?;
    let trials: Vec<_> = cases.par_iter().map(|case| (case, case.trials(sizes))).collect();
    for (case, trials) in trials {
        let name = format!("{}/{}", case.suite, case.name);
        match trials {
            Err(outcome) => packer.failed(&name, &outcome.to_string()),
            Ok(trials) => {
                for (n, trial) in trials.iter().enumerate() {
                    if let Err(error) = add(&mut packer, &format!("{name}/{n}"), trial) {
                        packer.failed(&name, &error.to_string());
                    }
                }
            }
        }
    }
    packer.finish(layout)
}

fn add(packer: &mut Packer<'_>, name: &str, trial: &Trial) -> Result<()> {
    let options = passes::Options::default();
    let graph = passes::run(&trial.imported.graph, &options);
    let graph = graph.map_err(|e| Error::Other(e.to_string()))?;
    let recorded = Recorded {
        inputs: trial.inputs.iter().map(value).collect(),
        outputs: trial.expected.iter().map(value).collect(),
    };
    let bytes = postcard::to_allocvec(&recorded).map_err(|e| Error::Other(e.to_string()))?;
    let entry = Entry {
        name: name.to_owned(),
        precision: "f32".to_owned(),
        everywhere: true,
        recorded: Some(packer.record(&bytes)?),
        ..Entry::default()
    };
    packer.add(entry, &graph, Precision::F32)
}

fn value(constant: &Constant) -> Value {
    Value { dtype: constant.dtype, shape: constant.shape.clone(), bytes: constant.bytes.to_vec() }
}
