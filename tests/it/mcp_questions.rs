//! Questions of MCP servers for the user, and the tools of servers that have many or change them.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::{
    chat::{Scripted, calls, configured, text_answer, with_context},
    sdks::node,
    sealed::{Daemon, Raw, command, missing, python, tree, wait_for},
    terminal::Terminal,
};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance").join(name)
}

/// Waits until a tool is registered.
fn wait_for_tool(home: &Path, name: &str) {
    wait_for(name, || {
        let listed =
            command(home).args(["tools", "list", "--json"]).stdout(Stdio::piped()).output();
        String::from_utf8_lossy(&listed.unwrap().stdout).contains(name).then_some(())
    });
}

/// A daemon with a server of the Python package, whose tools need no approval.
fn peer() -> Option<(Daemon, PathBuf, tempfile::TempDir)> {
    let python = python("mcp")?;
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("root"));
    tree(&root, &[("a.txt", "a\n")]);
    let config = json!({
        "permissions": {"allow": ["mcp_peer_book", "mcp_peer_pester"]},
        "mcp": {"servers": {
            "peer": {"command": python, "args": [script("mcp_server.py")], "timeoutSeconds": 20},
        }},
    });
    tree(&home, &[("config/config.json", &config.to_string())]);
    let daemon = Daemon::start_in(&home, &[]);
    wait_for_tool(&home, "mcp_peer_book");
    Some((daemon, root, dir))
}

/// Sends a call of a tool without waiting for its answer.
async fn start_call(raw: &mut Raw, session: &Value, name: &str) -> Value {
    let params = json!({"sessionId": session, "name": name, "arguments": {}});
    let id = json!("the call");
    raw.send_json(&json!({"jsonrpc": "2.0", "id": id, "method": "tool.call", "params": params}))
        .await;
    id
}

/// Waits for the pending question of a session.
async fn question(raw: &mut Raw, session: &Value) -> Value {
    let until = std::time::Instant::now() + crate::sealed::PATIENCE;
    loop {
        let open = raw.ok("approval.list", json!({"sessionId": session})).await;
        if let Some(approval) = open["data"].get(0) {
            return approval.clone();
        }
        assert!(std::time::Instant::now() < until, "there was no question");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn question_of_a_server_is_answered_by_the_user() {
    let Some((mut daemon, root, dir)) = peer() else { return };
    let mut raw = daemon.client().await;
    let mut user = daemon.approver().await;
    let session = raw.open_session(&root).await;
    let call = start_call(&mut raw, &session, "mcp_peer_book").await;
    let approval = question(&mut user, &session).await;
    let form = &approval["form"];
    assert_eq!(
        (&form["server"], &form["message"], &approval["grants"]),
        (&json!("peer"), &json!("Which table?"), &json!([])),
        "{approval:#}"
    );
    let kinds: Vec<(&str, &str)> = form["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| (field["name"].as_str().unwrap(), field["kind"].as_str().unwrap()))
        .collect();
    let expected =
        [("name", "text"), ("guests", "integer"), ("vegan", "boolean"), ("room", "choice")];
    assert_eq!(kinds, expected);
    let answer = |decision: &str, values: Value| json!({"approvalId": approval["approvalId"], "decision": decision, "values": values});
    // Values that do not fit change nothing: the question stays open.
    for (decision, values) in [
        ("once", json!({})),
        ("once", json!({"name": "x".repeat(21)})),
        ("once", json!({"name": "Unrecorded", "guests": 9})),
        ("once", json!({"name": "Unrecorded", "room": "attic"})),
        ("once", json!({"name": "Unrecorded", "more": 1})),
        ("session", json!({"name": "Unrecorded"})),
        ("always", json!({"name": "Unrecorded"})),
    ] {
        let refused = user.refused("approval.resolve", answer(decision, values.clone())).await;
        assert_eq!(refused, "invalid_params", "{decision} {values}");
    }
    let values = json!({"name": "Unrecorded", "guests": 3, "vegan": true, "room": "tower"});
    user.ok("approval.resolve", answer("once", values)).await;
    let done = raw.answer(&call).await;
    let content = done["result"]["output"]["content"].as_str().unwrap();
    assert_eq!(content, "booked for 10 letters, 3 guests, tower", "{done}");
    // The answer is recorded, its values are not.
    let id = session.as_str().unwrap();
    let records = json!(raw.records(id).await).to_string();
    assert!(records.contains("approval_resolved") && !records.contains("Unrecorded"), "{records}");
    assert!(daemon.stop().success());
    let database = std::fs::read(dir.path().join("home/trace.db")).unwrap();
    assert!(!database.windows(10).any(|part| part == b"Unrecorded"));
}

#[tokio::test]
async fn question_is_declined_without_a_user_and_limited() {
    let Some((daemon, root, _dir)) = peer() else { return };
    let mut raw = daemon.client().await;
    let session = raw.open_session(&root).await;
    // No client can answer.
    let result = raw.call_tool(&session, "mcp_peer_book", json!({})).await;
    assert_eq!(result["output"]["content"], "decline", "{result}");
    // A user who declines, and a server that does not stop asking.
    let mut user = daemon.approver().await;
    let call = start_call(&mut raw, &session, "mcp_peer_pester").await;
    for n in 0..8 {
        let approval = loop {
            let approval = question(&mut user, &session).await;
            if approval["form"]["message"] == format!("Note {n}?") {
                break approval;
            }
        };
        let answer = match n {
            0 => json!({"approvalId": approval["approvalId"], "decision": "deny"}),
            _ => {
                json!({"approvalId": approval["approvalId"], "decision": "once", "values": {"text": "x"}})
            }
        };
        user.ok("approval.resolve", answer).await;
    }
    let done = raw.answer(&call).await;
    let expected = format!("decline{} cancel cancel", " accept".repeat(7));
    assert_eq!(done["result"]["output"]["content"], expected, "{done}");
    // An approval without a form takes no values.
    let denied = start_call(&mut raw, &session, "mcp_peer_environment").await;
    let approval = question(&mut user, &session).await;
    let id = &approval["approvalId"];
    let values = json!({"approvalId": id, "decision": "once", "values": {"a": 1}});
    assert_eq!(user.refused("approval.resolve", values).await, "invalid_params");
    user.ok("approval.resolve", json!({"approvalId": id, "decision": "deny"})).await;
    raw.answer(&denied).await;
}

#[tokio::test]
async fn every_kind_of_field_of_a_foreign_server_is_offered() {
    let Some((node, modules)) = node() else { return };
    let server = modules.join("@modelcontextprotocol/server-everything/dist/index.js");
    if !server.exists() {
        return missing("npm's @modelcontextprotocol/server-everything");
    }
    let tool = "mcp_everything_trigger-elicitation-request";
    let config = json!({
        "permissions": {"allow": [tool]},
        "mcp": {"servers": {"everything": {"command": node, "args": [server, "stdio"]}}},
    });
    let cairn = configured(&json!([]), &config);
    wait_for_tool(&cairn.daemon.home, tool);
    let mut raw = cairn.daemon.client().await;
    let mut user = cairn.daemon.approver().await;
    let session = raw.open_session(&cairn.folder).await;
    let call = start_call(&mut raw, &session, tool).await;
    let approval = question(&mut user, &session).await;
    let fields = approval["form"]["fields"].as_array().unwrap();
    let kinds: Vec<&str> = fields.iter().map(|f| f["kind"].as_str().unwrap()).collect();
    let expected = [
        "text", "boolean", "text", "text", "text", "text", "integer", "number", "choice",
        "choices", "choice", "choices", "choice",
    ];
    assert_eq!(kinds, expected, "{approval:#}");
    assert_eq!(fields[10]["options"][0], json!({"value": "hero-1", "title": "Superman"}));
    assert_eq!(fields[12]["options"][1], json!({"value": "pet-2", "title": "Dogs"}));
    let values = json!({"name": "Ann", "titledMultipleSelectEnum": ["fish-2"], "number": 2.5});
    let answer =
        json!({"approvalId": approval["approvalId"], "decision": "once", "values": values});
    user.ok("approval.resolve", answer).await;
    let done = raw.answer(&call).await.to_string();
    assert!(done.contains("Ann") && done.contains("fish-2"), "{done}");
}

/// Adds an expectation to an answer of the script.
fn expecting(expect: Value, mut answer: Value) -> Value {
    answer["expect"] = expect;
    answer
}

fn chat(cairn: &Scripted, more: &[&str]) {
    let args = [&["-p", "go", "--json"], more].concat();
    let (code, out, errors) = cairn.chat(&args, None);
    assert_eq!(code, 0, "{out}\n{errors}");
    assert!(out.contains("\"completed\""), "{out}\n{errors}");
}

#[test]
fn tools_of_a_large_server_are_looked_up() {
    let Some((node, modules)) = node() else { return };
    let server = modules.join("@modelcontextprotocol/server-everything/dist/index.js");
    if !server.exists() {
        return missing("npm's @modelcontextprotocol/server-everything");
    }
    let sum = "mcp_everything_get-sum";
    let config = |listed: u32| {
        json!({
            "permissions": {"allow": [sum]},
            "mcp": {"listedTools": listed, "servers": {
                "everything": {"command": node, "args": [server, "stdio"]},
            }},
        })
    };
    let add = calls(sum, &json!({"a": 2, "b": 40}));
    let answers = json!([
        expecting(
            json!([{"offersNot": sum}, {"offersTool": "tool_lookup"}, {"systemContains": sum}]),
            calls("tool_lookup", &json!({"name": "mcp_everything"})),
        ),
        // Too many for complete descriptions: they are listed, one per line.
        expecting(
            json!([{"offersNot": sum}, {"lastContains": "mcp_everything_get-sum: "}]),
            calls("tool_lookup", &json!({"name": sum})),
        ),
        expecting(json!([{"offersTool": sum}, {"lastContains": "arguments: "}]), add.clone()),
        expecting(json!([{"lastContains": "42"}]), text_answer("done")),
        // The next turn of the session still knows it.
        expecting(json!([{"offersTool": sum}]), text_answer("again")),
    ]);
    let cairn = with_context(100_000, &answers, &config(5));
    wait_for_tool(&cairn.daemon.home, sum);
    chat(&cairn, &[]);
    chat(&cairn, &["--continue"]);
    // Control: a server with fewer tools than the limit is offered at once.
    let answers = json!([expecting(json!([{"offersTool": sum}]), add), text_answer("done")]);
    let cairn = with_context(100_000, &answers, &config(100));
    wait_for_tool(&cairn.daemon.home, sum);
    chat(&cairn, &[]);
}

#[test]
fn changed_tools_of_a_server_are_offered_in_the_next_turn() {
    let Some(python) = python("mcp") else { return };
    let config = json!({
        "permissions": {"allow": ["mcp_peer_grow", "mcp_peer_later"]},
        "mcp": {"servers": {"peer": {"command": python, "args": [script("mcp_server.py")]}}},
    });
    let answers = json!([
        expecting(json!([{"offersNot": "mcp_peer_later"}]), calls("mcp_peer_grow", &json!({}))),
        text_answer("grown"),
        expecting(json!([{"offersTool": "mcp_peer_later"}]), calls("mcp_peer_later", &json!({}))),
        expecting(json!([{"lastContains": "here"}]), text_answer("done")),
    ]);
    let cairn = with_context(100_000, &answers, &config);
    wait_for_tool(&cairn.daemon.home, "mcp_peer_grow");
    chat(&cairn, &[]);
    wait_for_tool(&cairn.daemon.home, "mcp_peer_later");
    chat(&cairn, &["--continue"]);
}

#[test]
fn chat_shows_a_question_with_its_fields() {
    let Some(python) = python("mcp") else { return };
    let config = json!({
        "permissions": {"allow": ["mcp_peer_book"]},
        "mcp": {"servers": {"peer": {"command": python, "args": [script("mcp_server.py")]}}},
    });
    let book = calls("mcp_peer_book", &json!({}));
    let answers = json!([
        book,
        expecting(
            json!([{"lastContains": "booked for 3 letters, 4 guests, tower"}, {"noneContains": "Ann"}]),
            text_answer("It is booked."),
        ),
        book,
        expecting(json!([{"lastContains": "decline"}]), text_answer("As you like.")),
    ]);
    let cairn = configured(&answers, &config);
    wait_for_tool(&cairn.daemon.home, "mcp_peer_book");
    let Some(mut terminal) = Terminal::start(&cairn.daemon.home, &cairn.folder, &["chat"]) else {
        return;
    };
    terminal.see("\n● ");
    terminal.line("book a table");
    let text = terminal.see("1/4");
    assert!(text.contains("Which table?") && text.contains("peer (its answers go to it"), "{text}");
    terminal.line("Ann");
    terminal.see("2/4");
    terminal.line("nine");
    terminal.see("a number without fraction");
    terminal.key("C-u");
    terminal.line("4");
    terminal.see("3/4");
    terminal.line("");
    terminal.see("4/4");
    terminal.line("2");
    terminal.see("It is booked.");
    // A line that is typed before the turn has ended waits in the prompt for another Enter.
    terminal.see_last("●");
    terminal.line("and another");
    terminal.see_after("and another", "1/4");
    terminal.key("Escape");
    terminal.see("As you like.");
}
