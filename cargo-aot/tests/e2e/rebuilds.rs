//! What a change makes the build do, and what not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::app::App;
use super::network::Dense;

const DIMS: &str = "dims = { batch = \"1..=4\" }";

/// Two models without a kernel in common: the layers of one are wider than they are long.
fn two_models(name: &str) -> App {
    let (left, right) = (Dense::new(&[8, 16], 1), Dense::new(&[6, 7, 3], 1));
    App::with_models(
        name,
        "\"sm_80\"",
        &[("left", &left.file(), DIMS), ("right", &right.file(), DIMS)],
    )
}

/// All files of the generated crate.
fn generated(app: &App) -> BTreeMap<PathBuf, Vec<u8>> {
    fn add(dir: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(&path, files);
            } else {
                let bytes = fs::read(&path).unwrap();
                files.insert(path, bytes);
            }
        }
    }
    let mut files = BTreeMap::new();
    add(&app.path("aot/models"), &mut files);
    files
}

/// All entries of the project's cache.
fn cached(app: &App) -> Vec<PathBuf> {
    let groups = fs::read_dir(app.path("target/aot/cache")).unwrap();
    let mut entries: Vec<PathBuf> = groups
        .flat_map(|group| fs::read_dir(group.unwrap().path()).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    entries
}

#[test]
fn a_change_is_followed_by_what_depends_on_it_alone() {
    let app = two_models("aot-e2e-rebuilds");
    let first = app.build();
    assert_eq!(
        first.made(),
        ["import left", "import right", "plan left", "plan right", "weights left", "weights right"]
    );
    assert!(!first.compiled().is_empty() && first.cached().is_empty());
    assert!(app.build().fresh());

    // Other weights in one model.
    let before = generated(&app);
    app.write("right.onnx", Dense::new(&[6, 7, 3], 2).file());
    let weights = app.build();
    assert_eq!(weights.made(), ["import right", "plan right", "weights right"]);
    assert_eq!(weights.compiled(), [""; 0]);
    let mut changed = generated(&app);
    changed.retain(|path, bytes| before.get(path) != Some(bytes));
    let names = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let changed: Vec<String> = changed.keys().map(names).collect();
    assert_eq!(changed, ["models-right.weights", "right.model", "build.rs"]);

    // Other layers in one model.
    app.write("right.onnx", Dense::new(&[6, 7, 3, 2], 2).file());
    let layers = app.build();
    assert_eq!(layers.made(), ["import right", "plan right", "weights right"]);

    // Another GPU.
    let manifest = app.read("Aot.toml");
    app.write("Aot.toml", manifest.replace("\"sm_80\"", "\"sm_80\", \"h200\""));
    let gpu = app.build();
    assert_eq!(gpu.made(), ["plan left", "plan right"]);
    assert!(!gpu.compiled().is_empty());
    assert!(gpu.compiled().iter().all(|kernel| kernel.ends_with(" sm_90a")), "{gpu:?}");
    assert!(gpu.cached().iter().all(|kernel| kernel.ends_with(" sm_80")), "{gpu:?}");

    // The generated crate is gone.
    let before = generated(&app);
    fs::remove_dir_all(app.path("aot/models")).unwrap();
    let restored = app.build();
    assert_eq!((restored.made(), restored.compiled()), (vec![], vec![]));
    assert_eq!(generated(&app), before);
    assert!(app.build().fresh());
}

#[test]
fn whatever_is_damaged_in_the_cache_is_noticed_and_made_again() {
    let app = two_models("aot-e2e-damaged");
    let all = app.build().compiled().len();
    let before = generated(&app);
    let (mut kernels, mut units) = (0, 0);
    for damaged in cached(&app) {
        let good = fs::read(&damaged).unwrap();
        let mut bad = good.clone();
        bad[good.len() / 2] ^= 0x10;
        fs::write(&damaged, bad).unwrap();

        fs::remove_dir_all(app.path("aot/models")).unwrap();
        let again = app.build();
        assert_eq!(again.repaired(), [damaged.to_string_lossy()], "{again:?}");
        assert_eq!(again.compiled().len() + again.cached().len(), all);
        match again.compiled().len() {
            0 => units += 1,
            1 => kernels += 1,
            _ => panic!("one entry is of one kernel: {again:?}"),
        }
        assert_eq!(fs::read(&damaged).unwrap(), good);
        assert_eq!(generated(&app), before);
        // It was said once; nothing is wrong any more.
        let settled = app.build();
        assert!(settled.fresh() && settled.repaired().is_empty());
    }
    assert_eq!(kernels, all);
    // Of each model: what was read, the import, the plan, the weights, the artifact, the images.
    assert!(units >= 2 * 6, "{units}");
}
