//! A chat whose daemon or terminal goes away in the middle of a turn.

use std::{process::Stdio, time::Instant};

use serde_json::{Value, json};

use crate::{
    chat::{scripted, text_answer},
    sealed::{Daemon, command, wait_for},
};

/// An answer whose model needs a minute.
fn slow(text: &str) -> Value {
    let wait = std::iter::repeat_n(json!({"delayMs": 100}), 600);
    let steps: Vec<Value> = [json!({"text": text})].into_iter().chain(wait).collect();
    json!({"steps": steps})
}

/// The end of a daemon ends a turn's client with the next step, however the daemon ended.
#[test]
fn daemon_that_is_killed_in_a_turn_is_reported() {
    for is_killed in [true, false] {
        let mut cairn = scripted(&json!([slow("I think")]));
        let mut child = command(&cairn.daemon.home)
            .args(["chat", "-p", "ponder it"])
            .current_dir(&cairn.folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for("the turn", || cairn.cairn(&["sessions"]).1.contains("ponder").then_some(()));
        match is_killed {
            true => cairn.daemon.kill9(),
            false => drop(cairn.daemon.stop()),
        }
        let since = Instant::now();
        wait_for("the end of the chat", || child.try_wait().unwrap());
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && err.contains("daemon"), "{err}");
        // A limit, and no measure: the client waits 5 seconds for a daemon that comes back.
        assert!(since.elapsed().as_secs() < 30, "{err}");
    }
}

/// The chat that was interrupted is the one that continues, not the one before it.
#[test]
fn interrupted_chat_is_the_one_that_continues() {
    let mut cairn = scripted(&json!([text_answer("first"), slow("I think")]));
    assert_eq!(cairn.chat(&["-p", "first request"], None).0, 0);
    let mut child = command(&cairn.daemon.home)
        .args(["chat", "-p", "second request"])
        .current_dir(&cairn.folder)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the turn", || cairn.cairn(&["sessions"]).1.contains("second").then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    cairn.daemon.kill9();
    let home = cairn.daemon.home.clone();
    // The first one is for the interrupted turn, if the daemon resumes it.
    let expected =
        json!({"expect": [{"anyContains": "second request"}], "steps": [{"text": "went on"}]});
    let answers = [expected.clone(), expected];
    let script = json!({"model": "script", "contextTokens": 16384, "answers": answers});
    std::fs::write(cairn.folder.with_file_name("script.json"), script.to_string()).unwrap();
    cairn.daemon = Daemon::start_in(&home, &[]);
    let (code, out, err) = cairn.chat(&["--continue", "-p", "and now?"], None);
    assert!(code == 0 && out.ends_with("went on\n"), "{code} {out} {err}");
}
