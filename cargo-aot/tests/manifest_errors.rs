//! What each wrong manifest in `tests/manifest/` says, compared with the `.stderr` beside it.
//! With `BLESS=1` in the environment the `.stderr` files are written instead.

use std::path::{Path, PathBuf};

use cargo_aot::manifest::{Manifest, ManifestError, render_all};

fn cases() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifest");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    cases.sort();
    cases
}

fn errors(path: &Path) -> String {
    let shown = Path::new("Aot.toml");
    match Manifest::load(path, shown) {
        Err(ManifestError::Invalid { file, diagnostics }) => render_all(&diagnostics, &file, false),
        Err(error) => panic!("{}: {error}", path.display()),
        Ok(_) => panic!("{}: nothing is wrong with it", path.display()),
    }
}

#[test]
fn messages_are_as_recorded() {
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let mut different = Vec::new();
    for case in cases() {
        let found = errors(&case);
        let expected = case.with_extension("stderr");
        if bless {
            std::fs::write(&expected, &found).unwrap();
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != found {
            different.push(format!("{}:\n{found}", case.display()));
        }
    }
    assert!(different.is_empty(), "run with BLESS=1 if these are right:\n{}", different.join("\n"));
}

#[test]
fn color_is_only_used_on_demand() {
    let case = &cases()[0];
    let Err(ManifestError::Invalid { file, diagnostics }) = Manifest::load(case, case) else {
        panic!("{}: nothing is wrong with it", case.display());
    };
    assert!(render_all(&diagnostics, &file, true).contains('\u{1b}'));
    assert!(!render_all(&diagnostics, &file, false).contains('\u{1b}'));
}
