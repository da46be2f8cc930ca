//! Results whose size depends on data, through the generated types.

use super::app::App;
use super::network::Network;

const MAIN: &str = r#"
use aot_runtime::{Device, Tensor, TensorView, TensorViewMut};
use models::model::{Inputs, Model, OutputsMut};

fn main() -> aot_runtime::Result<()> {
    let model = Model::load(&Device::cpu()?)?;
    for scores in [[0.0, 2.0, 0.0, -1.0, 3.0], [0.0; 5]] {
        let table: Vec<[f32; 2]> = (0..5).map(|i| [i as f32, 1.0]).collect();
        let inputs = || Inputs {
            scores: (&scores).into(),
            table: table.as_slice().into(),
            limit: TensorView::from(&4i64).into(),
        };
        let out = model.run(inputs())?;
        println!("{:?} {:?}", out.places.shape(), out.places.as_slice());
        println!("{:?} {:?}", out.rows.shape(), out.rows.as_slice());
        println!("{:?}", out.count.as_slice());
        let on_device = model.run_on_device(inputs())?;
        assert_eq!(on_device.rows.to_tensor()?, out.rows);
        // Tensors of any size take what there is; views have to fit.
        let mut places = Tensor::zeros([1, 7])?;
        let mut count = Tensor::zeros([0])?;
        let mut rows = vec![0f32; out.rows.as_slice().len()];
        model.run_into(inputs(), OutputsMut {
            places: (&mut places).into(),
            rows: TensorViewMut::new(&mut rows, out.rows.shape())?.into(),
            count: (&mut count).into(),
        })?;
        assert_eq!((&places, &count), (&out.places, &out.count));
        assert_eq!(rows, out.rows.as_slice());
        let wrong = model.run_into(inputs(), OutputsMut {
            places: (&mut places).into(),
            rows: TensorViewMut::new(&mut [0.0; 9], [1, 9, 1])?.into(),
            count: (&mut count).into(),
        });
        println!("{}", wrong.unwrap_err());
        let far = model.run(Inputs { limit: TensorView::from(&12i64).into(), ..inputs() });
        println!("{}", far.unwrap_err());
    }
    let dims = <Model as aot_runtime::Model>::META.dims.iter();
    println!("{:?}", dims.map(|d| (d.name, d.max, d.from_data)).collect::<Vec<_>>());
    Ok(())
}
"#;

const EXPECTED: &str = "\
[1, 3] [1, 3, 4]
[1, 3, 1] [12.0, 32.0, 42.0]
[0, 1, 2, 3]
the buffer for output `rows` has shape [1, 9, 1], where the run gives [1, 3, 1]
`count_0` is 12, outside 0..=9 (Aot.toml line 6)
[1, 0] []
[1, 0, 1] []
[0, 1, 2, 3]
the buffer for output `rows` has shape [1, 9, 1], where the run gives [1, 0, 1]
`count_0` is 12, outside 0..=9 (Aot.toml line 6)
[(\"n\", 8, false), (\"places_1\", 8, true), (\"count_0\", 9, true)]
";

fn manifest(dims: &str) -> String {
    format!(
        "\n[target]\ngpus = [\"h200\"]\n[models.model]\nsource = \"model.onnx\"\ndims = {{ {dims} }}\n"
    )
}

#[test]
fn results_have_the_size_that_data_gives() {
    let app = App::new("aot-e2e-sizes");
    let file = Network::default()
        .input("scores", "n")
        .input("table", "n 2")
        .integers("limit", "")
        .weight("w", &[2, 1], &[10.0, 2.0])
        .integer("zero", 0)
        .integer("one", 1)
        .node("NonZero", "scores", "places")
        .node("Gather", "table places", "chosen")
        .node("MatMul", "chosen w", "rows")
        .node("Range", "zero limit one", "count")
        .file("places rows count", &[]);
    app.write("model.onnx", file);
    app.aot(&["init", "model.onnx", "--gpu", "h200"]).ok();
    app.write("Aot.toml", manifest("n = \"5..=8\""));
    let line = "add \"count_0\" = \"0..=N\" to `dims` of [models.model] in Aot.toml";
    app.aot(&["check"]).refused(&["/Range_3", "`count_0`", line]);
    app.write("Aot.toml", manifest("n = \"5..=8\", count_0 = \"0..=9\""));
    app.write("src/main.rs", MAIN);
    let checked = app.aot(&["check"]).ok();
    assert!(checked.stderr.contains("; data gives places_1 in 0..=8"), "{checked}");
    let shown = app.aot(&["inspect"]).ok();
    assert!(shown.stdout.contains("places_1 in 0..=8, computed by the run"), "{shown}");
    app.aot(&["build"]).ok();
    assert_eq!(app.cargo(&["run", "--quiet"]).ok().stdout, EXPECTED);
}
