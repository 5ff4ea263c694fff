//! The viewer in a browser of another machine: pairing by a link, its rights, and its end.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::machine::Den;
use crate::{
    browser::chromium,
    chat::{calls, text_answer},
    sdks::project,
    sealed::{command, python, tree},
};

#[tokio::test(flavor = "multi_thread")]
async fn browser_is_paired_by_a_link_and_has_the_rights_of_its_device() {
    let (Some(python), Some(chromium)) = (python("websockets"), chromium()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let write = calls("write_file", &json!({"path": "made.txt", "content": "by phone\n"}));
    let answers = [write, text_answer("done")];
    let script = json!({"model": "script", "contextTokens": 16384, "answers": answers});
    tree(dir.path(), &[("script.json", &script.to_string()), ("repo/a.rs", "fn a() {}\n")]);
    let root = dir.path().join("repo").canonicalize().unwrap();
    let endpoint = dir.path().join("script.json");
    let config = json!({"llm": {"provider": "scripted", "endpoint": endpoint}});
    let den = Den::start_with(&config).await;
    let mut raw = den.daemon.client().await;
    raw.ok("index.addRoot", json!({"path": root})).await;
    let session = raw.ok("session.create", json!({"title": "by phone", "root": root})).await;
    let turn = json!({"sessionId": session["sessionId"], "turnId": "t", "input": "write it"});
    raw.ok("unattended.start", json!({"turn": turn})).await;
    let mut driver = Command::new(python);
    driver.arg(project().join("tests/conformance/remote_page.py")).arg(chromium);
    driver.args([den.daemon.address(), den.daemon.token(), den.lan.clone()]);
    let output = driver.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    check_rules(&seen);
    check_phone(&seen);
    assert_eq!(std::fs::read_to_string(root.join("made.txt")).unwrap(), "by phone\n");
}

fn check_rules(seen: &Value) {
    let statuses = |name: &str| -> Vec<u64> {
        let all = seen[name].as_object().unwrap_or_else(|| panic!("{name}: {seen:#}"));
        all.values().map(|status| status.as_u64().unwrap()).collect()
    };
    assert!(statuses("public").iter().all(|status| *status == 200), "{seen:#}");
    assert!(statuses("refused").iter().all(|status| (400..500).contains(status)), "{seen:#}");
    assert_eq!(seen["post"], 401, "{seen:#}");
    assert_eq!(seen["elsewhere"], json!([403, 403, 403]), "{seen:#}");
    assert_eq!((&seen["wrong"][0], &seen["again"][0]), (&json!(401), &json!(401)), "{seen:#}");
    assert!(seen["again"][1].as_str().unwrap().contains("already used"), "{seen:#}");
    assert_eq!((&seen["malformed"], &seen["large"]), (&json!(400), &json!(413)), "{seen:#}");
    assert_eq!(seen["paired"], json!([200, ["observe"]]), "{seen:#}");
    for (method, reason) in seen["observer"].as_object().unwrap() {
        assert_eq!(reason, "right_missing", "{method}: {seen:#}");
    }
    assert_eq!(seen["reads"], true, "{seen:#}");
    // The secret opens the viewer's own endpoint alone, and only for its own page.
    assert_eq!(seen["doors"], json!([403, 401, 403]), "{seen:#}");
    assert_eq!(seen["keys"], json!([401, 401]), "{seen:#}");
    assert_eq!(seen["listed"], json!([["a phone", true, ["observe"], 1]]), "{seen:#}");
    assert_eq!(seen["revoked"], 401, "{seen:#}");
}

fn check_phone(seen: &Value) {
    let text = |name: &str| seen[name].as_str().unwrap_or_else(|| panic!("{name}: {seen:#}"));
    assert_eq!(seen["address"], "/viewer#/", "{seen:#}");
    assert_eq!(seen["fits"], true, "{seen:#}");
    assert!(text("toast").contains("Allowed once"), "{seen:#}");
    assert!(text("reopened").contains("by phone"), "{seen:#}");
    assert!(text("remark").contains("already used"), "{seen:#}");
    assert!(text("expired").contains("cairn pair"), "{seen:#}");
    assert!(seen["manifest"].as_u64() >= Some(3), "{seen:#}");
    let clients = &seen["clients"];
    let name = clients[0][0].as_str().unwrap();
    assert!(name.contains("Chrome") && clients[0][1] == json!(true), "{seen:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pair_command_shows_the_link_as_text_and_as_a_code() {
    let den = Den::start().await;
    let mut pair = command(&den.daemon.home);
    let mut pair =
        pair.args(["pair", "--rights", "observe"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(pair.stdout.take().unwrap()).lines();
    let mut text = String::new();
    while !text.contains("certificate (SHA-256)") {
        let line = lines.next().expect("the fingerprint is shown").unwrap();
        text.push_str(&line);
        text.push('\n');
    }
    let link = format!("https://{}/viewer#pair=", den.lan);
    assert!(text.contains(&link), "{text}");
    assert!(text.lines().filter(|line| line.contains(['█', '▀', '▄'])).count() > 10, "{text}");
    let admin = den.client().await;
    admin.pair_cancel(&cairn_protocol::session::Empty {}).await.unwrap();
    pair.wait().unwrap();
}
