//! Turns: delivery of streamed text to clients, and many concurrent sessions.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use cairn::{Rules, Session, Verdict};
use cairn_engine::model::{Chunk, ChunkStream, LlmError, ModelRequest, Provider};
use cairn_protocol::{
    daemon::Limits,
    model::{FinishReason, ModelInfo},
    session::SessionCreateParams,
    turn::{Input, RunStartParams},
};
use futures_util::{SinkExt as _, StreamExt as _, stream};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, client::IntoClientRequest};

use crate::meter::{memory, quantile, report};

/// Deltas of the streamed answer, at 200 per second.
const PIECES: u64 = 400;
/// Number of watching clients.
const WATCHERS: usize = 10;
/// Sessions with concurrent turns.
const SESSIONS: usize = 100;

/// Returns the nanoseconds of a clock shared by the process.
fn now() -> u64 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    u64::try_from(BEGAN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// A model whose deltas contain the time of their creation.
pub struct Clock {
    pieces: AtomicU64,
    every: Duration,
}

impl Clock {
    /// Creates a model that sends `pieces` deltas, one per interval.
    pub fn new(pieces: u64, every: Duration) -> Self {
        Self { pieces: AtomicU64::new(pieces), every }
    }
}

#[async_trait::async_trait]
impl Provider for Clock {
    fn name(&self) -> &str {
        "clock"
    }
    fn model(&self) -> &str {
        "clock"
    }
    fn external(&self) -> bool {
        false
    }
    fn context_tokens(&self) -> Option<u64> {
        Some(32_000)
    }
    async fn chat(&self, _: ModelRequest) -> Result<ChunkStream, LlmError> {
        let count = self.pieces.load(Ordering::Relaxed);
        let every = self.every;
        let pieces = stream::unfold(0, move |n| async move {
            if n > count {
                return None;
            }
            tokio::time::sleep(every).await;
            let chunk = if n == count {
                Chunk::Finish(FinishReason::Stop)
            } else {
                Chunk::Text(format!("{} ", now()))
            };
            Some((Ok(chunk), n + 1))
        });
        Ok(Box::pin(pieces))
    }
    async fn models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        Ok(vec![])
    }
}

pub async fn run() {
    let model = Arc::new(Clock::new(PIECES, Duration::from_millis(5)));
    let provider: Arc<dyn Provider> = Arc::<Clock>::clone(&model);
    let rules = Rules { default: Verdict::Allow, ..Rules::default() };
    let session = Session::provider(provider)
        .rules(rules)
        .with_default_tools(false)
        .init()
        .await
        .expect("a session");
    deltas(&session).await;
    many(&session, &model).await;
    session.close().await;
}

/// Measures streamed text from the model's delta to ten clients over WebSocket.
async fn deltas(session: &Session) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("nonblocking");
    let address = listener.local_addr().expect("an address").to_string();
    let mut host = cairn_api::HostInfo::in_process("bench", &std::env::temp_dir());
    host.addresses.push(address.clone());
    let api = cairn_api::Api::new(session.engine().clone(), host, Limits::default());
    let guard = cairn_transport::Guard {
        token: "t".into(),
        allowed_origins: vec![],
        allowed_hosts: vec![],
    };
    let stop = tokio_util::sync::CancellationToken::new();
    let listeners = cairn_transport::Listeners { local: vec![listener], lan: vec![] };
    let serving = tokio::spawn(cairn_transport::serve(
        listeners,
        api,
        guard,
        Default::default(),
        stop.clone(),
    ));
    let id = session
        .engine()
        .create_session(SessionCreateParams::default())
        .await
        .expect("a session")
        .session_id;
    let watchers: Vec<_> =
        (0..WATCHERS).map(|_| tokio::spawn(watch(address.clone(), id.to_string()))).collect();
    // All clients follow before the first delta.
    tokio::time::sleep(Duration::from_millis(300)).await;
    session.engine().start_run(turn(&id, "t"), None).await.expect("a turn");
    let mut all = Vec::new();
    for watcher in watchers {
        all.extend(watcher.await.expect("a watcher"));
    }
    let got = all.len();
    report(format!(
        "turns: text to {WATCHERS} clients, 200 pieces/s   p50 {:.2} ms  p99 {:.2} ms, {got} of {} pieces  floor p50 <= 2 ms",
        quantile(&mut all, 0.5),
        quantile(&mut all, 0.99),
        PIECES as usize * WATCHERS
    ));
    stop.cancel();
    let _stopped = serving.await;
}

/// Returns the latency of each delta in milliseconds.
async fn watch(address: String, session: String) -> Vec<f64> {
    let mut request = format!("ws://{address}/rpc").into_client_request().expect("a request");
    request.headers_mut().insert("authorization", "Bearer t".parse().expect("a header"));
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.expect("a connection");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersions": ["1"], "client": {"name": "bench", "version": "0"}}});
    let follow = json!({"jsonrpc": "2.0", "id": 2, "method": "orchestrate.subscribe", "params": {"sessionId": session}});
    socket.send(Message::text(hello.to_string())).await.expect("sent");
    let _hello = socket.next().await;
    socket.send(Message::text(follow.to_string())).await.expect("sent");
    let mut times = Vec::new();
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let value: Value = serde_json::from_str(text.as_str()).expect("json");
        let evt = &value["params"]["evt"];
        match evt["type"].as_str() {
            Some("token_delta") => {
                let created_at = evt["text"]
                    .as_str()
                    .and_then(|t| t.trim().parse::<u64>().ok())
                    .expect("a time");
                times.push(now().saturating_sub(created_at) as f64 / 1e6);
            }
            Some("run_completed") => break,
            _ => {}
        }
    }
    times
}

/// Builds the params that start a turn.
pub fn turn(id: &cairn_protocol::id::SessionId, name: &str) -> RunStartParams {
    RunStartParams {
        session_id: id.clone(),
        turn_id: name.into(),
        input: Input::Text("go".into()),
        context: None,
        policy: None,
        metadata: Default::default(),
    }
}

/// Measures many sessions with one running turn each.
async fn many(session: &Session, model: &Clock) {
    model.pieces.store(200, Ordering::Relaxed);
    let before = memory(None, "RssAnon");
    let engine = session.engine();
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(
            engine
                .create_session(SessionCreateParams::default())
                .await
                .expect("a session")
                .session_id,
        );
    }
    let mut started = 0;
    for id in &sessions {
        started += usize::from(engine.start_run(turn(id, "t"), None).await.is_ok());
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let during = memory(None, "RssAnon") - before;
    let all = memory(None, "VmRSS");
    while engine.running() > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    report(format!(
        "turns: {started} of {SESSIONS} sessions at once         {during:.1} MB more, {all:.0} MB resident in all  floor <= 200 MB"
    ));
}
