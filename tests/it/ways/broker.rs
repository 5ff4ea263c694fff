//! A client of the broker that knows only `docs/fleet.md`, and a broker for it.

use std::{
    collections::VecDeque,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Instant,
};

use async_nats::{HeaderMap, Message, Subscriber};
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::sealed::{Daemon, PATIENCE, missing, tree};

/// Name of the daemon on the broker.
const NAME: &str = "under-test";
/// Messages that may be under way.
const WINDOW: u64 = 64;
/// Bytes of a message's text, below the broker's limit.
const PIECE: usize = 512 * 1024;

/// Path of the broker's program; `None` after a notice if it is missing.
pub fn program() -> Option<PathBuf> {
    let python = std::env::var_os("CAIRN_TEST_PYTHON").map(PathBuf::from);
    let program = python.and_then(|python| Some(python.parent()?.join("nats-server")));
    let program = program.filter(|path| path.exists());
    if program.is_none() {
        missing("nats-server");
    }
    program
}

/// A running broker, which is killed on drop.
pub struct Server {
    child: Child,
    pub port: u16,
    _dir: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _finished = self.child.kill();
        let _finished = self.child.wait();
    }
}

impl Server {
    /// Starts a broker without accounts; `None` after a notice if its program is missing.
    pub fn start() -> Option<Self> {
        Self::with_config("")
    }

    /// Starts a broker with further lines of its configuration.
    pub fn with_config(more: &str) -> Option<Self> {
        let program = program()?;
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let store = dir.path().join("store");
        let config = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\" }}\n{more}\n",
            store.display()
        );
        tree(dir.path(), &[("nats.conf", &config)]);
        let child = Command::new(program)
            .arg("-c")
            .arg(dir.path().join("nats.conf"))
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(dir.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let server = Self { child, port, _dir: dir };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if started.elapsed() > PATIENCE / 8 {
                let log = std::fs::read_to_string(server._dir.path().join("log"));
                panic!("the broker does not listen: {log:?}");
            }
            std::thread::yield_now();
        }
        Some(server)
    }

    pub fn address(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Writes the configuration of a daemon that connects to the broker.
    pub fn configure(&self, home: &Path) {
        let config = json!({"fleet": {"server": self.address(), "name": NAME, "mirror": "all"}});
        tree(home, &[("config/config.json", &config.to_string())]);
    }
}

/// A connection over the broker, with the rights of `admin`.
pub struct Client {
    nats: async_nats::Client,
    inbox: String,
    subject: String,
    messages: Subscriber,
    sent: u64,
    peer_count: u64,
    own_count: u64,
    partial: String,
    backlog: VecDeque<Message>,
}

impl Client {
    pub async fn connect(daemon: &Daemon) -> Self {
        let config = std::fs::read_to_string(daemon.home.join("config/config.json")).unwrap();
        let config: Value = serde_json::from_str(&config).unwrap();
        let address = config["fleet"]["server"].as_str().unwrap();
        let nats = async_nats::connect(address).await.unwrap();
        let inbox = nats.new_inbox();
        let messages = nats.subscribe(inbox.clone()).await.unwrap();
        let subject = format!("cairn.{NAME}.rpc.admin.c{}", std::process::id());
        let partial = String::new();
        let backlog = VecDeque::new();
        let (sent, peer_count, own_count) = (0, 0, 0);
        let mut client =
            Self { nats, inbox, subject, messages, sent, peer_count, own_count, partial, backlog };
        client.until_served().await;
        client
    }

    /// Waits until the daemon receives what is published for it.
    async fn until_served(&mut self) {
        let started = Instant::now();
        let probe = format!("cairn.{NAME}.rpc.observe.probe");
        loop {
            let (probe, reply) = (probe.clone(), self.inbox.clone());
            self.nats.publish_with_reply(probe, reply, "{}".into()).await.unwrap();
            let message = self.messages.next().await.unwrap();
            if message.status.is_none() {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "the daemon does not connect to the broker");
            tokio::task::yield_now().await;
        }
    }

    pub async fn send(&mut self, text: &str) {
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(PIECE).collect();
        for (at, piece) in pieces.iter().enumerate() {
            while self.sent - self.peer_count >= WINDOW {
                let message = self.message().await;
                self.backlog.push_back(message);
            }
            self.sent += 1;
            let frame = (at + 1 < pieces.len()).then_some("more");
            self.publish(frame, piece.to_vec()).await;
        }
    }

    async fn publish(&self, frame: Option<&str>, payload: Vec<u8>) {
        let mut headers = HeaderMap::new();
        headers.insert("Cairn-Taken", self.own_count.to_string().as_str());
        if let Some(frame) = frame {
            headers.insert("Cairn-Frame", frame);
        }
        let (to, reply) = (self.subject.clone(), self.inbox.clone());
        let published =
            self.nats.publish_with_reply_and_headers(to, reply, headers, payload.into());
        published.await.unwrap();
    }

    async fn message(&mut self) -> Message {
        let next = tokio::time::timeout(PATIENCE, self.messages.next()).await;
        let message = next.expect("a message in time").expect("a connection");
        let count = message.headers.as_ref().and_then(|h| h.get("Cairn-Taken"));
        if let Some(count) = count.and_then(|count| count.as_str().parse().ok()) {
            self.peer_count = self.peer_count.max(count);
        }
        message
    }

    pub async fn next(&mut self) -> Value {
        loop {
            let message = match self.backlog.pop_front() {
                Some(message) => message,
                None => self.message().await,
            };
            let frame = message.headers.as_ref().and_then(|h| h.get("Cairn-Frame"));
            match frame.map(|frame| frame.as_str()) {
                Some("taken") => continue,
                Some("end") => panic!("the daemon ended the connection"),
                frame => {
                    self.own_count += 1;
                    self.partial.push_str(std::str::from_utf8(&message.payload).unwrap());
                    if self.own_count.is_multiple_of(WINDOW / 2) {
                        self.publish(Some("taken"), Vec::new()).await;
                    }
                    if frame.is_none() {
                        let text = std::mem::take(&mut self.partial);
                        return serde_json::from_str(&text).unwrap();
                    }
                }
            }
        }
    }
}
