//! The gate on a real log: what passes, what does not, and what is recorded of it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use cairn_harness::{Call, Grants, Harness, Output, Permit, Registry, Rules, Tool, ToolSpec};
use cairn_protocol::{
    error::{Failure, Reason},
    id::SessionId,
    trace::{AuditEntry, AuditQueryParams},
};
use cairn_trace::{NewSession, Trace};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Arguments {
    /// What to say.
    word: String,
}

/// Counts its runs; `sleep` never ends by itself.
struct Probe {
    name: &'static str,
    read_only: bool,
    network: bool,
    runs: Arc<AtomicU32>,
}

#[async_trait::async_trait]
impl Tool for Probe {
    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::reading::<Arguments>(self.name, "a probe");
        let timeout = Duration::from_millis(if self.name == "sleep" { 30 } else { 30_000 });
        ToolSpec { read_only: self.read_only, network: self.network, timeout, ..spec }
    }

    async fn run(&self, permit: Permit, arguments: Value) -> Result<Output, Failure> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        if self.name == "sleep" || self.name == "wait" {
            permit.cancel().cancelled().await;
        }
        let word = arguments["word"].clone();
        if word == "fail" {
            return Err(Failure::new(Reason::ToolFailed, "it failed"));
        }
        if word == "huge" {
            return Output::of("probe", &"x".repeat(9 * 1024 * 1024), false);
        }
        Output::of("probe", &word, false)
    }
}

struct Bench {
    harness: Harness,
    trace: Trace,
    session: SessionId,
    runs: Arc<AtomicU32>,
    _dir: tempfile::TempDir,
}

async fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let trace = Trace::open(&dir.path().join("trace.db")).unwrap();
    let session = trace.create_session(NewSession::default()).await.unwrap().session_id;
    let runs = Arc::new(AtomicU32::new(0));
    let mut registry = Registry::default();
    for (name, read_only, network) in [
        ("say", true, false),
        ("write", false, false),
        ("fetch", false, true),
        ("sleep", true, false),
        ("wait", true, false),
    ] {
        registry.add(Arc::new(Probe { name, read_only, network, runs: Arc::clone(&runs) })).unwrap();
    }
    Bench {
        harness: Harness::new(registry, Rules::default(), trace.clone()),
        trace,
        session,
        runs,
        _dir: dir,
    }
}

impl Bench {
    fn call(&self, name: &str, arguments: Value) -> Call {
        let (session, grants, cancel) = (self.session.clone(), Grants::default(), CancellationToken::new());
        Call { session, name: name.into(), arguments, root: None, grants, cancel }
    }

    async fn reason(&self, call: Call) -> Reason {
        self.harness.call(call).await.unwrap_err().reason
    }

    async fn audit(&self) -> Vec<AuditEntry> {
        self.trace.audit_query(AuditQueryParams::default()).await.unwrap()
    }
}

#[tokio::test]
async fn what_passes_is_recorded_before_and_after() {
    let bench = bench().await;
    let output = bench.harness.call(bench.call("say", json!({"word": "hi"}))).await.unwrap();
    assert_eq!((output.tag, output.value), ("probe", json!("hi")));
    let _failed = bench.harness.call(bench.call("say", json!({"word": "fail"}))).await.unwrap_err();
    let audit = bench.audit().await;
    let told: Vec<_> = audit.iter().map(|a| (a.decision.as_str(), a.outcome.as_deref())).collect();
    assert_eq!(told, [("allow", Some("ok")), ("allow", Some("tool_failed"))]);
    assert!(audit[0].rule.starts_with("default: read-only"), "{}", audit[0].rule);
    assert_ne!(audit[0].args_digest, audit[1].args_digest);
}

#[tokio::test]
async fn what_does_not_pass_is_not_run() {
    let bench = bench().await;
    for (name, arguments, want) in [
        ("shout", json!({"word": "hi"}), Reason::UnknownTool),
        ("say", json!({}), Reason::InvalidParams),
        ("say", json!({"word": 7}), Reason::InvalidParams),
        ("write", json!({"word": "hi"}), Reason::ToolDenied),
        ("fetch", json!({"word": "hi"}), Reason::NetworkDenied),
    ] {
        assert_eq!(bench.reason(bench.call(name, arguments)).await, want, "{name}");
    }
    assert_eq!(bench.runs.load(Ordering::SeqCst), 0);
    let denied: Vec<_> = bench.audit().await.into_iter().map(|a| (a.tool, a.decision, a.outcome)).collect();
    assert_eq!(denied, [("write".into(), "deny".into(), None), ("fetch".into(), "deny".into(), None)]);
    // The positive control: with leave for the network the same call runs.
    let mut call = bench.call("fetch", json!({"word": "hi"}));
    call.grants.network = true;
    bench.harness.call(call).await.unwrap();
    assert_eq!(bench.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn time_cancelling_and_size_are_bounded() {
    let bench = bench().await;
    assert_eq!(bench.reason(bench.call("sleep", json!({"word": "x"}))).await, Reason::ToolTimedOut);
    let call = bench.call("wait", json!({"word": "x"}));
    call.cancel.cancel();
    assert_eq!(bench.reason(call).await, Reason::Cancelled);
    assert_eq!(bench.reason(bench.call("say", json!({"word": "huge"}))).await, Reason::TooLarge);
    let outcomes: Vec<_> = bench.audit().await.into_iter().filter_map(|a| a.outcome).collect();
    assert_eq!(outcomes, ["tool_timed_out", "cancelled", "too_large"]);
}
