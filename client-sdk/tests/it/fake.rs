//! A small daemon with a predefined log, and a proxy that can be cut at any byte.

use std::sync::{Arc, Mutex};

use cairn_client_sdk::{Connector, Target};
use cairn_protocol::id::{InstanceId, SessionId, SubscriptionId};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::tungstenite::{
    Message,
    handshake::server::{ErrorResponse, Request, Response},
};

/// Token that the fake daemon accepts.
pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A fake daemon with one session.
pub struct Fake {
    pub address: String,
    pub instance: InstanceId,
    pub session: SessionId,
    pub log: Arc<Vec<String>>,
    /// All messages received so far.
    pub got: Arc<Mutex<Vec<Value>>>,
}

impl Fake {
    /// Starts a daemon whose session has `records` records.
    pub async fn start(records: u64) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (instance, session) = (InstanceId::new(), SessionId::new());
        // Unusual spacing and numbers: the client must return exactly these bytes.
        let record =
            |seq| format!(r#"{{"sessionId":"{session}","seq":{seq},"n": 1.50,"text":"é\n{seq}"}}"#);
        let log = Arc::new((1..=records).map(record).collect::<Vec<_>>());
        let got = Arc::new(Mutex::new(Vec::new()));
        let fake = Fake { address, instance, session, log, got };
        let (log, got, instance) =
            (Arc::clone(&fake.log), Arc::clone(&fake.got), fake.instance.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&log), Arc::clone(&got), instance.clone()));
            }
        });
        fake
    }

    /// Returns a connector to `address`, which is the daemon's own or a proxy's.
    pub fn connector(&self, address: &str) -> Connector {
        let (address, instance) = (address.to_owned(), Some(self.instance.clone()));
        Connector::fixed(Target {
            address,
            token: TOKEN.into(),
            instance,
            version: None,
            tls: None,
        })
    }

    /// Waits, for a few seconds at most, until a message for `method` has arrived.
    pub async fn wait_for(&self, method: &str) {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while !self.got.lock().unwrap().iter().any(|m| m["method"] == method) {
            assert!(
                std::time::Instant::now() < until,
                "no {method} in {:?}",
                self.got.lock().unwrap()
            );
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

#[expect(clippy::result_large_err, reason = "the type is the library's")]
fn guard(request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    let given = request.headers().get("authorization").and_then(|h| h.to_str().ok());
    if given == Some(&format!("Bearer {TOKEN}")) {
        return Ok(response);
    }
    let mut refused = ErrorResponse::new(None);
    *refused.status_mut() = http::StatusCode::UNAUTHORIZED;
    Err(refused)
}

async fn serve(
    stream: TcpStream,
    log: Arc<Vec<String>>,
    got: Arc<Mutex<Vec<Value>>>,
    instance: InstanceId,
) {
    let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, guard).await else { return };
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let message: Value = serde_json::from_str(&text).unwrap();
        got.lock().unwrap().push(message.clone());
        for answer in answers(&message, &log, &instance) {
            if socket.send(Message::Text(answer.into())).await.is_err() {
                return;
            }
        }
    }
}

fn answers(message: &Value, log: &[String], instance: &InstanceId) -> Vec<String> {
    let id = &message["id"];
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let limits = cairn_protocol::daemon::Limits::default();
            vec![result(json!({
                "protocolVersion": "1",
                "version": "0.0.1",
                "server": {"name": "cairn", "version": "0.0.1", "instanceId": instance},
                "capabilities": {"methods": [], "notifications": []},
                "limits": limits,
            }))]
        }
        "orchestrate.subscribe" => {
            let after = usize::try_from(message["params"]["after"].as_u64().unwrap_or(0)).unwrap();
            let subscription = SubscriptionId::new();
            let receipt =
                json!({"subscriptionId": subscription, "headSeq": log.len(), "oldestSeq": 1});
            let note = |method: &str, params: String| {
                format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
            };
            let mut all = vec![result(receipt)];
            all.extend(log.iter().skip(after).map(|record| {
                note(
                    "orchestrate.event",
                    format!(r#"{{"subscriptionId":"{subscription}",{}"#, &record[1..]),
                )
            }));
            let synced = json!({"subscriptionId": subscription, "seq": log.len()});
            all.push(note("orchestrate.synced", synced.to_string()));
            all
        }
        "echo" => vec![result(message["params"].clone())],
        "nothing" => vec![result(Value::Null)],
        "fail" => {
            let data = json!({"reason": "root_not_found", "retryable": false, "hint": "look"});
            let error = json!({"code": 3001, "message": "no such root", "data": data});
            vec![json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()]
        }
        // "silent" and unknown methods: no answer.
        _ => vec![],
    }
}

/// Starts a proxy to `upstream`. Each connection in turn forwards the given number of bytes to the
/// client and is then cut; connections after the last of `cuts` are not cut.
pub async fn wire(upstream: &str, cuts: Vec<usize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let upstream = upstream.to_owned();
    tokio::spawn(async move {
        let mut cuts = cuts.into_iter();
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = TcpStream::connect(&upstream).await else { return };
            tokio::spawn(forward(client, server, cuts.next().unwrap_or(usize::MAX)));
        }
    });
    address
}

async fn forward(client: TcpStream, server: TcpStream, mut remaining: usize) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = tokio::spawn(async move {
        let _ignored = tokio::io::copy(&mut from_client, &mut to_server).await;
    });
    let mut buffer = [0; 1024];
    while remaining > 0 {
        let Ok(read @ 1..) = from_server.read(&mut buffer).await else { break };
        let length = read.min(remaining);
        remaining -= length;
        if to_client.write_all(&buffer[..length]).await.is_err() {
            break;
        }
    }
    // Both halves are closed: the client sees the end in the middle of a message.
    up.abort();
}
