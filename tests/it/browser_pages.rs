//! The pages of the viewer in a real browser: what axe-core finds, and misuse.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    browser::chromium,
    chat::{calls, text_answer},
    sdks::project,
    sealed::{Daemon, Raw, command, git, missing, python, tree},
};

/// Returns a daemon whose scripted model gives `answers`, with a declared folder `repo`.
async fn daemon(dir: &Path, answers: &[Value]) -> (Daemon, Raw) {
    let script = json!({"model": "script", "contextTokens": 16384, "answers": answers});
    tree(
        dir,
        &[
            ("script.json", &script.to_string()),
            ("repo/Cargo.toml", "[package]\nname = \"ledger\"\nversion = \"0.1.0\"\n"),
            ("repo/src/lib.rs", "/// Opens the ledger.\npub fn open_ledger() -> u32 {\n    1\n}\n"),
            ("repo/notes.txt", "one\ntwo\n"),
        ],
    );
    let root = dir.join("repo");
    git(&root, &["init", "-q"]);
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "first"]);
    let config = json!({
        "llm": {"provider": "scripted", "endpoint": dir.join("script.json")},
        "models": {"maxRequestsPerMinute": 100_000},
        "resources": {"maxRuns": 600},
    });
    let home = dir.join("home");
    tree(&home, &[("config/config.json", &config.to_string())]);
    let daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    raw.ok("index.addRoot", json!({"path": root})).await;
    (daemon, raw)
}

/// Starts a turn that goes on without a client, and returns its session.
async fn start(raw: &mut Raw, root: &Path, title: &str) -> String {
    let session = raw.ok("session.create", json!({"title": title, "root": root})).await;
    let id = session["sessionId"].as_str().unwrap().to_owned();
    let turn = json!({"sessionId": id, "turnId": "t", "input": title});
    raw.ok("unattended.start", json!({"turn": turn})).await;
    id
}

/// Waits until `count` approvals are pending.
async fn until_pending(raw: &mut Raw, count: usize) {
    let deadline = std::time::Instant::now() + crate::sealed::PATIENCE;
    while raw.ok("approval.list", json!({})).await["data"].as_array().unwrap().len() < count {
        assert!(std::time::Instant::now() < deadline, "{count} approvals");
        tokio::task::yield_now().await;
    }
}

async fn until_completed(raw: &mut Raw, session: &str) {
    let deadline = std::time::Instant::now() + crate::sealed::PATIENCE;
    while raw.ok("session.get", json!({"sessionId": session})).await["state"] != "completed" {
        assert!(std::time::Instant::now() < deadline, "{session}");
        tokio::task::yield_now().await;
    }
}

/// Runs a driver of the browser; `None` after a notice when a program is missing.
fn drive(script: &str, daemon: &Daemon, arguments: &[&str]) -> Option<Value> {
    let (Some(python), Some(chromium)) = (python("websockets"), chromium()) else { return None };
    let mut driver = Command::new(python);
    driver.arg(project().join("tests/conformance").join(script)).arg(chromium);
    driver.args([daemon.address(), daemon.token()]).args(arguments);
    let output = driver.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn misuse(daemon: &Daemon, root: &Path, case: &str, argument: &str) -> Option<Value> {
    drive("misuse_page.py", daemon, &[root.to_str().unwrap(), case, argument])
}

fn write(path: &str) -> Value {
    calls("write_file", &json!({"path": path, "content": "one\ntwo and a half\n"}))
}

const ANSWER: &str = "The ledger is opened by `open_ledger`.\n\n# Why\n\n### Details\n\n- one\n- [two](https://example.org)\n\n\
    ```rust\npub fn open_ledger() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";

#[tokio::test]
async fn axe_finds_nothing_on_any_page() {
    let axe = project().join("target/peers/npm/node_modules/axe-core/axe.min.js");
    if !axe.exists() {
        missing("npm's axe-core in target/peers");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo");
    let read = calls("read_file", &json!({"path": "src/lib.rs"}));
    let shell = calls("run_shell", &json!({"command": "cargo test"}));
    let answers = [read, text_answer(ANSWER), write("notes.txt"), text_answer("Done."), shell];
    let (daemon, mut raw) = daemon(dir.path(), &answers).await;
    let mut pages = serde_json::Map::new();
    let mut add = |name: &str, route: String, selector: &str| {
        pages.insert(name.into(), json!([route, selector]));
    };
    add("empty home", "/".into(), ".empty, .entry");
    let answered = start(&mut raw, &root, "How is the ledger opened?").await;
    until_completed(&mut raw, &answered).await;
    let written = start(&mut raw, &root, "Change the notes").await;
    until_pending(&mut raw, 1).await;
    let pending = raw.ok("approval.list", json!({})).await["data"][0]["approvalId"].clone();
    raw.ok("approval.resolve", json!({"approvalId": pending, "decision": "once"})).await;
    until_completed(&mut raw, &written).await;
    let waiting =
        start(&mut raw, &root, "Run the tests, with a very long title ".repeat(4).trim()).await;
    until_pending(&mut raw, 1).await;
    let explore = raw.ok("orchestrate.explore.start", json!({"root": root})).await;
    let explored = explore["sessionId"].as_str().unwrap().to_owned();
    until_completed(&mut raw, &explored).await;
    let job = json!({"request": "summarise the changes", "root": root});
    raw.ok("schedule.add", json!({"when": "every weekday 7:00", "job": job})).await;
    add("home", "/".into(), ".waiting-call");
    add("approvals", "/approvals".into(), ".row.request");
    add("session", format!("/session/{answered}"), ".item.end");
    add("change", format!("/session/{written}"), ".item.diff");
    add("waiting", format!("/session/{waiting}"), ".item.approval .answers");
    add("records", format!("/session/{answered}/records"), ".row.trace");
    add("report", format!("/session/{explored}"), ".report section");
    add("missing", "/session/ses_00000000000000000000000000000000".into(), ".bad");
    add("search", "/search?q=ledger&kind=hybrid".into(), ".hit");
    add("lines", "/search?q=ledger&kind=grep".into(), ".hit");
    add("nothing", "/search?q=zzzzqqqq&kind=grep".into(), ".empty");
    add("sessions", "/sessions".into(), ".entry");
    add("schedules", "/schedules".into(), ".schedule");
    add("new", "/new".into(), "#start-text");
    add("explore", "/explore".into(), "#explore-target");
    let count = pages.len();
    let pages = Value::Object(pages).to_string();
    let Some(seen) = drive("pages.py", &daemon, &[axe.to_str().unwrap(), &pages]) else { return };
    assert_eq!(seen["found"], json!([]), "{seen:#}");
    assert!(seen["seen"].as_u64().unwrap() >= 4 * count as u64, "{seen}");
}

#[tokio::test]
async fn long_hostile_title_is_text_and_does_not_widen_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo");
    let (daemon, mut raw) = daemon(dir.path(), &[]).await;
    let session = raw.ok("session.create", json!({"title": "short", "root": root})).await;
    let id = session["sessionId"].as_str().unwrap().to_owned();
    raw.call_tool(&session["sessionId"], "fs_list_dir", json!({"path": "."})).await;
    // No method accepts such a title, but an imported trace may have one.
    let file = dir.path().join("trace.jsonl");
    let run = |args: &[&str]| {
        let output = command(&daemon.home).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["trace", "export", &id, "-o", file.to_str().unwrap()]);
    let text = std::fs::read_to_string(&file).unwrap();
    let (header, records) = text.split_once('\n').unwrap();
    let mut header: Value = serde_json::from_str(header).unwrap();
    let title = "<img src=x onerror=window.harmed=1>\u{202e}\u{1b}[31m</script>".repeat(200);
    assert!(title.len() > 10_000);
    header["session"]["title"] = title.into();
    // The last line is a checksum of what was exported.
    let (records, _checksum) = records.trim_end().rsplit_once('\n').unwrap();
    std::fs::write(&file, format!("{header}\n{records}\n")).unwrap();
    raw.ok("session.delete", json!({"sessionId": id})).await;
    run(&["trace", "import", file.to_str().unwrap()]);
    let Some(seen) = misuse(&daemon, &root, "titles", &id) else { return };
    for page in ["home", "sessions", "session"] {
        for view in seen[page].as_array().unwrap() {
            assert_eq!(view[0], json!([0, null, 0]), "{page}: {seen}");
            assert_eq!(view[1], true, "{page} is wider than its window: {seen}");
            // The title is cut before it is in the page.
            assert!(
                view[2].as_u64() < Some(3000) && view[3].as_u64() < Some(400),
                "{page}: {seen}"
            );
        }
    }
}

#[tokio::test]
async fn streamed_text_is_joined_and_answers_cannot_do_harm() {
    let dir = tempfile::tempdir().unwrap();
    let (daemon, _raw) = daemon(dir.path(), &[]).await;
    let Some(seen) = misuse(&daemon, dir.path(), "pieces", "") else { return };
    let steps = [["Grüße"], ["Grüße"], ["Grüße!"], ["Grüße! Bye"]];
    assert_eq!(seen["texts"][0].as_array().unwrap()[..4], steps.map(|s| json!(s)), "{seen}");
    assert_eq!(seen["texts"][0][4], json!(["Grüße! Bye", "Next"]), "{seen}");
    // A provider may give two calls the same id.
    assert_eq!(seen["texts"][1], json!([["done", "a"], ["done", "b"]]), "{seen}");
    let failures = json!(["agent failed: first", "last", "agent failed: later"]);
    assert_eq!(seen["failures"], failures, "{seen}");
    let links = json!(["https://example.org/?q=1"]);
    let expected = json!([0, links, null, ["H3", "H4"], false, true]);
    assert_eq!(seen["markdown"], expected, "{seen}");
}

#[tokio::test]
async fn session_is_started_steered_and_cancelled_from_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo").canonicalize().unwrap_or(dir.path().join("repo"));
    let (daemon, _raw) = daemon(dir.path(), &[write("made.txt"), text_answer("done")]).await;
    let Some(seen) = misuse(&daemon, &root, "steer", "") else { return };
    let text = |name: &str| seen[name].as_str().unwrap_or_else(|| panic!("{name}: {seen}"));
    assert_eq!(text("title"), "write it", "{seen}");
    assert!(text("state").contains("waits for you"), "{seen}");
    assert!(text("steered").contains("To the running turn"), "{seen}");
    assert!(text("end").contains("cancelled"), "{seen}");
    // The turn may end before its call has recorded that it was cancelled.
    assert!(["failed", "stopped"].contains(&text("call")), "{seen}");
    assert!(text("home").contains("write it"), "{seen}");
    assert!(!root.join("made.txt").exists());
}

#[tokio::test]
async fn five_hundred_approvals_are_listed_and_answered() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo");
    let answers: Vec<Value> = (0..500).map(|n| write(&format!("file-{n}.txt"))).collect();
    let (daemon, mut raw) = daemon(dir.path(), &answers).await;
    // So many turns at once need a client that approves: fewer may go on without one.
    let mut approver = daemon.approver().await;
    for n in 0..500 {
        let title = format!("session {n}");
        let session = raw.ok("session.create", json!({"title": title, "root": root})).await;
        let turn = json!({"sessionId": session["sessionId"], "turnId": "t", "input": title});
        approver.ok("orchestrate.run.start", turn).await;
    }
    until_pending(&mut raw, 500).await;
    let Some(seen) = misuse(&daemon, &root, "many", "500") else { return };
    // Only the visible rows are in the page.
    assert!((5..60).contains(&seen["rows"].as_u64().unwrap()), "{seen}");
    assert!(seen["nodes"].as_u64() < Some(2000), "{seen}");
    assert!(seen["last"].as_str().unwrap().contains("file-"), "{seen}");
    assert_eq!(seen["left"], "499", "{seen}");
    assert!(seen["next"].as_str().unwrap().contains("file-"), "{seen}");
    let resolved = raw.ok("approval.list", json!({"resolved": true})).await;
    let denied = |a: &&Value| a["resolution"]["decision"] == "deny";
    assert_eq!(resolved["data"].as_array().unwrap().iter().filter(denied).count(), 1);
}

#[tokio::test]
async fn shortened_approval_is_answered_only_when_it_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo");
    let content = format!("{}the very last line\n", "a line of text\n".repeat(6_000));
    let file = |name: &str| calls("write_file", &json!({"path": name, "content": content}));
    let answers = [file("one.txt"), file("two.txt"), text_answer("done"), text_answer("done")];
    let (daemon, mut raw) = daemon(dir.path(), &answers).await;
    let first = start(&mut raw, &root, "write one").await;
    until_pending(&mut raw, 1).await;
    let second = start(&mut raw, &root, "write two").await;
    until_pending(&mut raw, 2).await;
    let list = raw.ok("approval.list", json!({})).await["data"].clone();
    let shortened: Vec<bool> =
        list.as_array().unwrap().iter().map(|one| one["shortened"] == true).collect();
    assert_eq!(shortened, [false, true], "{list:.1000}");
    let Some(seen) = misuse(&daemon, &root, "shortened", "") else { return };
    assert_eq!(seen["early"], json!([0, 0]), "{seen}");
    assert_ne!(seen["titles"][0], seen["titles"][1], "{seen}");
    // The diff is limited, and this is stated; the arguments are complete.
    assert_eq!(seen["added"], "+4093", "{seen}");
    assert!(seen["warning"].as_str().unwrap().contains("only a part of the change"), "{seen}");
    assert_eq!(seen["end"], true, "{seen}");
    assert!(seen["toast"].as_str().unwrap().contains("Allowed once"), "{seen}");
    let answered = list[1]["sessionId"].as_str().unwrap();
    until_completed(&mut raw, answered).await;
    let (written, pending) =
        if answered == first { ("one.txt", "two.txt") } else { ("two.txt", "one.txt") };
    assert!([&first, &second].contains(&&answered.to_owned()));
    assert_eq!(std::fs::read_to_string(root.join(written)).unwrap(), content);
    assert!(!root.join(pending).exists());
}

/// Sequences of keys for [`keys_of_a_request_have_their_outcomes`], as the driver plays them.
const KEY_SEQUENCES: &[(&str, &str)] = &[
    ("?y", ""),
    ("?_y", ""),
    ("?fy", ""),
    ("?f...y", ""),
    ("?f....y", "once"),
    ("?_f.y", ""),
    ("?_f_y", "once"),
    ("?_f_n", "deny"),
    ("?_f_x", ""),
    ("?_f_Y", ""),
    ("?_f_xy", ""),
    ("?_f_x_y", "once"),
    ("?_f_a", ""),
    ("?_f_a↵", ""),
    ("?_f_a...↵", ""),
    ("?_f_a_↵", "session"),
    ("?_f_A_↵", "always"),
    ("?_f_p_↵", "pattern session"),
    ("?_f_P_↵", "pattern always"),
    ("?_f_a↵_↵", "session"),
    ("?_f_a_⎋_↵", ""),
    ("?_f_a⎋_↵", ""),
    ("?_f_aA_↵", "session"),
    ("?_f_a_A_↵", "always"),
    ("?_f_a_y", "once"),
    ("?_f_abf_↵", ""),
    ("?_f_a_b_f_↵", ""),
    ("?_f_↵_↵", ""),
    ("?_f_bf_y", "once"),
    ("?_f_bfy", ""),
];

#[tokio::test]
async fn keys_of_a_request_have_their_outcomes() {
    let dir = tempfile::tempdir().unwrap();
    let (daemon, _raw) = daemon(dir.path(), &[]).await;
    let (scripts, expected): (Vec<&str>, Vec<&str>) = KEY_SEQUENCES.iter().copied().unzip();
    let Some(seen) = misuse(&daemon, dir.path(), "keys", &json!(scripts).to_string()) else {
        return;
    };
    let outcomes = seen["outcomes"].as_array().unwrap();
    assert_eq!(outcomes.len(), expected.len());
    for (at, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome, expected[at], "{}", scripts[at]);
    }
}

#[tokio::test]
async fn request_without_the_focus_takes_no_key() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo").canonicalize().unwrap_or(dir.path().join("repo"));
    let (daemon, mut raw) = daemon(dir.path(), &[write("made.txt"), text_answer("done")]).await;
    let Some(seen) = misuse(&daemon, &root, "unfocused", "") else { return };
    assert_eq!((&seen["pending"], &seen["focus"]), (&json!(1), &json!(true)), "{seen}");
    // An answer that outlives the call is displayed, and confirmed by a key of another burst.
    let step = seen["step"].as_str().unwrap();
    assert!(step.contains("write_file") && step.contains("Back"), "{seen}");
    assert_eq!((&seen["burst"], &seen["back"]), (&json!(1), &json!(5)), "{seen}");
    assert!(seen["toast"].as_str().unwrap().contains("Allowed for the session"), "{seen}");
    assert_eq!(raw.ok("permission.list", json!({})).await["data"], json!([]));
}

#[tokio::test]
async fn answer_opens_the_next_request_without_arming_it() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo");
    let answers = [write("a.txt"), write("b.txt"), text_answer("done"), text_answer("done")];
    let (daemon, mut raw) = daemon(dir.path(), &answers).await;
    start(&mut raw, &root, "write one").await;
    start(&mut raw, &root, "write two").await;
    until_pending(&mut raw, 2).await;
    let Some(seen) = misuse(&daemon, &root, "following", "") else { return };
    assert_eq!(seen["pending"], 1, "{seen}");
    assert_eq!(seen["end"], "Nothing waits for you", "{seen}");
}

#[tokio::test]
async fn second_browser_reports_who_answered() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo");
    let (daemon, mut raw) = daemon(dir.path(), &[write("made.txt"), text_answer("done")]).await;
    let session = start(&mut raw, &root, "write it").await;
    until_pending(&mut raw, 1).await;
    let Some(browser) = chromium() else { return };
    let Some(seen) = misuse(&daemon, &root, "two", browser.to_str().unwrap()) else { return };
    let text = |name: &str| seen[name].as_str().unwrap_or_else(|| panic!("{name}: {seen}"));
    assert!(text("first").contains("Allowed once"), "{seen}");
    assert!(text("second").contains("Already answered"), "{seen}");
    assert!(text("second").contains(&format!("Allowed once by {}", text("name"))), "{seen}");
    until_completed(&mut raw, &session).await;
    assert!(root.join("made.txt").exists());
}

#[tokio::test]
async fn answer_whose_confirmation_was_lost_is_repeated_and_counts_once() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo");
    let (daemon, mut raw) = daemon(dir.path(), &[write("made.txt"), text_answer("done")]).await;
    let session = start(&mut raw, &root, "write it").await;
    until_pending(&mut raw, 1).await;
    let Some(seen) = misuse(&daemon, &root, "network", "") else { return };
    assert_eq!(seen["answers"], 2, "{seen}");
    let toast = seen["toast"].as_str().unwrap();
    assert!(toast.contains("Allowed once") && !toast.contains("Already"), "{seen}");
    assert_eq!(seen["problem"], Value::Null, "{seen}");
    until_completed(&mut raw, &session).await;
    let records = raw.ok("trace.get", json!({"traceId": session})).await;
    let resolved = |r: &&Value| r["evt"]["type"] == "approval_resolved";
    assert_eq!(records["data"].as_array().unwrap().iter().filter(resolved).count(), 1);
}

#[tokio::test]
async fn page_without_a_valid_link_explains_how_to_get_one() {
    let dir = tempfile::tempdir().unwrap();
    let (daemon, _raw) = daemon(dir.path(), &[]).await;
    let Some(seen) = misuse(&daemon, dir.path(), "links", "") else { return };
    for (name, reason) in
        [("used", "already used"), ("bare", "needs a link"), ("forgotten", "restarted")]
    {
        let text = seen[name].as_str().unwrap_or_else(|| panic!("{name}: {seen}"));
        assert!(text.contains(reason) && text.contains("cairn viewer"), "{name}: {text}");
    }
}

#[tokio::test]
async fn page_that_stays_open_is_bounded_and_resumes() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo");
    let (daemon, mut raw) = daemon(dir.path(), &[]).await;
    let session = raw.ok("session.create", json!({"title": "long", "root": root})).await;
    let id = session["sessionId"].as_str().unwrap();
    let Some(seen) = misuse(&daemon, &root, "day", id) else { return };
    let items: Vec<u64> = serde_json::from_value(seen["items"].clone()).unwrap();
    assert!(seen["head"].as_u64() > Some(5_000), "{seen}");
    assert!(items.iter().all(|n| *n <= 3_600), "{seen}");
    // Each call is shown once, whatever was received before the connection ended.
    let ends: Vec<String> = serde_json::from_value(seen["ends"].clone()).unwrap();
    let distinct: std::collections::BTreeSet<&String> = ends.iter().collect();
    assert_eq!(distinct.len(), ends.len(), "{seen}");
    assert!(ends.last().is_some_and(|text| text.contains("last-end")), "{seen}");
}
