//! Runs the application and reads its answers.

use std::process::{Command, Output};

fn embed(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_embed")).args(arguments).output().unwrap()
}

/// The sentences that the application prints as nearest, best first.
fn nearest(question: &str) -> Vec<String> {
    let output = embed(&[question]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let after = text.split_once(question).unwrap().1;
    let scored = after.lines().filter(|line| line.starts_with("  "));
    scored.map(|line| line.trim_start().split_once("  ").unwrap().1.to_owned()).collect()
}

#[test]
fn questions_find_what_they_are_about() {
    for (question, answer) in [
        (
            "How do I get to Austria by rail?",
            "The night train to Vienna leaves from platform nine.",
        ),
        ("Why is the sea sometimes higher?", "The moon pulls the oceans, and so there are tides."),
        ("immunisation", "Vaccines teach the immune system to recognise a germ."),
        ("How are rising prices fought?", "Interest rates were raised to slow inflation."),
    ] {
        let found = nearest(question);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], answer, "{question}: {found:?}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let output = embed(&["--file", "no-such-file.txt", "question"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-file.txt"));
}
