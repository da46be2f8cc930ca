//! What was compiled against its reference, and what kernels take.

use std::fs;

use aot_ir::DType;
use cargo_aot::npy::{Array, write_npz};
use serde_json::Value;

use super::app::{App, Done};
use super::network::Dense;

const DIMS: &str = "precision = \"f16\"\ndims = { batch = \"1..=9\" }";

/// An application with one model.
fn app(name: &str, dense: &Dense) -> App {
    App::with_models(name, "\"sm_80\"", &[("model", &dense.file(), DIMS)])
}

/// `cargo aot verify --device cpu …`: its exit code as well.
fn verify(app: &App, arguments: &[&str]) -> (i32, Done) {
    let all = [&["verify", "--device", "cpu"], arguments].concat();
    let output = app.aot_command(&all).output().unwrap();
    (output.status.code().unwrap(), Done::new(output))
}

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}\n{done}"))
}

fn floats(shape: &[usize], values: &[f32]) -> Array {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Array { dtype: DType::F32, shape: shape.to_vec(), bytes }
}

#[test]
fn a_right_build_passes_at_several_sizes() {
    let app = app("verify-right", &Dense::new(&[6, 16, 8, 3], 1));
    let (code, done) = verify(&app, &[]);
    assert!(code == 1 && done.stderr.contains("run `cargo aot build`"), "{done}");
    app.build();
    let (code, done) = verify(&app, &["--json"]);
    assert!(code == 0 && !done.stderr.contains("warning"), "{done}");
    let model = &json(&done)["models"][0];
    let runs = model["runs"].as_array().unwrap();
    let seen: Vec<_> = runs
        .iter()
        .map(|run| (run["subject"].as_str().unwrap(), run["sizes"]["batch"].as_i64().unwrap()))
        .collect();
    let all = [1, 5, 9].map(|batch| [("cpu", batch), ("groups", batch)]).concat();
    assert_eq!(seen, [&[("graph", 1)], all.as_slice()].concat());
    let output = &runs[2]["outputs"][0];
    assert_eq!((&output["name"], &output["tolerance"]), (&"y".into(), &0.01.into()));
    // Products are of f16 operands.
    assert!((1e-6..1e-2).contains(&output["error"].as_f64().unwrap()), "{output}");
    let layers = model["layers"].as_array().unwrap();
    let of_groups: Vec<_> = layers.iter().filter(|l| l["subject"] == "groups").collect();
    assert_eq!(of_groups.len(), 2, "{layers:?}");
    assert!(of_groups.iter().all(|l| l["node"].as_str().unwrap().starts_with("/Relu")));
    assert!(of_groups[0]["error"].as_f64() >= of_groups[1]["error"].as_f64());

    let (code, done) = verify(&app, &["--dims", "batch=4", "--layers", "1"]);
    assert_eq!(code, 0, "{done}");
    assert!(done.stdout.contains("  batch 4\n") && done.stdout.contains("ok     groups"), "{done}");
    assert_eq!(done.stdout.matches("(relu)").count(), 2, "{done}");
    let (code, done) = verify(&app, &["--tolerance", "1e-9"]);
    assert!(code == 8 && done.stdout.contains("FAILED groups"), "{done}");
    let (code, done) = verify(&app, &["--dims", "bacth=4"]);
    assert!(code == 2 && done.stderr.contains("did you mean `batch`?"), "{done}");
    let (code, done) = verify(&app, &["--dims", "batch=10"]);
    assert!(code == 2 && done.stderr.contains("`batch` is 10, outside 1..=9"), "{done}");
}

#[test]
fn weights_of_another_model_are_found() {
    let app = app("verify-weights", &Dense::new(&[6, 16, 8, 3], 1));
    app.build();
    app.write("model.onnx", Dense::new(&[6, 16, 8, 3], 2).file());
    let (code, done) = verify(&app, &["--dims", "batch=2"]);
    assert_eq!(code, 8, "{done}");
    assert!(done.stderr.contains("model `model` differs more from the reference"), "{done}");
    assert!(done.stderr.contains("warning: something has changed"), "{done}");
    for subject in ["graph", "cpu", "groups"] {
        assert!(done.stdout.contains(&format!("FAILED {subject}")), "{done}");
        assert!(done.stdout.contains(&format!("worst values of {subject}")), "{done}");
    }
    assert!(done.stdout.contains("/Relu"), "{done}");
}

#[test]
fn damaged_weights_are_refused() {
    let app = app("verify-damaged", &Dense::new(&[6, 4], 1));
    app.build();
    let path = app.path("aot/models/artifacts/models-model.weights");
    let mut bytes = fs::read(&path).unwrap();
    bytes[200] ^= 1;
    fs::write(&path, bytes).unwrap();
    let (code, done) = verify(&app, &[]);
    assert!(code == 9 && done.stderr.contains("damaged"), "{done}");
}

#[test]
fn given_outputs_are_expected() {
    let dense = Dense::new(&[2, 16, 3], 1);
    let app = app("verify-expected", &dense);
    app.build();
    let (x, mut y) = ([1.0, 2.0, -0.5, 3.0], dense.run(&[1.0, 2.0]));
    y.extend(dense.run(&[-0.5, 3.0]));
    let save = |file: &str, name: &str, shape: &[usize], values: &[f32]| {
        write_npz(&app.path(file), &[(name.to_owned(), floats(shape, values))]).unwrap();
    };
    save("x.npz", "x", &[2, 2], &x);
    save("y.npz", "y", &[2, 3], &y);
    let given = ["--input", "x.npz", "--expect", "y.npz"];
    let (code, done) = verify(&app, &given);
    assert!(code == 0 && done.stdout.contains("  batch 2\n"), "{done}");
    // One row of two is off by a tenth.
    y[3..].iter_mut().for_each(|v| *v *= 1.1);
    save("y.npz", "y", &[2, 3], &y);
    let (code, done) = verify(&app, &given);
    assert!(code == 8 && done.stdout.contains("FAILED cpu"), "{done}");
    save("x.npz", "z", &[2, 2], &x);
    let (code, done) = verify(&app, &given);
    assert!(code == 1 && done.stderr.contains("no array `x`"), "{done}");
}

#[test]
fn inspect_says_what_machine_code_takes() {
    let app = app("inspect-resources", &Dense::new(&[6, 16, 8], 1));
    let kernels = || -> Vec<Value> {
        let done = app.aot(&["inspect", "--json"]).ok();
        json(&done)["models"][0]["targets"][0]["kernels"].as_array().unwrap().clone()
    };
    assert!(kernels().iter().all(|kernel| kernel["registers"].is_null()));
    app.build();
    for kernel in kernels() {
        let number = |field: &str| kernel[field].as_u64().unwrap();
        assert!((8..=255).contains(&number("registers")), "{kernel}");
        assert!(number("code") > 0 && number("stack") == 0, "{kernel}");
    }
    let name = kernels()[0]["name"].as_str().unwrap().to_owned();
    let text = app.aot(&["inspect", "--kernel", &name]).ok().stdout;
    assert!(text.contains("// for sm_80: ") && text.contains(" registers, 0 B of stack"), "{text}");
    assert!(app.aot(&["inspect"]).ok().stdout.contains(" registers"));
}

#[test]
fn inspect_names_what_makes_the_peak() {
    let app = app("inspect-peak", &Dense::new(&[64, 512, 512, 8], 1));
    let done = app.aot(&["inspect", "--json"]).ok();
    let memory = json(&done)["models"][0]["memory"].clone();
    let peak = &memory["peak"];
    let tensors = peak["tensors"].as_array().unwrap();
    let bytes = |of: &Value| of["bytes"].as_u64().unwrap();
    assert!(!tensors.is_empty(), "{memory}");
    assert_eq!(tensors.iter().map(bytes).sum::<u64>(), bytes(peak), "{memory}");
    assert!(bytes(peak) <= memory["arena"].as_u64().unwrap(), "{memory}");
    let text = app.aot(&["inspect"]).ok().stdout;
    let name = tensors[0]["name"].as_str().unwrap();
    assert!(text.contains("alive in a run at `") && text.contains(name), "{text}");
}
