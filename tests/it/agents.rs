//! Command-line agents as models: stand-ins for them, started by the real daemon in its sandbox.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::sealed::{Daemon, Raw, missing, program, tree, wait_for};

/// Script that stands in for an agent: the prompt selects its behaviour. The output that it prints
/// lies beside it.
const STAND_IN: &str = r#"#!/bin/sh
here=$(dirname "$0")
question=$(cat)
result() { printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","usage":{"input_tokens":2,"output_tokens":1}}\n' "$1"; }
case "$question" in
*whole*) cat "$here/text.ndjson" ;;
*login*) cat "$here/login.ndjson"; exit 1 ;;
*crash*) echo 'it is out of order' >&2; exit 3 ;;
*quiet*) exit 0 ;;
*garbage*) echo '<html>no lines of JSON' ;;
*flood*) head -c 9000000 /dev/zero | tr '\0' x ;;
*hang*) n=$(printf %s "$question" | tr -dc 0-9); setsid sleep "$n" & sleep "$n" ;;
*look*)
  key=$(cat "$CLAUDE_CONFIG_DIR/key" 2>/dev/null || echo none)
  hidden=$(cat HIDDEN 2>/dev/null || echo none)
  wrote=$( (echo x > "$CLAUDE_CONFIG_DIR/new") 2>/dev/null && echo yes || echo no)
  result "args=$* key=$key hidden=$hidden wrote=$wrote given=$GIVEN kept=$KEPT home=$HOME" ;;
esac
"#;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../daemon/crates/llm/tests/fixtures");

struct Fixture {
    dir: tempfile::TempDir,
    daemon: Daemon,
}

/// Starts a daemon whose configuration is `change`d from one with both agents; `None` without a
/// sandbox.
async fn fixture(change: impl FnOnce(&mut Value, &Path)) -> Option<Fixture> {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().canonicalize().unwrap();
    tree(&at, &[("login/key", "k3y"), ("hidden.txt", "s3cret"), ("bin/x", "")]);
    let from = |name: &str| std::fs::read(Path::new(FIXTURES).join(name)).unwrap();
    std::fs::write(at.join("bin/text.ndjson"), from("claudeCode/text.ndjson")).unwrap();
    std::fs::write(at.join("bin/login.ndjson"), from("claudeCode/error_login.ndjson")).unwrap();
    let hidden = at.join("hidden.txt").display().to_string();
    program(&at.join("bin/claude"), &STAND_IN.replace("HIDDEN", &hidden));
    program(&at.join("bin/codex"), STAND_IN);
    let agent =
        |name: &str| json!({"path": at.join("bin").join(name), "credentials": at.join("login")});
    let mut config = json!({
        "models": {"allowExternal": true},
        "llm": {"agents": {"claudeCode": agent("claude"), "codex": agent("codex")}},
    });
    config["llm"]["agents"]["claudeCode"]["env"] = json!(["GIVEN"]);
    config["llm"]["agents"]["codex"]["timeoutSeconds"] = json!(2);
    change(&mut config, &at);
    let home = at.join("home");
    tree(&home, &[("config/config.json", &config.to_string())]);
    let daemon = Daemon::start_with(&home, &[("GIVEN", "yes"), ("KEPT", "from it")]);
    let probe = daemon.client().await.ok("sandbox.probe", json!({})).await;
    if probe["tier"] != "full" {
        missing(&format!("a full sandbox ({probe})"));
        return None;
    }
    Some(Fixture { dir, daemon })
}

impl Fixture {
    async fn session(&self) -> (Raw, Value) {
        let mut raw = self.daemon.client().await;
        let session = raw.ok("session.create", json!({})).await["sessionId"].clone();
        (raw, session)
    }

    /// Returns the outcome of a prompt.
    async fn ask(&self, provider: &str, prompt: &str, policy: Value) -> Value {
        let (mut raw, session) = self.session().await;
        raw.ok("tool.call", question(&session, provider, prompt, &policy)).await
    }
}

fn question(session: &Value, provider: &str, prompt: &str, policy: &Value) -> Value {
    let arguments = json!({"provider": provider, "prompt": prompt, "policy": policy});
    json!({"sessionId": session, "name": "llm_call", "arguments": arguments})
}

/// Lists processes with that word among their arguments.
fn running(word: &str) -> Vec<PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let named = |path: &PathBuf| {
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    processes.filter(named).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_answers_from_its_sandbox_and_is_audited() {
    let Some(fixture) = fixture(|_, _| {}).await else { return };
    let external = json!({"allowExternalLLMs": true, "model": "opus"});
    let (mut raw, session) = fixture.session().await;
    let answer =
        raw.ok("tool.call", question(&session, "claudeCode", "the whole answer", &external)).await;
    assert_eq!(answer["output"]["text"], "Grüße, 世界 🌍!", "{answer}");
    assert_eq!(answer["output"]["usage"]["outputTokens"], 15);
    assert_eq!(answer["output"]["model"], json!({"provider": "claudeCode", "model": "opus"}));
    let audit = raw.ok("audit.query", json!({"sessionId": session})).await;
    let rows = audit["data"].as_array().unwrap();
    let started = rows.iter().find(|row| row["tool"] == "claudeCode").unwrap();
    assert_eq!(
        (&started["decision"], &started["outcome"], &started["exitCode"]),
        (&json!("allow"), &json!("ok"), &json!(0))
    );
    let command = started["command"].as_str().unwrap();
    assert!(
        command.ends_with("-p --output-format stream-json --verbose --model opus"),
        "{command}"
    );
    assert!(rows.iter().any(|row| row["tool"] == "llm_call"), "{audit}");

    let look = fixture.ask("claude-code", "look around", external.clone()).await;
    let output = look["output"]["text"].as_str().unwrap_or_else(|| panic!("{look}"));
    for expected in ["key=k3y", "hidden=none", "wrote=no", "given=yes", "kept= ", "--model opus"] {
        assert!(format!("{output} ").contains(expected), "{expected}: {output}");
    }
    // The folder of the run was removed with it.
    let remaining = std::fs::read_dir(fixture.daemon.home.join("agents")).unwrap().count();
    assert_eq!(remaining, 0);
    // Control: the file that the sandbox hides exists.
    assert_eq!(std::fs::read_to_string(fixture.dir.path().join("hidden.txt")).unwrap(), "s3cret");

    let list = raw.ok("provider.list", json!({})).await;
    let listed = list.to_string();
    assert!(listed.contains("claudeCode") && listed.contains("codex"), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_failures_have_typed_outcomes() {
    let writable = |config: &mut Value, _: &Path| {
        config["llm"]["agents"]["claudeCode"]["credentialsWritable"] = json!(true);
    };
    let Some(fixture) = fixture(writable).await else { return };
    let external = json!({"allowExternalLLMs": true});
    for (provider, prompt, reason, words) in [
        ("claudeCode", "login", "model_unauthorized", "llm.agents.claudeCode.env"),
        ("claudeCode", "crash", "model_unavailable", "exited with 3: it is out of order"),
        ("claudeCode", "quiet", "model_cut", "claudeCode"),
        ("claudeCode", "garbage", "model_malformed", "<html>"),
        ("claudeCode", "flood", "too_large", "8388608"),
        ("codex", "hang 31848", "model_timed_out", "2s"),
        ("gpt", "whole", "provider_unknown", "claudeCode"),
    ] {
        let outcome = fixture.ask(provider, prompt, external.clone()).await;
        assert_eq!(outcome["error"]["reason"], reason, "{prompt}: {outcome}");
        assert!(outcome["error"]["message"].as_str().unwrap().contains(words), "{outcome}");
    }
    wait_for("the end of all it started", || running("31848").is_empty().then_some(()));
    // Control of the denial above: it can write in allowed folders.
    let look = fixture.ask("claudeCode", "look", external).await;
    assert!(look["output"]["text"].as_str().unwrap().contains("wrote=yes"), "{look}");
    assert!(fixture.dir.path().join("login/new").exists());
    let refused = fixture.ask("claudeCode", "whole", json!({})).await;
    assert_eq!(refused["error"]["reason"], "external_llm_denied", "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_request_kills_its_agent_and_descendants() {
    let Some(fixture) = fixture(|_, _| {}).await else { return };
    let (mut raw, session) = fixture.session().await;
    let ask = question(&session, "claudeCode", "hang 31847", &json!({"allowExternalLLMs": true}));
    raw.send_json(&json!({"jsonrpc": "2.0", "id": 99, "method": "tool.call", "params": ask})).await;
    wait_for("both of its processes", || (running("31847").len() >= 2).then_some(()));
    raw.send_json(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 99}}))
        .await;
    wait_for("the end of both", || running("31847").is_empty().then_some(()));
    let row = loop {
        let audit =
            raw.ok("audit.query", json!({"sessionId": session, "tool": "claudeCode"})).await;
        let row = audit["data"][0].clone();
        if row["outcome"].is_string() {
            break row;
        }
    };
    assert_eq!(row["outcome"], "cancelled", "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unconfigured_or_disallowed_agent_is_not_started() {
    let external = json!({"allowExternalLLMs": true});
    let Some(fixture) = fixture(|config, at| {
        config["models"]["allowExternal"] = json!(false);
        config["llm"]["agents"]["codex"]["path"] = json!(at.join("bin/nowhere"));
    })
    .await
    else {
        return;
    };
    let denied = fixture.ask("claudeCode", "whole", external.clone()).await;
    assert_eq!(denied["error"]["reason"], "external_llm_denied", "{denied}");
    let missing = fixture.ask("codex", "whole", external.clone()).await;
    assert_eq!(missing["error"]["reason"], "model_unavailable", "{missing}");
    assert!(
        missing["error"]["message"].as_str().unwrap().contains("llm.agents.codex.path"),
        "{missing}"
    );
    let (mut raw, _) = fixture.session().await;
    let audit = raw.ok("audit.query", json!({})).await;
    assert!(
        !audit["data"].as_array().unwrap().iter().any(|row| row["tool"] == "claudeCode"),
        "{audit}"
    );
    let bare = Daemon::start();
    let mut raw = bare.client().await;
    let session = raw.ok("session.create", json!({})).await["sessionId"].clone();
    let unset = raw.ok("tool.call", question(&session, "codex", "whole", &external)).await;
    assert_eq!(unset["error"]["reason"], "not_supported", "{unset}");
    assert!(unset["error"]["message"].as_str().unwrap().contains("llm"), "{unset}");
}
