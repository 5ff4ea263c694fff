//! A server of OpenAI's protocol whose model reads a file and then answers.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

/// Largest request that is read, in bytes.
const MAX_REQUEST: usize = 8 * 1024 * 1024;

/// Starts the server, which ends with the runtime, and returns its address.
pub async fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

async fn serve(stream: TcpStream) {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    while let Some((is_chat, body)) = request(&mut reader).await {
        let response = if is_chat { answer(&body) } else { not_found() };
        if writer.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads a request: true with its body if it is one for an answer of the model.
async fn request(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Option<(bool, Value)> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line.to_lowercase());
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.map_or(Some(0), |text| text.trim().parse().ok())?;
    let mut body = vec![0; length.min(MAX_REQUEST)];
    reader.read_exact(&mut body).await.ok()?;
    let is_chat = head.starts_with("post") && head.contains("chat");
    Some((is_chat, serde_json::from_slice(&body).unwrap_or_default()))
}

fn not_found() -> String {
    "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".into()
}

fn answer(body: &Value) -> String {
    let last = body["messages"].as_array().and_then(|all| all.last()).map(|m| m["role"].clone());
    let (message, finish) = if last.is_some_and(|role| role == "tool") {
        (json!({"role": "assistant", "content": "It is read."}), "stop")
    } else {
        let arguments = json!({"path": "part0/unit7.py"}).to_string();
        let call = json!({"index": 0, "id": "call", "type": "function",
            "function": {"name": "read_file", "arguments": arguments}});
        (json!({"role": "assistant", "content": "", "tool_calls": [call]}), "tool_calls")
    };
    let chunk = json!({"id": "x", "object": "chat.completion.chunk", "model": "m",
        "choices": [{"index": 0, "delta": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}});
    let body = format!("data: {chunk}\n\ndata: [DONE]\n\n");
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
