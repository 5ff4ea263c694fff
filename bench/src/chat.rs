//! A chat in a terminal: from a token's arrival to the screen, and the time of a turn without its
//! model.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use serde_json::json;

use crate::{
    daemon::{Daemon, binary},
    meter::latencies,
};

/// Measured turns, after one that is not.
const TURNS: usize = 40;
/// Time for which an answer stays unfinished after its first token.
const WRITING: Duration = Duration::from_millis(60);
/// Longest wait for any output.
const PATIENCE: Duration = Duration::from_secs(20);
/// Text that the line above the prompt has, and nothing else.
const PROMPT: &str = " · ask";

/// Events of the model server.
enum Event {
    /// A request has arrived completely.
    Requested(Instant),
    /// The first token was written.
    Token(Instant),
    /// The end of the answer was written.
    Finished(Instant),
}

/// Measures turns of an interactive chat whose model is a server in this process.
pub fn run(scratch: &Path) {
    let folder = scratch.join("repo");
    let home = scratch.join("home");
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    std::fs::create_dir_all(home.join("config")).expect("a folder");
    std::fs::write(folder.join("notes.txt"), "old\n").expect("a file");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, events) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || serve(stream, &sender));
        }
    });
    let config = json!({
        "llm": {"provider": "openai-compatible", "endpoint": address, "model": "m"},
        "chat": {"theme": "dark", "notify": "off"},
    });
    std::fs::write(home.join("config/config.json"), config.to_string()).expect("a file");
    let daemon = Daemon::start(&home);
    let mut terminal = Terminal::start(&home, &folder);
    terminal.wait(PROMPT);
    let mut tokens = Vec::new();
    let mut overheads = Vec::new();
    for turn in 0..=TURNS {
        let sent = Instant::now();
        terminal.write(format!("question {turn}\r").as_bytes());
        let Ok(Event::Requested(requested)) = events.recv_timeout(PATIENCE) else {
            panic!("no request came");
        };
        let Ok(Event::Token(written)) = events.recv_timeout(PATIENCE) else {
            panic!("no token was written");
        };
        let seen = terminal.wait("word");
        let Ok(Event::Finished(finished)) = events.recv_timeout(PATIENCE) else {
            panic!("no answer was finished");
        };
        let ready = terminal.wait(PROMPT);
        // The first turn fills caches.
        if turn > 0 {
            tokens.push(millis(seen - written));
            overheads.push(millis(requested - sent) + millis(ready - finished));
        }
    }
    terminal.write(b"\x04");
    daemon.stop();
    latencies("chat: token from its arrival to the screen", tokens, "<= 5 ms");
    latencies("chat: a turn without its model", overheads, "<= 20 ms");
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Answers requests: a token at once, the end later.
fn serve(stream: TcpStream, events: &mpsc::Sender<Event>) {
    let _unsupported = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let mut stream = stream;
    while let Some(is_chat) = read_request(&mut reader) {
        if !is_chat {
            let _closed = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
            continue;
        }
        let _receiver_gone = events.send(Event::Requested(Instant::now()));
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let chunk = |delta: serde_json::Value, finish: Option<&str>| {
            let data = json!({"id": "x", "object": "chat.completion.chunk", "model": "m",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}});
            format!("data: {data}\n\n")
        };
        let first = head.to_owned() + &chunk(json!({"role": "assistant", "content": "word"}), None);
        let written = Instant::now();
        if stream.write_all(first.as_bytes()).is_err() {
            return;
        }
        let _receiver_gone = events.send(Event::Token(written));
        std::thread::sleep(WRITING);
        let last = chunk(json!({}), Some("stop")) + "data: [DONE]\n\n";
        let finished = Instant::now();
        let _closed = stream.write_all(last.as_bytes());
        let _receiver_gone = events.send(Event::Finished(finished));
        return;
    }
}

/// Reads a request; true if it is one for an answer.
fn read_request(reader: &mut BufReader<TcpStream>) -> Option<bool> {
    let mut length = 0;
    let mut is_chat = false;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_lowercase();
        if line.is_empty() {
            break;
        }
        is_chat |= line.starts_with("post") && line.contains("chat");
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(is_chat)
}

/// A chat on a pseudo-terminal.
struct Terminal {
    writer: File,
    output: mpsc::Receiver<(Instant, Vec<u8>)>,
    text: Vec<u8>,
}

impl Terminal {
    fn start(home: &Path, folder: &Path) -> Self {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&main).expect("a pseudo-terminal");
        unlockpt(&main).expect("a pseudo-terminal");
        let size = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&main, size).expect("a pseudo-terminal");
        let name = ptsname(&main, Vec::new()).expect("a name");
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let end = || Stdio::from(File::options().read(true).write(true).open(path).expect("a tty"));
        let mut command = Command::new(binary());
        command.args(["chat", "--no-local-session"]).current_dir(folder);
        command.env("CAIRN_HOME", home).env("HOME", home).env("TERM", "xterm-256color");
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn();
        let mut child = child.expect("the chat starts");
        // It ends with its terminal.
        std::thread::spawn(move || drop(child.wait()));
        let (sender, output) = mpsc::channel();
        let main = File::from(main);
        let writer = main.try_clone().expect("a descriptor");
        let mut answers = main.try_clone().expect("a descriptor");
        let mut reader = main;
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while let Ok(read) = reader.read(&mut buffer) {
                let at = Instant::now();
                let bytes = buffer.get(..read).unwrap_or_default().to_vec();
                // A terminal answers where its cursor is.
                if bytes.windows(4).any(|window| window == b"\x1b[6n") {
                    let _closed = answers.write_all(b"\x1b[1;1R");
                }
                if read == 0 || sender.send((at, bytes)).is_err() {
                    return;
                }
            }
        });
        Self { writer, output, text: Vec::new() }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).expect("the terminal is open");
    }

    /// Waits for a text in new output and returns the time of its arrival.
    fn wait(&mut self, expected: &str) -> Instant {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok((at, bytes)) = self.output.recv_timeout(left) else {
                panic!("'{expected}' did not come: {}", String::from_utf8_lossy(&self.text));
            };
            self.text.extend(bytes);
            let found =
                self.text.windows(expected.len()).position(|window| window == expected.as_bytes());
            if let Some(found) = found {
                self.text.drain(..found + expected.len());
                return at;
            }
        }
    }
}
