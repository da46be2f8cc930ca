//! `cargo aot run`: arrays of a file through a model, and where its time goes.

use std::fs;

use aot_ir::DType;
use cargo_aot::npy::{Array, read_npz, write_npz};
use serde_json::Value;

use super::app::{App, Done};
use super::network::Dense;

const RUN: [&str; 6] = ["run", "model", "--device", "cpu", "--input", "in.npz"];

#[test]
fn a_model_runs_on_arrays_and_tells_its_time() {
    let dense = Dense::new(&[5, 8, 3], 1);
    let dims = "dims = { batch = \"1..=4\" }";
    let app = App::with_models("run-arrays", "\"sm_80\"", &[("model", &dense.file(), dims)]);
    app.aot(&RUN).refused(&["run `cargo aot build`"]);
    app.build();
    app.aot(&RUN).refused(&["in.npz"]);
    let rows = [[0.5f32, -1.0, 2.0, 0.0, 3.0], [1.0, 1.5, -2.5, 4.0, 0.0]];
    let bytes = rows.as_flattened().iter().flat_map(|x| x.to_le_bytes()).collect();
    let array = Array { dtype: DType::F32, shape: vec![2, 5], bytes };
    write_npz(&app.path("in.npz"), &[("z".to_owned(), array.clone())]).unwrap();
    app.aot(&RUN).refused(&["no array", "x"]);
    write_npz(&app.path("in.npz"), &[("x".to_owned(), array)]).unwrap();

    let done = app.aot(&[&RUN[..], &["--output", "out.npz", "--profile", "run.json"]].concat());
    assert!(done.success && done.stdout.contains("y: f32[2, 3]"), "{done}");
    let expected: Vec<u8> =
        rows.iter().flat_map(|row| dense.run(row)).flat_map(f32::to_le_bytes).collect();
    let outputs = read_npz(&app.path("out.npz")).unwrap();
    assert_eq!((outputs[0].0.as_str(), &outputs[0].1.bytes), ("y", &expected));

    // A line of the table and an event for each node, of which there are as many as layers at the least.
    assert!(done.stdout.contains("model on ") && done.stdout.contains("pieces"), "{done}");
    let trace: Value = serde_json::from_str(&app.read("run.json")).unwrap();
    let pieces = pieces(&trace["traceEvents"]);
    assert!(pieces.len() >= 2, "{trace}");
    for name in pieces {
        assert!(done.stdout.contains(name.rsplit(' ').next().unwrap()), "{name}: {done}");
    }

    // The environment asks for a trace of all runs, whatever the application is.
    let recorded = |file: &str| {
        Done::new(app.aot_command(&RUN).env("AOT_PROFILE", app.path(file)).output().unwrap())
    };
    recorded("all.json").ok();
    let text = app.read("all.json");
    let events: Value =
        serde_json::from_str(&format!("{}]", text.trim_end().trim_end_matches(','))).unwrap();
    assert!(self::pieces(&events).len() >= 2, "{text}");
    fs::create_dir(app.path("folder")).unwrap();
    recorded("folder").refused(&["AOT_PROFILE is `", "it takes a file"]);
}

/// Names of the events that have a time.
fn pieces(events: &Value) -> Vec<&str> {
    let events = events.as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    events.map(|event| event["name"].as_str().unwrap()).collect()
}
