//! Each function takes any bytes, and panics if the program under test breaks an invariant.

use std::{cell::OnceCell, time::Duration};

use cairn_api::{Api, Connection, HostInfo, Outgoing, Rights};
use cairn_command::{CommandLine, Pattern};
use cairn_engine::Engine;
use cairn_protocol::daemon::Limits;
use cairn_test_support::engine::{deps, index_options, options};
use cairn_trace::Trace;
use cairn_workspace::Roots;
use serde_json::{Value, json, value::RawValue};
use tokio::{runtime::Runtime, sync::mpsc};

/// Body of a target, which takes one input.
pub type Body = fn(&[u8]);

/// Name and body of each target.
pub const TARGETS: [(&str, Body); 5] = [
    ("command_line", command_line),
    ("frame", frame),
    ("parameters", parameters),
    ("import", import),
    ("manifest", manifest),
];
/// Longest wait for the answers to one message.
const ANSWERED: Duration = Duration::from_secs(20);
/// Most bytes that a command or path has beside those of its manifest.
const MAX_ADDED: usize = 200;
/// Most parts of a command line.
const MAX_PARTS: usize = 256;

/// Reads a command line, and matches it with the patterns that are proposed for it.
pub fn command_line(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let line = CommandLine::parse(text);
    assert!(!line.parts.is_empty() || line.is_parsed(), "an unread line has a part");
    assert!(line.parts.len() <= MAX_PARTS, "{} parts", line.parts.len());
    for pattern in Pattern::of(&line) {
        // A text allows itself alone, whether it can be parsed or not.
        let is_text = matches!(pattern, Pattern::Text(_));
        for part in &line.parts {
            let is_allowed = pattern.allows(&line, part);
            assert!(
                !is_allowed || is_text || line.is_parsed(),
                "a line that is not parsed was allowed"
            );
        }
    }
    if let Ok(pattern) = Pattern::read(text) {
        let _denied = line.parts.iter().filter(|part| pattern.denies(&line, part)).count();
    }
}

/// Parses the bytes as the manifest that the first byte names.
pub fn manifest(data: &[u8]) {
    let Some((name, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let name = cairn_agent::MANIFESTS[usize::from(*name) % cairn_agent::MANIFESTS.len()];
    let longest = cairn_agent::longest_manifest_part(name, text).unwrap_or(0);
    assert!(longest <= text.len() + MAX_ADDED, "{name}: {longest} bytes of {}", text.len());
}

/// A daemon's API on an engine that reaches no folder and no model, with a connected client.
struct Target {
    runtime: Runtime,
    connection: Connection,
    messages: mpsc::Receiver<Outgoing>,
    methods: Vec<&'static str>,
    trace: Trace,
    _dir: tempfile::TempDir,
}

thread_local! {
    static TARGET: OnceCell<std::cell::RefCell<Target>> = const { OnceCell::new() };
}

impl Target {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (connection, messages, trace) = runtime.block_on(async {
            let mut deps = deps(dir.path(), index_options());
            // No input may make it read or write outside of its own folder.
            deps.roots = std::sync::Arc::new(Roots::new(vec!["/".into()]));
            let trace = deps.trace.clone();
            let engine = Engine::open(deps, options(dir.path())).await.unwrap();
            let host = HostInfo::in_process("0", dir.path());
            let api = Api::new(engine, host, Limits::default());
            let (connection, messages) = Connection::open(&api, Rights::ALL).unwrap();
            (connection, messages, trace)
        });
        let methods = cairn_api::methods::table().into_iter().map(|method| method.name).collect();
        let mut target = Self { runtime, connection, messages, methods, trace, _dir: dir };
        let client = json!({"name": "fuzz", "version": "0"});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {"protocolVersions": ["1"], "client": client}});
        assert_eq!(target.send(&hello.to_string()), 1);
        target
    }

    /// Sends a message and a request after it; returns the number of answers to the message.
    fn send(&mut self, text: &str) -> usize {
        const MARK: &str = "the message after";
        let mark = json!({"jsonrpc": "2.0", "id": MARK, "method": "daemon.nothing"}).to_string();
        let (connection, messages) = (&self.connection, &mut self.messages);
        let answered = async {
            let sent = async {
                connection.handle_message(text).await;
                connection.handle_message(&mark).await;
            };
            let received = async {
                let mut answers = 0;
                loop {
                    let message = messages.recv().await.expect("the connection is open");
                    for text in message.into_texts() {
                        let message: Value =
                            serde_json::from_str(&text).expect("an answer is JSON");
                        if message["id"] == MARK {
                            return answers;
                        }
                        answers += usize::from(message.get("id").is_some() || message.is_array());
                    }
                }
            };
            tokio::join!(sent, received).1
        };
        let limited = async { tokio::time::timeout(ANSWERED, answered).await };
        self.runtime.block_on(limited).expect("the client is answered in time")
    }
}

fn with_target<T>(work: impl FnOnce(&mut Target) -> T) -> T {
    TARGET.with(|target| work(&mut target.get_or_init(|| Target::start().into()).borrow_mut()))
}

/// Sends the bytes as a frame of a transport: the client is answered, and the next call works.
pub fn frame(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _answers = with_target(|target| target.send(text));
}

/// Calls the method that the first byte names with the rest as its parameters.
pub fn parameters(data: &[u8]) {
    let Some((method, params)) = data.split_first() else { return };
    let Ok(params) = std::str::from_utf8(params) else { return };
    let Ok(params) = RawValue::from_string(params.to_owned()) else { return };
    with_target(|target| {
        let method = target.methods[usize::from(*method) % target.methods.len()];
        let connection = target.connection.clone();
        let call = async {
            let outcome = tokio::time::timeout(ANSWERED, connection.call(method, &params)).await;
            match outcome.unwrap_or_else(|_| panic!("{method} does not answer")) {
                Ok(_) => {}
                Err(failure) => {
                    let is_defect = failure.reason == cairn_protocol::error::Reason::Internal;
                    assert!(!is_defect, "{method}: {failure}");
                }
            }
        };
        target.runtime.block_on(call);
        while target.messages.try_recv().is_ok() {}
    });
}

/// Imports the bytes as a trace: an imported session has all of its records, without a gap.
pub fn import(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    with_target(|target| {
        let trace = target.trace.clone();
        target.runtime.block_on(async {
            let Ok(session) = trace.import(text).await else { return };
            let id = session.session_id;
            let records = trace.records(&id, 0, 500).await.unwrap();
            let numbers: Vec<u64> = records.iter().map(|record| record.seq).collect();
            assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
            trace.delete_session(&id).await.unwrap();
        });
    });
}
