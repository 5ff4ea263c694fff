//! One transcript over every transport: WebSocket, HTTP with server-sent events, standard input and
//! output, and subjects of a broker.

pub mod broker;

use std::{path::Path, process::Stdio, sync::Arc};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::mpsc,
};
use tokio_tungstenite::tungstenite::Message;

use crate::{
    http,
    limits::{endless, long_search},
    sealed::{Daemon, PATIENCE, Raw, binary, hello, tree},
};

/// A client with one of the transports.
enum Way {
    Socket(Raw),
    Lines { input: ChildStdin, output: Lines<BufReader<ChildStdout>>, _child: Child },
    Events(Web),
    Broker(broker::Client),
}

/// A connection over several requests.
struct Web {
    daemon: Arc<Daemon>,
    connection: Option<String>,
    sender: mpsc::UnboundedSender<Value>,
    receiver: mpsc::UnboundedReceiver<Value>,
}

impl Way {
    async fn open(name: &str, daemon: &Arc<Daemon>) -> Self {
        match name {
            "socket" => {
                let token = format!("Bearer {}", daemon.token());
                Way::Socket(
                    Raw::connect(&daemon.address(), &[("authorization", &token)]).await.unwrap(),
                )
            }
            "lines" => {
                let mut command = Command::new(binary());
                command
                    .arg("stdio")
                    .env("CAIRN_HOME", &daemon.home)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped());
                let mut child = command.kill_on_drop(true).spawn().unwrap();
                let output = BufReader::new(child.stdout.take().unwrap()).lines();
                Way::Lines { input: child.stdin.take().unwrap(), output, _child: child }
            }
            "broker" => Way::Broker(broker::Client::connect(daemon).await),
            _ => {
                let (sender, receiver) = mpsc::unbounded_channel();
                Way::Events(Web { daemon: Arc::clone(daemon), connection: None, sender, receiver })
            }
        }
    }

    async fn send(&mut self, text: String) {
        match self {
            Way::Socket(raw) => raw.send(Message::text(text)).await,
            Way::Lines { input, .. } => {
                input.write_all(format!("{text}\n").as_bytes()).await.unwrap()
            }
            Way::Events(web) => web.send(text).await,
            Way::Broker(client) => client.send(&text).await,
        }
    }

    async fn next(&mut self) -> Value {
        match self {
            Way::Socket(raw) => raw.json().await,
            Way::Lines { output, .. } => {
                let line = tokio::time::timeout(PATIENCE, output.next_line())
                    .await
                    .expect("a line in time");
                serde_json::from_str(&line.unwrap().expect("a line")).unwrap()
            }
            Way::Broker(client) => client.next().await,
            Way::Events(web) => tokio::time::timeout(PATIENCE, web.receiver.recv())
                .await
                .expect("a message in time")
                .unwrap(),
        }
    }

    /// Sends a message over the size limit, and returns the reason of its refusal.
    async fn too_much(&mut self) -> String {
        let text = "x".repeat(5 * 1024 * 1024);
        if let Way::Socket(raw) = self {
            raw.send_in_vain(Message::text(text)).await;
            return if raw.closed().await == Some(1009) {
                "too_large".into()
            } else {
                "another code".into()
            };
        }
        self.send(text).await;
        self.next().await["error"]["data"]["reason"].as_str().unwrap().to_owned()
    }
}

impl Web {
    async fn send(&mut self, text: String) {
        let begins = self.connection.is_none();
        let (daemon, sender, named) =
            (Arc::clone(&self.daemon), self.sender.clone(), self.connection.clone());
        let post = async move {
            let headers: Vec<(&str, &str)> =
                named.iter().map(|id| ("Cairn-Connection", id.as_str())).collect();
            let mut answer = http::send(&daemon, "POST /rpc", &headers, text.as_bytes()).await;
            if answer.status != 202 {
                // The test may be finished.
                let _ignored = sender.send(answer.json().await);
            }
            answer.headers.get("cairn-connection").cloned()
        };
        if !begins {
            tokio::spawn(post);
            return;
        }
        self.connection = post.await;
        if let Some(id) = &self.connection {
            let headers = [("Cairn-Connection", id.as_str())];
            let mut events = http::send(&self.daemon, "GET /events", &headers, b"").await;
            assert_eq!(events.status, 200);
            let sender = self.sender.clone();
            tokio::spawn(async move {
                while let Some((_, message)) = events.event().await {
                    let _ignored = sender.send(message);
                }
            });
        }
    }
}

/// A client that sorts incoming messages.
struct Client {
    way: Way,
    backlog: Vec<Value>,
    next: u32,
}

impl Client {
    async fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.backlog.iter().position(&is) {
            return self.backlog.remove(at);
        }
        loop {
            let message = self.way.next().await;
            assert!(self.backlog.len() < 10_000, "nothing of all this: {message}");
            if is(&message) {
                return message;
            }
            self.backlog.push(message);
        }
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.way
            .send(
                json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
            )
            .await;
        self.until(|m| m["id"] == id).await
    }

    async fn cancel(&mut self, id: &str) {
        let note = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}});
        self.way.send(note.to_string()).await;
    }

    /// Follows a session after a record up to `seq`.
    async fn follow(&mut self, session: &Value, after: Value, seq: u64) -> Vec<Value> {
        let params = json!({"sessionId": session, "after": after});
        let given =
            self.call("orchestrate.subscribe", params).await["result"]["subscriptionId"].clone();
        let mut records = Vec::new();
        while records.last().is_none_or(|r: &Value| r["seq"].as_u64() < Some(seq)) {
            let of = |m: &Value| {
                m["method"] == "orchestrate.event" && m["params"]["subscriptionId"] == given
            };
            records.push(self.until(of).await["params"].clone());
        }
        let unsubscribed =
            self.call("orchestrate.unsubscribe", json!({"subscriptionId": given})).await;
        assert_eq!(unsubscribed["result"], json!({}));
        self.backlog.retain(|m| m["params"]["subscriptionId"] != given);
        records
    }
}

/// Removes values that differ between runs.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let of = |(key, value): (&String, &Value)| {
                let figure = key.ends_with("Millis")
                    || key.ends_with("Ms")
                    || key == "tookUs"
                    || key == "millis"
                    || key == "ts";
                (key.clone(), if figure { Value::Null } else { plain(value) })
            };
            fields.iter().map(of).collect()
        }
        Value::Array(all) => all.iter().map(plain).collect(),
        Value::String(text) => {
            let prefixed =
                ["ses_", "run_", "sub_", "ins_", "apr_"].iter().find(|p| text.starts_with(**p));
            let uuid = text.len() == 36 && text.matches('-').count() == 4;
            let time = text.len() == 24 && text.ends_with('Z');
            match prefixed {
                Some(prefix) => json!(prefix),
                None if uuid || time => json!("<varies>"),
                None => value.clone(),
            }
        }
        other => other.clone(),
    }
}

/// Messages with a single answer, before and after the handshake.
fn table() -> Vec<(&'static str, String)> {
    let one = |id: Value, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let many: Vec<Value> = (0..65).map(|id| one(json!(id), "tool.list", json!({}))).collect();
    let mixed = json!([
        one(json!("a"), "permission.list", json!({})), {"jsonrpc": "2.0", "method": "x"}, 7,
        one(json!("b"), "no.such", json!({})), one(json!("c"), "initialize", hello()),
    ]);
    vec![
        ("half", "{\"jsonrpc\"".into()),
        ("no method", json!({"jsonrpc": "2.0", "id": 7}).to_string()),
        ("no version", json!({"id": 7, "method": "tool.list"}).to_string()),
        ("empty batch", "[]".into()),
        ("too many", json!(many).to_string()),
        ("a batch", mixed.to_string()),
        ("unknown", one(json!(null), "no.such", json!({})).to_string()),
        ("by position", one(json!("p"), "search.lexical", json!(["q"])).to_string()),
        (
            "a wrong field",
            one(json!("f"), "search.lexical", json!({"query": "x", "k": "many"})).to_string(),
        ),
        (
            "a large one",
            one(json!("l"), "index.status", json!({"root": "x".repeat(1024 * 1024)})).to_string(),
        ),
        (
            "after the head",
            one(
                json!("h"),
                "orchestrate.subscribe",
                json!({"sessionId": format!("ses_{}", "0".repeat(32))}),
            )
            .to_string(),
        ),
    ]
}

async fn transcript(
    way: Way,
    folder: &Path,
    endless: &Path,
    past: &[Value],
) -> Vec<(String, Value)> {
    let mut client = Client { way, backlog: Vec::new(), next: 0 };
    let mut answers = Vec::new();
    let answer = |m: &Value| m.get("method").is_none();
    for (name, text) in table() {
        client.way.send(text).await;
        answers.push((format!("before: {name}"), client.until(answer).await));
    }
    let old = json!({"protocolVersions": ["99"], "client": {"name": "x", "version": "1"}});
    answers.push(("incompatible".into(), client.call("initialize", old).await));
    answers.push(("hello".into(), client.call("initialize", hello()).await));
    answers.push(("hello again".into(), client.call("initialize", hello()).await));
    for (name, text) in table() {
        client.way.send(text).await;
        answers.push((format!("after: {name}"), client.until(answer).await));
    }
    let grep = json!({"pattern": "ledger", "filters": {"roots": [folder]}, "requestId": "g"});
    let answer = client.call("search.grep", grep).await;
    let partial =
        client.until(|m| m["method"] == "search.partial" && m["params"]["done"] == true).await;
    answers.extend([("partial".into(), partial), ("found".into(), answer)]);

    let receipt =
        client.call("orchestrate.explore.start", json!({"root": folder})).await["result"].clone();
    let session = &receipt["sessionId"];
    let mut head = 1;
    loop {
        let status = client.call("orchestrate.explore.status", json!({"sessionId": session})).await;
        head = status["result"]["headSeq"].as_u64().unwrap_or(head);
        if status["result"]["state"] != "running" {
            answers.push(("state".into(), status["result"]["state"].clone()));
            break;
        }
    }
    let records = client.follow(session, json!(0), head).await;
    assert_eq!(
        records.iter().map(|r| r["seq"].as_u64().unwrap()).collect::<Vec<_>>(),
        (1..=head).collect::<Vec<_>>()
    );
    // The same history for all transports: concurrent operations of an explore have no fixed order.
    let (past, end) = (&past[0]["sessionId"], past.len() as u64);
    answers.push(("followed".into(), json!(client.follow(past, json!(0), end).await)));
    answers.push(("taken up".into(), json!(client.follow(past, json!(3), end).await)));
    let beyond =
        client.call("orchestrate.subscribe", json!({"sessionId": past, "after": end + 7})).await;
    answers.push(("beyond".into(), beyond["error"]["data"]["reason"].clone()));

    answers.extend(at_work(&mut client, endless).await);
    answers.push(("too much".into(), json!(client.way.too_much().await)));
    answers
}

/// Long calls: cancelled ones, and more than the limit allows.
async fn at_work(client: &mut Client, endless: &Path) -> Vec<(String, Value)> {
    let mut search = long_search();
    search["filters"] = json!({"roots": [endless]});
    let ids: Vec<String> = (0..64).map(|n| format!("slow{n}")).collect();
    for id in &ids {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "search.grep", "params": search});
        client.way.send(call.to_string()).await;
    }
    // Requests over HTTP arrive in any order: the last one may still be in transit, or have met the
    // request below.
    let refused = loop {
        let slow = |m: &Value| m["id"].as_str().is_some_and(|id| id.starts_with("slow"));
        while let Some(at) = client.backlog.iter().position(slow) {
            let met = client.backlog.remove(at);
            assert_eq!(met["error"]["data"]["reason"], "overloaded", "{met}");
            let call = json!({"jsonrpc": "2.0", "id": met["id"], "method": "search.grep", "params": search});
            client.way.send(call.to_string()).await;
        }
        let answer = client.call("tool.list", json!({})).await;
        if answer.get("error").is_some() {
            break answer;
        }
    };
    for id in &ids {
        client.cancel(id).await;
    }
    let mut cancelled = Vec::new();
    for id in &ids {
        cancelled.push(client.until(|m| m["id"] == id.as_str()).await["error"]["code"].clone());
    }
    let fine = client.call("tool.list", json!({})).await["result"].is_object();
    vec![
        (
            "refused".into(),
            json!({"code": refused["error"]["code"], "data": refused["error"]["data"]}),
        ),
        ("cancelled".into(), json!(cancelled)),
        ("and then".into(), json!(fine)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_transport_gives_the_same_answers() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, large) = (dir.path().join("small"), dir.path().join("large"));
    tree(
        &folder,
        &[("a.py", "def open_ledger(path):\n    return path\n"), ("b/b.txt", "a ledger\n")],
    );
    std::fs::create_dir(&large).unwrap();
    endless(&large);
    let home = dir.path().join("home");
    let broker = broker::Server::start();
    if let Some(broker) = &broker {
        broker.configure(&home);
    }
    let daemon = Arc::new(Daemon::start_in(&home, &[]));
    let mut raw = daemon.client().await;
    for root in [&folder, &large] {
        raw.ok("index.addRoot", json!({"path": root})).await;
    }
    crate::contents::complete(&mut raw).await;
    let past = raw.explore(&folder, &[]).await;
    let mut first: Option<Vec<(String, Value)>> = None;
    let with_broker = broker.is_some().then_some("broker");
    for name in ["socket", "lines", "events"].into_iter().chain(with_broker) {
        let way = Way::open(name, &daemon).await;
        let answers = tokio::time::timeout(PATIENCE, transcript(way, &folder, &large, &past)).await;
        let answers = answers.unwrap_or_else(|_| panic!("over {name} there is no end"));
        crate::sealed::note(&format!("over {name}: {} answers", answers.len()));
        let answers: Vec<_> = answers.into_iter().map(|(n, v)| (n, plain(&v))).collect();
        let expected = first.get_or_insert_with(|| answers.clone());
        assert_eq!(answers.len(), expected.len());
        for (got, want) in answers.iter().zip(expected.iter()) {
            assert_eq!(got, want, "over {name}");
        }
    }
    let baseline = first.unwrap();
    // The transcript itself has the expected content.
    let of = |name: &str| baseline.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone()).unwrap();
    assert_eq!(of("before: unknown")["error"]["data"]["reason"], "not_initialized");
    assert_eq!(of("after: unknown")["error"]["code"], -32601);
    assert_eq!(of("after: a batch").as_array().unwrap().len(), 4);
    assert_eq!(of("followed").as_array().unwrap().len(), past.len());
    assert_eq!(of("taken up").as_array().unwrap()[0]["seq"], 4);
    assert_eq!(of("beyond"), "after_beyond_head");
    assert_eq!((of("state"), of("too much")), (json!("completed"), json!("too_large")));
    assert!(of("cancelled").as_array().unwrap().iter().all(|code| *code == -32800));
    assert_eq!(of("refused")["data"]["reason"], "overloaded");
}
