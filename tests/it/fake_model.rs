//! A server for OpenAI's and Ollama's chat protocols that stores each request and answers as the
//! test specifies.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

/// One request: its head in lower case, its body, and its time of arrival.
#[derive(Debug, Clone)]
pub struct Request {
    pub head: String,
    pub body: Value,
    pub at: std::time::Instant,
}

/// Answer of the server to a chat request, by the request's number from 0.
pub type Reply = dyn Fn(usize, &Value) -> Answer + Send + Sync;

pub enum Answer {
    /// Text of an answer.
    Text(&'static str),
    /// Call of a tool with its arguments.
    Call(&'static str, Value),
    /// Status code of an HTTP error.
    Status(u16),
    /// No answer, while the connection stays open.
    Silence,
}

/// A running server, which stops with the process.
pub struct FakeModel {
    pub address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl FakeModel {
    pub fn start(reply: impl Fn(usize, &Value) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (stored, reply): (_, Arc<Reply>) = (Arc::clone(&requests), Arc::new(reply));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (stored, reply) = (Arc::clone(&stored), Arc::clone(&reply));
                std::thread::spawn(move || serve(stream, &stored, &*reply));
            }
        });
        Self { address, requests }
    }

    /// Starts a server that answers "yes" to every request.
    pub fn agreeable() -> Self {
        Self::start(|_, _| Answer::Text("yes"))
    }

    /// Returns the chat requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the latest chat request.
    pub fn latest(&self) -> Request {
        self.requests().pop().expect("a request")
    }
}

fn serve(stream: TcpStream, stored: &Mutex<Vec<Request>>, reply: &Reply) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some((head, body)) = read(&mut reader) {
        if !head.starts_with("post") || !head.contains("chat") {
            let _ignored = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
            continue;
        }
        let number = {
            let mut all = stored.lock().unwrap();
            all.push(Request {
                head: head.clone(),
                body: body.clone(),
                at: std::time::Instant::now(),
            });
            all.len() - 1
        };
        let ollama = head.contains("/api/chat");
        let response = match reply(number, &body) {
            Answer::Silence => {
                std::thread::park();
                return;
            }
            Answer::Status(status) => format!("HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n"),
            Answer::Text(text) => {
                respond(ollama, &json!({"role": "assistant", "content": text}), "stop")
            }
            Answer::Call(name, arguments) => {
                let arguments = if ollama { arguments } else { arguments.to_string().into() };
                let call = json!({"index": 0, "id": format!("call{number}"), "type": "function",
                    "function": {"name": name, "arguments": arguments}});
                let message = json!({"role": "assistant", "content": "", "tool_calls": [call]});
                respond(ollama, &message, "tool_calls")
            }
        };
        if stream.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

fn respond(ollama: bool, message: &Value, finish: &str) -> String {
    let (kind, body) = if ollama {
        let last = json!({"model": "m", "message": message, "done": true, "done_reason": "stop",
            "prompt_eval_count": 100, "eval_count": 20});
        ("application/x-ndjson", format!("{last}\n"))
    } else {
        let chunk = json!({"id": "x", "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}});
        ("text/event-stream", format!("data: {chunk}\n\ndata: [DONE]\n\n"))
    };
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line.to_lowercase());
    }
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((head, serde_json::from_slice(&body).unwrap_or_default()))
}
