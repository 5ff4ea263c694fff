//! Runs without a client, schedules, work trees with a set-up and their trust, and notifications:
//! with the real daemon, sandbox and git.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    chat::{Scripted, calls, configured, text_answer},
    sealed::{self, Daemon, commit_all, git, program, tree, wait_for},
    terminal::Terminal,
};

/// A daemon with a repository, or `None` on a machine without a complete sandbox.
fn repository(answers: &Value, settings: &Value) -> Option<Scripted> {
    let cairn = configured(answers, settings);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let probe = runtime
        .block_on(async { cairn.daemon.client().await.ok("sandbox.probe", json!({})).await });
    if probe["tier"] != "full" {
        sealed::missing(&format!("a full sandbox ({probe})"));
        return None;
    }
    fs::remove_dir_all(cairn.folder.join(".git")).ok();
    tree(&cairn.folder, &[("notes.txt", "old\n")]);
    git(&cairn.folder, &["init", "-q", "-b", "main"]);
    commit_all(&cairn.folder);
    Some(cairn)
}

impl Scripted {
    fn ok(&self, args: &[&str]) -> String {
        let (code, out, err) = self.cairn(args);
        assert_eq!(code, 0, "{args:?}: {out}{err}");
        out
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[&["--json"], args].concat())).unwrap()
    }

    /// Returns the row of a session on the board.
    fn row(&self, session: &str) -> Value {
        let board = self.json(&["sessions"]);
        let rows = board["rows"].as_array().unwrap();
        let of = |row: &&Value| row["session"]["sessionId"] == session;
        rows.iter().find(of).cloned().unwrap_or_default()
    }

    fn until(&self, session: &str, status: &str) -> Value {
        wait_for(&format!("the status {status}"), || {
            let row = self.row(session);
            (row["unattended"]["status"] == status).then_some(row)
        })
    }
}

#[test]
fn run_goes_on_without_its_client_and_waits_for_an_answer() {
    let write = json!({"path": "new.txt", "content": "new\n"});
    let answers = json!([calls("write_file", &write), text_answer("written")]);
    let Some(cairn) = repository(&answers, &json!({})) else { return };
    let session = cairn.ok(&["run", "write a file", "--detach"]).trim().to_owned();
    cairn.until(&session, "waiting");
    let table = cairn.ok(&["sessions"]);
    assert!(table.contains("waits for you") && table.contains("write_file"), "{table}");
    assert!(table.contains("run waiting, turn 1 of 1"), "{table}");
    let question = cairn.ok(&["run", "answer", &session]);
    assert!(
        question.contains("+new") && question.contains("once      allows this call"),
        "{question}"
    );
    assert!(!cairn.folder.join("new.txt").exists());
    cairn.ok(&["run", "answer", &session, "once"]);
    let (code, out, err) = cairn.cairn(&["run", "watch", &session]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("written") && err.contains("completed after 1 turns"), "{out}{err}");
    assert_eq!(fs::read_to_string(cairn.folder.join("new.txt")).unwrap(), "new\n");
    // Nothing waits any more, and another session has no run.
    assert_eq!(cairn.cairn(&["run", "answer", &session, "once"]).0, 3);
    let absent = format!("ses_{}", "0".repeat(32));
    assert_eq!(cairn.cairn(&["run", "watch", &absent]).0, 3);
    assert_eq!(cairn.cairn(&["run", "stop", &absent]).0, 3);
}

#[test]
fn watched_approvals_come_by_notification() {
    let write = json!({"path": "new.txt", "content": "new\n"});
    let answers = json!([calls("write_file", &write), text_answer("written")]);
    let Some(cairn) = repository(&answers, &json!({})) else { return };
    let args = ["approvals", "--watch"];
    let Some(mut terminal) = Terminal::start(&cairn.daemon.home, &cairn.folder, &args) else {
        return;
    };
    terminal.see("waiting for requests");
    let session = cairn.ok(&["run", "write a file", "--detach"]).trim().to_owned();
    let began = std::time::Instant::now();
    terminal.see("allow? y once");
    // Without a notification the list is read every 30 seconds.
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    terminal.key("y");
    assert_eq!(cairn.cairn(&["run", "watch", &session]).0, 0);
    assert!(cairn.folder.join("new.txt").exists());
}

#[test]
fn large_approvals_are_shortened_in_lists() {
    let write = |name: &str| {
        calls("write_file", &json!({"path": name, "content": "some text\n".repeat(15_000)}))
    };
    let answers: Vec<Value> =
        ["one.txt", "two.txt", "three.txt"].iter().map(|name| write(name)).collect();
    let Some(cairn) = repository(&json!(answers), &json!({})) else { return };
    for request in ["first", "second", "third"] {
        let session = cairn.ok(&["run", request, "--detach"]).trim().to_owned();
        cairn.until(&session, "waiting");
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut raw = cairn.daemon.client().await;
        let listed = raw.ok("approval.list", json!({})).await["data"].clone();
        let oldest = &listed[2];
        assert!(listed[0]["shortened"].is_null() && listed[0]["preview"]["diff"].is_string());
        assert_eq!((&oldest["shortened"], &oldest["arguments"]), (&json!(true), &json!({})));
        assert!(oldest["preview"]["diff"].is_null(), "{oldest}");
        let complete = raw.ok("approval.get", json!({"approvalId": oldest["approvalId"]})).await;
        assert!(complete["shortened"].is_null() && complete["preview"]["diff"].is_string());
        assert_eq!(complete["arguments"]["path"], "one.txt");
        let board = raw.ok("session.board", json!({})).await;
        let waiting = board["rows"].as_array().unwrap().iter().map(|row| &row["waiting"][0]);
        assert_eq!(waiting.filter(|approval| approval["shortened"] == true).count(), 2);
    });
    // The command shows the oldest one with its diff.
    let oldest = cairn.ok(&["approvals", "show"]);
    assert!(oldest.contains("one.txt") && oldest.contains("+some text"), "{oldest}");
}

#[test]
fn requests_of_all_sessions_are_listed_and_answered_by_short_ids() {
    let write = |name: &str| json!({"path": name, "content": "new\n"});
    let answers = json!([
        calls("write_file", &write("one.txt")),
        calls("write_file", &write("two.txt")),
        text_answer("first"),
        text_answer("second"),
    ]);
    let Some(cairn) = repository(&answers, &json!({})) else { return };
    let (code, _, err) = cairn.cairn(&["approvals"]);
    assert!(code == 0 && err.contains("nothing waits"), "{err}");
    let mut sessions = Vec::new();
    for request in ["write the first", "write the second"] {
        let session = cairn.ok(&["run", request, "--detach"]).trim().to_owned();
        cairn.until(&session, "waiting");
        sessions.push(session);
    }
    let listed = cairn.ok(&["approvals"]);
    for part in ["write_file", "write the first", "write the second", &sessions[0][30..]] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let only = cairn.ok(&["approvals", "--session", &sessions[1][30..]]);
    assert!(only.contains("write the second") && !only.contains("write the first"), "{only}");
    // The oldest comes first.
    let oldest = cairn.ok(&["approvals", "show"]);
    assert!(oldest.contains("one.txt") && oldest.contains("+new"), "{oldest}");
    assert!(
        oldest.contains("until the session ends") && oldest.contains("from now on"),
        "{oldest}"
    );
    let ids: Vec<&str> = listed.lines().step_by(2).map(|line| &line[..6]).collect();
    assert!(cairn.ok(&["approvals", "answer", ids[0], "yes"]).starts_with("once: "));
    assert_eq!(cairn.cairn(&["run", "watch", &sessions[0][30..]]).0, 0);
    assert!(cairn.folder.join("one.txt").exists());
    // An answered request, an unknown one, and names that are none.
    for (id, expected) in [(ids[0], 3), ("0000", 3), ("xyz", 2), ("12", 2), ("../..", 2)] {
        let (code, _, err) = cairn.cairn(&["approvals", "answer", id, "yes"]);
        assert_eq!(code, expected, "{id}: {err}");
        assert!(err.contains("cairn approvals"), "{id}: {err}");
    }
    let (code, _, err) = cairn.cairn(&["approvals", "answer", ids[1], "maybe"]);
    assert!(
        code == 2 && err.contains("once (yes), session, always, everywhere, deny (no)"),
        "{err}"
    );
    cairn.ok(&["approvals", "answer", ids[1], "no", "--reason", "not now"]);
    cairn.cairn(&["run", "watch", "last"]);
    assert!(!cairn.folder.join("two.txt").exists());
}

#[test]
fn terminals_show_what_waits_in_other_sessions() {
    let write = |name: &str| json!({"path": name, "content": "new\n"});
    let answers = json!([calls("write_file", &write("one.txt")), text_answer("written")]);
    let Some(cairn) = repository(&answers, &json!({})) else { return };
    let session = cairn.ok(&["run", "write a file", "--detach"]).trim().to_owned();
    cairn.until(&session, "waiting");
    let home = &cairn.daemon.home;
    let Some(mut chat) = Terminal::start(home, &cairn.folder, &["chat"]) else { return };
    let seen = chat.see("'cairn approvals' in another terminal answers");
    assert!(seen.contains(&format!("session {} waits for you", &session[30..])), "{seen}");
    let Some(mut watch) = Terminal::start(home, &cairn.folder, &["approvals", "--watch"]) else {
        return;
    };
    watch.see("write a file, session");
    watch.see("allow? y once");
    watch.text("y");
    cairn.until(&session, "completed");
    assert!(cairn.folder.join("one.txt").exists());
}

#[test]
fn sessions_are_named_after_their_first_request_and_found_by_parts_of_their_ids() {
    let answers = json!([text_answer("a"), text_answer("b")]);
    let Some(cairn) = repository(&answers, &json!({})) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let repo = cairn.folder.canonicalize().unwrap();
    let session = runtime.block_on(async {
        let mut raw = cairn.daemon.client().await;
        let created = {
            raw.ok("index.addRoot", json!({"path": repo})).await;
            raw.ok("session.create", json!({"root": repo})).await
        };
        let session = created["sessionId"].as_str().unwrap().to_owned();
        let turn =
            json!({"sessionId": session, "turnId": "t", "input": "\n  Fix the parser\nplease"});
        raw.ok("orchestrate.run.start", turn).await;
        session
    });
    wait_for("the end", || (cairn.row(&session)["session"]["state"] == "completed").then_some(()));
    let table = cairn.ok(&["sessions"]);
    assert!(table.contains("Fix the parser") && table.contains(&session[30..]), "{table}");
    for name in [&session[30..], &session[..16], &session[4..20], "last"] {
        let (code, out, err) = cairn.cairn(&["trace", "show", name]);
        assert!(code == 0 && out.contains("Fix the parser"), "{name}: {out}{err}");
    }
    let (code, _, err) = cairn.cairn(&["trace", "show", "0000"]);
    assert!(code == 3 && err.contains("begins or ends with '0000'"), "{err}");
    // A second session of the same second shares the first digits.
    cairn.ok(&["tools", "call", "datetime", "{}"]);
    let (code, _, err) = cairn.cairn(&["trace", "show", &session[..8]]);
    assert!(code == 2 && err.contains(&session) && err.contains("use more digits"), "{err}");
}

#[test]
fn check_in_the_sandbox_decides_when_a_run_is_complete() {
    let write = json!({"path": "done.txt", "content": "done\n"});
    let answers = json!([
        text_answer("nothing to do"),
        {"expect": [{"anyContains": "failed with exit status 1"}], "steps": [{"call": {"name": "write_file", "arguments": write}}]},
        text_answer("now it is done"),
    ]);
    let Some(cairn) = repository(&answers, &json!({})) else { return };
    let check = "touch /usr/escaped; echo checked; test -f done.txt";
    let args = ["run", "finish it", "--mode", "auto", "--until", check, "--worktree", "work"];
    let (code, out, err) = cairn.cairn(&args);
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("completed after 2 turns"), "{err}");
    let session = out.lines().next().unwrap().to_owned();
    let row = cairn.row(&session);
    assert_eq!((&row["branch"], &row["unattended"]["checkExitCode"]), (&json!("work"), &json!(0)));
    let path = PathBuf::from(row["session"]["root"].as_str().unwrap());
    assert!(path.join("done.txt").exists() && !cairn.folder.join("done.txt").exists());
    assert!(!Path::new("/usr/escaped").exists(), "the check is confined");
    // A check that never succeeds ends with the number of turns.
    let (code, _, err) =
        cairn.cairn(&["run", "again", "--mode", "auto", "--until", "false", "--max-turns", "1"]);
    assert_eq!(code, 1, "{err}");
}

#[test]
fn setup_prepares_new_work_trees_and_its_failure_starts_no_turn() {
    let answers = json!([text_answer("a"), text_answer("b"), text_answer("c")]);
    let setup = json!({"worktrees": {"setup": "echo prepared > prepared.txt; echo done"}});
    let Some(cairn) = repository(&answers, &setup) else { return };
    let session = cairn.ok(&["run", "go", "--worktree", "one", "--detach"]).trim().to_owned();
    let root =
        PathBuf::from(cairn.until(&session, "completed")["session"]["root"].as_str().unwrap());
    assert_eq!(fs::read_to_string(root.join("prepared.txt")).unwrap(), "prepared\n");
    assert!(cairn.ok(&["trace", "show", &session]).contains("run_shell"), "its call is recorded");
    let trees = cairn.json(&["worktrees"]);
    assert_eq!(trees["data"][0]["setup"]["exitCode"], 0);
    // An existing work tree is used by its branch, and not prepared again.
    fs::remove_file(root.join("prepared.txt")).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let repo = cairn.folder.canonicalize().unwrap();
    let create = |params: Value| {
        runtime.block_on(async { cairn.daemon.client().await.call("session.create", params).await })
    };
    let created = create(json!({"root": repo, "worktree": "existing", "branch": "one"}));
    assert_eq!(created["result"]["root"], json!(root), "{created}");
    assert!(!root.join("prepared.txt").exists());
    for (params, reason) in [
        (json!({"root": repo, "worktree": "existing", "branch": "absent"}), "path_not_found"),
        (json!({"root": repo, "worktree": "existing"}), "path_not_found"),
        (json!({"root": repo, "branch": "one"}), "invalid_params"),
        (json!({"worktree": "new"}), "invalid_params"),
        (json!({"root": root, "worktree": "existing", "base": "main"}), "invalid_params"),
        (json!({"root": repo, "worktree": "new", "branch": "main"}), "git_failed"),
    ] {
        let answer = create(params.clone());
        assert_eq!(answer["error"]["data"]["reason"], reason, "{params}: {answer}");
    }
    assert_eq!(cairn.json(&["worktrees"])["data"].as_array().unwrap().len(), 1);
    // A set-up that fails leaves a work tree that can be used, and says so.
    let config = cairn.daemon.home.join("config/config.json");
    let mut settings: Value = serde_json::from_str(&fs::read_to_string(&config).unwrap()).unwrap();
    settings["worktrees"] = json!({"setup": "exit 3"});
    fs::write(&config, settings.to_string()).unwrap();
    cairn.ok(&["reload"]);
    let (code, _, err) = cairn.cairn(&["run", "go", "--worktree", "two", "--detach"]);
    assert!(code == 1 && err.contains("'exit 3' failed: exit status 3"), "{code} {err}");
    assert_eq!(cairn.json(&["worktrees"])["data"].as_array().unwrap().len(), 2);
    let (code, _, err) = cairn.chat(&["--worktree", "three", "-p", "go"], None);
    assert!(code == 0 && err.contains("the set-up 'exit 3' failed"), "{code} {err}");
}

#[test]
fn work_trees_are_trusted_as_their_repository_and_forged_ones_are_not() {
    let Some(cairn) = repository(&json!([]), &json!({})) else { return };
    let project = r#"{"worktrees": {"setup": "make prepare"}}"#;
    tree(&cairn.folder, &[(".cairn.json", project)]);
    commit_all(&cairn.folder);
    let repo = cairn.folder.canonicalize().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let call = |method: &str, params: Value| {
        runtime.block_on(async { cairn.daemon.client().await.ok(method, params).await })
    };
    call("index.addRoot", json!({"path": repo}));
    let tree_path = call("worktree.create", json!({"root": repo, "branch": "own"}))["path"].clone();
    let tree_path = PathBuf::from(tree_path.as_str().unwrap());
    // The attacks: a copy of the work tree with its `.git` file, and a folder whose file names the
    // repository itself; and a work tree that git created.
    let outside = repo.parent().unwrap();
    let [copied, pointing, foreign] = ["copied", "pointing", "foreign"].map(|n| outside.join(n));
    for folder in [&copied, &pointing] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join(".cairn.json"), project).unwrap();
    }
    fs::copy(tree_path.join(".git"), copied.join(".git")).unwrap();
    let line = format!("gitdir: {}\n", repo.join(".git").display());
    fs::write(pointing.join(".git"), line).unwrap();
    git(&repo, &["worktree", "add", "-q", foreign.to_str().unwrap()]);
    for folder in [&copied, &pointing, &foreign] {
        call("index.addRoot", json!({"path": folder}));
    }
    let setup_in = |folder: &Path| {
        let answer = call("config.get", json!({"root": folder}));
        answer["values"]["worktrees.setup"]["value"].clone()
    };
    let all = [&repo, &tree_path, &copied, &pointing, &foreign];
    for folder in all {
        assert_eq!(setup_in(folder), Value::Null, "{}", folder.display());
    }
    // A path of the configuration is not enough for what runs.
    let config = cairn.daemon.home.join("config/config.json");
    let mut settings: Value = serde_json::from_str(&fs::read_to_string(&config).unwrap()).unwrap();
    settings["trust"] = json!({"folders": [repo]});
    fs::write(&config, settings.to_string()).unwrap();
    cairn.ok(&["reload"]);
    assert_eq!(setup_in(&repo), Value::Null);
    let state = call("trust.get", json!({"folder": repo}));
    let item = &state["items"][0];
    assert_eq!((&item["path"], &item["state"]), (&json!(".cairn.json"), &json!("new")));
    let content = json!({"kind": item["kind"], "path": ".cairn.json", "sha256": item["sha256"]});
    call("trust.set", json!({"folder": repo, "trust": [content]}));
    // Control: the repository and its own work tree are trusted.
    for folder in [&repo, &tree_path] {
        assert_eq!(setup_in(folder), "make prepare", "{}", folder.display());
    }
    for folder in [&copied, &pointing, &foreign] {
        assert_eq!(setup_in(folder), Value::Null, "{}", folder.display());
    }
    // A folder in place of the work tree is judged by its own path.
    fs::remove_dir_all(&tree_path).unwrap();
    fs::create_dir(&tree_path).unwrap();
    fs::write(tree_path.join(".cairn.json"), project).unwrap();
    assert_eq!(setup_in(&tree_path), Value::Null);
}

#[test]
fn schedules_are_added_listed_started_and_removed() {
    let answers = json!([text_answer("the report")]);
    let Some(cairn) = repository(&answers, &json!({})) else { return };
    let add = ["schedule", "add", "every weekday 7:00", "write the report"];
    let zone = ["--timezone", "Europe/Paris", "--mode", "plan"];
    let (code, out, err) = cairn.cairn(&[&add[..], &zone].concat());
    assert_eq!(code, 0, "{err}");
    assert_eq!(err.matches(" 07:00").count(), 3, "{err}");
    let id = out.trim().to_owned();
    let list = cairn.ok(&["schedule"]);
    assert!(list.contains(&id) && list.contains("Europe/Paris"), "{list}");
    let session = cairn.ok(&["schedule", "run-now", &id]).trim().to_owned();
    let row = cairn.until(&session, "completed");
    assert_eq!(row["unattended"]["schedule"], id.as_str());
    let list = cairn.ok(&["schedule", "list"]);
    assert!(list.contains("started") && list.contains(&session), "{list}");
    for (args, code) in [
        (&["schedule", "add", "sometimes", "x"][..], 2),
        (&["schedule", "add", "daily 7:00", "x", "--timezone", "Mars/Olympus"], 2),
        (&["schedule", "remove", "sch_00000000000000000000000000000000"], 3),
    ] {
        assert_eq!(cairn.cairn(args).0, code, "{args:?}");
    }
    cairn.ok(&["schedule", "remove", &id]);
    assert!(cairn.json(&["schedule"])["data"].as_array().unwrap().is_empty());
}

/// Accepts one request and returns its head and its body.
fn received(listener: &TcpListener) -> (String, Value) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).unwrap();
        text.extend_from_slice(&buffer[..count]);
        let all = String::from_utf8_lossy(&text).into_owned();
        let body = all.split_once("\r\n\r\n").map(|(head, body)| (head.to_owned(), body));
        if let Some((head, body)) = body
            && let Ok(body) = serde_json::from_str(body)
        {
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
            return (head, body);
        }
        assert!(count > 0, "the request is incomplete: {all}");
    }
}

#[test]
fn desktop_and_webhook_are_notified_of_questions_and_ends() {
    let write = json!({"path": "new.txt", "content": "new\n"});
    let answers = json!([calls("write_file", &write), text_answer("written")]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // A template of a push service, whose braces must reach it.
    let template = "?template=yes&message=https://den.local:7434{{.data.page}}";
    let url = format!("http://{}/t0ken-in-path{template}", listener.local_addr().unwrap());
    let Some(mut cairn) = repository(&answers, &json!({})) else { return };
    let home = cairn.daemon.home.clone();
    let secret = home.join("webhook.secret");
    fs::write(&secret, "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let config = home.join("config/config.json");
    let mut settings: Value = serde_json::from_str(&fs::read_to_string(&config).unwrap()).unwrap();
    settings["notifications"] = json!({"desktop": true, "webhook": url, "webhookSecretFile": secret, "webhookPrivate": true});
    fs::write(&config, settings.to_string()).unwrap();
    // A program in place of the desktop's.
    let (programs, notes) = (home.join("bin"), home.join("notes"));
    fs::create_dir(&programs).unwrap();
    let script = format!("#!/bin/sh\nprintf '%s|' \"$@\" >> {}\n", notes.display());
    program(&programs.join("notify-send"), &script);
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    cairn.daemon.stop();
    cairn.daemon = Daemon::start_with(&home, &[("PATH", &path)]);
    let session = cairn.ok(&["run", "write 'a' $(file)", "--detach"]).trim().to_owned();
    let (head, body) = received(&listener);
    assert!(head.starts_with(&format!("POST /t0ken-in-path{template} ")), "{head}");
    assert!(head.contains("webhook-signature: v1,"), "{head}");
    assert_eq!((&body["type"], &body["data"]["session"]), (&json!("run.waiting"), &json!(session)));
    assert!(body["data"]["question"].as_str().unwrap().contains("new.txt"), "{body}");
    assert_eq!(body["data"]["page"], format!("/viewer#/session/{session}"), "{body}");
    cairn.ok(&["run", "answer", &session, "once"]);
    let (_, body) = received(&listener);
    assert_eq!(
        (&body["type"], &body["data"]["status"]),
        (&json!("run.finished"), &json!("completed"))
    );
    let notes = fs::read_to_string(&notes).unwrap();
    assert!(notes.contains("|--|Cairn waits for your answer|write 'a' $(file)\n"), "{notes}");
    assert!(notes.contains("Cairn: run completed|"), "{notes}");
    // The address is in no log and in no list of settings.
    assert!(!sealed::logged(&home).contains("t0ken"));
    let listed = cairn.ok(&["config"]);
    assert!(!listed.contains("t0ken") && listed.contains("(set)"), "{listed}");
}

#[test]
fn webhook_without_a_secret_sends_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/t0ken", listener.local_addr().unwrap());
    for (key, settings) in [
        ("webhookSecretFile", json!({"webhook": url, "webhookPrivate": true})),
        (
            "printed",
            json!({"webhook": url, "webhookPrivate": true, "webhookSecretCommand": ["/bin/true"]}),
        ),
    ] {
        let answers = json!([text_answer("done")]);
        let settings = json!({"notifications": settings});
        let Some(cairn) = repository(&answers, &settings) else { return };
        let session = cairn.ok(&["run", "go", "--detach"]).trim().to_owned();
        cairn.until(&session, "completed");
        wait_for("the warning", || sealed::logged(&cairn.daemon.home).contains(key).then_some(()));
        assert!(listener.accept().is_err(), "no request is sent");
    }
}
