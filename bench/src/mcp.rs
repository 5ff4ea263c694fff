//! A tool call over MCP on standard input and output, alternating with the same call over the
//! WebSocket.

use std::{path::Path, process::Stdio, time::Instant};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::{
    daemon::{Client, Daemon, binary},
    meter::{quantile, report},
};

/// Calls of each kind.
const CALLS: usize = 400;

/// `cairn mcp` as an agent starts it.
struct Agent {
    _child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    next: u64,
}

impl Agent {
    async fn start(home: &Path, root: &Path) -> Self {
        let mut child = Command::new(binary())
            .arg("mcp")
            .arg("--root")
            .arg(root)
            .env("CAIRN_HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("target/release/cairn");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut agent = Self { _child: child, input, output, next: 0 };
        let about = json!({"name": "bench", "version": "0"});
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about});
        agent.call("initialize", &hello).await;
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        agent
    }

    async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.expect("sent");
    }

    async fn call(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        loop {
            let line = self.output.next_line().await.expect("read").expect("an answer");
            let answer: Value = serde_json::from_str(&line).expect("json");
            if answer["id"] == id {
                assert!(
                    answer["result"]["isError"] != true && answer.get("error").is_none(),
                    "{answer}"
                );
                return answer;
            }
        }
    }
}

/// Measures a tool of the harness and a search.
pub async fn run(folder: &Path, home: &Path) {
    let mut daemon = Daemon::start(home);
    daemon.index(folder).await;
    let root = folder.canonicalize().expect("a folder");
    let mut agent = Agent::start(&daemon.home, &root).await;
    let mut client = daemon.connect().await;
    let session = client.call("session.create", json!({"root": root})).await["sessionId"].clone();
    let listed = json!({"pattern": "*", "max_results": 20});
    let direct = json!({"sessionId": session, "name": "list_files", "arguments": listed});
    let through = json!({"name": "list_files", "arguments": listed});
    compare(
        "list_files through the gate",
        (&mut client, "tool.call", &direct),
        (&mut agent, &through),
    )
    .await;
    let query = "where is the configuration read";
    let direct = json!({"query": query, "k": 11, "includeText": true});
    let through = json!({"name": "search", "arguments": {"query": query, "k": 10}});
    compare("search, 10 places", (&mut client, "search.hybrid", &direct), (&mut agent, &through))
        .await;
}

async fn compare(name: &str, direct: (&mut Client, &str, &Value), through: (&mut Agent, &Value)) {
    let (client, method, params) = direct;
    let (agent, call) = through;
    let mut plain = Vec::with_capacity(CALLS);
    let mut mcp = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let start = Instant::now();
        client.call(method, params.clone()).await;
        plain.push(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        agent.call("tools/call", call).await;
        mcp.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let a = quantile(&mut mcp, 0.5);
    let b = quantile(&mut plain, 0.5);
    let c = quantile(&mut mcp, 0.95);
    let d = quantile(&mut plain, 0.95);
    report(format!(
        "mcp: {name:<30} p50 {a:.3} ms  p95 {c:.3} ms over stdio; WebSocket p50 {b:.3} ms  p95 {d:.3} ms; ratio {:.2}  floor <= 1.5",
        a / b
    ));
}
