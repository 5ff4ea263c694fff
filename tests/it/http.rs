//! A minimal HTTP client that can read a stream of events.

use std::collections::HashMap;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

use crate::sealed::{Daemon, PATIENCE};

/// Answer of the server.
pub struct Answer {
    pub status: u16,
    pub headers: HashMap<String, String>,
    socket: BufReader<TcpStream>,
    /// Remaining bytes of a body with a content length.
    remaining: usize,
}

/// Sends a request with the daemon's token, unless `headers` have one.
pub async fn send(daemon: &Daemon, line: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut socket = TcpStream::connect(daemon.address()).await.unwrap();
    let mut head =
        format!("{line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
        head.push_str(&format!("Authorization: Bearer {}\r\n", daemon.token()));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    // A request that is refused early is not read to its end.
    let _cut = socket.write_all(body).await;
    Answer::read(socket).await
}

impl Answer {
    async fn read(socket: TcpStream) -> Self {
        let mut socket = BufReader::new(socket);
        let mut line = String::new();
        tokio::time::timeout(PATIENCE, socket.read_line(&mut line))
            .await
            .expect("a status in time")
            .unwrap();
        let status = line
            .split(' ')
            .nth(1)
            .unwrap_or_else(|| panic!("no status: {line:?}"))
            .parse()
            .unwrap();
        let mut headers = HashMap::new();
        loop {
            line.clear();
            socket.read_line(&mut line).await.unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.insert(name.to_lowercase(), value.to_owned());
        }
        let remaining = headers.get("content-length").map_or(0, |n| n.parse().unwrap());
        Self { status, headers, socket, remaining }
    }

    /// Reads a complete body with a content length.
    pub async fn text(&mut self) -> String {
        let mut body = vec![0; std::mem::take(&mut self.remaining)];
        self.socket.read_exact(&mut body).await.unwrap();
        String::from_utf8(body).unwrap()
    }

    pub async fn json(&mut self) -> Value {
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("not json: {text}"))
    }

    /// Returns id and data of the next event in a chunked body; `None` at its end. Comments are
    /// skipped.
    pub async fn event(&mut self) -> Option<(Option<String>, Value)> {
        let (mut id, mut data) = (None, String::new());
        loop {
            let line =
                tokio::time::timeout(PATIENCE, self.line()).await.expect("an event in time")?;
            match line.split_once(": ") {
                Some(("id", value)) => id = Some(value.to_owned()),
                Some(("data", value)) => data.push_str(value),
                _ if line.is_empty() && !data.is_empty() => {
                    return Some((id, serde_json::from_str(&data).unwrap()));
                }
                _ => {}
            }
        }
    }

    /// Reads a line of a chunked body, in which chunks end at line ends.
    async fn line(&mut self) -> Option<String> {
        if self.remaining == 0 {
            let mut size = String::new();
            self.socket.read_line(&mut size).await.ok()?;
            // An empty line follows each chunk.
            if size.trim_end().is_empty() {
                size.clear();
                self.socket.read_line(&mut size).await.ok()?;
            }
            self.remaining = usize::from_str_radix(size.trim_end(), 16)
                .ok()
                .filter(|remaining| *remaining > 0)?;
        }
        let mut line = Vec::new();
        self.remaining -= (&mut self.socket)
            .take(self.remaining as u64)
            .read_until(b'\n', &mut line)
            .await
            .ok()?;
        Some(String::from_utf8(line).unwrap().trim_end_matches('\n').to_owned())
    }
}
