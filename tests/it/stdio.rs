//! `cairn stdio` as started by a program: lines in, lines out, and the conditions of its exit.

use std::{
    io::{BufRead, BufReader, Read as _, Write as _},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde_json::{Value, json};

use crate::sealed::{Daemon, command, hello, tree, wait_for};

/// A running bridge process.
struct Bridge {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

fn request(id: u32, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

impl Bridge {
    fn start(daemon: &Daemon, args: &[&str]) -> Self {
        let mut command = command(&daemon.home);
        command
            .arg("stdio")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn send(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line:?}"))
    }

    /// Returns exit code, remaining lines, and standard error.
    fn finish(mut self) -> (i32, Vec<Value>, String) {
        self.input.take();
        let lines = self
            .output
            .by_ref()
            .lines()
            .map(|l| serde_json::from_str(&l.unwrap()).unwrap())
            .collect();
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code().unwrap(), lines, err)
    }
}

#[test]
fn bridge_ends_with_its_input_or_output() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path(), &[("a.txt", "ledger\n")]);
    // Everything at once, with an unterminated last line: all answers still arrive, and the backlog
    // of the followed session.
    let mut bridge = Bridge::start(&daemon, &[]);
    let first =
        [request(1, "initialize", &hello()), request(2, "session.create", &json!({}))].join("\n");
    bridge.send(format!("{first}\n").as_bytes());
    let all = [bridge.next(), bridge.next()];
    let session = all[1]["result"]["sessionId"].clone();
    assert!(session.is_string(), "{all:?}");
    let last = [
        request(3, "index.addRoot", &json!({"path": dir.path()})),
        request(4, "orchestrate.subscribe", &json!({"sessionId": session})),
    ];
    bridge.send(last.join("\n").as_bytes());
    let (code, lines, err) = bridge.finish();
    assert_eq!((code, &*err), (0, ""));
    for id in [3, 4] {
        assert!(lines.iter().any(|m| m["id"] == id && m["result"].is_object()), "{id}: {lines:?}");
    }
    assert!(lines.iter().any(|m| m["method"] == "orchestrate.synced"), "{lines:?}");
    // A closed output ends the bridge normally.
    let mut bridge = Bridge::start(&daemon, &[]);
    bridge.send(format!("{}\n", request(1, "initialize", &hello())).as_bytes());
    bridge.next();
    let Bridge { mut child, input, output } = bridge;
    drop(output);
    let mut input = input.unwrap();
    // Only the second write may detect it.
    let status = wait_for("its end", || {
        let _closed =
            input.write_all(format!("{}\n", request(2, "daemon.status", &json!({}))).as_bytes());
        child.try_wait().unwrap()
    });
    assert_eq!(status.code(), Some(0));
}

#[test]
fn invalid_line_is_answered_and_reading_continues() {
    let daemon = Daemon::start();
    let mut bridge = Bridge::start(&daemon, &[]);
    bridge.send(format!("{}\n", request(1, "initialize", &hello())).as_bytes());
    let limit = bridge.next()["result"]["limits"]["maxMessageBytes"].as_u64().unwrap();
    bridge.send(b"\xff\xfe\x00\n");
    assert_eq!(bridge.next()["error"]["data"]["reason"], "parse_error");
    bridge.send(b"{\"jsonrpc\"\n");
    assert_eq!(bridge.next()["error"]["data"]["reason"], "parse_error");
    bridge.send(&vec![b'x'; usize::try_from(limit).unwrap() + 1]);
    bridge.send(b"\n\n");
    assert_eq!(bridge.next()["error"]["data"]["reason"], "too_large");
    bridge.send(format!("{}\r\n", request(2, "tool.list", &json!({}))).as_bytes());
    assert_eq!(bridge.next()["id"], 2);
    // An unterminated line at the end counts as a line.
    bridge.send(b"{\"jsonrpc\":\"2.0\",\"id\":3");
    let (code, lines, _) = bridge.finish();
    assert_eq!((code, lines.len()), (0, 1));
    assert_eq!(lines[0]["error"]["data"]["reason"], "parse_error");
}

#[test]
fn daemon_exit_is_reported_and_no_daemon_is_started() {
    let mut daemon = Daemon::start();
    let mut bridge = Bridge::start(&daemon, &["--follow"]);
    bridge.send(format!("{}\n", request(1, "initialize", &hello())).as_bytes());
    bridge.next();
    assert!(daemon.stop().success());
    // The input is still open.
    let status = wait_for("its end", || bridge.child.try_wait().unwrap());
    let (_, lines, err) = bridge.finish();
    assert_eq!((status.code(), lines.len()), (Some(4), 0), "{err}");
    assert!(err.contains("error: the connection ended: the daemon is stopping"), "{err}");
}

#[test]
fn missing_answer_times_out() {
    let daemon = Daemon::start();
    let mut bridge = Bridge::start(&daemon, &["--linger", "0"]);
    bridge.send(format!("{}\n", request(1, "initialize", &hello())).as_bytes());
    bridge.next();
    // Its answer depends on the model's answer, which never arrives.
    bridge.send(
        format!(
            "{}\n",
            request(
                2,
                "tool.call",
                &json!({"name": "run_shell", "arguments": {"command": "sleep 30"}})
            )
        )
        .as_bytes(),
    );
    let (code, _, err) = bridge.finish();
    // Refused at once on a machine without a sandbox, else abandoned.
    assert!(code == 0 || err.contains("1 answers are pending 0 s"), "{code} {err}");
}
