//! MCP with third-party programs: the official client, conformance suite and server, and servers
//! that violate the protocol.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::sealed::{Daemon, Raw, binary, command, missing, python, tree, wait_for};

pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance").join(name)
}

pub fn project(root: &Path) {
    tree(
        root,
        &[(
            "sample/store.py",
            "def open_ledger(path):\n    \"\"\"Opens the ledger of accounts.\"\"\"\n    return path\n",
        )],
    );
}

/// A child process that is killed with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ignored = self.0.kill();
        let _ignored = self.0.wait();
    }
}

fn parse_output(output: &std::process::Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Checks the results of the official client, independent of the transport.
fn check(seen: &Value, root: &Path) {
    let text = |name: &str| {
        assert_eq!(seen[name]["error"], false, "{name}: {}", seen[name]);
        seen[name]["text"].as_str().unwrap().to_owned()
    };
    assert!(text("search").starts_with("sample/store.py:1-3"), "{}", text("search"));
    assert!(text("search").contains("\ndef open_ledger"), "{}", text("search"));
    assert_eq!(text("lines"), "sample/store.py:1: def open_ledger(path):\n");
    assert_eq!(text("symbols"), "sample/store.py:1-3 function open_ledger\n");
    let span = text("span");
    assert!(span.starts_with("sample/store.py:1-2 of 3\n1|def open_ledger"), "{span}");
    assert!(!span.contains("more"), "{span}");
    assert!(text("explore").contains("Python "), "{}", text("explore"));
    assert!(text("read").starts_with("sample/store.py:2-3 of 3\n2|"), "{}", text("read"));
    let steps: Vec<f64> =
        seen["steps"].as_array().unwrap().iter().map(|s| s[0].as_f64().unwrap()).collect();
    assert!(steps.len() > 3 && steps.windows(2).all(|w| w[0] < w[1]), "{steps:?}");
    assert_eq!(seen["wrong"]["error"], true);
    assert!(
        seen["wrong"]["text"].as_str().unwrap().contains("has no parameter 'q'"),
        "{}",
        seen["wrong"]
    );
    assert!(
        seen["unknown"].as_str().unwrap().contains("did you mean 'search'?"),
        "{}",
        seen["unknown"]
    );
    // The first approval was granted, the second one denied.
    assert_eq!(text("written"), r#"{"bytes_written":4,"path":"new.txt","success":true}"#);
    assert_eq!(std::fs::read_to_string(root.join("new.txt")).unwrap(), "one\n");
    assert!(seen["denied"]["text"].as_str().unwrap().contains("enough"), "{}", seen["denied"]);
    assert!(!root.join("other.txt").exists());
    assert!(
        seen["asked"][0].as_str().unwrap().contains("+one")
            && seen["asked"].as_array().unwrap().len() == 2
    );
    let tools = seen["tools"].as_object().unwrap();
    assert_eq!(tools["search"]["annotations"]["readOnlyHint"], true);
    assert_eq!(tools["write"]["annotations"]["destructiveHint"], true);
    assert!(!tools.contains_key("write_file"), "the twin of write is listed");
    assert!(!tools.contains_key("search_grep"), "a tool that models are not offered is listed");
    assert_eq!(seen["resources"][0], "cairn://roots");
    // Cancelling a call ends its tool.
    assert!(
        seen["cancelled"].is_string() && seen["seconds"].as_f64().unwrap() < 20.0,
        "{}",
        seen["seconds"]
    );
}

/// Checks in the audit that the cancelled tool has ended.
async fn cancelled(daemon: &Daemon) {
    let mut raw = daemon.client().await;
    let mut audit = Value::Null;
    for _ in 0..200 {
        audit = raw.ok("audit.query", json!({"tool": "evaluate"})).await;
        if audit["data"][0].to_string().contains("cancelled") {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the tool goes on: {audit}");
}

#[tokio::test]
async fn official_client_works_over_stdio() {
    let Some(python) = python("mcp") else { return };
    let daemon = Daemon::start();
    for mode in ["legacy", "auto"] {
        let dir = tempfile::tempdir().unwrap();
        project(dir.path());
        let mut client = Command::new(&python);
        client.arg(script("mcp_client.py")).args([mode, "stdio"]).arg(binary()).arg(dir.path());
        let seen = parse_output(&client.env("CAIRN_HOME", &daemon.home).output().unwrap());
        check(&seen, dir.path());
    }
    cancelled(&daemon).await;
}

#[tokio::test]
async fn official_client_works_over_http() {
    let Some(python) = python("mcp") else { return };
    for (mode, version) in [("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")] {
        let daemon = Daemon::start();
        let dir = tempfile::tempdir().unwrap();
        project(dir.path());
        daemon.client().await.ok("index.addRoot", json!({"path": dir.path()})).await;
        let url = format!("http://{}/mcp?tools=default,evaluate", daemon.address());
        let mut client = Command::new(&python);
        client.arg(script("mcp_client.py")).args([mode, "http", &url, &daemon.token()]);
        let seen = parse_output(&client.output().unwrap());
        assert_eq!(seen["version"], version);
        // A client that knows the version in advance does not query the server's information.
        let has_instructions =
            seen["instructions"].as_str().is_some_and(|i| i.contains("`search`"));
        assert_eq!(has_instructions, mode == "legacy");
        check(&seen, dir.path());
        cancelled(&daemon).await;
    }
}

/// Returns the paths of the conformance suite and of Node.
fn suite() -> Option<(PathBuf, PathBuf)> {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peers");
    let peers = std::env::var_os("CAIRN_TEST_NODE").map_or(peers, PathBuf::from);
    let (node, suite) = (peers.join("bin/node"), peers.join("npm/node_modules/.bin/conformance"));
    if node.exists() && suite.exists() {
        return Some((node, suite.canonicalize().unwrap()));
    }
    missing("npm's @modelcontextprotocol/conformance, with a node beside it");
    None
}

#[test]
fn client_passes_the_conformance_suite() {
    let Some(python) = python("json") else { return };
    let Some((node, suite)) = suite() else { return };
    let dir = tempfile::tempdir().unwrap();
    let client =
        format!("{python} {} {}", script("mcp_under_test.py").display(), binary().display());
    for scenario in ["initialize", "tools_call", "sse-retry"] {
        let mut command = Command::new(&node);
        command.arg(&suite).args(["client", "--command", &client, "--scenario", scenario, "-o"]);
        let output = command.arg(dir.path()).output().unwrap();
        let text = [output.stdout, output.stderr]
            .map(|t| String::from_utf8_lossy(&t).into_owned())
            .concat();
        assert!(output.status.success() && text.contains("OVERALL: PASSED"), "{scenario}: {text}");
    }
}

#[test]
fn conformance_suite_fails_only_as_documented() {
    let Some(python) = python("mcp") else { return };
    let Some((node, suite)) = suite() else { return };
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let mut proxy = Command::new(python);
    let proxy = proxy.arg(script("bearer.py")).arg(&home).stdout(Stdio::piped()).spawn().unwrap();
    let mut proxy = Ends(proxy);
    let mut address = String::new();
    BufReader::new(proxy.0.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let address = address.trim();
    configure(&home, &json!({"listen": {"allowedOrigins": [format!("http://{address}")]}}));
    let _daemon = Daemon::start_in(&home, &[]);
    let output = Command::new(node)
        .arg(suite)
        .args([
            "server",
            "--url",
            &format!("http://{address}/mcp"),
            "--suite",
            "all",
            "--expected-failures",
        ])
        .arg(script("mcp_expected.yml"))
        .arg("-o")
        .arg(dir.path().join("results"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let summary = text.split("=== SUMMARY ===").last().unwrap_or_default();
    assert!(output.status.success(), "{summary}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(summary.contains("✓ dns-rebinding-protection"), "{summary}");
    crate::sealed::note(&format!(
        "mcp conformance: {}",
        summary.trim().lines().last().unwrap_or_default()
    ));
}

pub fn configure(home: &Path, config: &Value) {
    std::fs::create_dir_all(home.join("config")).unwrap();
    std::fs::write(home.join("config/config.json"), config.to_string()).unwrap();
}

/// Connects to `/mcp/ws` with the protocol itself.
pub async fn socket(daemon: &Daemon, query: &str) -> Raw {
    let url = format!("{}/mcp/ws{query}", daemon.address());
    Raw::connect_at(&url, &[("authorization", &format!("Bearer {}", daemon.token()))])
        .await
        .unwrap()
}

pub async fn begin(raw: &mut Raw) {
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "it", "version": "0"}});
    let shaken = raw.call("initialize", hello).await;
    assert_eq!(shaken["result"]["serverInfo"]["name"], "cairn", "{shaken}");
    raw.send_json(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
}

pub async fn tool(raw: &mut Raw, name: &str, arguments: Value) -> Value {
    raw.call("tools/call", json!({"name": name, "arguments": arguments})).await
}

#[tokio::test]
async fn invalid_requests_get_errors_and_the_daemon_continues() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    project(dir.path());
    daemon.client().await.ok("index.addRoot", json!({"path": dir.path()})).await;
    for headers in [vec![], vec![("authorization", "Bearer wrong")]] {
        assert!(Raw::connect_at(&format!("{}/mcp/ws", daemon.address()), &headers).await.is_err());
    }
    let mut raw = socket(&daemon, "").await;
    begin(&mut raw).await;
    raw.send(Message::text("{")).await;
    assert_eq!(raw.json().await["error"]["code"], -32700);
    raw.send(Message::text("[]")).await;
    assert_eq!(raw.json().await["error"]["code"], -32600);
    let answer = tool(&mut raw, "serch", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"]["message"].as_str().unwrap().contains("'search'"), "{answer}");
    let answer = tool(&mut raw, "read", json!({"path": "../../etc/passwd"})).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let answer = tool(&mut raw, "write", json!({"path": "x", "content": "x"})).await;
    assert_eq!(answer["result"]["isError"], true, "nobody could be asked: {answer}");
    assert!(!dir.path().join("x").exists());
    let answer = raw.call("resources/read", json!({"uri": "cairn://nothing"})).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("cairn://nothing"), "{answer}");
    drop(raw);
    let mut raw = socket(&daemon, "?root=/nowhere").await;
    begin(&mut raw).await;
    let answer = tool(&mut raw, "search", json!({"query": "x"})).await;
    assert!(
        answer["result"]["content"][0]["text"].as_str().unwrap().contains("root_not_found"),
        "{answer}"
    );
    drop(raw);
    // A closed connection affects no other.
    let mut raw = daemon.client().await;
    raw.ok("daemon.status", json!({})).await;
}

#[tokio::test]
async fn cancelled_explore_stops() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    crate::contents::sources(dir.path(), 3000);
    daemon.client().await.ok("index.addRoot", json!({"path": dir.path()})).await;
    let mut raw = socket(&daemon, "").await;
    begin(&mut raw).await;
    let call = json!({"jsonrpc": "2.0", "id": 900, "method": "tools/call", "params":
        {"name": "explore", "arguments": {"goals": ["a", "b"]}, "_meta": {"progressToken": "p"}}});
    raw.send_json(&call).await;
    let first = raw.json().await;
    assert_eq!(first["method"], "notifications/progress", "{first}");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 900}});
    raw.send_json(&cancel).await;
    let mut client = daemon.client().await;
    let mut state = Value::Null;
    for _ in 0..400 {
        let sessions = client.ok("session.list", json!({})).await;
        state = sessions["data"][0]["state"].clone();
        if state == "stopped" {
            return;
        }
        assert_ne!(state, "completed", "it had ended before it could be stopped");
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    panic!("the explore is {state}");
}

/// Calls a tool as a user who approves it.
fn call(home: &Path, root: &Path, name: &str, arguments: &Value) -> (bool, String) {
    let mut command = command(home);
    let output = command
        .args(["tools", "call", name, &arguments.to_string(), "--yes", "--root"])
        .arg(root)
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.success(), text)
}

fn names(home: &Path) -> Vec<Value> {
    let output =
        command(home).args(["tools", "list", "--json"]).stdout(Stdio::piped()).output().unwrap();
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mine = |t: &&Value| t["name"].as_str().unwrap().starts_with("mcp_");
    all["data"].as_array().unwrap().iter().filter(mine).cloned().collect()
}

fn named(home: &Path, name: &str) -> Value {
    wait_for(name, || names(home).into_iter().find(|t| t["name"] == name))
}

#[test]
fn tools_of_an_official_server_pass_the_gate() {
    let Some(python) = python("mcp") else { return };
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("root"));
    project(&root);
    let server = |trust: bool| json!({"command": python, "args": [script("mcp_server.py")], "env": {"GIVEN": "x"}, "trustAnnotations": trust});
    configure(
        &home,
        &json!({"mcp": {"servers": {"peer": server(false), "trusted": server(true)}}}),
    );
    let mut daemon = Daemon::start_in(&home, &[]);
    assert_eq!(named(&home, "mcp_peer_add")["readOnly"], false);
    assert_eq!(named(&home, "mcp_trusted_add")["readOnly"], true);
    assert_eq!(named(&home, "mcp_trusted_grow")["readOnly"], false);
    // Without an approval it is not called; the same call succeeds with one.
    let mut denied = command(&home);
    let denied =
        denied.args(["tools", "call", "mcp_peer_add", r#"{"a":2,"b":3}"#, "--root"]).arg(&root);
    let output = denied.stdout(Stdio::piped()).output().unwrap();
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(call(&home, &root, "mcp_peer_add", &json!({"a": 2, "b": 3})), (true, "5\n".into()));
    let (ok, text) = call(&home, &root, "mcp_peer_environment", &json!({}));
    assert!(ok && text.contains("GIVEN") && !text.contains("CAIRN_HOME"), "{text}");
    let (ok, text) = call(&home, &root, "mcp_peer_fail", &json!({}));
    assert!(!ok && text.contains("mcp_peer_fail failed: "), "{text}");
    let (ok, text) = call(&home, &root, "mcp_peer_add", &json!({"a": "x"}));
    assert!(!ok && text.contains("arguments"), "{text}");
    assert!(call(&home, &root, "mcp_peer_grow", &json!({})).0);
    named(&home, "mcp_peer_later");
    assert_eq!(call(&home, &root, "mcp_peer_later", &json!({})), (true, "here\n".into()));
    // A new configuration replaces it without a restart; its servers stop with the daemon.
    configure(&home, &json!({"mcp": {"servers": {"trusted": server(true)}}}));
    daemon.hang_up();
    wait_for("the end of a server", || {
        names(&home).iter().all(|t| t["name"] != "mcp_peer_add").then_some(())
    });
    assert!(daemon.stop().success());
    let here = script("mcp_server.py");
    let servers_running = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let mut lines = processes.filter_map(|p| {
            std::fs::read_to_string(p.path().join("environ"))
                .ok()
                .zip(std::fs::read_to_string(p.path().join("cmdline")).ok())
        });
        lines.any(|(environ, line)| {
            line.contains(here.to_str().unwrap()) && environ.contains("GIVEN=x")
        })
    };
    wait_for("the end of all servers", || (!servers_running()).then_some(()));
}

#[test]
fn misbehaving_server_does_not_affect_others() {
    let Some(python) = python("json") else { return };
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("root"));
    project(&root);
    let rogue = |mode: &str| json!({"command": python, "args": [script("mcp_rogue.py"), mode], "timeoutSeconds": 2, "startTimeoutSeconds": 2});
    let servers = json!({
        "garbage": rogue("garbage"), "hang": rogue("hang"), "exit": rogue("exit"), "rogue": rogue("tools"),
        "none": {"command": "/nonexistent/server"}, "neither": {"timeoutSeconds": 2},
    });
    configure(&home, &json!({"mcp": {"servers": servers}}));
    let _daemon = Daemon::start_in(&home, &[]);
    named(&home, "mcp_rogue_huge");
    let all = names(&home);
    assert_eq!(all.len(), 5, "{all:#?}");
    for tool in &all {
        let name = tool["name"].as_str().unwrap();
        assert!(
            name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)),
            "{name}"
        );
        assert_eq!(tool["readOnly"], false, "it was believed");
        for text in [tool["description"].as_str().unwrap(), &tool["inputSchema"].to_string()] {
            assert!(
                !text.contains(['\n', '\u{1b}', '\u{7}', '\u{202e}']) && text.len() < 1500,
                "{text:?}"
            );
        }
    }
    let odd =
        all.iter().find(|t| t["name"].as_str().unwrap().starts_with("mcp_rogue_a_b_c_")).unwrap();
    let (ok, text) = call(&home, &root, odd["name"].as_str().unwrap(), &json!({}));
    assert!(ok && text.starts_with("called a b/c"), "{text}");
    let (ok, text) = call(&home, &root, "mcp_rogue_huge", &json!({}));
    assert!(ok && text.len() < 300_000 && text.contains("cut at a limit"), "{}", text.len());
    let (ok, text) = call(&home, &root, "mcp_rogue_die", &json!({}));
    assert!(!ok && text.contains("'rogue'"), "{text}");
    // The server is restarted, and a call that takes too long is abandoned.
    let mut reply = String::new();
    wait_for("the server's return", || {
        reply = call(&home, &root, odd["name"].as_str().unwrap(), &json!({})).1;
        reply.starts_with("called").then_some(())
    });
    let (ok, text) = call(&home, &root, "mcp_rogue_slow", &json!({}));
    assert!(!ok && text.contains("took longer than 2 s"), "{text}");
    for want in [
        "cannot go on",
        "/nonexistent/server",
        "did not answer within 2 s",
        "either 'command' or 'url'",
    ] {
        wait_for(want, || crate::sealed::logged(&home).contains(want).then_some(()));
    }
}

#[test]
fn client_entry_is_merged_into_existing_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let (home, project) = (dir.path().join("home"), dir.path().join("project"));
    std::fs::create_dir_all(project.join(".cursor")).unwrap();
    let file = project.join(".cursor/mcp.json");
    let before = "{ // mine\n  \"mcpServers\": { \"other\": { \"command\": \"x\" } }\n}\n";
    std::fs::write(&file, before).unwrap();
    let install = |client: &str| {
        let mut command = command(&home);
        let command = command.args(["mcp", "install", client, "--write"]).current_dir(&project);
        command.stdout(Stdio::piped()).output().unwrap()
    };
    assert!(install("cursor").status.success());
    let after = std::fs::read_to_string(&file).unwrap();
    assert!(
        after.contains("// mine")
            && after.contains("other")
            && after.contains("${workspaceFolder}"),
        "{after}"
    );
    assert!(after.contains(binary().canonicalize().unwrap().to_str().unwrap()), "{after}");
    assert_eq!(
        std::fs::read_to_string(project.join(".cursor/mcp.json.before-cairn")).unwrap(),
        before
    );
    assert!(install("cursor").status.success());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), after, "it was written twice");
    // An unreadable file stays unchanged.
    std::fs::write(&file, "{ broken").unwrap();
    let output = install("cursor");
    assert!(
        !output.status.success()
            && String::from_utf8_lossy(&output.stderr).contains("is unchanged")
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{ broken");
    // The home folder of the test replaces the user's.
    assert!(install("codex").status.success());
    assert!(
        std::fs::read_to_string(home.join(".codex/config.toml"))
            .unwrap()
            .contains("[mcp_servers.cairn]")
    );
}

#[tokio::test]
async fn client_runs_turns_only_if_its_user_offers_them() {
    let cairn = crate::chat::scripted(&json!([
        crate::chat::calls("read_file", &json!({"path": "notes.txt"})),
        crate::chat::text_answer("it says old"),
    ]));
    let path = cairn.folder.canonicalize().unwrap();
    cairn.daemon.client().await.ok("index.addRoot", json!({"path": path})).await;
    let names = |listed: &Value| -> Vec<String> {
        let all = listed["result"]["tools"].as_array().unwrap().iter();
        all.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    for (query, offered) in [("", false), ("?turns=0", false), ("?turns=1", true)] {
        let mut raw = socket(&cairn.daemon, query).await;
        begin(&mut raw).await;
        raw.send_json(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"})).await;
        let listed = raw.json().await;
        assert_eq!(names(&listed).contains(&"run_turn".to_owned()), offered, "{query}");
        let arguments = json!({"prompt": "what is in notes.txt?"});
        let answer = tool(&mut raw, "run_turn", arguments).await.to_string();
        if offered {
            assert!(answer.contains("it says old") && answer.contains("cairn://session/"));
            let wrong = tool(&mut raw, "run_turn", json!({"prompt": 1})).await.to_string();
            assert!(wrong.contains("invalid_params"), "{wrong}");
        } else {
            assert!(answer.contains("there is no tool 'run_turn'"), "{query}: {answer}");
        }
    }
}
