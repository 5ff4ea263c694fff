//! Daemons that share a real broker: runs of a pool, answers from afar, and readers of the copied
//! records in other languages.

mod login;
mod machines;

use std::{
    net::TcpListener,
    os::unix::{fs::chown, process::CommandExt as _},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    chat::{Scripted, calls, configured, text_answer},
    sdks::{node, node_script, project},
    sealed::{self, Daemon, commit_all, git, python, tree, wait_for},
    ways::broker::Server,
};

/// User and group of a server that refuses to run as root.
const SERVER_USER: u32 = 65534;

fn ok(cairn: &Scripted, args: &[&str]) -> String {
    let (code, out, err) = cairn.cairn(args);
    assert_eq!(code, 0, "{args:?}: {out}{err}");
    out
}

fn json_of(cairn: &Scripted, args: &[&str]) -> Value {
    serde_json::from_str(&ok(cairn, &[&["--json"], args].concat())).unwrap()
}

fn fleet(server: &Server, name: &str, more: Value) -> Value {
    let mut section = json!({"server": server.address(), "name": name});
    section.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"fleet": section})
}

/// Waits until a daemon lists this number of daemons.
fn until_listed(cairn: &Scripted, count: usize) {
    wait_for("the daemons of the fleet", || {
        let status = json_of(cairn, &["fleet"]);
        (status["daemons"].as_array().unwrap().len() == count).then_some(())
    });
}

#[test]
fn run_of_a_pool_is_done_on_its_commit_and_answered_from_afar() {
    let Some(server) = Server::start() else { return };
    let write = json!({"path": "new.txt", "content": "new\n"});
    let answers = json!([calls("write_file", &write), text_answer("written")]);
    let worker = configured(
        &answers,
        &fleet(&server, "worker", json!({"pools": ["ci"], "mirror": "pools"})),
    );
    std::fs::remove_dir_all(worker.folder.join(".git")).ok();
    tree(&worker.folder, &[("notes.txt", "old\n")]);
    git(&worker.folder, &["init", "-q", "-b", "main"]);
    commit_all(&worker.folder);
    ok(&worker, &["index", "add", worker.folder.to_str().unwrap()]);
    let sender = configured(&json!([]), &fleet(&server, "sender", json!({})));
    std::fs::remove_dir_all(&sender.folder).unwrap();
    git(
        Path::new("/"),
        &["clone", "-q", worker.folder.to_str().unwrap(), sender.folder.to_str().unwrap()],
    );
    git(&sender.folder, &["remote", "set-url", "origin", "git@git.example.org:team/app.git"]);
    git(&worker.folder, &["remote", "add", "origin", "https://git.example.org/team/app"]);
    until_listed(&sender, 2);

    let id = ok(&sender, &["run", "write a file", "--pool", "ci", "--detach"]).trim().to_owned();
    let (session, approval) = wait_for("the question of the run", || {
        let status = json_of(&sender, &["fleet"]);
        let daemons = status["daemons"].as_array().unwrap();
        let worker = daemons.iter().find(|daemon| daemon["name"] == "worker")?;
        let session = worker["sessions"].get(0)?;
        let approval = session["approvals"].get(0)?["approvalId"].as_str()?.to_owned();
        Some((session["sessionId"].as_str()?.to_owned(), approval))
    });
    let table = ok(&sender, &["fleet"]);
    assert!(table.contains("write_file waits") && table.contains("write a file"), "{table}");
    assert_eq!(ok(&sender, &["fleet", "steer", "worker", &session, "use spaces"]), "sent\n");
    assert_eq!(sender.cairn(&["fleet", "steer", "worker", "00000000", "x"]).0, 3);
    assert_eq!(sender.cairn(&["fleet", "answer", "worker", "00000000", "yes"]).0, 3);
    assert_eq!(sender.cairn(&["fleet", "answer", "absent", &approval, "yes"]).0, 3);
    ok(&sender, &["fleet", "answer", "worker", &approval[approval.len() - 8..], "yes"]);
    let run = wait_for("the end of the run", || {
        let page = json_of(&sender, &["fleet", "runs", "ci"]);
        let run = page["data"].as_array().unwrap().iter().find(|run| run["turnId"] == id.as_str());
        run.filter(|run| run["state"] == "completed").cloned()
    });
    assert_eq!(run["sentBy"], "sender");
    assert_eq!(run["attempts"][0]["sessionId"], session.as_str());
    // The run has changed a work tree of its own, not the checkout.
    assert!(!worker.folder.join("new.txt").exists());
    let records = ok(&sender, &["fleet", "records", "worker", &session]);
    assert!(records.contains("written") && records.contains("use spaces"), "{records}");
    let (code, _, err) = sender.cairn(&["fleet", "cancel", "ci", "no-such-run"]);
    assert!(code == 3 && err.contains("has no run no-such-run"), "{err}");
    let (code, _, err) = sender.cairn(&["run", "x", "--pool", "a b"]);
    assert!(code != 0 && err.contains("is not a name"), "{err}");
}

#[test]
fn blobs_are_copied_to_the_object_store_of_the_broker() {
    let Some(server) = Server::start() else { return };
    let Some(python) = python("nats") else { return };
    let settings = fleet(&server, "one", json!({"mirror": "all", "blobs": true}));
    let answers =
        json!([calls("read_file", &json!({"path": "lines.txt"})), text_answer("many lines")]);
    let cairn = configured(&answers, &settings);
    let text: String = (0..500).map(|n| format!("line {n} {}\n", "x".repeat(300))).collect();
    tree(&cairn.folder, &[("lines.txt", &text)]);
    let session = ok(&cairn, &["run", "look for lines"]).lines().next().unwrap().to_owned();
    let records = ok(&cairn, &["--json", "trace", "show", &session]);
    let hash = records.split("\"blob\":{\"sha256\":\"").nth(1).expect("a blob");
    let hash = &hash[..64];
    let script = format!(
        "import asyncio, nats\n\
         async def main():\n    \
             client = await nats.connect('{}')\n    \
             store = await client.jetstream().object_store('CAIRN_BLOBS_one')\n    \
             print((await store.get('{hash}')).data.decode())\n\
         asyncio.run(main())",
        server.address()
    );
    let copy = wait_for("the copy of the blob", || {
        let output = Command::new(&python).args(["-c", &script]).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    });
    assert!(copy.contains("line 432 ") && copy.len() > 64 * 1024, "{}", copy.len());
}

#[test]
fn copies_on_several_nodes_need_a_cluster() {
    let Some(server) = Server::start() else { return };
    let settings = fleet(&server, "one", json!({"mirror": "all", "replicas": 3}));
    let cairn = configured(&json!([]), &settings);
    let error = wait_for("the reason", || {
        let status = json_of(&cairn, &["fleet"]);
        Some(status["mirror"]["error"].as_str()?.to_owned())
    });
    assert!(error.contains("replicas"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn daemon_with_a_broker_stays_when_it_is_idle() {
    let dir = tempfile::tempdir().unwrap();
    for (name, config, exits) in [
        ("alone", json!({}), true),
        ("member", json!({"fleet": {"server": "nats://127.0.0.1:1"}}), false),
    ] {
        let home = dir.path().join(name);
        tree(&home, &[("config/config.json", &config.to_string())]);
        let daemon = Daemon::start_in(&home, &["--idle-exit", "600"]);
        let stats = daemon.client().await.ok("daemon.status", json!({})).await;
        assert_eq!(stats["idleExitSeconds"].is_u64(), exits, "{stats}");
    }
}

#[test]
fn hint_without_a_broker_names_the_setting() {
    let cairn = configured(&json!([]), &json!({}));
    let (code, _, err) = cairn.cairn(&["fleet"]);
    assert!(code == 3 && err.contains("fleet.server"), "{err}");
}

/// A PostgreSQL server in a temporary folder, which is stopped on drop.
struct Postgres {
    child: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // It may have ended.
        let _finished = self.child.kill();
        let _finished = self.child.wait();
    }
}

impl Postgres {
    fn start() -> Option<Self> {
        let folder = postgres_folder()?;
        let dir = tempfile::tempdir().unwrap();
        let as_user = |name: &str| {
            let mut command = Command::new(folder.join(name));
            command.stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
            if rustix::process::getuid().is_root() {
                command.uid(SERVER_USER).gid(SERVER_USER);
            }
            command
        };
        if rustix::process::getuid().is_root() {
            chown(dir.path(), Some(SERVER_USER), Some(SERVER_USER)).unwrap();
        }
        let data = dir.path().join("data");
        let mut initdb = as_user("initdb");
        initdb.args(["-A", "trust", "-U", "test", "-N", "-D"]).arg(&data);
        assert!(initdb.status().unwrap().success(), "initdb");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = as_user("postgres")
            .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k", "", "-F", "-D"])
            .arg(&data)
            .spawn()
            .unwrap();
        Some(Self { child, port, _dir: dir })
    }

    fn url(&self) -> String {
        format!("postgresql://test@127.0.0.1:{}/postgres", self.port)
    }
}

/// Folder of the newest PostgreSQL, where Debian has it.
fn postgres_folder() -> Option<std::path::PathBuf> {
    let mut versions: Vec<_> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    versions.sort();
    let found = versions.pop();
    if found.is_none() {
        sealed::missing("PostgreSQL");
    }
    found
}

#[test]
fn records_are_followed_and_copied_to_sql_by_programs_in_python() {
    let Some(server) = Server::start() else { return };
    let (Some(python), Some(postgres)) = (python("nats, psycopg"), Postgres::start()) else {
        return;
    };
    let settings = fleet(&server, "one", json!({"mirror": "all"}));
    let answers =
        json!([calls("list_dir", &json!({"path": "."})), text_answer("token=abcdef12345 done")]);
    let cairn = configured(&answers, &settings);
    let session = ok(&cairn, &["run", "look around"]).lines().next().unwrap().to_owned();
    let own = ok(&cairn, &["--json", "trace", "show", &session]).lines().count();
    assert!(own > 5);
    wait_for("the copies of the records", || {
        let status = json_of(&cairn, &["fleet"]);
        (status["mirror"]["confirmed"].as_u64() >= Some(own as u64)).then_some(())
    });
    let examples = project().join("client-sdk/python/examples");
    let mut sql = Command::new(&python);
    sql.arg(examples.join("fleet_sql.py")).args([
        &server.address(),
        &postgres.url(),
        "one",
        "--once",
    ]);
    // The database server may still start.
    wait_for("the copy in SQL", || {
        let output = sql.output().unwrap();
        output.status.success().then_some(())
    });
    let again = sql.output().unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    let query = format!(
        "import psycopg; c = psycopg.connect('{}'); print(c.execute(\"SELECT count(*), max(seq), \
         (SELECT string_agg(tool, ',') FROM agent_calls), \
         count(*) FILTER (WHERE record::text LIKE '%abcdef12345%') \
         FROM agent_records WHERE session = '{session}'\").fetchone())",
        postgres.url()
    );
    let output = Command::new(&python).args(["-c", &query]).output().unwrap();
    let row = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert_eq!(row, format!("({own}, {own}, 'list_dir', 0)"), "{output:?}");

    let mut readers = vec![Command::new(&python)];
    readers[0].arg(examples.join("fleet_follow.py"));
    if let Some(node) = node() {
        readers.push(node_script(&node, "fleet_follow", &cairn.daemon.home));
    }
    for reader in &mut readers {
        reader.args([&server.address(), "one", &session, "3"]);
        assert_eq!(numbers(reader, own - 3), (4..=own).collect::<Vec<_>>(), "{reader:?}");
    }
}

/// Returns the numbers of the first records that a program prints.
fn numbers(reader: &mut Command, count: usize) -> Vec<usize> {
    let mut child = reader.stdout(Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufReader::new(child.stdout.take().unwrap());
    let numbers = std::io::BufRead::lines(lines)
        .take(count)
        .map(|line| line.unwrap().split(' ').nth(1).unwrap().parse().unwrap())
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    numbers
}
