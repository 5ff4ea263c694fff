//! Diagnostics of language servers in the real sandbox: a fake server that behaves and misbehaves.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use cairn_harness::Rules;
use cairn_tools::{LanguageServerLimits, LanguageServers, Program, ServerSpec};

use super::*;

/// Limits of a test: no answer is awaited for longer than this machine needs.
const LIMITS: LanguageServerLimits = LanguageServerLimits {
    wait: Duration::from_secs(20),
    running: 4,
    idle: Duration::from_secs(600),
    initialize: Duration::from_secs(60),
    off: Duration::from_secs(3600),
};
/// Limits for a server that does not answer.
const SHORT: LanguageServerLimits =
    LanguageServerLimits { wait: Duration::from_millis(400), ..LIMITS };

struct Setup {
    fixture: Fixture,
    caches: tempfile::TempDir,
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sandboxed/fake_lsp.py")
}

fn servers(
    mode: &str,
    limits: LanguageServerLimits,
    caches: &Path,
    is_trusted: bool,
) -> LanguageServers {
    let spec = ServerSpec {
        name: "fake".into(),
        commands: vec![vec!["fake".into()]],
        extensions: vec!["txt".into()],
        markers: vec!["marker".into()],
        options: Value::Null,
        reports_status: false,
    };
    let script = script();
    let argv = vec!["/usr/bin/python3".into(), script.display().to_string(), mode.to_owned()];
    let readable = vec![script.parent().unwrap().to_owned()];
    let find =
        move |_: &ServerSpec| Some(Program { argv: argv.clone(), readable: readable.clone() });
    let trusted = move |_: &Path| is_trusted;
    LanguageServers::new(vec![spec], caches.into(), limits, Box::new(find), Box::new(trusted))
}

fn rules() -> Rules {
    let mut rules = allow(&["write_file", "edit_file", "apply_patch", "delete_file"]);
    rules.final_deny = vec!["*(secret.key)".parse().unwrap()];
    rules
}

const FILES: &[(&str, &str)] = &[
    ("a.txt", "one\nBAD before\n"),
    ("b.txt", "two\n"),
    ("other.md", "x"),
    ("secret.key", "key"),
    ("sub/marker", ""),
    ("sub/inner/c.txt", "c\n"),
    ("p1/marker", ""),
    ("p1/a.txt", "a\n"),
    ("p2/marker", ""),
    ("p2/a.txt", "a\n"),
];

/// Creates a workspace whose files a fake server checks; `None` if there is no sandbox.
async fn setup(mode: &str, limits: LanguageServerLimits) -> Option<Setup> {
    Some(with_sandbox(mode, limits, true, sandbox()?).await)
}

async fn with_sandbox(
    mode: &str,
    limits: LanguageServerLimits,
    is_trusted: bool,
    sandbox: Sandbox,
) -> Setup {
    let caches = tempfile::tempdir().unwrap();
    let known = servers(mode, limits, caches.path(), is_trusted);
    let change = |mut deps: cairn_tools::Deps| {
        deps.after_edit.servers = Some(known);
        deps.after_edit.requires_servers = true;
        deps
    };
    let fixture = Fixture::sandboxed(FILES, rules(), change, sandbox).await;
    Setup { fixture, caches }
}

impl Setup {
    /// Replaces a text in a file that was read, and returns the diagnostics of the answer.
    async fn edit(&self, path: &str, old: &str, new: &str) -> Value {
        self.edit_as(path, old, new, Grants::default()).await
    }

    async fn edit_as(&self, path: &str, old: &str, new: &str, grants: Grants) -> Value {
        self.fixture.with("read_file", json!({"path": path}), grants.clone()).await.unwrap();
        let arguments = json!({"path": path, "old_text": old, "new_text": new});
        let mut value = self.fixture.with("edit_file", arguments, grants).await.unwrap();
        assert_eq!(value["success"], true, "{value}");
        value["diagnostics"].take()
    }

    /// Returns the number of servers that were started.
    async fn starts(&self) -> usize {
        self.fixture.audit().await.iter().filter(|row| row.tool == "fake").count()
    }
}

fn report(new: &[&str]) -> Value {
    json!({"servers": ["fake"], "new": new})
}

pub async fn new_problems_are_reported_once() {
    let Some(setup) = setup("push", LIMITS).await else { return };
    // The error that exists already is not new, though its line moves.
    let first = setup.edit("a.txt", "one", "zero\none\nWARN two\nHINT").await;
    assert_eq!(first, report(&["a.txt:3:1: warning: found WARN two [fake]"]));
    let second = setup.edit("a.txt", "WARN two", "BAD now").await;
    assert_eq!(second, report(&["a.txt:3:1: error: found BAD now [fake]"]));
    let third = setup.edit("a.txt", "BAD now", "good").await;
    assert_eq!(third, report(&[]));
    // A new file has no earlier problems; all problems of a patch are in its answer.
    let patch = "*** Begin Patch\n*** Add File: d.txt\n+BAD d\n*** Update File: b.txt\n@@\n-two\n\
        +  BAD b\n*** Delete File: other.md\n*** End Patch";
    setup.fixture.call("read_file", json!({"path": "b.txt"})).await.unwrap();
    setup.fixture.call("read_file", json!({"path": "other.md"})).await.unwrap();
    let value = setup.fixture.call("apply_patch", json!({"patch": patch})).await.unwrap();
    let expected = ["b.txt:1:3: error: found BAD b [fake]", "d.txt:1:1: error: found BAD d [fake]"];
    let mut new: Vec<String> = serde_json::from_value(value["diagnostics"]["new"].clone()).unwrap();
    new.sort();
    assert_eq!(new, expected, "{value}");
    let value = setup
        .fixture
        .call("write_file", json!({"path": "e.txt", "content": "BAD e\n"}))
        .await
        .unwrap();
    assert_eq!(value["diagnostics"], report(&["e.txt:1:1: error: found BAD e [fake]"]));
    // Another kind of file has no server, and one server has served all sessions.
    let value = setup
        .fixture
        .call("write_file", json!({"path": "f.md", "content": "BAD\n"}))
        .await
        .unwrap();
    assert_eq!(value.get("diagnostics"), None, "{value}");
    setup.fixture.in_other_session("read_file", json!({"path": "d.txt"})).await.unwrap();
    let other = json!({"path": "g.txt", "content": "BAD g\n"});
    let value = setup.fixture.in_other_session("write_file", other).await.unwrap();
    assert_eq!(value["diagnostics"], report(&["g.txt:1:1: error: found BAD g [fake]"]));
    assert_eq!(setup.starts().await, 1);
    assert_eq!(std::fs::read_dir(setup.caches.path()).unwrap().count(), 1);
}

pub async fn requested_problems_are_reported() {
    let Some(setup) = setup("pull", LIMITS).await else { return };
    let value = setup.edit("a.txt", "one", "BAD one").await;
    assert_eq!(value, report(&["a.txt:1:1: error: found BAD one [fake]"]));
    // The outermost folder with a marker is the project: this one has a server of its own.
    let value = setup.edit("sub/inner/c.txt", "c", "BAD c").await;
    assert_eq!(value, report(&["sub/inner/c.txt:1:1: error: found BAD c [fake]"]));
    assert_eq!(setup.starts().await, 2);
}

pub async fn flood_of_problems_is_cut() {
    let Some(setup) = setup("flood", LIMITS).await else { return };
    let value = setup.edit("b.txt", "two", "BAD").await;
    assert_eq!(value["new"].as_array().map(Vec::len), Some(20), "{value}");
    assert_eq!(value["omitted"], 980, "{value}");
}

pub async fn silent_server_delays_no_edit_for_longer_than_the_limit() {
    for mode in ["hang", "silent"] {
        let Some(setup) = setup(mode, SHORT).await else { return };
        let started = Instant::now();
        let value = setup.edit("a.txt", "one", "BAD one").await;
        // The limit of the call itself is far above; a wait without a bound would reach it.
        assert!(started.elapsed() < Duration::from_secs(20), "{mode}: {value}");
        assert_eq!(value, json!({"notes": ["fake: no answer within 0.4 s"]}), "{mode}");
    }
}

pub async fn broken_server_fails_alone_and_is_turned_off() {
    let expected = [
        ("json", "it sent an invalid message: a message is not valid JSON-RPC"),
        (
            "length",
            "it sent an invalid message: a message of 1073741824 bytes exceeds the limit of \
            33554432",
        ),
        ("crash", "it exited with code 7: a trace of the crash"),
    ];
    for (mode, reason) in expected {
        let Some(setup) = setup(mode, LIMITS).await else { return };
        for n in 0..4 {
            let (old, new) = (format!("{n}two"), format!("{}two", n + 1));
            let old = if n == 0 { "two" } else { &old };
            let value = setup.edit("b.txt", old, &new).await;
            let off = "off for an hour after three failures; the last";
            let text = if n < 3 { "failed" } else { off };
            let note = format!("fake: {text}: {reason}");
            assert_eq!(value, json!({"notes": [note]}), "{mode} {n}");
        }
        assert_eq!(setup.starts().await, 3, "{mode}");
    }
}

pub async fn server_reaches_nothing_but_its_folders() {
    let Some(confined) = setup("probe", LIMITS).await else { return };
    let line = |text: &str| format!("b.txt:1:1: error: {text}");
    let expected: Vec<String> = [
        "write to repository refused",
        "write to cache succeeded",
        "network refused",
        "secret refused",
    ]
    .map(line)
    .to_vec();
    let value = confined.edit("b.txt", "two", "BAD").await;
    assert_eq!(value["new"], json!(expected));
    assert!(!confined.fixture.path("planted.txt").exists());
    // A run without the sandbox shares the server of all others, which stays inside.
    let unconfined = Grants { unconfined: true, ..Grants::default() };
    let again = with_sandbox("probe", LIMITS, true, sandbox().unwrap()).await;
    let value = again.edit_as("b.txt", "two", "BAD", unconfined).await;
    assert_eq!(value["new"], json!(expected));
    // The same server without any sandbox reaches all of it.
    let off = Sandbox::new(None).when_missing(cairn_harness::WhenMissing::Off);
    let open = with_sandbox("probe", LIMITS, true, off).await;
    let value = open.edit("b.txt", "two", "BAD").await;
    assert!(value["new"][0].as_str().unwrap().ends_with("repository succeeded"), "{value}");
    assert!(open.fixture.path("planted.txt").exists());
}

pub async fn nothing_starts_in_an_untrusted_folder() {
    let Some(sandbox) = sandbox() else { return };
    let setup = with_sandbox("push", LIMITS, false, sandbox).await;
    let value = setup.edit("a.txt", "one", "BAD one").await;
    let note = value["notes"][0].as_str().unwrap();
    assert!(note.starts_with("fake: not started: the folder is not trusted"), "{note}");
    assert_eq!(setup.starts().await, 0);
    assert_eq!(std::fs::read_dir(setup.caches.path()).unwrap().count(), 0);
}

pub async fn run_limited_to_paths_has_no_server() {
    let Some(setup) = setup("push", LIMITS).await else { return };
    let value = setup.edit_as("a.txt", "one", "BAD one", within(&["a.txt"])).await;
    assert_eq!(value, json!({"notes": ["fake: not used in this run"]}));
    assert_eq!(setup.starts().await, 0);
}

pub async fn servers_are_bounded_and_stopped_when_idle() {
    let Some(full) = setup("push", LanguageServerLimits { running: 1, ..LIMITS }).await else {
        return;
    };
    assert_eq!(full.edit("p1/a.txt", "a", "b").await, report(&[]));
    let value = full.edit("p2/a.txt", "a", "b").await;
    assert_eq!(value, json!({"notes": ["fake: not started: 1 language servers are in use"]}));
    let idle = LanguageServerLimits { idle: Duration::from_millis(50), ..LIMITS };
    let Some(setup) = setup("push", idle).await else { return };
    assert_eq!(setup.edit("p1/a.txt", "a", "b").await, report(&[]));
    // Its end is in the audit; the next edit starts another.
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let rows = setup.fixture.audit().await;
        let row = rows.into_iter().find(|row| row.tool == "fake").unwrap();
        if row.outcome.as_deref() == Some("cancelled") {
            break;
        }
        assert!(Instant::now() < until, "{row:?}");
        tokio::task::yield_now().await;
    }
    assert_eq!(setup.edit("p1/a.txt", "b", "BAD").await["servers"], json!(["fake"]));
    assert_eq!(setup.starts().await, 2);
}

pub async fn changed_rules_restart_the_server() {
    let Some(setup) = setup("probe", LIMITS).await else { return };
    let value = setup.edit("b.txt", "two", "BAD").await;
    assert!(value["new"][3].as_str().unwrap().ends_with("secret refused"), "{value}");
    setup.fixture.set_rules(allow(&["write_file", "edit_file"]));
    let content = json!({"path": "new.txt", "content": "BAD\n"});
    let value = setup.fixture.call("write_file", content).await.unwrap();
    let new = &value["diagnostics"]["new"];
    assert!(new[3].as_str().unwrap().ends_with("secret succeeded"), "{value}");
    assert_eq!(setup.starts().await, 2);
}

pub async fn command_checks_files_without_an_answer() {
    let Some(sandbox) = sandbox() else { return };
    let caches = tempfile::tempdir().unwrap();
    let known = Arc::new(servers("push", LIMITS, caches.path(), true));
    let change = |mut deps: cairn_tools::Deps| {
        deps.after_edit.servers = Some(LanguageServers::clone(&known));
        deps.after_edit.check = Some("echo checked".into());
        deps.after_edit.timeout = Duration::from_secs(30);
        deps
    };
    let fixture = Fixture::sandboxed(FILES, rules(), change, sandbox).await;
    let write = |path: &str| json!({"path": path, "content": "BAD\n"});
    let value = fixture.call("write_file", write("new.txt")).await.unwrap();
    assert_eq!(value["diagnostics"], report(&["new.txt:1:1: error: found BAD [fake]"]));
    let value = fixture.call("write_file", write("new.md")).await.unwrap();
    assert_eq!(value["diagnostics"]["result"]["output"], "checked\n", "{value}");
}
