//! From a model file to an application that runs it, and what happens when the file changes.

use super::app::App;
use super::network::Dense;

const MAIN: &str = r#"
use models::model::{Inputs, Model};

fn main() {
    let rows = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(1);
    if let Err(error) = run(rows) {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run(rows: usize) -> aot_runtime::Result<()> {
    let x: Vec<[f32; 5]> = (0..rows).map(|row| [0, 1, 2, 3, 4].map(|i| (row + i) as f32)).collect();
    let model = Model::load(&aot_runtime::Device::cpu()?)?;
    let outputs = model.run(Inputs { x: x.as_slice().into() })?;
    println!("{:?}", outputs.y.shape());
    println!("{:?}", outputs.y.as_slice());
    Ok(())
}
"#;

const MANIFEST: &str = r#"
[target]
gpus = ["h200"]
[models.model]
source = "model.onnx"
dims = { batch = "1..=4" }
"#;

/// What [`MAIN`] prints for a model of these layers.
fn expected(dense: &Dense, rows: usize) -> String {
    let row = |row: usize| [0, 1, 2, 3, 4].map(|i| (row + i) as f32);
    let y: Vec<Vec<f32>> = (0..rows).map(|n| dense.run(&row(n))).collect();
    format!("[{rows}, {}]\n{:?}\n", y[0].len(), y.concat())
}

#[test]
fn a_model_file_becomes_a_type_of_the_application() {
    let app = App::new("aot-e2e-user");
    let first = Dense::new(&[5, 8, 3], 1);
    app.write("model.onnx", first.file());
    app.aot(&["init", "model.onnx", "--gpu", "h200"]).ok();
    app.cargo(&["build"]).refused(&["run `cargo aot build`"]);

    // What the manifest does not say yet is asked for, at its line.
    app.aot(&["build"]).refused(&["batch", "Aot.toml:"]);
    app.write("Aot.toml", MANIFEST);
    app.write("src/main.rs", MAIN);
    app.aot(&["build"]).ok();
    assert_eq!(app.cargo(&["run", "--quiet", "2"]).ok().stdout, expected(&first, 2));
    app.cargo(&["run", "--quiet", "5"])
        .refused(&["`batch` is 5, outside 1..=4", "Aot.toml line 6"]);

    let second = Dense::new(&[5, 8, 3], 2);
    app.write("model.onnx", second.file());
    app.cargo(&["build"]).refused(&["`../../model.onnx` changed", "run `cargo aot build`"]);
    app.aot(&["build"]).ok();
    assert_eq!(app.cargo(&["run", "--quiet", "4"]).ok().stdout, expected(&second, 4));

    app.write("Aot.toml", MANIFEST.replace("1..=4", "1..=9"));
    app.cargo(&["build"]).refused(&["`../../Aot.toml` changed", "run `cargo aot build`"]);
    app.aot(&["build"]).ok();
    assert_eq!(app.cargo(&["run", "--quiet", "9"]).ok().stdout, expected(&second, 9));

    // A file that went away is not known to have changed, until it is back.
    std::fs::remove_file(app.path("model.onnx")).unwrap();
    let without = app.cargo(&["build"]);
    assert!(without.success && without.stderr.contains("`../../model.onnx` can't be compared"));
    app.write("model.onnx", first.file());
    app.cargo(&["build"]).refused(&["`../../model.onnx` changed"]);

    // Weights beside the executable instead of within.
    let package = "[package]\nname = \"models\"\nweights = \"file\"\n";
    app.write("Aot.toml", format!("{package}{MANIFEST}"));
    app.aot(&["build"]).ok();
    assert_eq!(app.cargo(&["run", "--quiet", "3"]).ok().stdout, expected(&first, 3));
    std::fs::remove_file(app.path("aot/models/artifacts/models-model.weights")).unwrap();
    app.cargo(&["run", "--quiet", "3"])
        .refused(&["no weights file `models-model.weights`", "AOT_WEIGHTS_DIR"]);
}
