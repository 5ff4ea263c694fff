//! Turns through the engine with a scripted model: the requests it gets, the calls that are made,
//! the records in the log.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod background;
mod costs;
mod explores;
mod extend;
mod instructions;
mod modes;
mod plans;
mod questions;
mod retries;
mod stage;
mod subagents;
mod tiers;

use std::{sync::atomic::Ordering, time::Duration};

use cairn_engine::{Rules, TurnSettings};
use cairn_llm::{Expect, Fault, FaultKind, Script, Scripted, ScriptedAnswer, Step};
use cairn_protocol::{
    approval::{ApprovalDecision, ApprovalListParams, ApprovalResolveParams},
    error::Reason,
    event::AgentEvt,
    model::Message,
    turn::{ExecutionPolicy, Outcome, SteerParams, TurnRef},
};
use stage::{Stage, allow_all, calls, quick, text_answer};

#[tokio::test]
async fn turn_calls_tools_and_answers() {
    let stage = Stage::new(vec![
        calls(&[("look", "a"), ("look", "b"), ("change", "c"), ("look", "d")]),
        text_answer("done").expecting(Expect::LastContains("said d".into())),
        text_answer("again").expecting(Expect::Messages(8)),
    ])
    .await;
    let result = stage.turn("hello").await;
    assert_eq!((result.status, result.final_output.as_deref()), (Outcome::Completed, Some("done")));
    let traced: Vec<_> =
        result.tool_trace.iter().map(|t| (t.tool.as_str(), t.outcome.as_str())).collect();
    assert_eq!(traced.len(), 4);
    assert!(traced.contains(&("change", "ok")), "{traced:?}");
    assert_eq!((stage.reads.load(Ordering::SeqCst), stage.writes.load(Ordering::SeqCst)), (3, 1));
    // The next turn receives the complete conversation, results in the order of the calls.
    assert_eq!(stage.turn("and?").await.final_output.as_deref(), Some("again"));
    let request = stage.script.requests().pop().unwrap();
    let results: Vec<_> = request
        .messages
        .iter()
        .filter_map(|m| match m {
            Message::Tool { content, .. } => Some(content.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(results, ["said a", "said b", "said c", "said d"]);
    assert!(
        request.system.starts_with("You are Cairn's agent")
            && request.system.contains("- look — Says a word")
    );
    assert!(request.tools.iter().any(|t| t.name() == "change"));
    let first = stage.script.requests().remove(0);
    assert_eq!(first.system, request.system, "equal input gives equal bytes");
}

#[tokio::test]
async fn text_is_streamed_live_and_recorded_combined() {
    let pieces = (0..20).map(|n| Step::Text(format!("word{n} "))).collect();
    let answer = ScriptedAnswer { delay_ms: 2, ..ScriptedAnswer::new(pieces) };
    let stage = Stage::new(vec![answer]).await;
    let mut watch = stage.watch(0).await;
    stage.engine.start_run(stage.params("t", "go"), None).await.unwrap();
    let result = watch.end().await;
    let complete: String = (0..20).map(|n| format!("word{n} ")).collect();
    assert_eq!(result.final_output.as_deref(), Some(complete.as_str()));
    let live: String = watch.passed.iter().filter_map(|v| v["evt"]["text"].as_str()).collect();
    assert_eq!(live, complete);
    assert!(watch.passed.iter().all(|v| v.get("seq").is_none()));
    let recorded: Vec<_> = stage
        .records()
        .await
        .into_iter()
        .filter_map(|e| match e {
            AgentEvt::Text { text, offset, .. } => Some((offset, text)),
            _ => None,
        })
        .collect();
    assert!(recorded.len() < 5, "put together: {recorded:?}");
    assert_eq!(recorded.iter().map(|(_, t)| t.as_str()).collect::<String>(), complete);
    assert_eq!(recorded[0].0, 0);
}

#[tokio::test]
async fn turns_run_in_order_and_duplicate_turn_id_is_ignored() {
    let slow = ScriptedAnswer::new(vec![Step::DelayMs(1000), Step::Text("one".into())]);
    let stage = Stage::new(vec![slow, text_answer("two"), text_answer("three")]).await;
    let mut watch = stage.watch(0).await;
    let first = stage.engine.start_run(stage.params("a", "1"), None).await.unwrap();
    let second = stage.engine.start_run(stage.params("b", "2"), None).await.unwrap();
    let third = stage.engine.start_run(stage.params("c", "3"), None).await.unwrap();
    assert_eq!(stage.engine.start_run(stage.params("a", "1"), None).await.unwrap(), first);
    let other = stage.engine.start_run(stage.params("a", "other"), None).await.unwrap_err();
    assert_eq!(other.reason, Reason::RequestConflict);
    assert_eq!(stage.engine.run_status(&stage.session).await.unwrap().queued, 2);
    let ends = [watch.end().await, watch.end().await, watch.end().await];
    let got: Vec<_> =
        ends.iter().map(|r| (r.run_id.clone(), r.final_output.clone().unwrap())).collect();
    assert_eq!(
        got,
        [
            (first.run_id, "one".into()),
            (second.run_id, "two".into()),
            (third.run_id, "three".into())
        ]
    );
}

#[tokio::test]
async fn cancellation_takes_effect_in_every_phase() {
    for phase in ["before", "amid text", "in a tool"] {
        let answer = match phase {
            "before" => ScriptedAnswer::new(vec![Step::Hang]),
            "amid text" => ScriptedAnswer::new(vec![Step::Text("half an ans".into()), Step::Hang]),
            _ => calls(&[("look", "hang")]),
        };
        let stage = Stage::new(vec![answer, text_answer("next")]).await;
        let mut watch = stage.watch(0).await;
        stage.engine.start_run(stage.params("t", "go"), None).await.unwrap();
        match phase {
            "in a tool" => {
                watch.until(|e| matches!(e, AgentEvt::ToolCall { .. }).then_some(())).await
            }
            _ => {
                while stage.script.requests().is_empty() {
                    tokio::task::yield_now().await;
                }
            }
        }
        if phase == "amid text" {
            watch.until(|e| matches!(e, AgentEvt::Text { .. }).then_some(())).await;
        }
        let began = std::time::Instant::now();
        let turn = TurnRef { session_id: stage.session.clone(), turn_id: None };
        stage.engine.cancel_run(turn).await.unwrap();
        let result = watch.end().await;
        assert!(began.elapsed() < Duration::from_secs(20), "{phase}: {:?}", began.elapsed());
        assert_eq!(result.status, Outcome::Cancelled, "{phase}");
        let expected = (phase == "amid text").then_some("half an ans");
        assert_eq!(result.final_output.as_deref(), expected, "{phase}");
        // The session continues, and the model receives a complete conversation.
        assert_eq!(stage.turn("go on").await.final_output.as_deref(), Some("next"), "{phase}");
        let request = stage.script.requests().pop().unwrap();
        let open = request
            .messages
            .iter()
            .filter(|m| matches!(m, Message::Assistant { calls, .. } if !calls.is_empty()))
            .count();
        let results = request.messages.iter().filter(|m| matches!(m, Message::Tool { .. })).count();
        assert_eq!(open, results, "{phase}");
    }
}

#[tokio::test]
async fn steering_text_is_delivered_before_next_answer() {
    let slow = ScriptedAnswer::new(vec![Step::DelayMs(80), Step::Text("first".into())]);
    let steered = text_answer("heard").expecting(Expect::LastContains("be brief".into()));
    let stage =
        Stage::new(vec![slow, steered, text_answer("end").expecting(Expect::Messages(5))]).await;
    let mut watch = stage.watch(0).await;
    stage.engine.start_run(stage.params("t", "go"), None).await.unwrap();
    while stage.script.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    let steer = SteerParams { session_id: stage.session.clone(), text: "be brief".into() };
    stage.engine.steer(steer.clone(), None).await.unwrap();
    assert_eq!(watch.end().await.final_output.as_deref(), Some("heard"));
    assert_eq!(stage.engine.steer(steer, None).await.unwrap_err().reason, Reason::RunNotFound);
    // Read from the log, the conversation equals the original one.
    assert_eq!(stage.turn("more").await.final_output.as_deref(), Some("end"));
}

#[tokio::test]
async fn repeating_model_is_warned_and_then_stopped() {
    let stage = Stage::new((0..10).map(|_| calls(&[("look", "same")])).collect()).await;
    let result = stage.turn("go").await;
    assert_eq!(result.error.unwrap().reason, "stuck");
    assert_eq!(stage.reads.load(Ordering::SeqCst), 4);
    let request = stage.script.requests().pop().unwrap();
    let sent = serde_json::to_string(&request.messages).unwrap();
    assert!(sent.contains("Try something else"), "{sent}");
}

#[tokio::test]
async fn iterations_tokens_and_duration_are_bounded() {
    let many = |n: u32| (0..n).map(|i| calls(&[("look", &format!("w{i}"))])).collect::<Vec<_>>();
    let stage = Stage::new(many(10)).await;
    let result = stage
        .turn_with("go", ExecutionPolicy { max_iterations: Some(3), ..Default::default() })
        .await;
    assert_eq!(result.error.unwrap().reason, "turn_limit");
    assert_eq!(stage.script.remaining(), 7);
    let stage = Stage::new(many(10)).await;
    // P13
    let result =
        stage.turn_with("go", ExecutionPolicy { max_tokens: Some(10), ..Default::default() }).await;
    assert_eq!(
        (result.status, result.error.unwrap().reason.as_str()),
        (Outcome::Failed, "budget_exceeded")
    );
    let events = stage.records().await;
    let error = events
        .iter()
        .position(|e| matches!(e, AgentEvt::Error { op, .. } if op == "agent"))
        .unwrap();
    let end = events.iter().position(|e| matches!(e, AgentEvt::RunCompleted { .. })).unwrap();
    assert!(error < end, "a failed turn tells its error before its end");
    assert_eq!(stage.script.remaining(), 9);
    let stage = Stage::new(vec![ScriptedAnswer::new(vec![Step::Hang])]).await;
    let result = stage
        .turn_with("go", ExecutionPolicy { timeout_seconds: Some(1), ..Default::default() })
        .await;
    assert_eq!(
        (result.status, result.error.unwrap().reason.as_str()),
        (Outcome::TimedOut, "budget_exceeded")
    );
}

#[tokio::test]
async fn model_faults_are_typed_and_only_undisplayed_answers_are_retried() {
    let fault = |kind| Step::Fault(Fault { kind, text: "why".into(), retry_after_ms: None });
    for (kind, reason) in [
        (FaultKind::Unavailable, "model_unavailable"),
        (FaultKind::Unauthorized, "model_unauthorized"),
        (FaultKind::ModelNotFound, "model_not_found"),
        (FaultKind::RateLimited, "model_rate_limited"),
        (FaultKind::Malformed, "model_malformed"),
        (FaultKind::Rejected, "model_rejected"),
    ] {
        let stage =
            Stage::new(vec![ScriptedAnswer::new(vec![fault(kind)]), text_answer("never")]).await;
        let result = stage.turn("go").await;
        assert_eq!(
            (result.status, result.error.unwrap().reason.as_str()),
            (Outcome::Failed, reason)
        );
        assert_eq!(stage.script.remaining(), 1, "{reason}");
    }
    let stage =
        Stage::new(vec![ScriptedAnswer::new(vec![Step::Cut]), text_answer("after all")]).await;
    assert_eq!(stage.turn("go").await.final_output.as_deref(), Some("after all"));
    let partial = ScriptedAnswer::new(vec![Step::Text("half".into()), Step::Cut]);
    let stage = Stage::new(vec![partial, text_answer("never")]).await;
    let result = stage.turn("go").await;
    assert_eq!(result.error.unwrap().reason, "model_cut");
    assert_eq!(result.final_output.as_deref(), Some("half"), "what was shown is kept");
    assert_eq!(stage.script.remaining(), 1);
}

#[tokio::test]
async fn invalid_call_returns_correctable_result() {
    let broken = |arguments: &str| {
        let call =
            cairn_llm::ScriptedCall { id: None, name: "look".into(), arguments: arguments.into() };
        ScriptedAnswer::new(vec![Step::Call(call)])
    };
    let stage = Stage::new(vec![
        calls(&[("lok", "x")]),
        broken("{'word': 'a',").expecting(Expect::LastContains("did you mean 'look'".into())),
        broken("complete nonsense").expecting(Expect::LastContains("said a".into())),
        text_answer("done").expecting(Expect::LastContains("invalid_params".into())),
    ])
    .await;
    assert_eq!(stage.turn("go").await.final_output.as_deref(), Some("done"));
}

#[tokio::test]
async fn endless_answer_is_bounded() {
    let huge = ScriptedAnswer::new((0..40).map(|_| Step::Text("x".repeat(256 * 1024))).collect());
    let stage = Stage::new(vec![huge]).await;
    let result = stage.turn("go").await;
    assert_eq!(result.error.unwrap().reason, "too_large");
    assert!(result.final_output.unwrap().len() <= 2 * 1024 * 1024);
}

#[tokio::test]
async fn long_conversation_is_compacted_and_continues() {
    let settings = TurnSettings {
        max_context_tokens: Some(12_000),
        max_answer_tokens: 500,
        compaction_threshold: 0.8,
        shown_chars: 10_000,
        ..quick()
    };
    let three = [("look", "long"), ("look", "long"), ("look", "long")];
    let mut answers: Vec<ScriptedAnswer> = (0..3).map(|_| calls(&three)).collect();
    answers.push(
        text_answer("SUMMARY: three looks").expecting(Expect::SystemContains("Condense".into())),
    );
    answers.push(text_answer("done").expecting(Expect::AnyContains("SUMMARY: three looks".into())));
    answers
        .push(text_answer("later").expecting(Expect::AnyContains("SUMMARY: three looks".into())));
    let script = Scripted::of(Script { answers, ..Script::default() });
    let stage = Stage::with(script, allow_all(), settings).await;
    let few = || ExecutionPolicy {
        ops: Some(vec!["look".into(), "change".into()]),
        ..Default::default()
    };
    let result = stage.turn_with("look three times", few()).await;
    assert_eq!(result.final_output.as_deref(), Some("done"), "{result:?}");
    let compacted: Vec<_> = stage
        .records()
        .await
        .into_iter()
        .filter_map(|e| match e {
            AgentEvt::Compacted { tokens_before, tokens_after, .. } => {
                Some((tokens_before, tokens_after))
            }
            _ => None,
        })
        .collect();
    assert_eq!(compacted.len(), 1);
    assert!(compacted[0].1 < compacted[0].0);
    assert_eq!(stage.turn_with("and then?", few()).await.final_output.as_deref(), Some("later"));
    // The request after it equals the conversation from the log.
    let request = stage.script.requests();
    let (during, after) = (&request[4].messages, &request[5].messages);
    assert_eq!(during[..], after[..during.len()]);
}

async fn answered(stage: &Stage, decision: ApprovalDecision) {
    let waiting = stage.engine.approvals(ApprovalListParams::default()).await.unwrap();
    let params = ApprovalResolveParams {
        approval_id: waiting[0].approval_id.clone(),
        decision,
        reason: Some("not now".into()),
        pattern: None,
        values: Default::default(),
    };
    stage.engine.resolve_approval(params, "me").await.unwrap();
}

#[tokio::test]
async fn denial_is_reported_to_model_and_final_denial_ends_turn() {
    let script = Scripted::new(vec![
        calls(&[("change", "x")]),
        text_answer("then not").expecting(Expect::LastContains("denied by user: not now".into())),
        calls(&[("change", "y")]),
        text_answer("never"),
    ]);
    let stage = Stage::with(script, Rules::default(), quick()).await;
    let approver = stage.engine.approver();
    let mut watch = stage.watch(0).await;
    stage.engine.start_run(stage.params("t", "go"), None).await.unwrap();
    watch.until(|e| matches!(e, AgentEvt::ApprovalRequired { .. }).then_some(())).await;
    answered(&stage, ApprovalDecision::Deny).await;
    assert_eq!(watch.end().await.final_output.as_deref(), Some("then not"));
    drop(approver);
    let result = stage.turn("again").await;
    assert_eq!(
        (result.status, result.error.unwrap().reason.as_str()),
        (Outcome::Denied, "no_approver")
    );
    assert_eq!((stage.writes.load(Ordering::SeqCst), stage.script.remaining()), (0, 1));
}

#[tokio::test]
async fn approval_survives_restart_and_its_answer_resumes_turn() {
    let script = Scripted::new(vec![calls(&[("look", "a"), ("change", "b")])]);
    let stage = Stage::with(script, Rules::default(), quick()).await;
    let _approver = stage.engine.approver();
    let mut watch = stage.watch(0).await;
    stage.engine.start_run(stage.params("t", "go"), None).await.unwrap();
    watch.until(|e| matches!(e, AgentEvt::ApprovalRequired { .. }).then_some(())).await;
    stage.engine.close().await;
    watch.until(|e| matches!(e, AgentEvt::Interrupted { .. }).then_some(())).await;
    let (dir, session) = (std::sync::Arc::clone(&stage.dir), stage.session.clone());
    drop((watch, stage));
    let script =
        Scripted::new(vec![text_answer("done").expecting(Expect::LastContains("said b".into()))]);
    let next = Stage::over(dir, Some(session), script, Rules::default(), quick()).await;
    let mut watch = next.watch(0).await;
    answered(&next, ApprovalDecision::Once).await;
    assert_eq!(watch.end().await.final_output.as_deref(), Some("done"));
    // Calls made before the end are not repeated.
    assert_eq!((next.reads.load(Ordering::SeqCst), next.writes.load(Ordering::SeqCst)), (0, 1));
}

#[tokio::test]
async fn possibly_completed_call_requires_approval_after_crash() {
    let stage = Stage::new(vec![calls(&[("change", "hang")])]).await;
    let mut watch = stage.watch(0).await;
    stage.engine.start_run(stage.params("t", "go"), None).await.unwrap();
    watch.until(|e| matches!(e, AgentEvt::ToolCall { .. }).then_some(())).await;
    while stage.writes.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    // A crash: the log in its current state, opened by another engine.
    let crashed = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let copy = cairn_engine::record::Trace::open(&crashed.path().join("trace.db")).unwrap();
    drop(copy);
    std::fs::remove_file(crashed.path().join("trace.db")).unwrap();
    for name in ["trace.db", "trace.db-wal"] {
        let from = stage.dir.path().join(name);
        if from.exists() {
            std::fs::copy(from, crashed.path().join(name)).unwrap();
        }
    }
    let script = Scripted::new(vec![
        text_answer("left it").expecting(Expect::LastContains("not now".into())),
    ]);
    let next =
        Stage::over(crashed, Some(stage.session.clone()), script, allow_all(), quick()).await;
    let _approver = next.engine.approver();
    let mut after = next.watch(0).await;
    next.engine.resume_session(&next.session).await.unwrap();
    let rule = after
        .until(|e| match e {
            AgentEvt::ApprovalRequired { approval } => Some(approval.rule.clone()),
            _ => None,
        })
        .await;
    assert!(rule.contains("may have taken effect"), "{rule}");
    answered(&next, ApprovalDecision::Deny).await;
    assert_eq!(after.end().await.final_output.as_deref(), Some("left it"));
    assert_eq!(next.writes.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn dry_run_reports_calls_without_making_them() {
    let stage = Stage::new(vec![calls(&[("change", "x")]), text_answer("ok")]).await;
    let result =
        stage.turn_with("go", ExecutionPolicy { dry_run: true, ..Default::default() }).await;
    assert_eq!(result.final_output.as_deref(), Some("ok"));
    assert_eq!(stage.writes.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn many_sessions_run_concurrently() {
    let stage = Stage::new((0..100).map(|_| text_answer("ok")).collect()).await;
    let mut sessions = Vec::new();
    for _ in 0..100 {
        sessions.push(stage.engine.create_session(Default::default()).await.unwrap().session_id);
    }
    for session in &sessions {
        let mut params = stage.params("t", "go");
        params.session_id = session.clone();
        stage.engine.start_run(params, None).await.unwrap();
    }
    for session in &sessions {
        let (follower, _) = stage
            .engine
            .trace()
            .follow(session, &cairn_protocol::session::After::Seq(0))
            .await
            .unwrap();
        let mut watch = stage::Watch::of(follower);
        assert_eq!(watch.end().await.status, Outcome::Completed);
    }
}

#[tokio::test]
async fn replay_reports_first_difference() {
    use cairn_protocol::trace::ReplayParams;
    let stage = Stage::new(vec![
        calls(&[("look", "a"), ("change", "b")]),
        text_answer("done"),
        calls(&[("look", "long")]),
        text_answer("again"),
    ])
    .await;
    stage.turn("one").await;
    stage.turn("two").await;
    let params = ReplayParams { trace_id: stage.session.clone(), root: None };
    let report = stage.engine.replay(params.clone()).await.unwrap();
    assert!(report.identical, "{report:?}");
    assert_eq!(report.compared, 4 + 3 + 2);
    // Calls with an effect were not repeated; read-only calls were made again.
    assert_eq!((stage.reads.load(Ordering::SeqCst), stage.writes.load(Ordering::SeqCst)), (4, 1));
    assert_eq!(stage.script.remaining(), 0, "the model was not asked");
    // Another system text is another request: that is the first difference.
    let text = cairn_protocol::prompt::PromptAppendParams {
        session_id: stage.session.clone(),
        text: "NEW".into(),
    };
    stage.engine.append_prompt(text).await.unwrap();
    let report = stage.engine.replay(params).await.unwrap();
    let first = report.first.unwrap();
    assert_eq!((first.what.as_str(), first.path.as_str()), ("answer 1 of the model", "/asked"));
    let empty = stage.engine.create_session(Default::default()).await.unwrap().session_id;
    let failure =
        stage.engine.replay(ReplayParams { trace_id: empty, root: None }).await.unwrap_err();
    assert_eq!(failure.reason, Reason::BadTrace);
}

#[tokio::test]
async fn fork_copies_history_up_to_turn() {
    use cairn_protocol::session::{ArchiveParams, ForkParams, PageParams};
    let stage = Stage::new(vec![
        text_answer("one"),
        text_answer("two"),
        text_answer("other").expecting(Expect::Messages(3)),
    ])
    .await;
    stage.turn("first").await;
    stage.turn("second").await;
    let fork = |before: Option<&str>| ForkParams {
        session_id: stage.session.clone(),
        before_turn_id: before.map(str::to_owned),
        title: None,
    };
    let complete = stage.engine.fork_session(fork(None)).await.unwrap();
    assert_eq!(complete.head_seq, stage.engine.session(&stage.session).await.unwrap().head_seq);
    let forked = stage.engine.fork_session(fork(Some("t1"))).await.unwrap();
    let mut params = stage.params("t1", "another second");
    params.session_id = forked.session_id.clone();
    let (follower, _) = stage
        .engine
        .trace()
        .follow(&forked.session_id, &cairn_protocol::session::After::Seq(forked.head_seq))
        .await
        .unwrap();
    stage.engine.start_run(params, None).await.unwrap();
    assert_eq!(stage::Watch::of(follower).end().await.final_output.as_deref(), Some("other"));
    assert_eq!(
        stage.engine.fork_session(fork(Some("none"))).await.unwrap_err().reason,
        Reason::RunNotFound
    );
    let away = ArchiveParams { session_id: complete.session_id.clone(), archived: true };
    assert!(stage.engine.archive_session(away).await.unwrap().archived);
    let listed = |archived| PageParams { archived, ..PageParams::default() };
    assert_eq!(stage.engine.sessions(listed(false)).await.unwrap().data.len(), 2);
    assert_eq!(stage.engine.sessions(listed(true)).await.unwrap().data.len(), 3);
}
