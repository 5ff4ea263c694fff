//! Every direct call with an effect leaves an audit row, as tool calls do.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use cairn_api::{Audit, ConfigSource, Remote, Right, Rights, methods};
use cairn_protocol::{
    config::{ConfigAnswer, ConfigGetParams, ConfigReloaded},
    error::{Failure, Reason},
    memory::MemoryOp,
    remote::{Device, DeviceRef, PairBeginParams, PairOffer, PairState, PairStatus},
    time::Timestamp,
    trace::{AuditEntry, AuditQueryParams},
};
use serde_json::{Value, json};

use crate::{Client, TestDaemon, reason, test_daemon};

struct Host;

impl ConfigSource for Host {
    fn show(&self, _: &ConfigGetParams) -> Result<ConfigAnswer, Failure> {
        Ok(ConfigAnswer::default())
    }

    fn reload(&self) -> Result<ConfigReloaded, Failure> {
        Ok(ConfigReloaded::default())
    }
}

impl Remote for Host {
    fn begin(&self, _: PairBeginParams) -> Result<PairOffer, Failure> {
        let code = String::new();
        let key = String::new();
        let addresses = vec![];
        Ok(PairOffer {
            code,
            expires_at: Timestamp::now(),
            tries: 3,
            addresses,
            key,
            page: None,
            certificate: None,
        })
    }

    fn status(&self) -> PairStatus {
        PairStatus { state: PairState::None, tries_left: 0, device: None }
    }

    fn cancel(&self) -> PairStatus {
        self.status()
    }

    fn devices(&self) -> Vec<Device> {
        vec![]
    }

    fn revoke(&self, _: &DeviceRef) -> Result<(), Failure> {
        Err(Failure::new(Reason::DeviceNotFound, "there is none"))
    }
}

fn changed(op: MemoryOp) -> Value {
    match op {
        MemoryOp::Save(_) | MemoryOp::Append(_) | MemoryOp::Delete(_) => {
            json!({"name": "a", "bytes": 1, "message": "done"})
        }
        _ => json!({"data": []}),
    }
}

async fn rows(test_daemon: &TestDaemon) -> Vec<AuditEntry> {
    let mut all: Vec<AuditEntry> = Vec::new();
    loop {
        let after = all.last().map_or(0, |row| row.id);
        let query = AuditQueryParams { after, ..AuditQueryParams::default() };
        let page = test_daemon.engine.trace().audit_query(query).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

/// Waits until all rows of a method are closed: a clone closes its own when it ends.
async fn closed(test_daemon: &TestDaemon, method: &str) -> Vec<AuditEntry> {
    for _ in 0..400 {
        let mut all = rows(test_daemon).await;
        all.retain(|row| row.tool == method);
        if !all.is_empty() && all.iter().all(|row| row.outcome.is_some()) {
            return all;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{method} left no closed row");
}

/// Calls that concern unattended runs, schedules, pools and trust.
fn unattended(dir: &str, session: &Value) -> Vec<(&'static str, Value, &'static str)> {
    let unknown = json!({"scheduleId": "sch_019b0000000070008000000000000000"});
    let turn = json!({"sessionId": session, "turnId": "u", "input": ""});
    let job = json!({"request": "hi", "root": dir});
    vec![
        ("schedule.add", json!({"when": "every day 7:00", "job": job}), "ok"),
        ("trust.set", json!({"folder": dir}), "not_supported"),
        ("trust.remove", json!({"folder": dir}), "not_supported"),
        ("schedule.run", unknown.clone(), "path_not_found"),
        ("schedule.remove", unknown, "path_not_found"),
        ("unattended.start", json!({"turn": turn}), "invalid_params"),
        ("unattended.stop", json!({"sessionId": session}), "run_not_found"),
        ("fleet.run", json!({"pool": "p", "work": {"type": "explore"}, "root": dir}), "fleet_off"),
        ("fleet.cancel", json!({"pool": "p", "turnId": "t"}), "fleet_off"),
        ("fleet.call", json!({"daemon": "d", "method": "tool.list"}), "fleet_off"),
    ]
}

/// One call of each method with an effect, with the expected outcome of its row.
fn effects(dir: &str, session: &Value) -> Vec<(&'static str, Value, &'static str)> {
    let of = json!({"sessionId": session});
    let with = |fields: Value| {
        let mut all = of.clone();
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        all
    };
    let approval = "apr_019b0000000070008000000000000000";
    let device = "dev_019b0000000070008000000000000000";
    let write = json!({"keywords": "k", "content": "c"});
    vec![
        ("config.reload", json!({}), "ok"),
        ("index.addRoot", json!({"path": dir}), "ok"),
        ("index.rebuild", json!({"root": dir}), "ok"),
        ("content.getSpan", json!({"path": format!("{dir}/a.rs"), "start": 1, "end": 1}), "ok"),
        ("git.clone", json!({"remoteURL": "https://u:secret@127.0.0.1/x"}), "network_denied"),
        ("git.clone", json!({"remoteURL": format!("file://{dir}")}), "clone_failed"),
        (
            "orchestrate.explore.start",
            json!({"remoteURL": "https://127.0.0.1/x"}),
            "network_denied",
        ),
        ("orchestrate.explore.start", json!({"root": dir}), "ok"),
        ("orchestrate.explore.abort", of.clone(), "ok"),
        ("session.create", json!({}), "ok"),
        ("session.resume", of.clone(), "not_resumable"),
        ("orchestrate.run.start", with(json!({"turnId": "t", "input": "hi"})), "ok"),
        ("orchestrate.run.cancel", with(json!({"turnId": "t"})), "ok"),
        ("orchestrate.run.steer", with(json!({"text": "x"})), "run_not_found"),
        ("background.stop", with(json!({"id": "bg_none"})), "invalid_params"),
        ("session.fork", of.clone(), "ok"),
        ("session.archive", with(json!({"archived": false})), "ok"),
        ("session.setMcpServers", with(json!({"servers": []})), "not_supported"),
        ("mcp.login", json!({"name": "x"}), "not_supported"),
        (
            "mcp.finishLogin",
            json!({"loginId": "lgn_019b0000000070008000000000000000"}),
            "not_supported",
        ),
        ("mcp.logout", json!({"name": "x"}), "not_supported"),
        ("session.clear", of.clone(), "ok"),
        ("session.compress", of.clone(), "not_supported"),
        (
            "approval.resolve",
            json!({"approvalId": approval, "decision": "deny"}),
            "approval_not_found",
        ),
        ("permission.revoke", json!({"rule": "x"}), "invalid_params"),
        ("permission.narrow", json!({"rule": "x", "to": "x"}), "invalid_params"),
        ("provider.set", with(json!({"model": "m"})), "not_supported"),
        ("prompt.set", with(json!({"system": "x"})), "not_supported"),
        ("prompt.append", with(json!({"text": "x"})), "not_supported"),
        ("prompt.refresh", of.clone(), "not_supported"),
        ("memory.save", write.clone(), "ok"),
        ("memory.append", write, "ok"),
        ("memory.delete", json!({"keywords": "k"}), "ok"),
        ("trace.import", json!({"jsonl": "{}"}), "bad_trace"),
        ("storage.collect", json!({}), "ok"),
        ("worktree.create", json!({"root": dir}), "git_failed"),
        ("worktree.apply", json!({"path": dir}), "path_not_found"),
        ("worktree.remove", json!({"path": dir}), "path_not_found"),
        ("viewer.link", json!({}), "ok"),
        ("pair.begin", json!({"rights": ["observe"]}), "ok"),
        ("pair.cancel", json!({}), "ok"),
        ("client.revoke", json!({"id": device}), "device_not_found"),
        ("session.delete", of, "ok"),
        ("index.removeRoot", json!({"root": dir}), "ok"),
        ("index.removeRoot", json!({"root": dir}), "root_not_found"),
        ("daemon.stop", json!({}), "ok"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_calls_with_effects_are_audited() {
    let test_daemon = test_daemon().await;
    test_daemon.api.set_config(Arc::new(Host));
    test_daemon.api.set_remote(Arc::new(Host));
    test_daemon.engine.set_knowledge(Arc::new(|_, op| Ok(changed(op))));
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.rs"), "fn a() {}\n").unwrap();
    let path = dir.path().canonicalize().unwrap().display().to_string();
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    let session = client.session().await;
    let mut expected: BTreeMap<&str, Vec<&str>> = BTreeMap::from([("session.create", vec!["ok"])]);
    let mut calls = effects(&path, &session);
    // Before the session and the root are removed.
    let at = calls.iter().position(|(method, ..)| *method == "viewer.link").unwrap();
    calls.splice(at..at, unattended(&path, &session));
    for (method, params, outcome) in calls {
        let answer = client.call(method, params.clone()).await;
        // A clone is answered before it ends.
        let failed = answer["error"].is_object() || outcome == "clone_failed";
        assert_eq!(failed, outcome != "ok", "{method} {params}: {answer}");
        let message = expected.entry(method).or_default();
        message.push(outcome);
        let rows = closed(&test_daemon, method).await;
        let outcomes: Vec<_> = rows.iter().filter_map(|row| row.outcome.as_deref()).collect();
        assert_eq!(outcomes, *message, "{method} {params}: {answer}");
        let row = rows.last().unwrap();
        assert_eq!((row.decision.as_str(), row.rule.as_str()), ("allow", "direct call"));
        if let Some(named) = params["sessionId"].as_str() {
            assert_eq!(row.session_id.as_str(), named, "{method}");
        }
    }
    for method in methods::table() {
        match method.audit {
            Audit::Required | Audit::BestEffort => assert!(
                expected.contains_key(method.name),
                "{} has an effect and no case in this table",
                method.name
            ),
            Audit::ByGate => assert!(["tool.call", "orchestrate.command"].contains(&method.name)),
            Audit::None => {
                let reads = ["trace.replay", "pair.status", "client.list", "trust.get"]
                    .contains(&method.name);
                assert!(method.right == Right::Observe || reads, "{} has an effect", method.name);
            }
        }
    }
}

#[tokio::test]
async fn reads_and_refusals_leave_no_audit_row_and_tool_calls_leave_one() {
    let test_daemon = test_daemon().await;
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    for method in
        methods::table().iter().filter(|m| m.audit == Audit::None && m.name != "initialize")
    {
        client.call(method.name, json!({})).await;
    }
    for method in methods::table().iter().filter(|m| m.audit != Audit::None) {
        assert_eq!(
            reason(&client.call(method.name, json!(["by position"])).await),
            "invalid_params"
        );
    }
    assert_eq!(rows(&test_daemon).await, vec![]);
    test_daemon.tool.gate.add_permits(1);
    let session = client.session().await;
    let call = json!({"sessionId": session, "name": "wait", "arguments": {}});
    assert!(client.call("tool.call", call).await["result"].is_object());
    let message: Vec<String> = rows(&test_daemon).await.into_iter().map(|row| row.tool).collect();
    assert_eq!(message, ["session.create", "wait"]);
}

#[tokio::test]
async fn audit_digest_excludes_passwords() {
    let test_daemon = test_daemon().await;
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    for url in
        ["https://u:first@127.0.0.1/x", "https://u:second@127.0.0.1/x", "https://127.0.0.1/x"]
    {
        client.call("git.clone", json!({"remoteURL": url})).await;
    }
    let digests: Vec<String> =
        closed(&test_daemon, "git.clone").await.into_iter().map(|row| row.args_digest).collect();
    assert!(
        digests.len() == 3 && digests.iter().all(|digest| *digest == digests[0]),
        "{digests:?}"
    );
}

#[tokio::test]
async fn audit_failure_refuses_all_but_stopping_calls() {
    let test_daemon = test_daemon().await;
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    let session = client.session().await;
    let other =
        cairn_store::rusqlite::Connection::open(test_daemon._dir.path().join("trace.db")).unwrap();
    let full =
        "CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(FAIL, 'no room'); END";
    other.execute_batch(full).unwrap();
    let retried = client.call("memory.save", json!({"keywords": "k", "content": "c"})).await;
    assert_eq!(reason(&retried), "audit_failed");
    assert_eq!(
        reason(&client.call("session.delete", json!({"sessionId": session})).await),
        "audit_failed"
    );
    let stopped = client.call("daemon.stop", json!({})).await;
    assert!(stopped["result"].is_object(), "{stopped}");
}
