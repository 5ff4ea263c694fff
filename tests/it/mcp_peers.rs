//! MCP with npm packages: the inspector as a client, and the "everything" server.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{
    sdks::node,
    sealed::{Daemon, binary, command, missing, tree},
};

/// Creates a home, and a folder with searchable content.
fn fixture() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("repo"));
    tree(&root, &[("sample/store.py", "def open_ledger(path):\n    return path\n")]);
    (dir, home, root)
}

#[test]
fn inspector_lists_and_calls_tools() {
    let Some((node, modules)) = node() else { return };
    let inspector = modules.join(".bin/mcp-inspector");
    if !inspector.exists() {
        return missing("npm's @modelcontextprotocol/inspector");
    }
    let (dir, home, root) = fixture();
    let mut daemon = Daemon::start_in(&home, &[]);
    let path = std::env::join_paths(
        std::iter::once(node.parent().unwrap().to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let inspect = |args: &[&str]| {
        let mut run = std::process::Command::new(&node);
        // The inspector gives its server a small environment of its own.
        run.arg(&inspector).args(["--cli", "-e", &format!("CAIRN_HOME={}", home.display())]);
        run.arg(binary()).args(["mcp", "--root"]).arg(&root).args(args);
        let output =
            run.env("PATH", path.as_ref().unwrap()).env("HOME", dir.path()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (done, listed) = inspect(&["--method", "tools/list"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let names: Vec<_> =
        listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert!(
        done && names.contains(&&json!("search")) && names.contains(&&json!("write")),
        "{names:?}"
    );
    let call = ["--method", "tools/call", "--tool-name", "search", "--tool-arg"];
    let (done, text) = inspect(&[&call[..], &["query=open the ledger"]].concat());
    assert!(done && text.contains("sample/store.py:1-"), "{text}");
    let (done, wrong) = inspect(&[&call[..], &["q=open the ledger"]].concat());
    assert!(!done && wrong.contains("has no parameter 'q'"), "{wrong}");
    assert!(daemon.stop().success());
}

#[tokio::test]
async fn tools_of_a_foreign_server_pass_the_gate() {
    let Some((node, modules)) = node() else { return };
    let server = modules.join("@modelcontextprotocol/server-everything/dist/index.js");
    if !server.exists() {
        return missing("npm's @modelcontextprotocol/server-everything");
    }
    let (_dir, home, root) = fixture();
    let config = json!({
        "permissions": {"allow": ["mcp_everything_get-sum"]},
        "mcp": {"servers": {"everything": {"command": node, "args": [server, "stdio"]}}},
    });
    tree(&home, &[("config/config.json", &config.to_string())]);
    let daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    let session = raw.open_session(&root).await;
    let sum = "mcp_everything_get-sum";
    let until = std::time::Instant::now() + crate::sealed::PATIENCE;
    while !raw.ok("tool.list", json!({})).await["data"].to_string().contains(sum) {
        assert!(std::time::Instant::now() < until, "its tools did not come");
        tokio::task::yield_now().await;
    }
    let sum_result = raw.call_tool(&session, sum, json!({"a": 2, "b": 40})).await;
    assert_eq!(sum_result["output"]["content"], "The sum of 2 and 40 is 42.", "{sum_result}");
    let wrong = raw.call_tool(&session, sum, json!({"a": 2})).await;
    assert_eq!(wrong["error"]["reason"], "invalid_params", "{wrong}");
    // A call without a rule requires an approval, and there is no approver.
    let echo_result =
        raw.call_tool(&session, "mcp_everything_echo", json!({"message": "hi"})).await;
    assert_eq!(echo_result["error"]["reason"], "no_approver", "{echo_result}");
    let listed = command(&home).arg("tools").stdout(std::process::Stdio::piped()).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains(sum));
}
