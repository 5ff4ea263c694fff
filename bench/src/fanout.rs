//! Cost of one event per subscriber, compared with a program that writes the same bytes to the same
//! number of raw sockets.

use std::{
    io::{Read as _, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use cairn_protocol::{
    envelope::{Body, Envelope},
    event::AgentEvt,
    id::SessionId,
    time::Timestamp,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
};

use crate::{
    daemon::{Client, Daemon},
    meter::{cpu, report},
};

/// Subscribers of one session.
const SUBSCRIBERS: usize = 100;
/// Events per burst, as from a busy run.
const BURST: u64 = 100;
/// Number of bursts; the next one starts when every subscriber has received the last.
const BURSTS: u64 = 200;
/// Queue capacity per subscriber of the raw peer.
const QUEUE: usize = 256;
/// Bytes of an event's text; the complete event has some 300 bytes.
const TEXT: usize = 60;
/// The argument that makes this program the raw peer.
pub const PEER_ARGUMENT: &str = "raw-fan-out";

pub async fn run(home: &Path) {
    let daemon = Daemon::start(home);
    // Cost of the events without subscribers.
    let (alone, _) = bursts(&daemon, 0).await;
    let (followed, size) = bursts(&daemon, SUBSCRIBERS).await;
    let deliveries = (SUBSCRIBERS as u64 * BURST * BURSTS) as f64;
    let ours = (followed - alone) * 1e6 / deliveries;
    let raw = raw(size).await * 1e6 / deliveries;
    report(format!(
        "fan-out: {SUBSCRIBERS} subscribers, {size} bytes    {ours:.3} us CPU a delivery; raw TCP, coalesced {raw:.3} us; ratio {:.2}  floor <= 2",
        ours / raw
    ));
}

/// Runs all bursts with this number of subscribers and returns the daemon's CPU seconds and the
/// bytes of one event on the wire.
async fn bursts(daemon: &Daemon, subscribers: usize) -> (f64, usize) {
    let mut client = daemon.connect().await;
    let session = begin_import(&mut client).await;
    let mut readers = JoinSet::new();
    let (delivered, mut deliveries) = mpsc::channel(SUBSCRIBERS);
    for _ in 0..subscribers {
        let mut reader = daemon.connect().await;
        reader.call("orchestrate.subscribe", json!({"sessionId": session, "after": "live"})).await;
        let delivered = delivered.clone();
        readers.spawn(async move {
            let mut size = 0;
            for burst in 1..=BURSTS {
                size = reader.events(burst * BURST).await;
                if delivered.send(()).await.is_err() {
                    break;
                }
            }
            size
        });
    }
    let before = cpu(Some(daemon.pid()));
    for burst in 0..BURSTS {
        let jsonl: String =
            (1..=BURST).map(|n| format!("{}\n", event(&session, burst * BURST + n))).collect();
        client.call("trace.import", json!({"jsonl": jsonl})).await;
        for _ in 0..subscribers {
            deliveries.recv().await.expect("a subscriber");
        }
    }
    let spent = cpu(Some(daemon.pid())) - before;
    let mut size = 0;
    while let Some(finished) = readers.join_next().await {
        size = finished.expect("a subscriber");
    }
    (spent, size)
}

/// Starts a session import that continues in parts.
async fn begin_import(client: &mut Client) -> SessionId {
    let mut session = client.call("session.create", json!({"title": "fan-out"})).await;
    let id = SessionId::new();
    session["sessionId"] = json!(id);
    session["headSeq"] = 0.into();
    let header = json!({"format": "cairn-trace", "version": 1, "session": session, "exportedAt": Timestamp::now()});
    client.call("trace.import", json!({"jsonl": format!("{header}\n")})).await;
    id
}

fn event(session: &SessionId, seq: u64) -> Value {
    let evt =
        AgentEvt::Progress { op: "bench".into(), percent: 50.0, message: Some("x".repeat(TEXT)) };
    let record = Envelope {
        id: uuid::Uuid::now_v7(),
        session_id: session.clone(),
        seq,
        parent_id: None,
        ts: Timestamp::now(),
        origin: None,
        body: Body::Evt { evt },
    };
    json!(record)
}

/// Returns the CPU seconds of a program that sends the same number of events of the same size to
/// the same number of sockets.
async fn raw(size: usize) -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let bytes = (size as u64 * BURST).to_string();
    let program = std::env::current_exe().expect("this program's path");
    let mut command = Command::new(program);
    command.args([PEER_ARGUMENT, &port, &bytes]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut peer = command.spawn().expect("the raw peer");
    let mut sockets: Vec<TcpStream> = Vec::new();
    for _ in 0..SUBSCRIBERS {
        sockets.push(listener.accept().await.expect("a socket").0);
    }
    let (delivered, mut deliveries) = mpsc::channel(SUBSCRIBERS);
    let burst = size * BURST as usize;
    for mut socket in sockets {
        let delivered = delivered.clone();
        tokio::spawn(async move {
            let mut block = vec![0; 16 * 1024];
            let mut remaining = burst;
            while let Ok(n @ 1..) = socket.read(&mut block).await {
                remaining -= n;
                if remaining == 0 {
                    remaining = burst;
                    let _over = delivered.send(()).await;
                }
            }
        });
    }
    let before = cpu(Some(peer.id()));
    let mut go = peer.stdin.take().expect("its input");
    for _ in 0..BURSTS {
        go.write_all(b"\n").expect("it runs");
        go.flush().expect("it runs");
        for _ in 0..SUBSCRIBERS {
            deliveries.recv().await.expect("a socket");
        }
    }
    let spent = cpu(Some(peer.id())) - before;
    drop(go);
    peer.wait().expect("its end");
    spent
}

/// Runs the raw peer: it opens one connection per subscriber. For every byte of input it puts a
/// burst of shared events into the bounded queue of each; the content of a queue is written with
/// one call.
pub fn peer(port: u16, bytes: usize) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let event: std::sync::Arc<[u8]> = vec![b'x'; bytes / BURST as usize].into();
    runtime.block_on(async {
        let mut queues = Vec::new();
        let mut writers = JoinSet::new();
        for _ in 0..SUBSCRIBERS {
            let mut socket = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
            socket.set_nodelay(true).expect("nodelay");
            let (queue, mut events) = mpsc::channel::<std::sync::Arc<[u8]>>(QUEUE);
            queues.push(queue);
            writers.spawn(async move {
                let mut gathered = Vec::new();
                while let Some(first) = events.recv().await {
                    gathered.clear();
                    gathered.extend_from_slice(&first);
                    while let Ok(next) = events.try_recv() {
                        gathered.extend_from_slice(&next);
                    }
                    socket.write_all(&gathered).await.expect("written");
                }
            });
        }
        let (go, mut done) = mpsc::channel(1);
        let read = move || {
            for _byte in std::io::stdin().lock().bytes().map_while(Result::ok) {
                go.blocking_send(()).expect("there is a listener");
            }
        };
        let input = tokio::task::spawn_blocking(read);
        while done.recv().await.is_some() {
            for _ in 0..BURST {
                for queue in &queues {
                    queue.send(std::sync::Arc::clone(&event)).await.expect("a subscriber");
                }
            }
        }
        input.await.expect("its input");
        drop(queues);
        while writers.join_next().await.is_some() {}
    });
}
