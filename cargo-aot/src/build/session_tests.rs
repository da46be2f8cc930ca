use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::*;
use crate::build::events::tests::Recorder;
use crate::build::outputs::Content;
use crate::build::units::{Inputs, UnitError, UnitId};

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Unit(#[from] UnitError),
    #[error(transparent)]
    Session(#[from] SessionError),
}

const MODELS: [&str; 3] = ["a", "b", "c"];

fn folder(root: &Path) -> PathBuf {
    root.join("target/aot")
}

/// Three models of one unit each, and a crate made of them. Making a unit takes `pause`.
fn build(root: &Path, option: u32, watch: &dyn Watch, pause: Duration) -> Result<(), Error> {
    let key = Digest::of(&option.to_le_bytes());
    let session = match Session::open(&folder(root), key, watch)? {
        Opened::Fresh(_) => return Ok(()),
        Opened::Stale(session, _) => session,
    };
    let cache = session.own_cache();
    let units = session.units(&cache);
    let mut outputs = Vec::new();
    for name in MODELS {
        let source = root.join(name);
        let inputs = Inputs::new().file(&source, session.source(&source)?);
        let id = UnitId::new("import", name);
        let unit = units.build(&id, inputs.option("option", &option), || {
            sleep(pause);
            if name == "b" {
                session.event(Event::Warning { message: "b is odd".to_owned() });
            }
            Ok::<_, Error>(format!("{} {option}", fs::read_to_string(&source).unwrap()))
        })?;
        let content = Content::Bytes(unit.get()?.clone().into_bytes());
        outputs.push(OutputFile { path: format!("src/{name}.rs").into(), content });
    }
    session.write(&root.join("crate"), &outputs)?;
    session.finish()?;
    Ok(())
}

fn project() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in MODELS {
        fs::write(dir.path().join(name), format!("model {name}")).unwrap();
    }
    dir
}

/// Names of the units that were made.
fn made(watch: &Recorder) -> Vec<String> {
    let events = watch.take().into_iter();
    events
        .filter_map(|event| match event {
            Event::Unit { name, fresh: false, .. } => Some(name),
            _ => None,
        })
        .collect()
}

fn is_fresh(root: &Path, option: u32) -> bool {
    matches!(check(&folder(root), Digest::of(&option.to_le_bytes())), Verdict::Fresh(_))
}

#[test]
fn only_what_changed_is_made_again() {
    let dir = project();
    let root = dir.path();
    let watch = Recorder::default();
    assert!(!is_fresh(root, 1));
    build(root, 1, &watch, Duration::ZERO).unwrap();
    assert_eq!(made(&watch), MODELS);
    assert!(is_fresh(root, 1));
    assert!(!is_fresh(root, 2));

    fs::write(root.join("b"), "model B").unwrap();
    assert!(!is_fresh(root, 1));
    build(root, 1, &watch, Duration::ZERO).unwrap();
    assert_eq!(made(&watch), ["b"]);
    assert_eq!(fs::read_to_string(root.join("crate/src/b.rs")).unwrap(), "model B 1");
}

#[test]
fn a_deleted_crate_is_restored_from_the_cache() {
    let dir = project();
    let root = dir.path();
    let watch = Recorder::default();
    build(root, 1, &watch, Duration::ZERO).unwrap();
    fs::remove_dir_all(root.join("crate")).unwrap();
    made(&watch);
    assert!(!is_fresh(root, 1));
    build(root, 1, &watch, Duration::ZERO).unwrap();
    assert_eq!(made(&watch), [""; 0]);
    assert_eq!(fs::read_to_string(root.join("crate/src/a.rs")).unwrap(), "model a 1");
    assert!(is_fresh(root, 1));
}

#[test]
fn an_edited_artifact_is_written_again() {
    let dir = project();
    let root = dir.path();
    let watch = Recorder::default();
    build(root, 1, &watch, Duration::ZERO).unwrap();
    fs::write(root.join("crate/src/a.rs"), "edited").unwrap();
    assert!(!is_fresh(root, 1));
    build(root, 1, &watch, Duration::ZERO).unwrap();
    assert_eq!(fs::read_to_string(root.join("crate/src/a.rs")).unwrap(), "model a 1");
}

#[test]
fn warnings_are_repeated_when_there_is_nothing_to_do() {
    let dir = project();
    build(dir.path(), 1, &Recorder::default(), Duration::ZERO).unwrap();
    let verdict = check(&folder(dir.path()), Digest::of(&1_u32.to_le_bytes()));
    assert_eq!(verdict, Verdict::Fresh(vec!["b is odd".to_owned()]));
}

#[test]
fn a_missing_source_is_named() {
    let dir = project();
    fs::remove_file(dir.path().join("c")).unwrap();
    let error = build(dir.path(), 1, &Recorder::default(), Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains(&dir.path().join("c").display().to_string()), "{error}");
    assert!(!is_fresh(dir.path(), 1));
}

#[test]
fn builds_at_once_do_the_work_once() {
    let dir = project();
    let root = dir.path();
    let watch = Recorder::default();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| build(root, 1, &watch, Duration::from_millis(20)).unwrap());
        }
    });
    let events = watch.take();
    let made = |event: &&Event| matches!(event, Event::Unit { fresh: false, .. });
    let blocked =
        |event: &&Event| matches!(event, Event::Status { verb, .. } if verb == "Blocking");
    assert_eq!(events.iter().filter(made).count(), MODELS.len());
    assert_eq!(events.iter().filter(blocked).count(), 3);
}

/// Not a test of its own: what the next one runs in a process that it kills.
#[test]
fn a_build_in_a_process_of_its_own() {
    if let Some(root) = std::env::var_os("AOT_TEST_KILLED_BUILD") {
        build(Path::new(&root), 1, &Recorder::default(), Duration::from_millis(30)).unwrap();
    }
}

#[test]
fn a_killed_build_leaves_whole_artifacts_and_is_continued() {
    let expected = project();
    build(expected.path(), 1, &Recorder::default(), Duration::ZERO).unwrap();
    for millis in [5, 20, 45, 75, 100, 120] {
        let dir = project();
        let root = dir.path();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "build::session::tests::a_build_in_a_process_of_its_own"])
            .env("AOT_TEST_KILLED_BUILD", root)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while !folder(root).exists() && started.elapsed() < Duration::from_secs(20) {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(millis));
        let finished = fs::read_to_string(folder(root).join("units.json")).unwrap_or_default();
        let finished = MODELS.iter().filter(|name| finished.contains(&format!("import `{name}`")));
        let finished = finished.count();
        child.kill().unwrap();
        child.wait().unwrap();

        let watch = Recorder::default();
        build(root, 1, &watch, Duration::ZERO).unwrap();
        assert!(made(&watch).len() <= MODELS.len() - finished, "killed after {millis} ms");
        for name in MODELS {
            let path = format!("crate/src/{name}.rs");
            let read = |root: &Path| fs::read_to_string(root.join(&path)).unwrap();
            assert_eq!(read(root), read(expected.path()));
        }
        assert!(is_fresh(root, 1));
    }
}

#[test]
fn a_check_of_many_files_takes_little_time() {
    let dir = project();
    let root = dir.path();
    for index in 0..400 {
        fs::write(root.join(format!("source{index}")), "x".repeat(1000)).unwrap();
    }
    let key = Digest::of(b"key");
    let watch = Recorder::default();
    let Opened::Stale(session, _) = Session::open(&folder(root), key, &watch).unwrap() else {
        panic!("fresh")
    };
    for index in 0..400 {
        session.source(&root.join(format!("source{index}"))).unwrap();
    }
    session.finish().unwrap();
    sleep(Duration::from_millis(60));
    check(&folder(root), key);
    let started = Instant::now();
    assert_eq!(check(&folder(root), key), Verdict::Fresh(vec![]));
    assert!(started.elapsed() < Duration::from_millis(50), "{:?}", started.elapsed());
}

/// Not a test of its own: what the next one runs in a process that may write no file.
#[test]
fn a_build_that_may_not_write() {
    if let Some(root) = std::env::var_os("AOT_TEST_FULL_DISK") {
        let error = build(Path::new(&root), 1, &Recorder::default(), Duration::ZERO).unwrap_err();
        println!("the error is: {error}");
    }
}

#[test]
#[cfg(unix)]
fn a_full_disk_is_a_clear_error_and_loses_nothing() {
    let dir = project();
    let root = dir.path();
    build(root, 1, &Recorder::default(), Duration::ZERO).unwrap();
    fs::write(root.join("b"), "model B").unwrap();
    // A limit of no bytes stands for a disk without room: writing fails, opening does not.
    let limited = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    let output = Command::new("sh")
        .args(["-c", limited])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "build::session::tests::a_build_that_may_not_write"])
        .env("AOT_TEST_FULL_DISK", root)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let cache = folder(root).join("cache").display().to_string();
    assert!(said.contains(&format!("the error is: cannot write {cache}")), "{said}");
    assert_eq!(fs::read_to_string(root.join("crate/src/b.rs")).unwrap(), "model b 1");
    assert!(!is_fresh(root, 1));

    let watch = Recorder::default();
    build(root, 1, &watch, Duration::ZERO).unwrap();
    assert_eq!(made(&watch), ["b"]);
    assert_eq!(fs::read_to_string(root.join("crate/src/b.rs")).unwrap(), "model B 1");
}
