//! Programs as tools.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use cairn_harness::{Grants, Rules};
use cairn_protocol::error::Reason;
use cairn_tools::{ExternalSpec, Externals};
use serde_json::{Value, json};

use crate::fixture::{Fixture, allow, within};

/// Lets another process write the program: if this process wrote it, a child starting at the same
/// moment elsewhere might still have it open, and running it would fail ("text file busy").
fn write(program: &Path, text: &str) {
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(program).stdin(Stdio::piped());
    let mut install = install.spawn().unwrap();
    install.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(install.wait().unwrap().success(), "{}", program.display());
}

fn program(folder: &Path, name: &str, script: &str) -> ExternalSpec {
    std::fs::create_dir_all(folder).unwrap();
    let program = folder.join(name);
    write(&program, &format!("#!/bin/sh\n{script}\n"));
    ExternalSpec {
        name: name.into(),
        description: "Does\u{1b}[31m it.\nAnd more.".into(),
        parameters: json!({"text": {"type": "string", "required": true}, "n": {"type": "integer"}}),
        program,
        timeout: Some(Duration::from_secs(1)),
        network: false,
        env: vec![],
        replaces_builtin: false,
    }
}

async fn fixture(rules: Rules, script: &str) -> Fixture {
    let fixture = Fixture::new(&[("sub/a.txt", "a\n")], rules).await;
    let spec = program(&fixture.beside("tools"), "echo-it", script);
    assert_eq!(Externals::default().set(fixture.harness.registry(), vec![spec]), [""; 0]);
    fixture
}

#[tokio::test]
async fn external_tool_receives_one_argument_and_returns_json() {
    let fixture =
        fixture(allow(&["*"]), r#"[ $# = 1 ] && printf '{"got": %s, "at": "%s"}' "$1" "$(pwd)""#)
            .await;
    let spec =
        fixture.harness.registry().specs().into_iter().find(|s| s.name == "echo-it").unwrap();
    assert_eq!((&*spec.short, &*spec.description), ("Does[31m it.", "Does[31m it.\nAnd more."));
    let arguments = json!({"text": "it's \"$HOME\" `id`", "n": 3});
    let value = fixture.call("echo-it", arguments.clone()).await.unwrap();
    assert_eq!(
        value,
        json!({"got": arguments, "at": fixture.path("").to_string_lossy().trim_end_matches('/')})
    );
    let value = fixture.with("echo-it", json!({"text": ""}), within(&["sub"])).await.unwrap();
    assert!(value["at"].as_str().unwrap().ends_with("/sub"));
    for wrong in [json!({}), json!({"text": "x", "more": 1})] {
        assert_eq!(fixture.call("echo-it", wrong).await.unwrap_err().reason, Reason::InvalidParams);
    }
    let long = json!({"text": "x".repeat(121 * 1024)});
    assert_eq!(fixture.call("echo-it", long).await.unwrap_err().reason, Reason::TooLarge);
}

#[tokio::test]
async fn external_tool_failure_includes_stderr() {
    for (script, reason, want) in [
        ("echo no; exit 0", Reason::ToolFailed, "printed 'no', which is not JSON"),
        ("exit 0", Reason::ToolFailed, "printed nothing"),
        (
            "echo; echo '  it broke' >&2; echo more >&2; exit 3",
            Reason::ToolFailed,
            "exited with 3: it broke",
        ),
        ("echo waiting >&2; sleep 60", Reason::ToolTimedOut, "took longer than 1 s: waiting"),
        ("printf '\\377\\376{'", Reason::ToolFailed, "which is not JSON"),
        ("head -c 3000000 /dev/zero", Reason::ToolFailed, "printed more than"),
        ("echo '{} {}'", Reason::ToolFailed, "which is not JSON"),
    ] {
        let fixture = fixture(allow(&["*"]), script).await;
        let error = fixture.call("echo-it", json!({"text": ""})).await.unwrap_err();
        assert!(error.reason == reason && error.message.contains(want), "{script}: {error}");
    }
}

#[tokio::test]
async fn external_tool_requires_approval_and_network_grant() {
    let fixture = Fixture::new(&[], Rules::default()).await;
    let spec = program(&fixture.beside("tools"), "quiet", "echo 1");
    let online =
        ExternalSpec { network: true, ..program(&fixture.beside("tools"), "online", "echo 2") };
    let _none = Externals::default().set(fixture.harness.registry(), vec![spec, online]);
    let text = || json!({"text": ""});
    assert_eq!(fixture.call("quiet", text()).await.unwrap_err().reason, Reason::NoApprover);
    assert_eq!(fixture.call("online", text()).await.unwrap_err().reason, Reason::NetworkDenied);
    let network = Grants { network: true, ..Grants::default() };
    assert_eq!(fixture.with("online", text(), network).await.unwrap(), json!(2));
}

#[tokio::test]
async fn external_tools_can_be_added_changed_and_removed() {
    let fixture = Fixture::new(&[], allow(&["*"])).await;
    let (registry, externals) = (fixture.harness.registry(), Externals::default());
    let folder = fixture.beside("tools");
    let spec = program(&folder, "one", "echo 1");
    let call = |name: &'static str| fixture.call(name, json!({"text": ""}));
    externals.set(registry, vec![spec.clone()]);
    assert_eq!(call("one").await.unwrap(), json!(1));
    let other = ExternalSpec { name: "one".into(), ..program(&folder, "two", "echo 2") };
    assert_eq!(externals.set(registry, vec![other.clone(), spec.clone()]).len(), 1);
    assert_eq!(call("one").await.unwrap(), json!(2));
    externals.set(registry, vec![]);
    assert_eq!(call("one").await.unwrap_err().reason, Reason::UnknownTool);
    // A built-in tool is replaced only if the specification says so, and is restored.
    let named = |name: &str, replaces_builtin| ExternalSpec {
        name: name.into(),
        replaces_builtin,
        ..spec.clone()
    };
    let wrong = externals.set(registry, vec![named("datetime", false)]);
    assert!(wrong[0].contains("set replaces_builtin"), "{wrong:?}");
    assert!(fixture.call("datetime", json!({})).await.unwrap()["utc"].is_string());
    for _ in 0..2 {
        assert_eq!(externals.set(registry, vec![named("datetime", true)]), [""; 0]);
        assert_eq!(call("datetime").await.unwrap(), json!(1));
    }
    let wrong = externals.set(registry, vec![named("datetime", false)]);
    assert_eq!(wrong.len(), 1);
    assert!(fixture.call("datetime", json!({})).await.unwrap()["utc"].is_string());
    for reserved in ["read_file", "bash", "run_shell", "Bad Name", ""] {
        assert_eq!(externals.set(registry, vec![named(reserved, true)]).len(), 1, "{reserved}");
    }
    let schema =
        ExternalSpec { parameters: json!({"type": "object", "properties": 5}), ..spec.clone() };
    assert_eq!(externals.set(registry, vec![schema]).len(), 1);
    assert_eq!(fixture.call("one", Value::Null).await.unwrap_err().reason, Reason::UnknownTool);
}

/// Returns the tools of the examples, with `from` in their text replaced by `to`.
fn examples(fixture: &Fixture, from: &str, to: &str) -> Vec<ExternalSpec> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tools");
    let copies = fixture.beside("copies");
    std::fs::create_dir_all(&copies).unwrap();
    let one = |name: &str| {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let sidecar = std::fs::read_to_string(folder.join(format!("{name}.tool.json"))).unwrap();
        let value: Value = serde_json::from_str(&sidecar).unwrap();
        let program = copies.join(name);
        write(&program, &text.replace(from, to));
        ExternalSpec {
            name: value["name"].as_str().unwrap().into(),
            description: value["description"].as_str().unwrap().into(),
            parameters: value["parameters"].clone(),
            program,
            timeout: value["timeout_seconds"].as_u64().map(Duration::from_secs),
            network: value["network"].as_bool().unwrap_or(false),
            env: vec![],
            replaces_builtin: false,
        }
    };
    ["web-search", "web-fetch", "git-status", "run-tests"].map(one).to_vec()
}

/// Starts a server that sends the same answer `times` times.
fn server(
    kind: &'static str,
    body: &'static str,
    times: usize,
) -> (String, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let work = move || {
        for stream in listener.incoming().take(times) {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            assert!(lines.map_while(Result::ok).any(|line| line.is_empty()));
            write!(stream, "HTTP/1.0 200 OK\r\nContent-Type: {kind}\r\n\r\n{body}").unwrap();
        }
    };
    (address, std::thread::spawn(work))
}

#[tokio::test]
async fn example_tools_run() {
    let fixture =
        Fixture::new(&[("a.txt", "a\n"), ("tests/test_it.py", TEST)], allow(&["*"])).await;
    let network = || Grants { network: true, ..Grants::default() };
    let (address, served) = server(
        "application/json",
        r#"{"results": [{"title": "T", "url": "u", "content": "c"}]}"#,
        1,
    );
    let wrong = Externals::default()
        .set(fixture.harness.registry(), examples(&fixture, "http://localhost:8888", &address));
    assert_eq!(wrong, [""; 0]);
    let value = fixture.with("web-search", json!({"query": "x y"}), network()).await.unwrap();
    assert_eq!(value["results"], json!([{"title": "T", "url": "u", "snippet": "c"}]));
    served.join().unwrap();
    let page = "<html><head><style>p{}</style></head><body><p>Hello <b>there</b></p><script>no()</script></body></html>";
    let (address, served) = server("text/html", page, 1);
    let value = fixture.with("web-fetch", json!({"url": address}), network()).await.unwrap();
    assert_eq!(value["text"], "Hello\nthere");
    served.join().unwrap();
    let error = fixture
        .with("web-fetch", json!({"url": "file:///etc/passwd"}), network())
        .await
        .unwrap_err();
    assert!(error.message.contains("exited with 1: web-fetch: only http"), "{error}");
    let error = fixture.call("git-status", json!({})).await.unwrap_err();
    assert!(error.message.contains("git-status: fatal: not a git repository"), "{error}");
    git2::Repository::init(fixture.path("")).unwrap();
    let value = fixture.call("git-status", json!({})).await.unwrap();
    assert_eq!(value["untracked"], json!(["a.txt", "tests/"]));
    let value = fixture.call("run-tests", json!({"filter": "good"})).await.unwrap();
    assert_eq!((&value["success"], &value["exit_code"]), (&json!(true), &json!(0)), "{value}");
    let value = fixture.call("run-tests", json!({})).await.unwrap();
    assert_eq!(value["success"], false, "{value}");
}

const TEST: &str = "import unittest\n\n\nclass It(unittest.TestCase):\n    def test_good(self):\n        pass\n\n    def test_bad(self):\n        self.fail()\n";
