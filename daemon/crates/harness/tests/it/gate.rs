//! The gate on a real log: the calls that it admits, the calls that it denies, and their records.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use cairn_harness::{
    Call, Caller, Completion, Harness, Intent, Output, Permit, Rule, Rules, Tool, ToolSpec,
    command::CommandLine, is_final,
};
use cairn_protocol::{
    approval::{Approval, ApprovalDecision, ApprovalListParams, ApprovalResolveParams, Preview},
    error::{Failure, Reason},
    id::SessionId,
    tool::RevokeParams,
    trace::{AuditEntry, AuditQueryParams},
};
use cairn_trace::Trace;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fixture::{create_session, open_harness, open_log};

#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Arguments {
    /// The word to write.
    word: String,
}

/// Counts its runs; `sleep` never finishes by itself.
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
        let command = (self.name == "run_shell").then_some("word");
        ToolSpec { read_only: self.read_only, network: self.network, timeout, command, ..spec }
    }

    async fn intent(&self, _: &Caller<'_>, arguments: &Value) -> Result<Intent, Failure> {
        if self.name == "run_shell" {
            let line = CommandLine::parse(arguments["word"].as_str().unwrap());
            return Ok(Intent { grants: Rule::for_command(&line), ..Intent::default() });
        }
        let patterns = vec![vec![format!("{}(src/**)", self.name).parse().unwrap()]];
        let preview = Preview { summary: self.name.into(), ..Preview::default() };
        Ok(Intent {
            preview,
            grants: vec![Rule::of_tool(self.name)],
            patterns,
            ..Intent::default()
        })
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

struct Fixture {
    harness: Arc<Harness>,
    stopping: CancellationToken,
    trace: Trace,
    session: SessionId,
    runs: Arc<AtomicU32>,
    dir: tempfile::TempDir,
}

async fn fixture() -> Fixture {
    let (dir, trace, session) = open_log().await;
    over(dir, trace, session, Rules::default(), Duration::from_secs(60))
}

/// Returns a gate over an existing log.
fn over(
    dir: tempfile::TempDir,
    trace: Trace,
    session: SessionId,
    rules: Rules,
    timeout: Duration,
) -> Fixture {
    let runs = Arc::new(AtomicU32::new(0));
    let tools = [
        ("say", true, false),
        ("write", false, false),
        ("run_shell", false, false),
        ("fetch", false, true),
        ("sleep", true, false),
        ("wait", true, false),
    ];
    let tools = tools.map(|(name, read_only, network)| -> Arc<dyn Tool> {
        Arc::new(Probe { name, read_only, network, runs: Arc::clone(&runs) })
    });
    let (harness, stopping) = open_harness(dir.path(), &trace, tools, rules, timeout);
    Fixture { harness, stopping, trace, session, runs, dir }
}

impl Fixture {
    fn call(&self, name: &str, arguments: Value) -> Call {
        Call::new(self.session.clone(), name, arguments)
    }

    async fn reason(&self, call: Call) -> Reason {
        self.harness.call(call).await.unwrap_err().reason
    }

    async fn audit(&self) -> Vec<AuditEntry> {
        self.trace.audit_query(AuditQueryParams::default()).await.unwrap()
    }
}

#[tokio::test]
async fn allowed_call_is_audited_before_and_after() {
    let fixture = fixture().await;
    let output = fixture.harness.call(fixture.call("say", json!({"word": "hi"}))).await.unwrap();
    assert_eq!((output.tag, output.value), ("probe", json!("hi")));
    let _failed =
        fixture.harness.call(fixture.call("say", json!({"word": "fail"}))).await.unwrap_err();
    let audit = fixture.audit().await;
    let rows: Vec<_> = audit.iter().map(|a| (a.decision.as_str(), a.outcome.as_deref())).collect();
    assert_eq!(rows, [("allow", Some("ok")), ("allow", Some("tool_failed"))]);
    assert!(audit[0].rule.starts_with("default: read-only"), "{}", audit[0].rule);
    assert_ne!(audit[0].args_digest, audit[1].args_digest);
}

#[tokio::test]
async fn denied_call_is_not_run() {
    let fixture = fixture().await;
    for (name, arguments, want) in [
        ("shout", json!({"word": "hi"}), Reason::UnknownTool),
        ("say", json!({}), Reason::InvalidParams),
        ("say", json!({"word": 7}), Reason::InvalidParams),
        ("write", json!({"word": "hi"}), Reason::NoApprover),
        ("fetch", json!({"word": "hi"}), Reason::NetworkDenied),
    ] {
        assert_eq!(fixture.reason(fixture.call(name, arguments)).await, want, "{name}");
    }
    assert_eq!(fixture.runs.load(Ordering::SeqCst), 0);
    let denied: Vec<_> =
        fixture.audit().await.into_iter().map(|a| (a.tool, a.decision, a.outcome)).collect();
    assert_eq!(
        denied,
        [("write".into(), "deny".into(), None), ("fetch".into(), "deny".into(), None)]
    );
    // Positive control: with the network granted the same call runs.
    let mut call = fixture.call("fetch", json!({"word": "hi"}));
    call.grants.network = true;
    fixture.harness.call(call).await.unwrap();
    assert_eq!(fixture.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn timeout_cancellation_and_output_size_are_bounded() {
    let fixture = fixture().await;
    assert_eq!(
        fixture.reason(fixture.call("sleep", json!({"word": "x"}))).await,
        Reason::ToolTimedOut
    );
    let call = fixture.call("wait", json!({"word": "x"}));
    call.cancel.cancel();
    assert_eq!(fixture.reason(call).await, Reason::Cancelled);
    assert_eq!(
        fixture.reason(fixture.call("say", json!({"word": "huge"}))).await,
        Reason::TooLarge
    );
    let outcomes: Vec<_> = fixture.audit().await.into_iter().filter_map(|a| a.outcome).collect();
    assert_eq!(outcomes, ["tool_timed_out", "cancelled", "too_large"]);
}

impl Fixture {
    /// Starts a call that needs an approval, and waits for its request.
    async fn request_approval(
        &self,
        word: &str,
    ) -> (tokio::task::JoinHandle<Result<Output, Failure>>, Approval) {
        let mut call = self.call("write", json!({"word": word}));
        call.call_id = Some(word.to_owned());
        call.resumed = word.starts_with("again");
        self.start_call(call).await
    }

    async fn start_call(
        &self,
        call: Call,
    ) -> (tokio::task::JoinHandle<Result<Output, Failure>>, Approval) {
        let harness = Arc::clone(&self.harness);
        let work = tokio::spawn(async move { harness.call(call).await });
        loop {
            let waiting = self.trace.approvals(ApprovalListParams::default()).await.unwrap();
            if let Some(approval) = waiting.into_iter().next() {
                return (work, approval);
            }
            assert!(!work.is_finished(), "it did not ask");
            tokio::task::yield_now().await;
        }
    }

    async fn answer(
        &self,
        approval: &Approval,
        decision: ApprovalDecision,
    ) -> Result<Approval, Failure> {
        let reason = Some("because".to_owned());
        let params = ApprovalResolveParams {
            approval_id: approval.approval_id.clone(),
            decision,
            reason,
            pattern: None,
            values: Default::default(),
        };
        self.harness.resolve(params, "tester").await
    }
}

/// An answer may name a wider rule that was offered: it applies to the session, and no other may be
/// named.
#[tokio::test]
async fn approval_can_grant_offered_pattern() {
    let fixture = fixture().await;
    let _approver = fixture.harness.approvals().join();
    let (work, approval) = fixture.request_approval("one").await;
    assert_eq!(approval.patterns, [["write(src/**)"]]);
    let answer = |decision, pattern: &str| ApprovalResolveParams {
        approval_id: approval.approval_id.clone(),
        decision,
        reason: None,
        pattern: Some(vec![pattern.to_owned()]),
        values: Default::default(),
    };
    for (decision, pattern) in
        [(ApprovalDecision::Session, "write"), (ApprovalDecision::Once, "write(src/**)")]
    {
        let refused =
            fixture.harness.resolve(answer(decision, pattern), "tester").await.unwrap_err();
        assert_eq!(refused.reason, Reason::InvalidParams, "{pattern}");
    }
    fixture
        .harness
        .resolve(answer(ApprovalDecision::Everywhere, "write(src/**)"), "tester")
        .await
        .unwrap();
    assert!(work.await.unwrap().is_ok());
    assert_eq!(fixture.harness.granted()[0].rule, "write(src/**)");
    let stored = fixture.trace.approval(&approval.approval_id).await.unwrap().resolution.unwrap();
    assert_eq!(stored.pattern, Some(vec!["write(src/**)".to_owned()]));
}

/// The lines of a command are text, whatever they are read as alone.
#[tokio::test]
async fn command_of_several_lines_is_one_rule() {
    let fixture = fixture().await;
    let _approver = fixture.harness.approvals().join();
    let notes = "cat > notes.md <<'E'\nTools we use:\nrun_shell\nE";
    for (decision, stored) in [(ApprovalDecision::Session, 0), (ApprovalDecision::Everywhere, 1)] {
        let session = create_session(&fixture.trace).await;
        let command = |text: &str| {
            let mut call = Call::new(session.clone(), "run_shell", json!({"word": text}));
            call.grants.unconfined = true;
            call
        };
        let (work, approval) = fixture.start_call(command(notes)).await;
        assert_eq!(approval.grants, [format!("run_shell(= {notes})")]);
        fixture.answer(&approval, decision).await.unwrap();
        work.await.unwrap().unwrap();
        assert_eq!(fixture.harness.granted().len(), stored);
        // The same command needs no further answer, and every other one does.
        fixture.harness.call(command(notes)).await.unwrap();
        let (work, approval) = fixture.start_call(command("touch injected_file")).await;
        fixture.answer(&approval, ApprovalDecision::Deny).await.unwrap();
        assert_eq!(work.await.unwrap().unwrap_err().reason, Reason::DeniedByUser);
    }
}

/// P9: the waiting call is woken, and the approver gets an error that no rule was stored.
#[tokio::test]
async fn unstorable_grant_fails_pending_call() {
    let fixture = fixture().await;
    let _approver = fixture.harness.approvals().join();
    let (work, approval) = fixture.request_approval("one").await;
    std::fs::create_dir(fixture.dir.path().join("permissions.json.tmp")).unwrap();
    let failure = fixture.answer(&approval, ApprovalDecision::Everywhere).await.unwrap_err();
    assert_eq!(failure.reason, Reason::StorageFailed, "{failure}");
    assert!(failure.message.contains("the call is approved"), "{failure}");
    assert!(work.await.unwrap().is_ok());
    assert!(fixture.harness.granted().is_empty());
}

#[tokio::test]
async fn first_resolution_decides() {
    let fixture = fixture().await;
    let _approver = fixture.harness.approvals().join();
    let (work, approval) = fixture.request_approval("one").await;
    assert_eq!((approval.tool.as_str(), approval.preview.summary.as_str()), ("write", "write"));
    let (yes, no) = tokio::join!(
        fixture.answer(&approval, ApprovalDecision::Once),
        fixture.answer(&approval, ApprovalDecision::Deny)
    );
    let outcome = work.await.unwrap();
    // Exactly one of them won, and the call followed that answer.
    match (yes, no) {
        (Ok(_), Err(late)) => {
            assert_eq!(late.reason, Reason::ApprovalResolved);
            assert!(late.message.contains("'once' by tester"), "{late}");
            assert!(outcome.is_ok());
        }
        (Err(late), Ok(_)) => {
            assert_eq!(late.reason, Reason::ApprovalResolved);
            assert_eq!(outcome.unwrap_err().reason, Reason::DeniedByUser);
        }
        other => panic!("{other:?}"),
    }
    let (work, approval) = fixture.request_approval("two").await;
    fixture.answer(&approval, ApprovalDecision::Deny).await.unwrap();
    let failure = work.await.unwrap().unwrap_err();
    assert_eq!(failure.message, "tool write: denied by user: because");
    assert!(!is_final(&failure));
}

#[tokio::test]
async fn session_and_permanent_grants_are_remembered_and_revocable() {
    let fixture = fixture().await;
    let _approver = fixture.harness.approvals().join();
    let (work, approval) = fixture.request_approval("one").await;
    fixture.answer(&approval, ApprovalDecision::Session).await.unwrap();
    work.await.unwrap().unwrap();
    fixture.harness.call(fixture.call("write", json!({"word": "two"}))).await.unwrap();
    // Another session needs its own approval, until an answer is `always`.
    let other = create_session(&fixture.trace).await;
    let (work, approval) =
        fixture.start_call(Call::new(other.clone(), "write", json!({"word": "x"}))).await;
    fixture.answer(&approval, ApprovalDecision::Everywhere).await.unwrap();
    work.await.unwrap().unwrap();
    let third = create_session(&fixture.trace).await;
    fixture.harness.call(Call::new(third.clone(), "write", json!({"word": "y"}))).await.unwrap();
    assert_eq!(fixture.harness.granted()[0].rule, "write");
    let rules: Vec<_> = fixture.audit().await.into_iter().map(|a| a.rule).collect();
    assert!(rules[0].starts_with("approved session by tester"), "{rules:?}");
    assert_eq!((rules[1].as_str(), rules[3].as_str()), ("session: write", "granted: write"));
    let revoke = RevokeParams { rule: "write".into(), project: None };
    fixture.harness.revoke(&revoke).await.unwrap();
    let (work, approval) =
        fixture.start_call(Call::new(third, "write", json!({"word": "z"}))).await;
    fixture.answer(&approval, ApprovalDecision::Deny).await.unwrap();
    work.await.unwrap().unwrap_err();
}

#[tokio::test]
async fn timeout_denies_and_final_deny_requests_no_approval() {
    let (dir, trace, session) = open_log().await;
    let rules = Rules { final_deny: vec!["fetch".parse().unwrap()], ..Rules::default() };
    let fixture = over(dir, trace, session, rules, Duration::from_millis(20));
    let approver = fixture.harness.approvals().join();
    let failure =
        fixture.harness.call(fixture.call("write", json!({"word": "x"}))).await.unwrap_err();
    assert_eq!(failure.message, "tool write: no answer in time");
    let all = ApprovalListParams { resolved: true, ..ApprovalListParams::default() };
    let requests = fixture.trace.approvals(all.clone()).await.unwrap();
    assert_eq!(requests[0].resolution.as_ref().unwrap().by, "deadline");
    let mut call = fixture.call("fetch", json!({"word": "x"}));
    call.grants.network = true;
    let failure = fixture.harness.call(call).await.unwrap_err();
    assert!(is_final(&failure) && failure.reason == Reason::ToolDenied, "{failure}");
    assert_eq!(fixture.trace.approvals(all).await.unwrap().len(), 1);
    drop(approver);
    let failure =
        fixture.harness.call(fixture.call("write", json!({"word": "x"}))).await.unwrap_err();
    assert!(is_final(&failure) && failure.reason == Reason::NoApprover, "{failure}");
    // R4
    let requests = fixture
        .trace
        .approvals(ApprovalListParams { resolved: true, ..Default::default() })
        .await
        .unwrap();
    assert_eq!(requests.len(), 2, "the question is in the log, with its denial");
    assert_eq!(requests[0].resolution.as_ref().unwrap().by, "no_approver");
    assert_eq!(fixture.runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn pending_approval_survives_restart_without_duplicate() {
    let fixture = fixture().await;
    let approver = fixture.harness.approvals().join();
    let mut call = fixture.call("write", json!({"word": "again"}));
    (call.call_id, call.cancel) = (Some("again".into()), fixture.stopping.child_token());
    let (work, approval) = fixture.start_call(call).await;
    fixture.stopping.cancel();
    assert_eq!(work.await.unwrap().unwrap_err().reason, Reason::Cancelled);
    drop(approver);
    let Fixture { dir, trace, session, .. } = fixture;
    let next = over(dir, trace, session, Rules::default(), Duration::from_secs(60));
    // No approver is connected any more, but the request was created while one was.
    let (work, same) = next.request_approval("again").await;
    assert_eq!(same.approval_id, approval.approval_id);
    while !next.harness.approvals().is_awaited(&same.approval_id) {
        tokio::task::yield_now().await;
    }
    next.answer(&same, ApprovalDecision::Once).await.unwrap();
    work.await.unwrap().unwrap();
    // Once answered, the answer applies to the same call.
    let mut call = next.call("write", json!({"word": "again"}));
    (call.call_id, call.resumed) = (Some("again".into()), true);
    next.harness.call(call).await.unwrap();
    assert_eq!(next.runs.load(Ordering::SeqCst), 2);
}

// P12
/// A call without an id is not repeated after the next start: nothing would act on an answer.
#[tokio::test]
async fn stop_closes_the_request_of_a_direct_call() {
    let fixture = fixture().await;
    let _approver = fixture.harness.approvals().join();
    let mut call = fixture.call("write", json!({"word": "x"}));
    call.cancel = fixture.stopping.child_token();
    let (work, approval) = fixture.start_call(call).await;
    fixture.stopping.cancel();
    assert_eq!(work.await.unwrap().unwrap_err().reason, Reason::Cancelled);
    let refused = fixture.answer(&approval, ApprovalDecision::Once).await.unwrap_err();
    assert_eq!(refused.reason, Reason::ApprovalResolved, "{refused}");
    assert!(refused.message.contains("has ended"), "{refused}");
    let stored = fixture.trace.approval(&approval.approval_id).await.unwrap().resolution.unwrap();
    assert_eq!((stored.decision, stored.by.as_str()), (ApprovalDecision::Deny, "cancelled"));
}

#[tokio::test]
async fn deadline_stands_over_a_restart() {
    let (dir, trace, session) = open_log().await;
    let fixture = over(dir, trace, session, Rules::default(), Duration::from_millis(200));
    let _approver = fixture.harness.approvals().join();
    let mut requests = Vec::new();
    for word in ["again", "again 2"] {
        let mut call = fixture.call("write", json!({"word": word}));
        (call.call_id, call.cancel) = (Some(word.into()), fixture.stopping.child_token());
        let harness = Arc::clone(&fixture.harness);
        requests.push(tokio::spawn(async move { harness.call(call).await }));
    }
    let list = ApprovalListParams::default();
    let open = loop {
        let open = fixture.trace.approvals(list.clone()).await.unwrap();
        if open.len() == 2 {
            break open;
        }
        tokio::task::yield_now().await;
    };
    fixture.stopping.cancel();
    for request in requests {
        assert_eq!(request.await.unwrap().unwrap_err().reason, Reason::Cancelled);
    }
    tokio::time::sleep(Duration::from_millis(250)).await;
    let Fixture { dir, trace, session, .. } = fixture;
    let next = over(dir, trace, session, Rules::default(), Duration::from_secs(60));
    // An answer that comes too late is refused, and the call that is repeated is denied.
    let late = open.iter().find(|a| a.arguments["word"] == "again 2").unwrap();
    let refused = next.answer(late, ApprovalDecision::Session).await.unwrap_err();
    assert_eq!(refused.reason, Reason::ApprovalResolved, "{refused}");
    let mut call = next.call("write", json!({"word": "again"}));
    (call.call_id, call.resumed) = (Some("again".into()), true);
    assert_eq!(next.reason(call).await, Reason::DeniedByUser);
    assert_eq!(next.runs.load(Ordering::SeqCst), 0);
    assert_eq!(next.trace.approvals(list).await.unwrap(), []);
}

#[tokio::test]
async fn dropped_call_closes_its_approval() {
    let fixture = fixture().await;
    let _approver = fixture.harness.approvals().join();
    let (work, approval) = fixture.request_approval("one").await;
    work.abort();
    let resolution = loop {
        if let Some(resolution) =
            fixture.trace.approval(&approval.approval_id).await.unwrap().resolution
        {
            break resolution;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(
        (resolution.decision, resolution.by.as_str()),
        (ApprovalDecision::Deny, "cancelled")
    );
    let late = fixture.answer(&approval, ApprovalDecision::Once).await.unwrap_err();
    assert_eq!(late.reason, Reason::ApprovalResolved);
    assert!(!fixture.harness.approvals().is_awaited(&approval.approval_id));
}

#[tokio::test]
async fn interrupted_call_requires_approval_before_retry() {
    let (dir, trace, session) = open_log().await;
    let rules = Rules { allow: vec!["write".parse().unwrap()], ..Rules::default() };
    let fixture = over(dir, trace, session, rules.clone(), Duration::from_secs(60));
    let _approver = fixture.harness.approvals().join();
    let call = |fixture: &Fixture, id: &str, resumed: bool| Call {
        call_id: Some(id.into()),
        resumed,
        ..fixture.call("write", json!({"word": id}))
    };
    // A call that the daemon's stop interrupted is marked; a call that finished otherwise is not.
    for (id, cut) in [("cut", true), ("whole", false)] {
        let closing = |outcome| {
            (if cut { Completion::Interrupted(None) } else { Completion::Unlogged }, outcome)
        };
        let outcome: Result<Output, Failure> =
            fixture.harness.call_logged(call(&fixture, id, false), None, closing).await.unwrap();
        outcome.unwrap();
    }
    let open: Vec<_> = fixture.audit().await.into_iter().map(|a| a.outcome).collect();
    assert_eq!(open, [Some("interrupted".into()), Some("ok".into())]);
    let Fixture { dir, trace, session, .. } = fixture;
    let next = over(dir, trace, session, rules, Duration::from_secs(60));
    let _approver = next.harness.approvals().join();
    next.harness.call(call(&next, "whole", true)).await.unwrap();
    assert_eq!(
        next.runs.load(Ordering::SeqCst),
        1,
        "what is allowed and ended is made again unasked"
    );
    let (work, approval) = next.start_call(call(&next, "cut", true)).await;
    assert!(approval.rule.contains("may have taken effect"), "{approval:?}");
    assert_eq!(next.runs.load(Ordering::SeqCst), 1);
    next.answer(&approval, ApprovalDecision::Deny).await.unwrap();
    assert_eq!(work.await.unwrap().unwrap_err().reason, Reason::DeniedByUser);
    assert_eq!(next.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn dry_run_decides_without_running() {
    let fixture = fixture().await;
    let mut call = fixture.call("write", json!("{'word': 'hi'"));
    call.dry_run = true;
    let output = fixture.harness.call(call).await.unwrap();
    assert_eq!(output.value["dryRun"], true);
    assert_eq!(fixture.runs.load(Ordering::SeqCst), 0);
    assert_eq!(fixture.audit().await[0].decision, "dry_run");
}
