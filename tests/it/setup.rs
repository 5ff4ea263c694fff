//! `cairn setup` without questions: the configuration, the trial, and what is refused.

use std::fs;

use serde_json::{Value, json};

use crate::{
    fake_model::{Answer, FakeModel},
    sealed::{Daemon, cairn, tree},
};

const PROVIDER: [&str; 5] = ["setup", "--provider", "openai-compatible", "--model", "tiny"];

#[test]
fn setup_writes_the_configuration_and_the_running_daemon_answers_with_it() {
    let model = FakeModel::agreeable();
    let daemon = Daemon::start();
    let file = daemon.home.join("config/config.json");
    let before = "{\n\n  \"llm\": {\"temperature\": 0.5},   \"exclusions\": [\"x\"]\n}\n";
    tree(&daemon.home, &[("config/config.json", before)]);
    let endpoint = ["--endpoint", &format!("{}/v1", model.address)];
    let run = |args: &[&str]| cairn(&daemon.home, &daemon.home, &[&PROVIDER[..], args].concat());
    let (code, printed, err) = run(&[&endpoint[..], &["--dry-run"]].concat());
    assert!(code == 0 && printed.contains("tiny"), "{printed}{err}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before, "a dry run changes nothing");
    let (code, printed, err) = run(&endpoint);
    assert!(code == 0 && printed.contains("answered: yes"), "{printed}{err}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("   \"exclusions\": [\"x\"]") && text.contains("\"temperature\": 0.5"),
        "{text}"
    );
    assert!(!text.contains("allowExternal"), "the server is on this machine: {text}");
    assert_eq!(model.latest().body["model"], "tiny");
    // Nothing of the trial remains.
    let (_, board, _) = cairn(&daemon.home, &daemon.home, &["--json", "sessions"]);
    let board: Value = serde_json::from_str(&board).unwrap();
    assert_eq!(board["rows"], json!([]));
    let (_, roots, _) = cairn(&daemon.home, &daemon.home, &["--json", "index"]);
    assert!(!roots.contains("\"path\""), "{roots}");
}

#[test]
fn failures_of_setup_name_the_cause_and_leave_a_valid_configuration() {
    let daemon = Daemon::start();
    let file = daemon.home.join("config/config.json");
    let run = |args: &[&str]| cairn(&daemon.home, &daemon.home, &[&["setup"], args].concat());
    let (code, _, err) = run(&["--provider", "opneai"]);
    assert!(code == 2 && err.contains("openai"), "{err}");
    assert!(!file.exists());
    // A server that refuses.
    let model = FakeModel::start(|_, _| Answer::Status(401));
    let at = ["--provider", "openai-compatible", "--endpoint", &model.address, "--model", "m"];
    let (code, _, err) = run(&at);
    assert!(code != 0 && err.contains("does not answer") && err.contains("key"), "{err}");
    // A damaged file is not replaced.
    fs::write(&file, "{\"llm\": ").unwrap();
    let (code, _, err) = run(&at);
    assert!(code == 2 && err.contains("not JSON"), "{err}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"llm\": ");
    for args in [&["--model", "x"] as &[&str], &["--endpoint", "http://x"]] {
        assert_eq!(run(args).0, 2, "{args:?}");
    }
}
