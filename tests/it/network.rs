//! Two machines in one network: the daemon is announced, found, and lets in who has the token.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::sealed::{binary, missing, python, wait_for};

/// Two network namespaces joined by a cable; both go when this is dropped.
struct Cable {
    ends: [String; 2],
}

const ADDRESSES: [&str; 2] = ["10.77.113.1", "10.77.113.2"];

fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

impl Cable {
    fn lay() -> Option<Self> {
        let pid = std::process::id();
        let cable = Self { ends: [format!("cairn-a-{pid}"), format!("cairn-b-{pid}")] };
        let [a, b] = &cable.ends;
        let (va, vb) = (format!("ca{pid}"), format!("cb{pid}"));
        let mut laid = ip(&["netns", "add", a]) && ip(&["netns", "add", b]);
        laid = laid && ip(&["link", "add", &va, "netns", a, "type", "veth", "peer", "name", &vb, "netns", b]);
        for ((space, link), address) in [(a, &va), (b, &vb)].into_iter().zip(ADDRESSES) {
            laid = laid
                && ip(&["-n", space, "addr", "add", &format!("{address}/24"), "dev", link])
                && ip(&["-n", space, "link", "set", link, "up"])
                && ip(&["-n", space, "link", "set", "lo", "up"])
                && ip(&["-n", space, "route", "add", "224.0.0.0/4", "dev", link]);
        }
        laid.then_some(cable)
    }

    /// A command at one end.
    fn at(&self, end: usize, program: &Path, home: &Path) -> Command {
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

#[test]
fn a_daemon_in_the_network_is_found_and_guarded() {
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
    let output =
        cable.at(1, Path::new(&python), &elsewhere).arg(script).args([&token, "den"]).output().unwrap();
    let discover = cable.at(1, binary(), &elsewhere).args(["discover", "--json"]).output().unwrap();
    // Right after others have asked, and with little time, it is found as well.
    let mut ask = cable.at(1, binary(), &elsewhere);
    ask.args(["discover", "--json", "--timeout", "0.1"]);
    let in_a_hurry: Vec<_> = (0..4).map(|_| ask.output().unwrap()).collect();
    let mut at_once = Vec::new();
    for _ in 0..3 {
        at_once.push(ask.stdout(Stdio::piped()).spawn().unwrap());
        std::thread::sleep(std::time::Duration::from_millis(120));
    }
    let at_once: Vec<_> = at_once.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    daemon.kill().unwrap();
    daemon.wait().unwrap();

    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let properties = said["properties"].as_object().unwrap();
    let mut names: Vec<&str> = properties.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["id", "name", "version"], "{said}");
    assert_eq!(properties["id"], file["instanceId"]);
    assert_eq!(properties["version"], file["version"]);
    let lan = format!("{}:{}", said["addresses"][0].as_str().unwrap(), said["port"]);
    assert!(file["addresses"].as_array().unwrap().contains(&Value::from(lan)), "{said} {file}");
    assert_eq!(said["let in"], "1");
    assert_eq!(said["refused"], 401);

    let found = String::from_utf8_lossy(&discover.stdout);
    assert!(discover.status.success(), "{found}{}", String::from_utf8_lossy(&discover.stderr));
    assert!(found.contains(file["instanceId"].as_str().unwrap()) && found.contains("den"), "{found}");
    assert!(!found.contains(&token));
    for output in in_a_hurry.iter().chain(&at_once) {
        let found = String::from_utf8_lossy(&output.stdout);
        assert!(found.contains(file["instanceId"].as_str().unwrap()), "{found}");
    }
}
