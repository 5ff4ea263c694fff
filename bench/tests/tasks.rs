//! The tasks of `cairn-bench tasks` with their scripts.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Returns the program under test, beside which the daemon lies.
fn bench() -> Command {
    let bench = PathBuf::from(env!("CARGO_BIN_EXE_cairn-bench"));
    if !bench.with_file_name("cairn").is_file() {
        let arguments = ["build", "--quiet", "-p", "cairn-daemon", "--bin", "cairn"];
        let status = Command::new(env!("CARGO")).args(arguments).status().unwrap();
        assert!(status.success(), "the daemon does not build");
    }
    let mut command = Command::new(bench);
    command.arg("tasks");
    command
}

/// Returns the exit code and the report.
fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = bench().args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns false, after a notice, where commands cannot be confined.
#[expect(clippy::print_stderr, reason = "a notice is for the reader of the run")]
fn has_sandbox() -> bool {
    let arguments = ["--ro-bind", "/", "/", "--unshare-all", "true"];
    let works = Command::new("bwrap").args(arguments).status().is_ok_and(|status| status.success());
    let required = std::env::var("CAIRN_TEST_PEERS").is_ok_and(|value| value == "required");
    assert!(works || !required, "bubblewrap is required and missing");
    if !works {
        eprintln!("note: left out: bubblewrap is missing");
    }
    works
}

fn task(folder: &Path, name: &str, check: &str) {
    let folder = folder.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("prompt = 'Do it.'\ncheck = '{check}'\n[files]\n'a.txt' = 'a'\n");
    std::fs::write(folder.join("task.toml"), text).unwrap();
    let script = r#"{"answers": [{"steps": [{"text": "done"}]}]}"#;
    std::fs::write(folder.join("script.json"), script).unwrap();
}

#[test]
fn scripted_tasks_succeed() {
    if !has_sandbox() {
        return;
    }
    let (code, report) = run(&["python-bug", "answer-citations"]);
    assert_eq!(code, Some(0), "{report}");
    assert!(report.ends_with("2 of 2 tasks done\n"), "{report}");
    let row = report.lines().find(|line| line.starts_with("python-bug")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[1..4], ["done", "4", "4"], "{row}");
}

#[test]
fn check_decides_and_must_fail_before() {
    if !has_sandbox() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    task(dir.path(), "idle", "test -f b.txt");
    let (code, report) = run(&["--folder", folder]);
    assert!(code == Some(1) && report.contains("check failed (1)"), "{report}");
    assert!(report.ends_with("0 of 1 tasks done\n"), "{report}");
    task(dir.path(), "vacuous", "test -f a.txt");
    let (code, report) = run(&["--folder", folder, "vacuous"]);
    let expected = "vacuous: its check succeeds on the untouched repository";
    assert!(code == Some(1) && report.contains(expected), "{report}");
}

#[test]
fn invalid_arguments_are_refused() {
    for (arguments, expected) in [
        (&["no-such-task"][..], "no-such-task is not a task"),
        (&["--model", "http://127.0.0.1:1"], "--model needs the URL of a server and the name"),
        (&["--fast"], "--fast is not an option"),
        (&["--folder"], "--folder needs a folder of tasks"),
    ] {
        let (code, report) = run(arguments);
        assert!(code == Some(1) && report.starts_with(expected), "{arguments:?}: {report}");
    }
}
