//! State that is kept from run to run, through the generated types.

use super::app::App;
use super::network::Network;

const MAIN: &str = r#"
use aot_runtime::{Device, Session};
use models::model::{Inputs, Model};

fn next(session: &mut Session<Model>, x: f32) -> aot_runtime::Result<Vec<f32>> {
    let out = session.run(Inputs { x: (&[[x, 1.0]]).into() })?;
    Ok(out.seen.as_slice().to_vec())
}

/// Any executor will do, on any thread.
fn sendable<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> T {
    let run = move || {
        let mut task = std::pin::pin!(task);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        loop {
            if let std::task::Poll::Ready(value) = task.as_mut().poll(&mut context) {
                return value;
            }
        }
    };
    std::thread::spawn(run).join().expect("the task panicked")
}

fn main() -> aot_runtime::Result<()> {
    let model = Model::load(&Device::cpu()?)?;
    let mut session = model.session()?;
    println!("{:?}", next(&mut session, 3.0)?);
    println!("{:?}", next(&mut session, 5.0)?);
    let saved = session.save()?;
    let mut branch = session.try_clone()?;
    println!("{:?} {:?}", next(&mut session, 1.0)?, next(&mut branch, 9.0)?);
    // There is no room for a fifth.
    println!("{:?}", next(&mut session, 1.0)?);
    println!("{}", next(&mut session, 1.0).unwrap_err());
    session.restore(&saved)?;
    println!("{:?}", next(&mut session, 1.0)?);
    session.reset()?;
    println!("{:?}", next(&mut session, 3.0)?);
    println!("{:?}", model.run(Inputs { x: (&[[3.0, 1.0]]).into() })?.seen.as_slice());
    let task = async move {
        let mut session = model.session()?;
        session.run_async(Inputs { x: (&[[3.0, 1.0]]).into() }).await?;
        session.run_async(Inputs { x: (&[[5.0, 1.0]]).into() }).await
    };
    println!("{:?}", sendable(task)?.seen.as_slice());
    let meta = <Model as aot_runtime::Model>::META;
    println!("{:?}", meta.state.iter().map(|s| (s.input, s.output, s.shape)).collect::<Vec<_>>());
    println!("{:?}", meta.inputs.iter().chain(meta.outputs).map(|p| p.name).collect::<Vec<_>>());
    Ok(())
}
"#;

/// What is seen is the sum of all rows so far times the greatest of all rows so far.
const EXPECTED: &str = "\
[9.0, 1.0]
[40.0, 2.0]
[45.0, 3.0] [153.0, 3.0]
[50.0, 4.0]
`past` is 4, outside 0..=3 (Aot.toml line 6)
[45.0, 3.0]
[9.0, 1.0]
[9.0, 1.0]
[40.0, 2.0]
[(\"sum\", \"next_sum\", [\"1\", \"2\"]), (\"rows.0\", \"next_rows.0\", [\"past\", \"2\"])]
[\"x\", \"seen\"]
";

fn manifest(state: &str) -> String {
    format!(
        "\n[target]\ngpus = [\"h200\"]\n[models.model]\nsource = \"model.onnx\"\ndims = {{ past = \"0..=3\" }}\nstate = [{state}]\n"
    )
}

#[test]
fn sessions_go_on_from_run_to_run() {
    let app = App::new("aot-e2e-state");
    let file = Network::default()
        .input("sum", "1 2")
        .input("x", "1 2")
        .input("rows.0", "past 2")
        .node("Add", "sum x", "next_sum")
        .node("Concat", "rows.0 x", "next_rows.0")
        .int("axis", 0)
        .node("ReduceMax", "next_rows.0", "most")
        .ints("axes", &[0])
        .node("Mul", "next_sum most", "seen")
        .file("next_sum seen next_rows.0", &[]);
    app.write("model.onnx", file);
    app.aot(&["init", "model.onnx", "--gpu", "h200"]).ok();
    app.write("src/main.rs", MAIN);
    let sum = "{ input = \"sum\", output = \"next_sum\" }";
    let wrong = [
        ("{ input = \"sun\", output = \"next_sum\" }", "did you mean `sum`?"),
        (
            "{ input = \"rows.*\", output = \"next_row.*\" }",
            "model `model` has no output `next_row.*`",
        ),
        ("{ input = \"sum\", output = \"next_*\" }", "has 1 `*`"),
    ];
    for (state, text) in wrong {
        app.write("Aot.toml", manifest(state));
        app.aot(&["check"]).refused(&[text, "Aot.toml:7:"]);
    }
    let rows = "{ input = \"rows.*\", output = \"next_rows.*\" }";
    app.write("Aot.toml", manifest(&format!("{sum}, {rows}")));
    let shown = app.aot(&["inspect"]).ok().stdout;
    assert!(shown.contains("rows.0 from next_rows.0"), "{shown}");
    app.aot(&["build"]).ok();
    assert_eq!(app.cargo(&["run", "--quiet"]).ok().stdout, EXPECTED);
}
