//! Limits of a connection: rights, ordering, and calls in flight.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod audit;
mod rights;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use cairn_api::{Api, Connection, Disconnect, HostInfo, Outgoing, Rights, Scope, methods};
use cairn_engine::{Agent, Engine, EngineOptions, RunContext};
use cairn_protocol::{
    daemon::Limits,
    error::{Failure, Reason},
    explore::ExploreSummary,
};
use cairn_test_support::engine::{WaitTool, deps, index_options, options};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

const LONG: Duration = Duration::from_secs(120);

/// An explorer that waits as the tool does and finds nothing.
struct WaitingExplorer(Arc<Semaphore>);

#[async_trait::async_trait]
impl Agent for WaitingExplorer {
    async fn explore(&self, _: &RunContext, _: &[String]) -> Result<ExploreSummary, Failure> {
        self.0.acquire().await.unwrap().forget();
        Err(Failure::new(Reason::ToolFailed, "nothing was looked for"))
    }
}

/// Maximum of simultaneous runs in the test daemon.
const RUNS: usize = 2;

struct TestDaemon {
    api: Arc<Api>,
    engine: Engine,
    tool: WaitTool,
    _dir: tempfile::TempDir,
}

async fn test_daemon() -> TestDaemon {
    test_daemon_with(|_| {}).await
}

/// Builds a test daemon whose options `change` has changed.
async fn test_daemon_with(change: impl FnOnce(&mut EngineOptions)) -> TestDaemon {
    let dir = tempfile::tempdir().unwrap();
    let deps = deps(dir.path(), index_options());
    let tool = WaitTool::default();
    deps.registry.add(Arc::new(tool.clone())).unwrap();
    let mut options = EngineOptions { max_runs: RUNS as u32, ..options(dir.path()) };
    change(&mut options);
    let host = HostInfo::in_process("0", dir.path());
    let engine = Engine::open(deps, options).await.unwrap();
    engine.set_explorer(Arc::new(WaitingExplorer(Arc::clone(&tool.gate))));
    let api = Api::new(engine.clone(), host, Limits::default());
    TestDaemon { api, engine, tool, _dir: dir }
}

struct Client {
    connection: Connection,
    out: mpsc::Receiver<Outgoing>,
    /// Received messages that have not been examined yet.
    pending: VecDeque<String>,
    next: u64,
    /// The methods that `initialize` listed.
    methods: Value,
}

impl Client {
    async fn open(test_daemon: &TestDaemon, rights: Rights) -> Self {
        let (connection, out) = Connection::open(&test_daemon.api, rights).unwrap();
        let mut client =
            Self { connection, out, pending: VecDeque::new(), next: 0, methods: Value::Null };
        let hello = json!({"protocolVersions": ["1"], "client": {"name": "t", "version": "0"}});
        let shaken = client.call("initialize", hello).await;
        client.methods = shaken["result"]["capabilities"]["methods"].clone();
        assert!(client.methods.is_array());
        client
    }

    async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let message =
            json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.connection.handle_message(&message.to_string()).await;
        self.next
    }

    async fn answer(&mut self) -> Value {
        if self.pending.is_empty() {
            let received = tokio::time::timeout(LONG, self.out.recv()).await.unwrap().unwrap();
            self.pending.extend(received.into_texts());
        }
        serde_json::from_str(&self.pending.pop_front().unwrap()).unwrap()
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        loop {
            let answer = self.answer().await;
            if answer["id"] == id {
                return answer;
            }
            // Progress of a requested index may come first.
            assert!(answer["method"].is_string(), "{answer}");
        }
    }

    async fn session(&mut self) -> Value {
        self.call("session.create", json!({})).await["result"]["sessionId"].clone()
    }
}

fn reason(answer: &Value) -> &str {
    answer["error"]["data"]["reason"].as_str().unwrap_or("none")
}

#[tokio::test(flavor = "multi_thread")]
async fn receipt_is_sent_before_its_progress() {
    let test_daemon = test_daemon().await;
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    for n in 0..60 {
        let folder = dir.path().join(n.to_string());
        std::fs::create_dir(&folder).unwrap();
        let id = client.send("index.addRoot", json!({"path": folder})).await;
        let receipt = client.answer().await;
        assert_eq!(receipt["id"], id, "folder {n}: {receipt}");
        loop {
            let message = client.answer().await;
            assert_eq!(message["method"], "index.progress");
            // A folder indexed earlier may be checked once more.
            if message["params"]["path"] == receipt["result"]["path"]
                && message["params"]["done"] == true
            {
                break;
            }
        }
        let removed =
            client.send("index.removeRoot", json!({"root": receipt["result"]["root"]})).await;
        while client.answer().await["id"] != removed {}
    }
}

/// Waits for the next final notification of an index.
async fn next_end(client: &mut Client) -> Value {
    loop {
        let message = client.answer().await;
        if message["method"] == "index.progress" && message["params"]["done"] == true {
            return message["params"].clone();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rebuild_end_is_notified_once_new_index_answers() {
    let test_daemon = test_daemon().await;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.rs"), "fn a() {}").unwrap();
    let path = dir.path().canonicalize().unwrap();
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    let mut other = Client::open(&test_daemon, Rights::ALL).await;
    client.send("index.addRoot", json!({"path": path})).await;
    next_end(&mut client).await;
    for _ in 0..8 {
        let before = test_daemon.engine.index_of(path.to_str().unwrap()).unwrap();
        // The old index is checked at the same time; its ends do not belong to the rebuild.
        other.send("index.addRoot", json!({"path": path})).await;
        // Notifications before the receipt belong to earlier requests.
        let receipt = client.send("index.rebuild", json!({"root": path})).await;
        while client.answer().await["id"] != receipt {}
        next_end(&mut client).await;
        assert_ne!(test_daemon.engine.index_of(path.to_str().unwrap()).unwrap(), before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_client_misses_progress_but_no_end() {
    let test_daemon = test_daemon_with(|options| options.notices = 2).await;
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    let mut pending = std::collections::BTreeSet::new();
    // More than the queue accepts: nothing is read before all roots are indexed.
    for n in 0..cairn_api::OUTGOING {
        let folder = dir.path().canonicalize().unwrap().join(n.to_string());
        std::fs::create_dir(&folder).unwrap();
        client.send("index.addRoot", json!({"path": folder})).await;
        pending.insert(folder.display().to_string());
    }
    let ready = async || {
        let indexed = test_daemon.engine.index_status(None).unwrap().roots;
        indexed.len() == cairn_api::OUTGOING && indexed.iter().all(|root| root.complete)
    };
    until_async(ready).await;
    while !pending.is_empty() {
        let message = client.answer().await;
        if message["method"] == "index.progress" && message["params"]["done"] == true {
            pending.remove(message["params"]["path"].as_str().unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn detached_work_does_not_retain_connection() {
    let test_daemon = test_daemon().await;
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    client.send("index.addRoot", json!({"path": dir.path()})).await;
    let Client { connection, mut out, .. } = client;
    connection.close();
    drop(connection);
    // The work continues and finishes; afterwards no sender is left.
    let end = async { while out.recv().await.is_some() {} };
    tokio::time::timeout(LONG, end).await.unwrap();
    let mut other = Client::open(&test_daemon, Rights::ALL).await;
    assert_eq!(
        other.call("index.list", json!({})).await["result"]["data"].as_array().unwrap().len(),
        1
    );
}

#[tokio::test]
async fn cancelled_call_of_batch_leaves_other_answers() {
    let test_daemon = test_daemon().await;
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    let session = client.session().await;
    let wait = json!({"sessionId": session, "name": "wait", "arguments": {}});
    let batch = json!([
        {"jsonrpc": "2.0", "id": "one", "method": "tool.call", "params": wait},
        {"jsonrpc": "2.0", "id": "two", "method": "daemon.status", "params": {}},
    ]);
    client.connection.handle_message(&batch.to_string()).await;
    until(|| test_daemon.tool.calls() == 1).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "one"}});
    client.connection.handle_message(&cancel.to_string()).await;
    let answers = client.answer().await;
    assert_eq!((&answers[0]["id"], reason(&answers[0])), (&json!("one"), "cancelled"));
    assert!(answers[1]["result"].is_object(), "{answers}");
    wait_for_outcomes(&test_daemon, &["cancelled"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_cancelled_subscribe_frees_its_slot() {
    let test_daemon = test_daemon().await;
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    let session = client.session().await;
    let open = async |client: &mut Client| {
        client.call("daemon.stats", json!({})).await["result"]["subscriptions"].as_u64().unwrap()
    };
    let subscribe = json!({"jsonrpc": "2.0", "id": "s", "method": "orchestrate.subscribe", "params": {"sessionId": session}});
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "s"}});
    let mut cancelled = 0;
    for round in 0..3_000 {
        client.connection.handle_message(&subscribe.to_string()).await;
        for _ in 0..round % 64 {
            tokio::task::yield_now().await;
        }
        client.connection.handle_message(&cancel.to_string()).await;
        let answer = loop {
            let answer = client.answer().await;
            if answer["id"] == "s" {
                break answer;
            }
        };
        match answer["result"]["subscriptionId"].as_str() {
            Some(id) => {
                let end = json!({"subscriptionId": id});
                let id = client.send("orchestrate.unsubscribe", end).await;
                while client.answer().await["id"] != id {}
            }
            None => cancelled += 1,
        }
    }
    assert!(cancelled > 0);
    until_async(async || open(&mut client).await == 0).await;
}

async fn until_async(mut what: impl AsyncFnMut() -> bool) {
    let began = std::time::Instant::now();
    while !what().await {
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}

#[tokio::test]
async fn call_over_limit_is_refused_at_once() {
    let test_daemon = test_daemon().await;
    let limit = u64::from(test_daemon.api.limits().max_in_flight);
    let mut busy = Client::open(&test_daemon, Rights::ALL).await;
    let mut other = Client::open(&test_daemon, Rights::ALL).await;
    let session = busy.session().await;
    for _ in 0..limit {
        busy.send("tool.call", json!({"sessionId": session, "name": "wait", "arguments": {}}))
            .await;
    }
    let refused = busy.call("daemon.status", json!({})).await;
    assert_eq!(reason(&refused), "overloaded", "{refused}");
    assert_eq!(refused["error"]["data"]["retryable"], true);
    assert!(refused["error"]["data"]["retryAfterMs"].as_u64().unwrap() > 0);
    assert!(
        other.call("daemon.status", json!({})).await["result"].is_object(),
        "others are let be"
    );
    until(|| test_daemon.tool.calls() >= limit as usize).await;
    test_daemon.tool.gate.add_permits(limit as usize);
    let mut answered = std::collections::BTreeSet::new();
    for _ in 0..limit {
        let answer = busy.answer().await;
        assert_eq!(answer["result"]["ok"], true, "{answer}");
        assert!(answered.insert(answer["id"].as_u64().unwrap()));
    }
    assert!(busy.call("daemon.status", json!({})).await["result"].is_object());
}

#[tokio::test]
async fn run_over_limit_is_refused_until_another_ends() {
    let test_daemon = test_daemon().await;
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    let folder = tempfile::tempdir().unwrap();
    let start = json!({"root": folder.path(), "requestId": "first"});
    let first = client.call("orchestrate.explore.start", start.clone()).await;
    assert!(first["result"]["runId"].is_string(), "{first}");
    let another = json!({"root": folder.path()});
    for _ in 1..RUNS {
        assert!(
            client.call("orchestrate.explore.start", another.clone()).await["result"].is_object()
        );
    }
    let sessions = client.call("session.list", json!({})).await;
    let refused = client.call("orchestrate.explore.start", another.clone()).await;
    assert_eq!(reason(&refused), "overloaded", "{refused}");
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("resources.maxRuns"),
        "{refused}"
    );
    assert!(refused["error"]["data"]["retryAfterMs"].as_u64().unwrap() > 0);
    assert_eq!(
        client.call("session.list", json!({})).await["result"],
        sessions["result"],
        "no session is left"
    );
    // Retrying an accepted start does not start another run.
    assert_eq!(client.call("orchestrate.explore.start", start).await["result"], first["result"]);
    test_daemon.tool.gate.add_permits(1);
    let began = std::time::Instant::now();
    while client.call("orchestrate.explore.start", another.clone()).await["result"].is_null() {
        assert!(began.elapsed() < LONG, "there is never room again");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    test_daemon.tool.gate.add_permits(RUNS);
}

#[test]
fn ordered_calls_are_not_cancellable() {
    // Cancelling an ordered call would start the next one before the previous one has ended.
    for method in methods::table() {
        let survives_disconnect = method.disconnect == Disconnect::Detach && !method.cancellable;
        assert!(method.scope == Scope::Shared || survives_disconnect, "{}", method.name);
    }
}

async fn until(what: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !what() {
        assert!(began.elapsed() < LONG);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn tool_call_is_cancellable_and_survives_disconnect() {
    let test_daemon = test_daemon().await;
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    let session = client.session().await;
    let params = json!({"sessionId": session, "name": "wait", "arguments": {}});
    let id = client.send("tool.call", params.clone()).await;
    until(|| test_daemon.tool.calls() == 1).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}});
    client.connection.handle_message(&cancel.to_string()).await;
    let answer = client.answer().await;
    assert_eq!((&answer["id"], reason(&answer)), (&json!(id), "cancelled"));
    client.send("tool.call", params).await;
    until(|| test_daemon.tool.calls() == 2).await;
    client.connection.close();
    drop(client);
    test_daemon.tool.gate.add_permits(1);
    // The audit has both outcomes: one call was cancelled, the other continued.
    wait_for_outcomes(&test_daemon, &["cancelled", "ok"]).await;
}

/// Waits until the audit has these outcomes of tools, in alphabetical order.
async fn wait_for_outcomes(test_daemon: &TestDaemon, expected: &[&str]) {
    let mut other = Client::open(test_daemon, Rights::ALL).await;
    let began = std::time::Instant::now();
    loop {
        let audit = other.call("audit.query", json!({"tool": "wait"})).await;
        let ends = audit["result"]["data"].as_array().unwrap().iter();
        let mut ends: Vec<String> =
            ends.map(|e| e["outcome"].as_str().unwrap_or("none").to_owned()).collect();
        ends.sort();
        if ends == expected {
            return;
        }
        assert!(began.elapsed() < LONG, "{ends:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn cancel_after_disconnect_is_honoured() {
    let test_daemon = test_daemon().await;
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    let session = client.session().await;
    let id = client
        .send("tool.call", json!({"sessionId": session, "name": "wait", "arguments": {}}))
        .await;
    until(|| test_daemon.tool.calls() == 1).await;
    client.connection.close();
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}});
    client.connection.handle_message(&cancel.to_string()).await;
    wait_for_outcomes(&test_daemon, &["cancelled"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counted_call_is_cancellable() {
    let test_daemon = test_daemon().await;
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    let session = client.session().await;
    let wait = json!({"sessionId": session, "name": "wait", "arguments": {}});
    for _ in 1..test_daemon.api.limits().max_in_flight {
        client.send("tool.call", wait.clone()).await;
    }
    // One more call fills the connection. A client that is refused because of it knows that it
    // runs, and cancels it.
    let last =
        json!({"jsonrpc": "2.0", "id": "last", "method": "tool.call", "params": wait}).to_string();
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "last"}})
        .to_string();
    let mut cancelled = 0;
    // Most rounds may be lost to a probe that fills the connection first, depending on thread
    // scheduling.
    for round in 0..20_000 {
        if cancelled >= 100 {
            break;
        }
        let connection = client.connection.clone();
        let message = last.clone();
        tokio::spawn(async move { connection.handle_message(&message).await });
        for _ in 0..round % 8 {
            tokio::task::yield_now().await;
        }
        let refused = loop {
            client.send("daemon.status", json!({})).await;
            let answer = client.answer().await;
            if reason(&answer) == "overloaded" {
                break answer;
            }
        };
        if refused["id"] == "last" {
            // It was refused because of the probe, or of an earlier round's tool that is still
            // running.
            client.answer().await;
            continue;
        }
        client.connection.handle_message(&cancel).await;
        let answer = client.answer().await;
        assert_eq!(answer["id"], "last");
        cancelled += usize::from(reason(&answer) == "cancelled");
        // Its task frees the slot when it ends.
        loop {
            client.send("daemon.status", json!({})).await;
            if client.answer().await["result"].is_object() {
                break;
            }
        }
    }
    assert!(cancelled > 0);
}

#[tokio::test]
async fn calls_of_one_session_run_in_order() {
    let test_daemon = test_daemon().await;
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    for _ in 0..5 {
        let session = client.session().await;
        let cmd =
            json!({"kind": "Cmd", "payload": {"type": "fs_list_dir", "path": ".", "depth": 1}});
        let mut ids = Vec::new();
        for _ in 0..10 {
            ids.push(
                client.send("orchestrate.command", json!({"sessionId": session, "cmd": cmd})).await,
            );
        }
        let mut seqs = Vec::new();
        for _ in ids {
            let answer = client.answer().await;
            seqs.push((answer["id"].as_u64().unwrap(), answer["result"]["seq"].as_u64().unwrap()));
        }
        seqs.sort_unstable();
        assert!(seqs.is_sorted_by_key(|(_, seq)| *seq), "{seqs:?}");
    }
}

#[tokio::test]
async fn streamed_lines_wait_for_queue_space() {
    const LINES: u32 = 400_000;
    let test_daemon = test_daemon().await;
    let dir = tempfile::tempdir().unwrap();
    // More messages with lines than the queue accepts.
    let row = format!("ledger {}\n", "-".repeat(60));
    std::fs::write(dir.path().join("a.txt"), row.repeat(LINES as usize)).unwrap();
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    client.send("index.addRoot", json!({"path": dir.path()})).await;
    while client.answer().await["params"]["done"] != true {}
    let mut other = Client::open(&test_daemon, Rights::ALL).await;
    let id = client.send("search.grepStream", json!({"requestId": "g", "pattern": "ledger"})).await;
    let full = async {
        while client.out.len() < cairn_api::OUTGOING {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, full).await.unwrap();
    // A search that dropped lines would finish in this time.
    for _ in 0..10 {
        let counted =
            other.call("search.grep", json!({"pattern": "ledger", "countOnly": true})).await;
        assert_eq!(counted["result"]["total"], LINES);
    }
    assert_eq!(client.out.len(), cairn_api::OUTGOING);
    let mut expected = 1;
    let end = loop {
        let message = client.answer().await;
        if message["id"] == id {
            break message;
        }
        for line in message["params"]["files"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|f| f["lines"].as_array().unwrap())
        {
            assert_eq!(*line, expected);
            expected += 1;
        }
    };
    assert_eq!((&end["result"]["total"], expected), (&json!(LINES), LINES + 1));
}
