//! Every case of ONNX's backend tests passes on the reference executor, but for those that are listed.

use aot_conformance::{Case, Outcome, Sizes, Suite, cases, listed, networks};
use aot_ir::exec::{Executor, distance};
use aot_ir::op::{HostOp, PixelFormat};
use aot_ir::{Graph, Op};
use cargo_aot::import::{Form, StoredValue, read_value};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn assets() -> PathBuf {
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets");
    for folder in [
        "onnx-backend",
        "reference/microsoft",
        "reference/classical",
        "reference/drawn",
        "reference/sizes",
    ] {
        let path = assets.join(folder);
        assert!(path.is_dir(), "{} is missing: run `cargo xtask reference`", path.display());
    }
    assets
}

fn outcomes(sizes: Sizes, suites: &[Suite]) -> BTreeMap<String, Outcome> {
    let suite = |suite: &Suite| cases(&assets(), *suite).expect("the cases can be listed");
    let all: Vec<Case> = suites.iter().flat_map(suite).collect();
    all.par_iter().map(|case| (case.name.clone(), case.run(sizes).outcome)).collect()
}

/// What is listed does not pass, and everything else does.
#[test]
fn cases_pass_but_for_the_listed_ones() {
    let (outcomes, listed) = (outcomes(Sizes::Constant, &Suite::ALL), listed(Sizes::Constant));
    let mut problems = Vec::new();
    for (name, outcome) in &outcomes {
        match (outcome, listed.get(name.as_str())) {
            (Outcome::Passed, Some(_)) => problems.push(format!("{name} passes: take it off")),
            (Outcome::Passed, None) | (_, Some(_)) => {}
            (other, None) => problems.push(format!("{name}: {other}")),
        }
    }
    let unknown = listed.keys().filter(|name| !outcomes.contains_key(**name));
    problems.extend(unknown.map(|name| format!("{name} is listed but does not exist")));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(outcomes.len() >= 1900, "only {} cases were found", outcomes.len());
}

/// Where a model can be imported with run-time sizes it gives the same results.
#[test]
fn sizes_left_to_run_time_do_not_change_results() {
    let listed = listed(Sizes::Symbolic);
    let (mut problems, mut passed) = (Vec::new(), 0);
    for (name, outcome) in outcomes(Sizes::Symbolic, &Suite::ALL) {
        match outcome {
            Outcome::Passed => passed += 1,
            _ if listed.contains_key(name.as_str()) => {}
            _ => problems.push(format!("{name}: {outcome}")),
        }
    }
    assert!(problems.is_empty(), "{passed} passed, but\n{}", problems.join("\n"));
    assert!(passed >= 1900, "only {passed} cases passed");
}

/// Whether data gives a size, in the bodies of loops too.
fn takes_sizes(graph: &Graph) -> bool {
    let mut nodes = graph.nodes();
    !graph.bindings.is_empty()
        || nodes.any(|(_, node)| matches!(&node.op, Op::Loop(attrs) if takes_sizes(&attrs.body)))
}

/// None, one or all chosen: values and sizes are those of onnxruntime.
#[test]
fn networks_whose_sizes_data_gives() {
    let all = networks(&assets()).expect("the networks can be imported");
    assert!(all.len() >= 9, "only {} networks were found", all.len());
    for network in all {
        let (name, graph) = (&network.case.name, &network.case.graph);
        assert!(takes_sizes(graph), "{name} takes no size from data");
        let executor = Executor::new(graph).expect("fits");
        assert!(network.trials.len() >= 3, "{name}");
        for ((inputs, expected), sizes) in network.trials.iter().zip(&network.case.sizes) {
            let found = executor.run(inputs).unwrap_or_else(|e| panic!("{name} {sizes:?}: {e}"));
            for ((found, expected), (output, _)) in found.iter().zip(expected).zip(&graph.outputs) {
                let what = format!("{name} {sizes:?}: `{output}`");
                assert_eq!(found.shape(), expected.shape(), "{what}");
                let off = distance(&found.to_f64(), &expected.to_f64());
                assert!(off <= 1e-6, "{what} is off by {off:e}");
            }
        }
    }
}

/// Files that are cut off or have other bits are decoded or refused: no decoder panics or hangs.
#[test]
fn damaged_images_are_decoded_or_refused() {
    let node = assets().join("onnx-backend/node");
    let mut refused = 0;
    for format in ["bmp", "jpeg2k", "jpeg", "png", "pnm", "tiff", "webp"] {
        let set = node.join(format!("test_image_decoder_decode_{format}_rgb/test_data_set_0"));
        let file = read_value(&set.join("input_0.pb"), Form::default()).expect("the case's file");
        let StoredValue::Tensor(file) = file else { panic!("{format}: a file is a tensor") };
        let decode = |file: &[u8]| {
            let size = HostOp::ImageSize.evaluate(&[file], &[]).ok()?;
            let extent =
                |i: usize| Some(i64::from_le_bytes(size[8 * i..8 * i + 8].try_into().ok()?));
            let (height, width) = (extent(0)?, extent(1)?);
            if height.saturating_mul(width) > 1 << 20 {
                // The range of a dim is for the run to check.
                return None;
            }
            let format = PixelFormat::Rgb;
            let op = HostOp::DecodeImage { height: height.into(), width: width.into(), format };
            op.evaluate(&[file], &[]).ok()
        };
        assert!(decode(&file.bytes).is_some(), "{format}");
        let length = file.bytes.len();
        for at in 0..length.min(200) {
            // All of the header, and places throughout the rest.
            for at in [at, at * length / 200] {
                let mut damaged = file.bytes.to_vec();
                damaged[at] ^= 1 << (at % 8);
                refused += usize::from(decode(&damaged).is_none());
                refused += usize::from(decode(&file.bytes[..at]).is_none());
            }
        }
    }
    assert!(refused > 1000, "only {refused} damaged files were refused");
}
