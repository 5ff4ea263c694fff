//! The gate: its overhead per call, with and without the sandbox; the latency of stopping a turn,
//! and of notifying a record.

use std::{
    io::Write as _,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use cairn::{Failure, FnTool, Rules, Session, Verdict, protocol::tool::ToolCallParams};
use cairn_protocol::{
    envelope::{Body, Envelope},
    event::AgentEvt,
    id::SessionId,
    session::{After, LiveWord, SessionCreateParams},
    turn::TurnRef,
};
use cairn_trace::{Append, Follower, NewRecord, Step};
use serde_json::{Value, json};

use crate::{
    daemon::binary,
    meter::{quantile, report, value},
    turns::{Clock, turn},
};

/// Calls of each kind without a sandbox.
const CALLS: usize = 2000;
/// Commands, with the sandbox and without.
const COMMANDS: usize = 100;
/// Number of stopped turns.
const STOPS: u64 = 40;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

async fn session(root: &Path, model: &Arc<Clock>) -> Session {
    let nothing =
        FnTool::new("nothing", "Does nothing", |_: Nothing| async { Ok::<_, Failure>(json!({})) });
    let provider: Arc<dyn cairn_engine::model::Provider> = Arc::<Clock>::clone(model);
    Session::provider(provider)
        .rules(Rules { default: Verdict::Allow, ..Rules::default() })
        .root(root)
        .sandbox_helper(binary())
        .add_tool(nothing)
        .init()
        .await
        .expect("a session")
}

pub async fn run(scratch: &Path) {
    std::fs::create_dir_all(scratch).expect("a folder");
    let model = Arc::new(Clock::new(u64::MAX, Duration::from_millis(2)));
    let session = session(scratch, &model).await;
    let scratch = scratch.to_owned();
    // Runs in a task of the runtime, as in the daemon, instead of a separate thread.
    let work = tokio::spawn(async move {
        calls(&session, &scratch).await;
        notification_latency(&session, &scratch).await;
        commands(&session, &scratch).await;
        stops(&session).await;
        session.close().await;
    });
    work.await.expect("the end");
}

async fn create_session(session: &Session) -> SessionId {
    let created = session.engine().create_session(SessionCreateParams::default()).await;
    created.expect("a session").session_id
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

fn record() -> NewRecord {
    let evt = AgentEvt::Started { op: "nothing".into(), details: None };
    NewRecord { id: uuid::Uuid::now_v7(), parent_id: None, origin: None, body: Body::Evt { evt } }
}

/// Appends one page to a file and makes it durable, as the log's file system does.
fn page(file: &mut std::fs::File) -> f64 {
    let start = Instant::now();
    file.write_all(&[7; 4096]).expect("written");
    file.sync_data().expect("durable");
    micros(start)
}

/// Returns the three records that a call leaves in its session, for writing them again.
async fn records_of_call(session: &Session) -> [NewRecord; 3] {
    let records = session.engine().trace().records(session.id(), 0, 3).await.expect("records");
    let to_new_record = |e: Envelope| NewRecord {
        id: e.id,
        parent_id: e.parent_id,
        origin: e.origin,
        body: e.body,
    };
    let records: Vec<_> = records.into_iter().map(to_new_record).collect();
    records.try_into().expect("three records")
}

/// Measures a no-op call, alternating with its three records in two appends without the gate.
async fn calls(session: &Session, scratch: &Path) {
    let call = || ToolCallParams {
        session_id: session.id().clone(),
        name: "nothing".into(),
        arguments: json!({}),
    };
    let trace = session.engine().trace();
    let other = create_session(session).await;
    let mut file = std::fs::File::create(scratch.join("pages")).expect("a file");
    let mut gated = Vec::new();
    let mut bare = Vec::new();
    let mut sync = Vec::new();
    assert!(session.engine().call_tool(call(), None).await.expect("a result").ok);
    let [command, started, finished] = records_of_call(session).await;
    for _ in 0..CALLS {
        // Both start with the same write, because the previous disk operation affects the next.
        sync.push(page(&mut file));
        let start = Instant::now();
        let result = session.engine().call_tool(call(), None).await.expect("a result");
        assert!(result.ok);
        gated.push(micros(start));
        sync.push(page(&mut file));
        let start = Instant::now();
        for records in [vec![command.clone(), started.clone()], vec![finished.clone()]] {
            trace.append(Append::new(&other, records)).await.expect("appended");
        }
        bare.push(micros(start));
    }
    let call = quantile(&mut gated, 0.5);
    let records = quantile(&mut bare, 0.5);
    report(format!(
        "gate: a call, its records and audit durable   p50 {call:.0} us, its records alone {records:.0} us, one fdatasync {:.0} us",
        quantile(&mut sync, 0.5)
    ));
    value("gate: added to a call us", call - records);
    report(format!(
        "gate: what it adds to a call          p50 {:.0} us  floor <= 100 us",
        call - records
    ));
}

async fn follow(session: &Session, id: &SessionId) -> Follower {
    let after = After::Word(LiveWord::Live);
    let (mut follower, _) = session.engine().trace().follow(id, &after).await.expect("followed");
    let _synced = follower.step().await.expect("a step");
    follower
}

/// Measures the time from appending a record to its delivery to a follower.
async fn notification_latency(session: &Session, scratch: &Path) {
    let trace = session.engine().trace();
    let id = create_session(session).await;
    let mut follower = follow(session, &id).await;
    let mut file = std::fs::File::create(scratch.join("pages")).expect("a file");
    let mut delivery = Vec::new();
    let mut sync = Vec::new();
    for _ in 0..CALLS {
        let start = Instant::now();
        let (append, step) =
            tokio::join!(trace.append(Append::new(&id, vec![record()])), follower.step());
        assert!(append.is_ok() && matches!(step, Ok(Step::Records(lines)) if lines.len() == 1));
        delivery.push(micros(start));
        sync.push(page(&mut file));
    }
    let p50 = quantile(&mut delivery, 0.5) / 1000.0;
    let floor = 2.0 + 2.0 * quantile(&mut sync, 0.5) / 1000.0;
    let p95 = quantile(&mut delivery, 0.95) / 1000.0;
    let worst = 2.0 + 2.0 * quantile(&mut sync, 0.95) / 1000.0;
    report(format!(
        "gate: a record durable and published p50 {p50:.2} ms  p95 {p95:.2} ms  floor <= {floor:.2} ms (p95 {worst:.2})"
    ));
}

/// Measures a no-op command in the sandbox through the gate, compared with the same shell started
/// directly.
async fn commands(session: &Session, scratch: &Path) {
    let arguments = json!({"command": "true"});
    let mut boxed = Vec::new();
    let mut plain = Vec::new();
    for _ in 0..COMMANDS {
        let session_id = session.id().clone();
        let arguments = arguments.clone();
        let call = ToolCallParams { session_id, name: "run_shell".into(), arguments };
        let start = Instant::now();
        let result = session.engine().call_tool(call, None).await.expect("a result");
        boxed.push(micros(start) / 1000.0);
        assert!(result.ok && result.output["exit_code"] == 0, "{result:?}");
        let start = Instant::now();
        let mut shell = tokio::process::Command::new("sh");
        let output =
            shell.args(["-c", "true"]).current_dir(scratch).output().await.expect("a shell");
        plain.push(micros(start) / 1000.0);
        assert!(output.status.success());
    }
    let with = quantile(&mut boxed, 0.5);
    let without = quantile(&mut plain, 0.5);
    value("gate: sandboxed command, added to the shell ms", with - without);
    report(format!(
        "gate: a command in the sandbox        p50 {with:.2} ms, the same shell plainly {without:.2} ms, {:.2} ms more  floor <= 15 ms",
        with - without
    ));
}

/// Measures the time from stopping a streaming turn, at different points, to its last record.
async fn stops(session: &Session) {
    let mut times = Vec::new();
    for n in 0..STOPS {
        let id = create_session(session).await;
        let mut follower = follow(session, &id).await;
        session.engine().start_run(turn(&id, "t"), None).await.expect("a turn");
        tokio::time::sleep(Duration::from_millis(5 + n * 3)).await;
        let start = Instant::now();
        let turn = TurnRef { session_id: id, turn_id: None };
        session.engine().cancel_run(turn).await.expect("stopped");
        while !is_end(&follower.step().await.expect("a step")) {}
        times.push(micros(start) / 1000.0);
    }
    let p50 = quantile(&mut times, 0.5);
    let max = quantile(&mut times, 1.0);
    value("gate: turn stopped p50 ms", p50);
    report(format!(
        "gate: a turn stopped while it streams  p50 {p50:.1} ms  most {max:.1} ms of {STOPS}  floor <= 100 ms"
    ));
}

fn is_end(step: &Step) -> bool {
    let Step::Records(lines) = step else { return matches!(step, Step::Deleted) };
    lines.iter().any(|line| {
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        value["evt"]["type"] == "run_completed"
    })
}
