//! A daemon of the release build, and a minimal client.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async_with_config,
    tungstenite::{Message, client::IntoClientRequest, protocol::WebSocketConfig},
};

pub struct Daemon {
    child: Child,
    pub home: PathBuf,
    /// A client after the handshake.
    pub client: Option<Client>,
}

/// Returns the path of the binary next to this one.
pub fn binary() -> PathBuf {
    let own = std::env::current_exe().expect("this program's path");
    own.with_file_name("cairn")
}

impl Daemon {
    /// Starts a daemon in `home` and waits until it is ready.
    pub fn start(home: &Path) -> Self {
        Self::start_with(home, &[])
    }

    /// Starts a daemon with additional flags.
    pub fn start_with(home: &Path, flags: &[&str]) -> Self {
        let mut command = Command::new(binary());
        command
            .args(["serve", "--port", "0"])
            .args(flags)
            .env("CAIRN_HOME", home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().expect("target/release/cairn: build it first");
        let daemon = Self { child, home: home.to_owned(), client: None };
        let until = Instant::now() + Duration::from_secs(20);
        while daemon.file().is_none_or(|f| f["pid"] != daemon.pid()) {
            assert!(Instant::now() < until, "the daemon did not start");
            std::thread::sleep(Duration::from_micros(200));
        }
        daemon
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn file(&self) -> Option<Value> {
        serde_json::from_slice(&std::fs::read(self.home.join("daemon.json")).ok()?).ok()
    }

    /// Opens a client and performs the handshake.
    pub async fn connect(&self) -> Client {
        let file = self.file().expect("daemon.json");
        let address = file["addresses"][0].as_str().expect("an address").to_owned();
        let token =
            std::fs::read_to_string(file["tokenPath"].as_str().expect("a path")).expect("a token");
        let mut request = format!("ws://{address}/rpc").into_client_request().expect("a request");
        request
            .headers_mut()
            .insert("authorization", format!("Bearer {token}").parse().expect("a header"));
        let config = WebSocketConfig::default().read_buffer_size(4096);
        let (socket, _) =
            connect_async_with_config(request, Some(config), true).await.expect("a connection");
        let mut client = Client { socket, next: 0 };
        client
            .call(
                "initialize",
                json!({"protocolVersions": ["1"], "client": {"name": "bench", "version": "0"}}),
            )
            .await;
        client
    }

    /// Declares a root and waits until its index is complete.
    pub async fn index(&mut self, folder: &Path) {
        let mut client = self.connect().await;
        let root = folder.canonicalize().expect("a folder");
        client.call("index.addRoot", json!({"path": root})).await;
        loop {
            let status = client.call("index.status", json!({})).await;
            if status["roots"][0]["complete"] == true {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.client = Some(client);
    }

    /// Sends SIGTERM and returns the milliseconds until the exit.
    pub fn stop(mut self) -> f64 {
        let start = Instant::now();
        let sent = Command::new("kill").args(["-TERM", &self.pid().to_string()]).status();
        assert!(sent.is_ok_and(|s| s.success()), "kill");
        self.child.wait().expect("an end");
        start.elapsed().as_secs_f64() * 1000.0
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _already_exited = self.child.kill();
        let _already_exited = self.child.wait();
    }
}

pub struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    next: u64,
}

impl Client {
    /// Sends a message and returns the next one.
    pub async fn round_trip(&mut self, text: String) -> String {
        self.socket.send(Message::text(text)).await.expect("sent");
        self.text().await
    }

    /// Returns the next message, skipping pings and pongs.
    async fn text(&mut self) -> String {
        loop {
            match self.socket.next().await.expect("open").expect("a frame") {
                Message::Text(text) => return text.as_str().to_owned(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Returns the next message. It is complete even if the future is dropped before its end.
    pub async fn message(&mut self) -> Value {
        serde_json::from_str(&self.text().await).expect("json")
    }

    /// Reads events up to the number `last`, the newest one, and returns the bytes of one of them.
    pub async fn events(&mut self, last: u64) -> usize {
        let number = format!("\"seq\":{last},");
        loop {
            let text = self.text().await;
            if text.contains(&number) && text.contains("orchestrate.event") {
                return text.len();
            }
        }
    }

    /// Returns the result of a call, reading but not parsing the messages before it.
    pub async fn streamed(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        let mut text = self.round_trip(request.to_string()).await;
        while text.starts_with(r#"{"jsonrpc":"2.0","method""#) {
            text = self.text().await;
        }
        let mut answer: Value = serde_json::from_str(&text).expect("json");
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Returns the result of a call.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
                .to_string();
        let mut answer: Value =
            serde_json::from_str(&self.round_trip(request).await).expect("json");
        while answer.get("id").is_none() {
            answer = serde_json::from_str(&self.text().await).expect("json");
        }
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].take()
    }
}
