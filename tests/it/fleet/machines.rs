//! Daemons on machines of their own: one dies during a run, and one has a wrong clock.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use cairn_protocol::time::Timestamp;
use serde_json::{Value, json};

use super::{fleet, json_of, ok, until_listed};
use crate::{
    chat::{Scripted, calls, configured, text_answer},
    clock::libfaketime,
    network::{ADDRESSES, Cable, Killed},
    sealed::{Daemon, binary, commit_all, git, missing, tree, wait_for},
    ways::broker::{self, Server},
};

const NAMES: [&str; 2] = ["left", "right"];

/// Two machines with a daemon each; the first one also has the broker.
struct Machines {
    cable: Cable,
    dir: tempfile::TempDir,
    daemons: Vec<Killed>,
    _broker: Killed,
    /// Commands and their output, for the documentation.
    recording: String,
}

impl Machines {
    fn start() -> Option<Self> {
        let program = broker::program()?;
        let Some(cable) = Cable::lay() else {
            missing("root with network namespaces");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let config = format!(
            "listen: \"{}:4222\"\njetstream {{ store_dir: \"{}\" }}\n",
            ADDRESSES[0],
            store.display()
        );
        tree(dir.path(), &[("nats.conf", &config), ("origin/notes.txt", "old\n")]);
        let mut broker = cable.at(0, &program, dir.path());
        broker.arg("-c").arg(dir.path().join("nats.conf"));
        let broker = broker.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let origin = dir.path().join("origin");
        git(&origin, &["init", "-q", "-b", "main"]);
        commit_all(&origin);
        let daemons = vec![];
        let (_broker, recording) = (Killed(broker), String::new());
        let mut machines = Self { cable, dir, daemons, _broker, recording };
        for end in 0..NAMES.len() {
            machines.start_daemon(end, &origin);
        }
        Some(machines)
    }

    fn home(&self, end: usize) -> PathBuf {
        self.dir.path().join(NAMES[end])
    }

    /// Starts the daemon of a machine, which has a clone of the repository.
    fn start_daemon(&mut self, end: usize, origin: &Path) {
        let home = self.home(end);
        let write = json!({"path": "new.txt", "content": "new\n"});
        let answers = json!([calls("write_file", &write), text_answer("The note is written.")]);
        let script = json!({"model": "script", "contextTokens": 16384, "answers": answers});
        let config = json!({
            "llm": {"provider": "scripted", "endpoint": home.join("script.json")},
            "fleet": {
                "server": format!("nats://{}:4222", ADDRESSES[0]), "plaintext": true,
                "name": NAMES[end], "pools": ["ci"], "mirror": "pools",
            },
        });
        tree(
            &home,
            &[("script.json", &script.to_string()), ("config/config.json", &config.to_string())],
        );
        let clone = home.join("app");
        let (from, to) = (origin.to_str().unwrap(), clone.to_str().unwrap());
        git(Path::new("/"), &["clone", "-q", from, to]);
        git(&clone, &["remote", "set-url", "origin", "https://git.example.org/team/app"]);
        let mut serve = self.cable.at(end, binary(), &home);
        serve.args(["serve", "--port", "0"]).stdout(Stdio::null()).stderr(Stdio::null());
        self.daemons.push(Killed(serve.spawn().unwrap()));
        wait_for("daemon.json", || std::fs::read(home.join("daemon.json")).ok());
        self.cairn(end, &["index", "add", to]);
    }

    fn command(&self, end: usize, args: &[&str]) -> Command {
        let mut command = self.cable.at(end, binary(), &self.home(end));
        command.args(args).current_dir(self.home(end).join("app"));
        command
    }

    fn cairn(&self, end: usize, args: &[&str]) -> String {
        let output = self.command(end, args).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, end: usize, args: &[&str]) -> Value {
        serde_json::from_str(&self.cairn(end, &[&["--json"], args].concat())).unwrap()
    }

    /// Runs a command as a person does, and records it.
    fn typed(&mut self, end: usize, args: &[&str]) -> String {
        let output = self.cairn(end, args);
        let words: Vec<String> = args
            .iter()
            .map(|arg| if arg.contains(' ') { format!("'{arg}'") } else { (*arg).to_owned() })
            .collect();
        writeln!(self.recording, "{}$ cairn {}\n{output}", NAMES[end], words.join(" ")).unwrap();
        output
    }

    /// Waits until a run waits for an answer; returns the machine that has it, the session and the
    /// approval.
    fn until_request(&self, from: usize, dead: Option<usize>) -> (usize, String, String) {
        wait_for("the question of the run", || {
            let status = self.json(from, &["fleet"]);
            status["daemons"].as_array()?.iter().find_map(|daemon| {
                let session = daemon["sessions"].get(0)?;
                let approval = session["approvals"].get(0)?["approvalId"].as_str()?;
                let end = NAMES.iter().position(|name| daemon["name"] == *name)?;
                // A dead daemon is listed until its entry expires.
                if dead == Some(end) {
                    return None;
                }
                Some((end, session["sessionId"].as_str()?.to_owned(), approval.to_owned()))
            })
        })
    }
}

#[test]
fn run_of_a_machine_that_dies_is_completed_by_the_other() {
    let Some(mut machines) = Machines::start() else { return };
    wait_for("the daemons of the fleet", || {
        let status = machines.json(1, &["fleet"]);
        (status["daemons"].as_array()?.len() == 2).then_some(())
    });
    machines.typed(1, &["run", "--pool", "ci", "--detach", "write a note"]);
    let (worker, session, _) = machines.until_request(1, None);
    let other = 1 - worker;
    machines.typed(other, &["fleet"]);
    let id = machines.daemons[worker].0.id().to_string();
    assert!(Command::new("kill").args(["-9", &id]).status().unwrap().success());
    writeln!(machines.recording, "{}$ kill -9 $(pgrep cairn)\n", NAMES[worker]).unwrap();
    // Until the lease of the dead daemon is over.
    let (successor, _, approval) = wait_for("the second attempt", || {
        let run = machines.json(other, &["fleet", "runs", "ci"])["data"][0].clone();
        (run["attempts"].as_array()?.len() == 2)
            .then(|| machines.until_request(other, Some(worker)))
    });
    assert_eq!(successor, other);
    machines.typed(other, &["fleet"]);
    machines
        .typed(other, &["fleet", "answer", NAMES[other], &approval[approval.len() - 8..], "yes"]);
    let run = wait_for("the end of the run", || {
        let run = machines.json(other, &["fleet", "runs", "ci"])["data"][0].clone();
        (run["state"] == "completed").then_some(run)
    });
    let by: Vec<_> = run["attempts"].as_array().unwrap().iter().map(|a| &a["daemon"]).collect();
    assert_eq!(by, [NAMES[worker], NAMES[other]]);
    machines.typed(other, &["fleet", "runs", "ci"]);
    // The session of the dead machine is readable.
    let records = machines.typed(other, &["fleet", "records", NAMES[worker], &session]);
    assert!(records.contains("write a note"), "{records}");
    if let Some(file) = std::env::var_os("CAIRN_RECORDING") {
        std::fs::write(file, &machines.recording).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn daemon_whose_clock_is_an_hour_ahead_takes_runs_and_is_listed() {
    let Some(server) = Server::start() else { return };
    let Some(library) = libfaketime() else { return missing("libfaketime") };
    for offset in ["+1h", "-1h"] {
        let dir = tempfile::tempdir().unwrap();
        let (home, folder) = (dir.path().join("home"), dir.path().join("repo"));
        tree(&folder, &[("a.py", "def a():\n    return 1\n")]);
        let name = if offset == "+1h" { "ahead" } else { "behind" };
        let config = fleet(&server, name, json!({"pools": [name], "mirror": "pools"}));
        tree(&home, &[("config/config.json", &config.to_string())]);
        let variables = [
            ("LD_PRELOAD", library.to_str().unwrap()),
            ("FAKETIME", offset),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        let daemon = Daemon::start_with(&home, &variables);
        let skewed = Scripted { daemon, folder, _dir: dir };
        let root = skewed.folder.canonicalize().unwrap();
        ok(&skewed, &["index", "add", root.to_str().unwrap()]);
        let sender = configured(&json!([]), &fleet(&server, "sender", json!({})));
        until_listed(&sender, 2);
        let listed = json_of(&sender, &["fleet"]);
        let daemons = listed["daemons"].as_array().unwrap();
        let daemon = daemons.iter().find(|daemon| daemon["name"] == name).unwrap();
        let seen: Timestamp = serde_json::from_value(daemon["seenAt"].clone()).unwrap();
        assert!((Timestamp::now().0 - seen.0).abs() < 60_000, "{daemon}");
        let params =
            json!({"pool": name, "turnId": "one", "work": {"type": "explore"}, "root": root});
        skewed.daemon.client().await.ok("fleet.run", params).await;
        let run = wait_for("the end of the run", || {
            let run = json_of(&sender, &["fleet", "runs", name])["data"][0].clone();
            (run["state"] != "queued" && run["state"] != "running").then_some(run)
        });
        assert_eq!(
            (&run["state"], run["attempts"].as_array().unwrap().len()),
            (&json!("completed"), 1)
        );
        drop(skewed);
        until_listed(&sender, 1);
    }
}
