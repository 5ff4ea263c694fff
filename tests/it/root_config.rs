//! The configuration of a root's own folder: the daemon reads it, applies its changes, and its
//! rules cannot be bypassed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::sealed::{Daemon, PATIENCE, Raw, tree};

struct Fixture {
    _daemon: Daemon,
    dir: tempfile::TempDir,
    raw: Raw,
    session: Value,
}

impl Fixture {
    async fn new(config: &str) -> Self {
        let daemon = Daemon::start();
        let dir = tempfile::tempdir().unwrap();
        let files = [
            ("open.txt", "an open line\n"),
            ("private/key.txt", "a private line\n"),
            ("docs/x.md", "docs line\n"),
        ];
        tree(dir.path(), &files);
        std::fs::write(dir.path().join(".cairn.json"), config).unwrap();
        let mut raw = daemon.client().await;
        let session = raw.open_session(dir.path()).await;
        Self { _daemon: daemon, dir, raw, session }
    }

    async fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.raw.call_tool(&self.session, name, arguments).await
    }

    /// Changes the file and waits until a read of the private file has that outcome.
    async fn change(&mut self, config: &str, reason: Option<&str>) {
        std::fs::write(self.dir.path().join(".cairn.json"), config).unwrap();
        let until = Instant::now() + PATIENCE;
        loop {
            let got = self.call("read_file", json!({"path": "private/key.txt"})).await;
            if got["error"]["reason"].as_str() == reason {
                return;
            }
            assert!(Instant::now() < until, "the change is not taken: {got}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// P4, P7: the rules of a project's file apply immediately and after each change; P3: no answer
/// contains paths that it hides.
#[tokio::test]
async fn root_configuration_applies_and_is_reloaded() {
    let strict = json!({
        "permissions": {"finalDeny": ["*(private)"], "deny": ["git_status"]},
        "safety": {"blockedCommands": ["rm"]},
        "tools": {"builtin": {"evaluate": {"enabled": false}}},
    })
    .to_string();
    let mut fixture = Fixture::new(&strict).await;
    for path in ["private/key.txt", "./private/key.txt", "docs/../private/key.txt"] {
        let got = fixture.call("read_file", json!({"path": path})).await;
        assert_eq!(got["error"]["reason"], "tool_denied", "{path}: {got}");
    }
    assert_eq!(
        fixture.call("git_status", json!({"path": "."})).await["error"]["reason"],
        "tool_denied"
    );
    assert_eq!(
        fixture.call("evaluate", json!({"code": "1"})).await["error"]["reason"],
        "tool_denied"
    );
    let removed = fixture.call("run_shell", json!({"command": "rm open.txt"})).await;
    assert_eq!(removed["error"]["reason"], "tool_denied", "{removed}");
    assert!(fixture.dir.path().join("open.txt").exists());
    // Broad answers, and those to clients' own requests.
    let until = Instant::now() + PATIENCE;
    let results = loop {
        let results = fixture.raw.ok("search.grep", json!({"pattern": "line"})).await;
        if results["complete"] == true {
            break results;
        }
        assert!(Instant::now() < until, "never indexed");
    };
    assert_eq!(
        (results["items"].as_array().unwrap().len(), &results["restricted"]),
        (2, &json!(true)),
        "{results}"
    );
    for method in ["search.lexical", "search.hybrid"] {
        let results =
            fixture.raw.ok(method, json!({"query": "private line", "includeText": true})).await;
        assert!(!results.to_string().contains("key.txt"), "{method}: {results}");
    }
    let path = fixture.dir.path().join("private/key.txt");
    let reason =
        fixture.raw.refused("content.getSpan", json!({"path": path, "start": 1, "end": 2})).await;
    assert_eq!(reason, "path_blocked");
    let listed =
        fixture.raw.ok("fs.listDir", json!({"path": fixture.dir.path(), "depth": 3})).await;
    assert!(!listed.to_string().contains("private"), "{listed}");
    // Changes of the file are applied; an invalid one leaves the previous rules in force.
    fixture.change("{}", None).await;
    fixture.change(&strict, Some("tool_denied")).await;
    std::fs::write(fixture.dir.path().join(".cairn.json"), "{ broken").unwrap();
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let got = fixture.call("read_file", json!({"path": "private/key.txt"})).await;
    assert_eq!(got["error"]["reason"], "tool_denied", "{got}");
    std::fs::remove_file(fixture.dir.path().join(".cairn.json")).unwrap();
    fixture.change("{}", None).await;
}

/// A file that was never readable may contain denials: the root is closed, and the reason names the
/// file.
#[tokio::test]
async fn invalid_root_configuration_closes_its_root() {
    let mut fixture = Fixture::new("{ broken").await;
    let got = fixture.call("read_file", json!({"path": "open.txt"})).await;
    assert_eq!(got["error"]["reason"], "tool_denied", "{got}");
    assert!(
        got["error"]["message"].as_str().unwrap().contains(".cairn.json: is not JSON"),
        "{got}"
    );
    fixture.change("{}", None).await;
}

/// A8: with the home folder as a root, no tool can access the files of the user's own layers.
#[tokio::test]
async fn user_layers_are_not_root_configurations() {
    let daemon = Daemon::start();
    let home = daemon.home.clone();
    std::fs::write(home.join(".cairn.json"), "{}").unwrap();
    let mut raw = daemon.client().await;
    // The folder itself is no root at all.
    let refused = raw.call("index.addRoot", json!({"path": home})).await;
    assert_eq!(refused["error"]["data"]["reason"], "path_blocked", "{refused}");
    let session = raw.open_session(home.parent().unwrap()).await;
    for path in ["home/.cairn.json", "./x/../home/.cairn.json", "home/config/config.json"] {
        for (name, arguments) in [
            ("read_file", json!({"path": path})),
            (
                "write_file",
                json!({"path": path, "content": "{\"safety\": {\"sandbox_enabled\": false}}"}),
            ),
        ] {
            let got = raw.call_tool(&session, name, arguments).await;
            assert_eq!(got["error"]["reason"], "path_blocked", "{name} {path}: {got}");
        }
    }
    assert_eq!(std::fs::read_to_string(home.join(".cairn.json")).unwrap(), "{}");
}
