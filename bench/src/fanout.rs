//! What one event costs the daemon for each of many subscribers, beside a program that writes the same bytes to as many raw
//! sockets.

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
    meter::{cpu, say},
};

/// Subscribers of one session.
const SUBSCRIBERS: usize = 100;
/// Events that come at once, as from a run that is busy.
const BURST: u64 = 100;
/// Bursts; the next comes when everybody has the last.
const BURSTS: u64 = 200;
/// Events that wait for a subscriber of the raw peer.
const QUEUE: usize = 256;
/// Bytes of an event's text: with what surrounds it, an event of some 300 bytes.
const TEXT: usize = 60;
/// The word that makes this program the raw peer.
pub const PEER: &str = "raw-fan-out";

/// Measures both.
pub async fn run(home: &Path) {
    let daemon = Daemon::start(home);
    // What the events themselves cost, whoever follows.
    let (alone, _) = bursts(&daemon, 0).await;
    let (followed, size) = bursts(&daemon, SUBSCRIBERS).await;
    let deliveries = (SUBSCRIBERS as u64 * BURST * BURSTS) as f64;
    let ours = (followed - alone) * 1e6 / deliveries;
    let raw = raw(size).await * 1e6 / deliveries;
    say(format!(
        "fan-out: {SUBSCRIBERS} subscribers, {size} bytes    {ours:.3} us CPU a delivery; raw TCP, coalesced {raw:.3} us; ratio {:.2}  floor <= 2",
        ours / raw
    ));
}

/// Brings events into a session that so many follow: the daemon's processor seconds, and the bytes of one event on the wire.
async fn bursts(daemon: &Daemon, subscribers: usize) -> (f64, usize) {
    let mut client = daemon.connect().await;
    let session = begin(&mut client).await;
    let mut readers = JoinSet::new();
    let (told, mut heard) = mpsc::channel(SUBSCRIBERS);
    for _ in 0..subscribers {
        let mut reader = daemon.connect().await;
        reader.call("orchestrate.subscribe", json!({"sessionId": session, "after": "live"})).await;
        let told = told.clone();
        readers.spawn(async move {
            let mut size = 0;
            for burst in 1..=BURSTS {
                size = reader.events(burst * BURST).await;
                if told.send(()).await.is_err() {
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
            heard.recv().await.expect("a subscriber");
        }
    }
    let spent = cpu(Some(daemon.pid())) - before;
    let mut size = 0;
    while let Some(ended) = readers.join_next().await {
        size = ended.expect("a subscriber");
    }
    (spent, size)
}

/// A session that goes on by parts.
async fn begin(client: &mut Client) -> SessionId {
    let mut session = client.call("session.create", json!({"title": "fan-out"})).await;
    let id = SessionId::new();
    session["sessionId"] = json!(id);
    session["headSeq"] = 0.into();
    let header =
        json!({"format": "cairn-trace", "version": 1, "session": session, "exportedAt": Timestamp::now()});
    client.call("trace.import", json!({"jsonl": format!("{header}\n")})).await;
    id
}

fn event(session: &SessionId, seq: u64) -> Value {
    let evt = AgentEvt::Progress { op: "bench".into(), percent: 50.0, message: Some("x".repeat(TEXT)) };
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

/// Processor seconds of a program that sends as many events of the same size to as many sockets.
async fn raw(size: usize) -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let bytes = (size as u64 * BURST).to_string();
    let program = std::env::current_exe().expect("this program's path");
    let mut command = Command::new(program);
    command.args([PEER, &port, &bytes]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut peer = command.spawn().expect("the raw peer");
    let mut sockets: Vec<TcpStream> = Vec::new();
    for _ in 0..SUBSCRIBERS {
        sockets.push(listener.accept().await.expect("a socket").0);
    }
    let (told, mut heard) = mpsc::channel(SUBSCRIBERS);
    let burst = size * BURST as usize;
    for mut socket in sockets {
        let told = told.clone();
        tokio::spawn(async move {
            let mut block = vec![0; 16 * 1024];
            let mut left = burst;
            while let Ok(n @ 1..) = socket.read(&mut block).await {
                left -= n;
                if left == 0 {
                    left = burst;
                    let _over = told.send(()).await;
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
            heard.recv().await.expect("a socket");
        }
    }
    let spent = cpu(Some(peer.id())) - before;
    drop(go);
    peer.wait().expect("its end");
    spent
}

/// The raw peer: connects as often as there are subscribers. For every byte of its input it hands a burst of events, each
/// shared, to a bounded queue for each of them; what waits in a queue is written with one call.
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
        let (go, mut gone) = mpsc::channel(1);
        let read = move || {
            for _byte in std::io::stdin().lock().bytes().map_while(Result::ok) {
                go.blocking_send(()).expect("somebody listens");
            }
        };
        let input = tokio::task::spawn_blocking(read);
        while gone.recv().await.is_some() {
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
