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

use crate::place::{Place, allow, within};

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
        replaces_builtin: false,
    }
}

async fn place(rules: Rules, script: &str) -> Place {
    let place = Place::new(&[("sub/a.txt", "a\n")], rules).await;
    let spec = program(&place.beside("tools"), "echo-it", script);
    assert_eq!(Externals::default().set(place.harness.registry(), vec![spec]), [""; 0]);
    place
}

#[tokio::test]
async fn a_program_gets_one_argument_and_answers_with_json() {
    let place = place(allow(&["*"]), r#"[ $# = 1 ] && printf '{"got": %s, "at": "%s"}' "$1" "$(pwd)""#).await;
    let spec = place.harness.registry().specs().into_iter().find(|s| s.name == "echo-it").unwrap();
    assert_eq!((&*spec.short, &*spec.description), ("Does[31m it.", "Does[31m it.\nAnd more."));
    let arguments = json!({"text": "it's \"$HOME\" `id`", "n": 3});
    let told = place.call("echo-it", arguments.clone()).await.unwrap();
    assert_eq!(told, json!({"got": arguments, "at": place.path("").to_string_lossy().trim_end_matches('/')}));
    let told = place.with("echo-it", json!({"text": ""}), within(&["sub"])).await.unwrap();
    assert!(told["at"].as_str().unwrap().ends_with("/sub"));
    for wrong in [json!({}), json!({"text": "x", "more": 1})] {
        assert_eq!(place.call("echo-it", wrong).await.unwrap_err().reason, Reason::InvalidParams);
    }
    let long = json!({"text": "x".repeat(121 * 1024)});
    assert_eq!(place.call("echo-it", long).await.unwrap_err().reason, Reason::TooLarge);
}

#[tokio::test]
async fn misbehaviour_is_told_with_what_the_program_said() {
    for (script, reason, want) in [
        ("echo no; exit 0", Reason::ToolFailed, "printed no JSON but 'no'"),
        ("exit 0", Reason::ToolFailed, "printed nothing"),
        ("echo; echo '  it broke' >&2; echo more >&2; exit 3", Reason::ToolFailed, "ended with 3: it broke"),
        ("echo waiting >&2; sleep 60", Reason::ToolTimedOut, "took longer than 1 s: waiting"),
        ("printf '\\377\\376{'", Reason::ToolFailed, "printed no JSON"),
        ("head -c 3000000 /dev/zero", Reason::ToolFailed, "printed more than"),
        ("echo '{} {}'", Reason::ToolFailed, "printed no JSON"),
    ] {
        let place = place(allow(&["*"]), script).await;
        let error = place.call("echo-it", json!({"text": ""})).await.unwrap_err();
        assert!(error.reason == reason && error.message.contains(want), "{script}: {error}");
    }
}

#[tokio::test]
async fn a_program_is_asked_about_and_needs_the_network_granted() {
    let place = Place::new(&[], Rules::default()).await;
    let spec = program(&place.beside("tools"), "quiet", "echo 1");
    let online = ExternalSpec { network: true, ..program(&place.beside("tools"), "online", "echo 2") };
    let _none = Externals::default().set(place.harness.registry(), vec![spec, online]);
    let text = || json!({"text": ""});
    assert_eq!(place.call("quiet", text()).await.unwrap_err().reason, Reason::NoApprover);
    assert_eq!(place.call("online", text()).await.unwrap_err().reason, Reason::NetworkDenied);
    let network = Grants { network: true, ..Grants::default() };
    assert_eq!(place.with("online", text(), network).await.unwrap(), json!(2));
}

#[tokio::test]
async fn tools_come_change_and_go() {
    let place = Place::new(&[], allow(&["*"])).await;
    let (registry, externals) = (place.harness.registry(), Externals::default());
    let folder = place.beside("tools");
    let spec = program(&folder, "one", "echo 1");
    let call = |name: &'static str| place.call(name, json!({"text": ""}));
    externals.set(registry, vec![spec.clone()]);
    assert_eq!(call("one").await.unwrap(), json!(1));
    let other = ExternalSpec { name: "one".into(), ..program(&folder, "two", "echo 2") };
    assert_eq!(externals.set(registry, vec![other.clone(), spec.clone()]).len(), 1);
    assert_eq!(call("one").await.unwrap(), json!(2));
    externals.set(registry, vec![]);
    assert_eq!(call("one").await.unwrap_err().reason, Reason::UnknownTool);
    // A built-in tool is replaced only if the specification says so, and is restored.
    let named =
        |name: &str, replaces_builtin| ExternalSpec { name: name.into(), replaces_builtin, ..spec.clone() };
    let wrong = externals.set(registry, vec![named("datetime", false)]);
    assert!(wrong[0].contains("set replaces_builtin"), "{wrong:?}");
    assert!(place.call("datetime", json!({})).await.unwrap()["utc"].is_string());
    for _ in 0..2 {
        assert_eq!(externals.set(registry, vec![named("datetime", true)]), [""; 0]);
        assert_eq!(call("datetime").await.unwrap(), json!(1));
    }
    let wrong = externals.set(registry, vec![named("datetime", false)]);
    assert_eq!(wrong.len(), 1);
    assert!(place.call("datetime", json!({})).await.unwrap()["utc"].is_string());
    for kept in ["read_file", "bash", "run_shell", "Bad Name", ""] {
        assert_eq!(externals.set(registry, vec![named(kept, true)]).len(), 1, "{kept}");
    }
    let schema = ExternalSpec { parameters: json!({"type": "object", "properties": 5}), ..spec.clone() };
    assert_eq!(externals.set(registry, vec![schema]).len(), 1);
    assert_eq!(place.call("one", Value::Null).await.unwrap_err().reason, Reason::UnknownTool);
}

/// Returns the tools of the examples, with `from` in their text replaced by `to`.
fn examples(place: &Place, from: &str, to: &str) -> Vec<ExternalSpec> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tools");
    let copies = place.beside("copies");
    std::fs::create_dir_all(&copies).unwrap();
    let one = |name: &str| {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let sidecar = std::fs::read_to_string(folder.join(format!("{name}.tool.json"))).unwrap();
        let told: Value = serde_json::from_str(&sidecar).unwrap();
        let program = copies.join(name);
        write(&program, &text.replace(from, to));
        ExternalSpec {
            name: told["name"].as_str().unwrap().into(),
            description: told["description"].as_str().unwrap().into(),
            parameters: told["parameters"].clone(),
            program,
            timeout: told["timeout_seconds"].as_u64().map(Duration::from_secs),
            network: told["network"].as_bool().unwrap_or(false),
            replaces_builtin: false,
        }
    };
    ["web-search", "web-fetch", "git-status", "run-tests"].map(one).to_vec()
}

/// Starts a server that sends the same answer `times` times.
fn server(kind: &'static str, body: &'static str, times: usize) -> (String, std::thread::JoinHandle<()>) {
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
async fn the_examples_run() {
    let place = Place::new(&[("a.txt", "a\n"), ("tests/test_it.py", TEST)], allow(&["*"])).await;
    let network = || Grants { network: true, ..Grants::default() };
    let (address, served) =
        server("application/json", r#"{"results": [{"title": "T", "url": "u", "content": "c"}]}"#, 1);
    let wrong = Externals::default()
        .set(place.harness.registry(), examples(&place, "http://localhost:8888", &address));
    assert_eq!(wrong, [""; 0]);
    let told = place.with("web-search", json!({"query": "x y"}), network()).await.unwrap();
    assert_eq!(told["results"], json!([{"title": "T", "url": "u", "snippet": "c"}]));
    served.join().unwrap();
    let page = "<html><head><style>p{}</style></head><body><p>Hello <b>there</b></p><script>no()</script></body></html>";
    let (address, served) = server("text/html", page, 1);
    let told = place.with("web-fetch", json!({"url": address}), network()).await.unwrap();
    assert_eq!(told["text"], "Hello\nthere");
    served.join().unwrap();
    let error = place.with("web-fetch", json!({"url": "file:///etc/passwd"}), network()).await.unwrap_err();
    assert!(error.message.contains("ended with 1: web-fetch: only http"), "{error}");
    let error = place.call("git-status", json!({})).await.unwrap_err();
    assert!(error.message.contains("git-status: fatal: not a git repository"), "{error}");
    git2::Repository::init(place.path("")).unwrap();
    let told = place.call("git-status", json!({})).await.unwrap();
    assert_eq!(told["untracked"], json!(["a.txt", "tests/"]));
    let told = place.call("run-tests", json!({"filter": "good"})).await.unwrap();
    assert_eq!((&told["success"], &told["exit_code"]), (&json!(true), &json!(0)), "{told}");
    let told = place.call("run-tests", json!({})).await.unwrap();
    assert_eq!(told["success"], false, "{told}");
}

const TEST: &str = "import unittest\n\n\nclass It(unittest.TestCase):\n    def test_good(self):\n        pass\n\n    def test_bad(self):\n        self.fail()\n";
