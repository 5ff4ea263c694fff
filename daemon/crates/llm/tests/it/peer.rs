//! A small server that checks each request against its provider's rules and answers as the test
//! specifies.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    time::{Duration, sleep},
};

use crate::{fixture, rules};

/// A request as received.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// Encoding of a body's end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// In chunked encoding, with the empty last chunk.
    Complete,
    /// In chunked encoding, but the connection breaks before the last chunk.
    Broken,
    /// By closing the connection: the client cannot detect if more was to come.
    Closed,
    /// Without an end: the connection stays open and silent.
    Silent,
}

#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// Pieces of the body, each sent after a pause.
    pub pieces: Vec<(Duration, Vec<u8>)>,
    pub end: End,
    /// True closes the connection without sending anything.
    pub hang_up: bool,
}

impl Reply {
    pub fn new(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        let pieces = vec![(Duration::ZERO, body.into())];
        Self { status, headers, pieces, end: End::Complete, hang_up: false }
    }

    /// Returns a fixture, with the content type that its provider sends.
    pub fn fixture(name: &str) -> Self {
        let kind = match name.rsplit('.').next().unwrap() {
            "sse" => "text/event-stream; charset=utf-8",
            "ndjson" => "application/x-ndjson",
            _ => "application/json",
        };
        Self::new(200, kind, fixture(name))
    }

    pub fn error(status: u16, name: &str) -> Self {
        Self::new(status, "application/json", fixture(name))
    }

    pub fn hang_up() -> Self {
        Self { hang_up: true, ..Self::new(200, "text/plain", "") }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(n, _)| n != name);
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn ending(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// Keeps only the first `bytes` of the body.
    pub fn cut(mut self, bytes: usize, end: End) -> Self {
        let body: Vec<u8> = self.pieces.iter().flat_map(|(_, piece)| piece.clone()).collect();
        self.pieces = vec![(Duration::ZERO, body[..bytes].to_vec())];
        self.ending(end)
    }

    /// Sends the body in pieces of `size` bytes with a pause before each.
    pub fn trickle(mut self, size: usize, pause: Duration) -> Self {
        let body: Vec<u8> = self.pieces.iter().flat_map(|(_, piece)| piece.clone()).collect();
        self.pieces = body.chunks(size).map(|piece| (pause, piece.to_vec())).collect();
        self
    }
}

/// A server on a free port of the loopback interface, which stops when dropped.
pub struct Peer {
    pub url: String,
    seen: Arc<Mutex<Vec<Request>>>,
    broken: Arc<Mutex<Vec<String>>>,
    closed: Arc<tokio::sync::Semaphore>,
    accepted: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Peer {
    /// Starts a server that answers chat requests with `replies` in order, the last one for all
    /// that follow. All other requests are answered by fixtures.
    pub async fn start(provider: &'static str, replies: Vec<Reply>) -> Self {
        Self::serve(provider, replies, true).await
    }

    /// Starts a server as [`Peer::start`] does, but one that accepts requests of any form.
    pub async fn unchecked(provider: &'static str, replies: Vec<Reply>) -> Self {
        Self::serve(provider, replies, false).await
    }

    async fn serve(provider: &'static str, replies: Vec<Reply>, is_checked: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
        let broken: Arc<Mutex<Vec<String>>> = Arc::default();
        let closed = Arc::new(tokio::sync::Semaphore::new(0));
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        let (all, wrong, ends) = (Arc::clone(&seen), Arc::clone(&broken), Arc::clone(&closed));
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let (all, wrong, replies) = (Arc::clone(&all), Arc::clone(&wrong), replies.clone());
                let ends = Arc::clone(&ends);
                connections.spawn(async move {
                    let wrong = is_checked.then_some(&*wrong);
                    serve(socket, provider, &replies, &all, wrong).await;
                    ends.add_permits(1);
                });
            }
        });
        Self { url, seen, broken, closed, accepted, task }
    }

    /// Returns the chat requests so far.
    pub fn chats(&self) -> Vec<Request> {
        self.seen
            .lock()
            .unwrap()
            .iter()
            .filter(|request| request.method == "POST")
            .cloned()
            .collect()
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns the rules that requests violated.
    pub fn broken(&self) -> Vec<String> {
        self.broken.lock().unwrap().clone()
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Waits until `count` connections are closed.
    pub async fn wait_closed(&self, count: u32) {
        let permits =
            tokio::time::timeout(Duration::from_secs(60), self.closed.acquire_many(count)).await;
        permits.expect("the connection stays open").unwrap().forget();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
        let broken = self.broken.lock().unwrap();
        if !std::thread::panicking() {
            assert!(broken.is_empty(), "the provider would refuse: {broken:#?}");
        }
    }
}

async fn serve(
    socket: TcpStream,
    provider: &str,
    replies: &[Reply],
    all: &Mutex<Vec<Request>>,
    wrong: Option<&Mutex<Vec<String>>>,
) {
    socket.set_nodelay(true).unwrap();
    let mut socket = BufReader::new(socket);
    while let Some(request) = read(&mut socket).await {
        let chat = request.method == "POST";
        if let Some(wrong) = wrong.filter(|_| chat)
            && let Err(why) = rules::check(provider, &request)
        {
            wrong.lock().unwrap().push(why);
        }
        let number = {
            let mut all = all.lock().unwrap();
            all.push(request.clone());
            all.iter().filter(|request| request.method == "POST").count()
        };
        let reply = if chat {
            replies[(number - 1).min(replies.len() - 1)].clone()
        } else {
            other(provider, &request)
        };
        if reply.hang_up || !write(&mut socket, &reply).await || reply.end != End::Complete {
            break;
        }
    }
    // Closing before the other side has read everything could discard unread bytes.
    let _ = socket.get_mut().shutdown().await;
}

/// Returns the answer to a secondary request.
fn other(provider: &str, request: &Request) -> Reply {
    let name = match (provider, request.path.as_str()) {
        ("openai", "/v1/models") => "openai/models.json",
        ("openai-compatible", "/v1/models") => "llamacpp/models.json",
        ("openai-compatible", "/props") => "llamacpp/props.json",
        ("anthropic", "/v1/models?limit=1000") => "anthropic/models.json",
        ("gemini", "/v1beta/models?pageSize=1000") => "gemini/models.json",
        ("ollama", "/api/tags") => "ollama/models.json",
        ("ollama", "/api/ps") => "ollama/ps.json",
        _ => return Reply::new(404, "text/plain", "404 page not found"),
    };
    Reply::fixture(name)
}

async fn read(socket: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    let mut lines = Vec::new();
    loop {
        line.clear();
        if socket.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let mut first = lines.first()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let pair = |line: &String| {
        line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()))
    };
    let headers: Vec<(String, String)> = lines.iter().skip(1).filter_map(pair).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.ok()?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    Some(Request { method, path, headers, body })
}

/// Returns true if the client received everything.
async fn write(socket: &mut BufReader<TcpStream>, reply: &Reply) -> bool {
    let chunked = reply.end != End::Closed;
    let mut head = format!("HTTP/1.1 {} X\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(if chunked {
        "transfer-encoding: chunked\r\n\r\n"
    } else {
        "connection: close\r\n\r\n"
    });
    let socket = socket.get_mut();
    if socket.write_all(head.as_bytes()).await.is_err() {
        return false;
    }
    for (pause, piece) in &reply.pieces {
        if !pause.is_zero() {
            sleep(*pause).await;
        }
        if piece.is_empty() {
            continue;
        }
        let mut bytes = Vec::new();
        if chunked {
            bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
        }
        bytes.extend_from_slice(piece);
        if chunked {
            bytes.extend(b"\r\n");
        }
        if socket.write_all(&bytes).await.is_err() {
            return false;
        }
    }
    match reply.end {
        End::Complete => socket.write_all(b"0\r\n\r\n").await.is_ok(),
        // Returns when the client closes the connection.
        End::Silent => socket.read_u8().await.is_ok(),
        End::Broken | End::Closed => true,
    }
}
