//! What the generated types refuse at compile time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::app::App;
use super::network::{Dense, Network};

/// A model of integers that gives floats of rank 2, and one that takes floats of rank 2.
fn app(name: &str) -> App {
    let table: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let embed = Network::default()
        .integers("tokens", "batch")
        .input("scale", "batch 4")
        .weight("table", &[3, 4], &table)
        .node("Gather", "table tokens", "rows")
        .node("Mul", "rows scale", "embedding")
        .file("embedding", &[]);
    let dims = "dims = { batch = \"1..=4\" }";
    let dense = Dense::new(&[4, 2], 1).file();
    App::with_models(name, "\"sm_80\"", &[("embed", &embed, dims), ("dense", &dense, dims)])
}

/// Every file of `tests/misuse` begins with the error that it is to give, `// error: CODE text`, or
/// with `// compiles`.
#[test]
fn wrong_use_does_not_compile() {
    let app = app("aot-e2e-misuse");
    app.aot(&["build"]).ok();
    let mut expected = BTreeMap::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/misuse");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        app.write(&format!("src/bin/{name}.rs"), &text);
        expected.insert(name, text.lines().next().unwrap_or_default().to_owned());
    }
    assert!(expected.len() > 5);

    let output = app.cargo(&["build", "--bins", "--keep-going", "--message-format", "json"]);
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in output.stdout.lines() {
        let message: serde_json::Value = serde_json::from_str(line).unwrap();
        let (target, diagnostic) = (&message["target"]["name"], &message["message"]);
        if diagnostic["level"] == "error"
            && let Some(code) = diagnostic["code"]["code"].as_str()
        {
            let text = diagnostic["rendered"].as_str().unwrap_or_default();
            found
                .entry(target.as_str().unwrap_or_default().to_owned())
                .or_default()
                .push(format!("{code} {text}"));
        }
    }
    for (name, first_line) in &expected {
        let errors = found.remove(name).unwrap_or_default();
        match first_line.strip_prefix("// error: ").and_then(|rest| rest.split_once(' ')) {
            None => {
                assert_eq!(first_line, "// compiles", "{name}");
                assert_eq!(errors, [""; 0], "{name}");
            }
            Some((code, says)) => {
                let as_expected =
                    |e: &String| e.starts_with(&format!("{code} ")) && e.contains(says);
                assert!(
                    errors.len() == 1 && as_expected(&errors[0]),
                    "{name}: expected one error {code} `{says}`, found\n{}",
                    errors.join("\n")
                );
            }
        }
    }
    assert!(found.is_empty(), "{found:?}");
}
