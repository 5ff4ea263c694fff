//! Two machines in one network: the daemon is announced, discovered, and accepts clients with the
//! token.

use std::{
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;

use crate::sealed::{binary, missing, python, wait_for};

/// Two network namespaces joined by a virtual cable, which are removed on drop.
pub struct Cable {
    ends: [String; 2],
}

pub const ADDRESSES: [&str; 2] = ["10.77.113.1", "10.77.113.2"];

fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

impl Cable {
    pub fn lay() -> Option<Self> {
        // Tests of one process create cables concurrently.
        static LAID: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}", std::process::id(), LAID.fetch_add(1, Ordering::Relaxed));
        let cable = Self { ends: [format!("cairn-a-{name}"), format!("cairn-b-{name}")] };
        let [a, b] = &cable.ends;
        let (va, vb) = (format!("ca{name}"), format!("cb{name}"));
        let mut laid = ip(&["netns", "add", a]) && ip(&["netns", "add", b]);
        laid = laid
            && ip(&[
                "link", "add", &va, "netns", a, "type", "veth", "peer", "name", &vb, "netns", b,
            ]);
        for ((space, link), address) in [(a, &va), (b, &vb)].into_iter().zip(ADDRESSES) {
            laid = laid
                && ip(&["-n", space, "addr", "add", &format!("{address}/24"), "dev", link])
                && ip(&["-n", space, "link", "set", link, "up"])
                && ip(&["-n", space, "link", "set", "lo", "up"])
                && ip(&["-n", space, "route", "add", "224.0.0.0/4", "dev", link]);
        }
        laid.then_some(cable)
    }

    /// Returns a command at one end.
    pub fn at(&self, end: usize, program: &Path, home: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.ends[end]]).arg(program);
        command
            .env_clear()
            .env("CAIRN_HOME", home)
            .env("HOME", home)
            .env("PATH", std::env::var_os("PATH").unwrap());
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for end in &self.ends {
            ip(&["netns", "del", end]);
        }
    }
}

/// Runs a command that must succeed, and returns its output.
fn ok(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn machine_is_discovered_paired_and_used_over_the_network() {
    let Some(cable) = Cable::lay() else { return missing("root with network namespaces") };
    let dir = tempfile::tempdir().unwrap();
    let (den, laptop) = (dir.path().join("den"), dir.path().join("laptop"));
    let tree = dir.path().join("project");
    crate::sealed::tree(&tree, &[("src/main.rs", "fn main() {}\n"), ("README.md", "# Project\n")]);
    let tree = tree.canonicalize().unwrap();
    let mut serve = cable.at(0, binary(), &den);
    serve.args(["serve", "--port", "0", "--lan", ADDRESSES[0], "--name", "den"]);
    let daemon = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut daemon = Killed(daemon);
    let file = wait_for("daemon.json", || std::fs::read(den.join("daemon.json")).ok());
    let file: Value = serde_json::from_slice(&file).unwrap();
    let lan = file["addresses"][1].as_str().unwrap().to_owned();
    assert_eq!(lan, format!("{}:7434", ADDRESSES[0]));
    let at = |end: usize, args: &[&str]| {
        let mut command = cable.at(end, binary(), if end == 0 { &den } else { &laptop });
        command.current_dir("/").args(args);
        command
    };
    ok(&mut at(0, &["index", "add", tree.to_str().unwrap()]));

    // Discovered but not yet paired; no private data is returned.
    let discovered: Value = serde_json::from_str(&ok(&mut at(1, &["discover", "--json"]))).unwrap();
    let discovered = &discovered["data"][0];
    assert_eq!(
        (&discovered["name"], &discovered["port"]),
        (&Value::from("den"), &Value::from(7434)),
        "{discovered}"
    );
    assert!(
        discovered.get("paired").is_none() && discovered["key"].as_str().unwrap().len() == 8,
        "{discovered}"
    );
    let unpaired = at(1, &["--host", ADDRESSES[0], "status"]).output().unwrap();
    assert_eq!(unpaired.status.code(), Some(4));

    let mut offer = at(0, &["pair", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(offer.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
    let offer_json: Value = serde_json::from_str(&line).unwrap();
    ok(&mut at(1, &["pair", ADDRESSES[0], "--code", offer_json["code"].as_str().unwrap()]));
    assert!(offer.wait().unwrap().success());
    let discovered: Value = serde_json::from_str(&ok(&mut at(1, &["discover", "--json"]))).unwrap();
    assert_eq!(discovered["data"][0]["paired"], "den", "{discovered}");

    let explored = ok(&mut at(1, &["--host", "den", "explore", "--json"]));
    assert!(explored.contains("\"Rust\""), "{explored}");
    // A call that requires an approval on the daemon's own machine; the approval comes from the
    // other one.
    let mut call = at(0, &["tools", "call", "write_file", "--root", tree.to_str().unwrap()]);
    call.arg(r#"{"path": "made.txt", "content": "by leave"}"#);
    approved_from_afar(&at, call);
    assert_eq!(std::fs::read_to_string(tree.join("made.txt")).unwrap(), "by leave");
    daemon.0.kill().unwrap();
    let unreachable = at(1, &["--host", "den", "status"]).output().unwrap();
    assert_eq!(
        unreachable.status.code(),
        Some(4),
        "{}",
        String::from_utf8_lossy(&unreachable.stderr)
    );
}

/// Kills the child process on drop.
pub struct Killed(pub std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ignored = self.0.kill();
        let _ignored = self.0.wait();
    }
}

/// Starts a call on the daemon's machine and answers its approval from the other one, by JSON-RPC
/// lines.
fn approved_from_afar(at: &impl Fn(usize, &[&str]) -> Command, mut call: Command) {
    use std::io::{BufRead as _, Write as _};

    let mut bridge = at(1, &["--host", "den", "stdio"]);
    let mut bridge = bridge.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = bridge.stdin.take().unwrap();
    let mut output = std::io::BufReader::new(bridge.stdout.take().unwrap()).lines();
    let mut id = 0;
    let mut ask = |method: &str, params: Value| -> Value {
        id += 1;
        let request =
            serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(input, "{request}").unwrap();
        loop {
            let line: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
            if line["id"] == id {
                assert!(line["error"].is_null(), "{line}");
                return line["result"].clone();
            }
        }
    };
    let hello = serde_json::json!({"protocolVersions": ["1"], "client": {"name": "afar", "version": "0"},
        "capabilities": {"approvals": true}});
    ask("initialize", hello);
    let mut call = Killed(call.stdout(Stdio::null()).spawn().unwrap());
    let approval = wait_for("the question", || {
        let open = ask("approval.list", serde_json::json!({}));
        open["data"][0]["approvalId"].as_str().map(str::to_owned)
    });
    ask("approval.resolve", serde_json::json!({"approvalId": approval, "decision": "once"}));
    assert!(call.0.wait().unwrap().success());
    drop(input);
    bridge.wait().unwrap();
}

#[test]
fn network_daemon_is_discovered_and_requires_a_token() {
    let Some(cable) = Cable::lay() else { return missing("root with network namespaces") };
    let (Some(python), Some(_)) = (python("zeroconf"), python("websockets")) else { return };
    let dir = tempfile::tempdir().unwrap();
    let (home, elsewhere) = (dir.path().join("home"), dir.path().join("elsewhere"));
    let mut serve = cable.at(0, binary(), &home);
    serve.args(["serve", "--port", "0", "--insecure-lan", ADDRESSES[0], "--name", "den"]);
    let mut daemon = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let file = wait_for("daemon.json", || std::fs::read(home.join("daemon.json")).ok());
    let file: Value = serde_json::from_slice(&file).unwrap();
    let token = std::fs::read_to_string(home.join("token")).unwrap();

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/browse.py");
    let output = cable
        .at(1, Path::new(&python), &elsewhere)
        .arg(script)
        .args([&token, "den"])
        .output()
        .unwrap();
    let discover = cable.at(1, binary(), &elsewhere).args(["discover", "--json"]).output().unwrap();
    // A discovery right after another one, with little time, finds it too.
    let mut ask = cable.at(1, binary(), &elsewhere);
    ask.args(["discover", "--json", "--timeout", "0.1"]);
    let in_a_hurry: Vec<_> = (0..4).map(|_| ask.output().unwrap()).collect();
    let mut at_once = Vec::new();
    for _ in 0..3 {
        at_once.push(ask.stdout(Stdio::piped()).spawn().unwrap());
        std::thread::sleep(std::time::Duration::from_millis(120));
    }
    let at_once: Vec<_> =
        at_once.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    daemon.kill().unwrap();
    daemon.wait().unwrap();

    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let properties = report["properties"].as_object().unwrap();
    let mut names: Vec<&str> = properties.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["id", "name", "version"], "{report}");
    assert_eq!(properties["id"], file["instanceId"]);
    assert_eq!(properties["version"], file["version"]);
    let lan = format!("{}:{}", report["addresses"][0].as_str().unwrap(), report["port"]);
    assert!(file["addresses"].as_array().unwrap().contains(&Value::from(lan)), "{report} {file}");
    assert_eq!(report["let in"], "1");
    assert_eq!(report["refused"], 401);

    let listing = String::from_utf8_lossy(&discover.stdout);
    assert!(discover.status.success(), "{listing}{}", String::from_utf8_lossy(&discover.stderr));
    assert!(
        listing.contains(file["instanceId"].as_str().unwrap()) && listing.contains("den"),
        "{listing}"
    );
    assert!(!listing.contains(&token));
    for output in in_a_hurry.iter().chain(&at_once) {
        let listing = String::from_utf8_lossy(&output.stdout);
        assert!(listing.contains(file["instanceId"].as_str().unwrap()), "{listing}");
    }
}
