//! The tools as an agent meets them over MCP: how many, how long, what they answer, and what it
//! and its user learn while a call waits for an approval.

use std::process::Command;

use serde_json::{Value, json};

use crate::{
    contents::complete,
    mcp::{begin, configure, project, script, socket, tool},
    sdks::node,
    sealed::{Daemon, Raw, binary, missing, note, python},
};

/// Characters that the list of tools and the instructions may have together.
const MAX_CHARACTERS: usize = 6000;

/// A daemon with one root, and its folders.
struct Fixture {
    daemon: Daemon,
    dir: tempfile::TempDir,
}

impl Fixture {
    async fn start(config: &Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        configure(&home, config);
        let daemon = Daemon::start_in(&home, &[]);
        let root = dir.path().join("root");
        project(&root);
        let mut raw = daemon.client().await;
        raw.ok("index.addRoot", json!({"path": root})).await;
        complete(&mut raw).await;
        Self { daemon, dir }
    }

    async fn client(&self, query: &str) -> Raw {
        let mut raw = socket(&self.daemon, query).await;
        begin(&mut raw).await;
        raw
    }
}

async fn listed(raw: &mut Raw) -> Vec<Value> {
    let answer = raw.call("tools/list", json!({})).await;
    answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

async fn names(raw: &mut Raw) -> Vec<String> {
    let all = listed(raw).await;
    all.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn text(answer: &Value) -> &str {
    let text = &answer["result"]["content"][0]["text"];
    text.as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test]
async fn instructions_over_http_name_the_tools_of_the_query() {
    let daemon = crate::sealed::Daemon::start();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "it", "version": "0"}}});
    for (query, has_grep) in [("?tools=search", false), ("", true)] {
        let headers = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        let line = format!("POST /mcp{query}");
        let body = hello.to_string();
        let mut answer = crate::http::send(&daemon, &line, &headers, body.as_bytes()).await;
        assert_eq!(answer.status, 200, "{query}");
        let message = match answer.headers["content-type"].starts_with("text/event-stream") {
            true => answer.event().await.unwrap().1,
            false => answer.json().await,
        };
        let text = message["result"]["instructions"].as_str().unwrap();
        assert!(text.contains("`search`"), "{text}");
        assert_eq!(text.contains("`grep`"), has_grep, "{query}: {text}");
    }
}

#[tokio::test]
async fn default_tools_cost_few_characters() {
    let fixture = Fixture::start(&json!({})).await;
    let mut raw = socket(&fixture.daemon, "").await;
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "it", "version": "0"}});
    let about = raw.call("initialize", hello).await;
    raw.send_json(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    let instructions = about["result"]["instructions"].as_str().unwrap().to_owned();
    assert!(instructions.lines().count() <= 10, "{instructions}");
    for absent in ["memory", "web"] {
        assert!(!instructions.contains(absent), "{absent}: {instructions}");
    }
    let tools = listed(&mut raw).await;
    let list = serde_json::to_string(&tools).unwrap();
    let total = list.len() + instructions.len();
    note(&format!(
        "mcp: {} tools in {} characters, instructions in {}",
        tools.len(),
        list.len(),
        instructions.len()
    ));
    assert!(total <= MAX_CHARACTERS && tools.len() <= 12, "{total}: {list}");
    // The same measure without the selection is several times as long.
    let mut all = fixture.client("?tools=all").await;
    let all = serde_json::to_string(&listed(&mut all).await).unwrap();
    note(&format!("mcp: all tools in {} characters", all.len()));
    assert!(all.len() > 2 * MAX_CHARACTERS, "{}", all.len());
}

#[tokio::test]
async fn clients_are_offered_the_tools_of_the_configuration() {
    let fixture = Fixture::start(&json!({"mcp": {"tools": ["search", "git_log"]}})).await;
    let mut raw = fixture.client("").await;
    assert_eq!(names(&mut raw).await, ["search", "git_log"]);
    let refused = tool(&mut raw, "grep", json!({"pattern": "x"})).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("cairn mcp --tools git_log,search,grep"), "{refused}");
    assert_eq!(refused["error"]["code"], -32602);
    let absent = tool(&mut raw, "write_file", json!({"path": "x", "content": "x"})).await;
    assert!(absent["error"]["message"].as_str().unwrap().contains("mcp.tools"), "{absent}");
    assert!(!fixture.dir.path().join("root/x").exists());
    // A connection that names its tools has those.
    let mut default = fixture.client("?tools=default").await;
    let default = names(&mut default).await;
    assert!(
        default.contains(&"grep".into()) && !default.contains(&"git_log".into()),
        "{default:?}"
    );
    let mut all = fixture.client("?tools=all").await;
    let all = names(&mut all).await;
    assert!(all.contains(&"git_log".into()) && all.contains(&"grep".into()), "{all:?}");
    for twin in ["search_code", "search_files", "read_file", "run_shell", "edit_file", "write_file"]
    {
        assert!(!all.contains(&twin.to_owned()), "{twin} is the twin of a listed tool");
    }
    let mut old = fixture.client("?tools=read_file,nosuch").await;
    assert_eq!(names(&mut old).await, ["read_file"]);
    let read = tool(&mut old, "read_file", json!({"path": "sample/store.py"})).await;
    assert!(text(&read).contains("1|def open_ledger"), "{read}");
}

#[tokio::test]
async fn names_of_earlier_versions_lead_to_the_present_tools() {
    let fixture = Fixture::start(&json!({})).await;
    let mut raw = fixture.client("").await;
    for (old, present) in [
        ("search_lines", "grep"),
        ("read_span", "read"),
        ("repo_map", "map"),
        ("search_code", "search"),
        ("run_shell", "run"),
        ("impact", "references"),
    ] {
        let refused = tool(&mut raw, old, json!({})).await.to_string();
        assert!(refused.contains(&format!("use '{present}'")), "{old}: {refused}");
    }
}

#[tokio::test]
async fn answers_have_the_passage_within_a_budget() {
    let fixture = Fixture::start(&json!({})).await;
    let root = fixture.dir.path().join("root");
    let mut raw = fixture.client("").await;
    let found = tool(&mut raw, "search", json!({"query": "opens the ledger of accounts"})).await;
    assert!(text(&found).contains("def open_ledger(path):"), "{found}");
    assert!(found["result"].get("structuredContent").is_none(), "the answer is sent twice");
    let body: String = (0..3000).map(|n| format!("    ledger_row_{n} = {n}\n")).collect();
    std::fs::write(root.join("long.py"), format!("def fill_ledger():\n{body}")).unwrap();
    let found = tool(&mut raw, "search", json!({"query": "ledger", "maxTokens": 200})).await;
    assert!(text(&found).len() < 1200, "{found}");
    let lines = loop {
        let lines = tool(&mut raw, "grep", json!({"pattern": "ledger_row_\\d+", "k": 500})).await;
        if text(&lines).contains("cursor=") {
            break lines;
        }
    };
    let first = text(&lines);
    assert!(first.len() < 12_400 && first.starts_with("long.py:2: "), "{first}");
    // The cursor continues with the line after the last one that fitted.
    let count = first.matches("long.py:").count();
    let cursor = first.rsplit("cursor=\"").next().unwrap().split('"').next().unwrap();
    let arguments = json!({"pattern": "ledger_row_\\d+", "k": 500, "cursor": cursor});
    let next = tool(&mut raw, "grep", arguments).await;
    assert!(text(&next).starts_with(&format!("long.py:{}: ", count + 2)), "{}", text(&next));
    let read = tool(&mut raw, "read", json!({"path": "long.py", "maxTokens": 300})).await;
    let read = text(&read);
    assert!(read.starts_with("long.py:1-") && read.len() < 1400, "{read}");
    let line: u32 = read.rsplit("line=").next().unwrap().trim_end_matches("]\n").parse().unwrap();
    let more = tool(&mut raw, "read", json!({"path": "long.py", "line": line, "lines": 1})).await;
    assert!(text(&more).starts_with(&format!("long.py:{line}-{line} of 3001\n{line}|")), "{more}");
}

#[tokio::test]
async fn errors_name_the_argument_and_the_way_out() {
    let fixture = Fixture::start(&json!({})).await;
    let mut raw = fixture.client("").await;
    for (name, arguments, expected) in [
        (
            "search",
            json!({"query": "x", "k": -5}),
            "'k' must be a whole number of at least 0, not -5 (Results, 1 to 50; 8 by default)",
        ),
        ("search", json!({}), "the parameter 'query' is missing"),
        ("search", json!({"query": "x", "max_tokens": 9}), "did you mean 'maxTokens'?"),
        ("grep", json!({"pattern": "("}), "set fixedStrings"),
        ("read", json!({"path": "nosuch.py"}), "nosuch.py"),
        ("read", json!({"path": "../../../etc/passwd"}), "hint: "),
        (
            "references",
            json!({"symbol": "open_ledger", "kind": "all"}),
            "one of \"uses\", \"callers\", \"callees\"",
        ),
        ("symbols", json!({}), "give 'query' for a name"),
        ("run", json!({"command": ["ls"]}), "run: 'command' must be a text"),
    ] {
        let answer = tool(&mut raw, name, arguments.clone()).await;
        assert_eq!(answer["result"]["isError"], true, "{name} {arguments}: {answer}");
        assert!(text(&answer).contains(expected), "{name} {arguments}: {}", text(&answer));
    }
}

/// Starts a call with a token for progress.
async fn start(raw: &mut Raw, id: u32, name: &str, arguments: Value) {
    let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": "p"}});
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    raw.send_json(&call).await;
}

#[tokio::test]
async fn agent_and_user_learn_of_a_pending_approval() {
    let fixture = Fixture::start(&json!({})).await;
    // The user's client has a session of its own open, not that of the agent.
    let mut user = fixture.daemon.approver().await;
    let root = fixture.dir.path().join("root");
    let own = user.ok("session.create", json!({"root": root})).await["sessionId"].clone();
    user.ok("orchestrate.subscribe", json!({"sessionId": own})).await;
    let mut raw = fixture.client("").await;
    start(&mut raw, 900, "write", json!({"path": "new.txt", "content": "one\n"})).await;
    let progress = raw.notification("notifications/progress").await;
    let message = progress["message"].as_str().unwrap();
    assert!(message.starts_with("waiting for the user's approval of: "), "{message}");
    let pending = user.notification("approval.updated").await;
    let id = pending["approvalId"].as_str().unwrap();
    assert!(message.contains(&format!("cairn approvals answer {id} yes")), "{message}");
    assert!(pending.get("decision").is_none() && pending["tool"] == "write_file", "{pending}");
    assert_ne!(pending["sessionId"], own);
    user.ok("approval.resolve", json!({"approvalId": id, "decision": "once"})).await;
    let answered = user.notification("approval.updated").await;
    assert_eq!((&answered["approvalId"], &answered["decision"]), (&json!(id), &json!("once")));
    let done = raw.answer(&json!(900)).await;
    assert!(done["result"]["isError"] != true, "{done}");
    assert_eq!(std::fs::read_to_string(root.join("new.txt")).unwrap(), "one\n");
    // A client that does not answer approvals is not notified; one that follows has the record.
    let mut other = fixture.daemon.client().await;
    other.ok("daemon.status", json!({})).await;
    assert!(other.backlog.iter().all(|m| m["method"] != "approval.updated"));
    let followed = pending["sessionId"].clone();
    user.ok("orchestrate.subscribe", json!({"sessionId": followed, "after": "live"})).await;
    start(&mut raw, 901, "write", json!({"path": "two.txt", "content": "two\n"})).await;
    let record = loop {
        let event = user.notification("orchestrate.event").await;
        if event["evt"]["type"] == "approval_required" {
            break event;
        }
    };
    let id = &record["evt"]["approval"]["approvalId"];
    user.ok("approval.resolve", json!({"approvalId": id, "decision": "deny"})).await;
    let denied = raw.answer(&json!(901)).await;
    assert_eq!(denied["result"]["isError"], true, "{denied}");
    assert!(user.backlog.iter().all(|m| m["method"] != "approval.updated"));
    assert!(!root.join("two.txt").exists());
}

#[tokio::test]
async fn late_approval_is_explained_to_the_agent() {
    let config = json!({"permissions": {"approvalTimeoutSeconds": 1}});
    let fixture = Fixture::start(&config).await;
    let _user = fixture.daemon.approver().await;
    let mut raw = fixture.client("").await;
    let late = tool(&mut raw, "write", json!({"path": "new.txt", "content": "x"})).await;
    assert!(text(&late).contains("no one answered in time"), "{late}");
    assert!(text(&late).contains("cairn approvals --watch"), "{late}");
    drop(_user);
    let none = loop {
        let none = tool(&mut raw, "write", json!({"path": "new.txt", "content": "x"})).await;
        if text(&none).starts_with("no_approver") {
            break none;
        }
    };
    assert!(text(&none).contains("cairn approvals --watch"), "{none}");
    assert!(!fixture.dir.path().join("root/new.txt").exists());
}

#[tokio::test]
async fn file_that_was_read_is_edited_under_the_rules() {
    let config = json!({"permissions": {"allow": ["write_file", "edit_file"]}});
    let fixture = Fixture::start(&config).await;
    let root = fixture.dir.path().join("root");
    let mut raw = fixture.client("").await;
    let edit = json!({"path": "sample/store.py", "old": "open_ledger", "new": "load_ledger"});
    // A rule allows edits, but a file that was not read needs an approval.
    let blind = tool(&mut raw, "edit", edit.clone()).await;
    assert_eq!(blind["result"]["isError"], true, "{blind}");
    tool(&mut raw, "read", json!({"path": "sample/store.py"})).await;
    let edited = tool(&mut raw, "edit", edit).await;
    assert!(edited["result"]["isError"] != true, "{edited}");
    let now = std::fs::read_to_string(root.join("sample/store.py")).unwrap();
    assert!(now.starts_with("def load_ledger"), "{now}");
}

#[test]
fn other_clients_convert_the_schemas() {
    let Some(python) = python("mcp, google.genai, openai") else { return };
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    project(&root);
    let daemon = Daemon::start_in(&dir.path().join("home"), &[]);
    let mut judge = Command::new(python);
    judge.arg(script("mcp_schemas.py")).arg(binary()).arg(&root).env("CAIRN_HOME", &daemon.home);
    let output = judge.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&seen["gemini"], &seen["openai"], &seen["anthropic"]),
        (&json!(10), &json!(10), &json!(10))
    );
    assert_eq!(seen["refused"], json!(["gemini", "openai", "anthropic"]), "{seen}");
}

#[test]
fn official_typescript_client_reads_and_approves() {
    let Some((node, modules)) = node() else { return };
    if !modules.join("@modelcontextprotocol/sdk").exists() {
        return missing("npm's @modelcontextprotocol/sdk");
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    project(&root);
    let daemon = Daemon::start_in(&dir.path().join("home"), &[]);
    let client = modules.parent().unwrap().join("mcp_client.mjs");
    std::fs::copy(script("mcp_client.mjs"), &client).unwrap();
    let mut run = Command::new(node);
    run.arg(&client).arg(binary()).arg(&root).env("CAIRN_HOME", &daemon.home);
    let output = run.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(seen["search"].as_str().unwrap().starts_with("sample/store.py:1-"), "{seen}");
    assert!(
        seen["read"].as_str().unwrap().starts_with("sample/store.py:1-3 of 3\n1|def"),
        "{seen}"
    );
    assert_eq!(seen["tools"].as_array().unwrap().len(), 10, "{seen}");
    assert!(seen["asked"].as_str().unwrap().contains("+one"), "{seen}");
    let progress = seen["progress"].as_array().unwrap();
    assert!(progress[0].as_str().unwrap().contains("approval"), "{seen}");
    assert!(seen["wrong"].as_str().unwrap().contains("'k' must be a whole number"), "{seen}");
    assert_eq!(std::fs::read_to_string(root.join("new.txt")).unwrap(), "one\n");
}
