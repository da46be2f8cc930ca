//! Builds that are killed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::app::App;
use super::events::kernel;
use super::network::Dense;

const GPUS: &str = "\"sm_75\", \"sm_80\", \"sm_90a\", \"sm_100a\", \"sm_120a\"";

fn app(name: &str) -> App {
    let dense = Dense::new(&[8, 16, 4], 1);
    App::with_models(name, GPUS, &[("dense", &dense.file(), "dims = { batch = \"1..=4\" }")])
}

/// Starts a build, kills it when this many kernels are done, and returns those.
fn kill_after(app: &App, kernels: usize) -> BTreeSet<String> {
    let mut command = app.aot_command(&["build", "--message-format", "json", "--jobs", "1"]);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the build starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut done = BTreeSet::new();
    for line in lines.map_while(Result::ok) {
        let event: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        if event["reason"] == "kernel-finished" {
            done.insert(kernel(&event));
        }
        if done.len() == kernels {
            child.kill().expect("the build runs");
            break;
        }
    }
    assert!(!child.wait().expect("the build ends").success());
    done
}

#[test]
fn a_killed_build_is_continued() {
    let expected = app("aot-e2e-whole");
    let all: BTreeSet<String> = expected.build().compiled().into_iter().collect();
    let killed = app("aot-e2e-killed");
    assert!(all.len() >= 4, "{all:?}");
    let mut finished = BTreeSet::new();
    for kernels in [1, all.len() / 2] {
        finished.extend(kill_after(&killed, kernels));
        assert!(!killed.path("aot/models/build.rs").exists());
    }
    let rest = killed.build();
    let recompiled: Vec<_> =
        rest.compiled().into_iter().filter(|kernel| finished.contains(kernel)).collect();
    assert_eq!(recompiled, [""; 0]);
    let either: BTreeSet<String> = rest.compiled().into_iter().chain(rest.cached()).collect();
    assert_eq!(either, all);
    assert_eq!(rest.warnings(), [""; 0]);
    for file in fs::read_dir(expected.path("aot/models/artifacts")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        let found = fs::read(killed.path(&format!("aot/models/artifacts/{name}"))).unwrap();
        assert_eq!(found, fs::read(&path).unwrap(), "{name}");
    }
    assert!(killed.build().fresh());
}
