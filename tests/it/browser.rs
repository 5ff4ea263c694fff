//! The viewer, and a page with the TypeScript client, in a real browser.

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    chat::{calls, text_answer},
    sdks::{node, project},
    sealed::{Daemon, command, git, missing, note, python, tree},
};

/// Number of records of the large session.
const RECORDS: u64 = 100_000;

/// Returns the path of a browser on this machine.
pub fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let browser = std::env::split_paths(&folders)
        .flat_map(|dir| names.map(|name| dir.join(name)))
        .find(|p| p.is_file());
    if browser.is_none() {
        missing("chromium");
    }
    browser
}

/// Imports a session with very many records, generated from those of a small one.
async fn large(daemon: &Daemon, root: &Path, dir: &Path) {
    let mut raw = daemon.client().await;
    raw.ok("index.addRoot", json!({"path": root})).await;
    let session =
        raw.ok("session.create", json!({"title": "large", "root": root})).await["sessionId"]
            .clone();
    assert_eq!(raw.call_tool(&session, "fs_list_dir", json!({"path": "."})).await["ok"], true);
    let (id, file) = (session.as_str().unwrap(), dir.join("large.jsonl"));
    let run = |args: &[&str]| {
        let output = command(&daemon.home).args(args).stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["trace", "export", id, "-o", file.to_str().unwrap()]);
    let text = std::fs::read_to_string(&file).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut header = lines.next().unwrap();
    let record = lines.find(|line| line["evt"]["type"] == "result").unwrap();
    let blank = record["id"].as_str().unwrap()[..24].to_owned();
    header["session"]["headSeq"] = RECORDS.into();
    let mut out = format!("{header}\n");
    for seq in 1..=RECORDS {
        let mut next = record.clone();
        (next["seq"], next["id"]) = (seq.into(), format!("{blank}{seq:012x}").into());
        next.as_object_mut().unwrap().remove("parentId");
        writeln!(out, "{next}").unwrap();
    }
    std::fs::write(&file, out).unwrap();
    raw.ok("session.delete", json!({"sessionId": session})).await;
    run(&["trace", "import", file.to_str().unwrap()]);
}

#[tokio::test]
async fn viewer_works_by_keyboard_in_a_browser() {
    let (Some(python), Some(chromium)) = (python("websockets"), chromium()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("repo"));
    let write = json!({"path": "made.txt", "content": "by leave\n"});
    let script = json!({"model": "script", "contextTokens": 16384, "answers": [calls("write_file", &write), text_answer("done")]});
    tree(
        dir.path(),
        &[
            ("script.json", &script.to_string()),
            ("repo/a.rs", "fn a() {}\n"),
            ("repo/.git/HEAD", "x"),
        ],
    );
    let config =
        json!({"llm": {"provider": "scripted", "endpoint": dir.path().join("script.json")}});
    tree(&home, &[("config/config.json", &config.to_string())]);
    let daemon = Daemon::start_in(&home, &[]);
    large(&daemon, &root, dir.path()).await;
    let mut driver = Command::new(python);
    driver.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/browser.py"));
    driver.arg(chromium).args([daemon.address(), daemon.token()]).arg(&root).arg("large");
    let output = driver.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The code of the link was removed from the address.
    assert_eq!(seen["address"], "/viewer#/", "{seen}");
    let text = |name: &str| seen[name].as_str().unwrap_or_else(|| panic!("{name}: {seen}"));
    assert_eq!(seen["before"], 0, "{seen}");
    assert!(text("call").contains("List") && text("call").contains("1 result"), "{seen}");
    assert!(text("inline").contains("made.txt"), "{seen}");
    // The inbox names the session and its folder, the rule, and what each answer stores.
    for part in ["made.txt", "watched", "repo", "Stores nothing", "Until the session ends", "+1"] {
        assert!(text("asked").contains(part), "{part}: {seen}");
    }
    assert_eq!(seen["outcome"], "completed", "{seen}");
    assert_eq!(std::fs::read_to_string(root.join("made.txt")).unwrap(), "by leave\n");
    for part in ["write it", "Write", "made.txt", "Allowed once by you", "done", "completed"] {
        assert!(text("conversation").contains(part), "{part}: {seen}");
    }
    assert!(text("opened").contains("by leave"), "{seen}");
    assert_eq!(
        (&seen["large"], &seen["last"]),
        (&json!(RECORDS), &json!(RECORDS.to_string())),
        "{seen}"
    );
    // Only a part of the records is in the page, also after scrolling.
    for rows in ["rows", "after"] {
        assert!((1..=3500).contains(&seen[rows].as_u64().unwrap()), "{rows}: {seen}");
    }
    note(&format!(
        "a session of {RECORDS} records is shown in {} ms; frames while scrolling: {} ms (median, 95 %)",
        seen["firstPaintMs"], seen["frameMs"]
    ));
}

/// Texts of a repository that would do harm as HTML, as code or by their direction.
const HOSTILE_FOLDER: &str = "<img src=x onerror=window.harmed=1>";
const HOSTILE_TEXT: &str = "</script><img src=x onerror=window.harmed=1> a \u{202e}tool";

#[tokio::test]
async fn explore_starts_and_reports_in_a_browser() {
    let (Some(python), Some(chromium)) = (python("websockets"), chromium()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("repo"));
    let manifest = |name: &str| {
        format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\ndescription = {HOSTILE_TEXT:?}\n"
        )
        .replace("\\u{202e}", "\\u202e")
    };
    let own = format!("{}[dependencies]\nlower = {{ path = \"../lower\" }}\n", manifest("upper"));
    let hostile = format!("repo/{HOSTILE_FOLDER}/lib.py");
    tree(
        dir.path(),
        &[
            ("repo/Cargo.toml", "[workspace]\nmembers = [\"upper\", \"lower\"]\n"),
            ("repo/upper/Cargo.toml", &own),
            ("repo/upper/src/main.rs", "use lower::go;\n\nfn main() {\n    go();\n}\n"),
            ("repo/lower/Cargo.toml", &manifest("lower")),
            ("repo/lower/src/lib.rs", "pub fn go() {}\n"),
            (&hostile, "def f():\n    return 1\n"),
            ("repo/README.md", &format!("# Repo\n\nThis is {HOSTILE_TEXT} of many words.\n")),
        ],
    );
    git(&root, &["init", "-q"]);
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", HOSTILE_TEXT]);
    std::fs::write(root.join("lower/src/lib.rs"), "pub fn go() {}\npub fn stop() {}\n").unwrap();
    let daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    raw.ok("index.addRoot", json!({"path": root})).await;
    let mut driver = Command::new(python);
    driver.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/explore_page.py"));
    driver.arg(chromium).args([daemon.address(), daemon.token()]).arg(&root);
    let output = driver.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    check_explore_page(&seen);
}

fn check_explore_page(seen: &Value) {
    let text = |name: &str| seen[name].as_str().unwrap_or_else(|| panic!("{name}: {seen}"));
    assert!(text("empty").contains("Enter a folder"), "{seen}");
    assert!(text("relative").contains("absolute path"), "{seen}");
    assert!(text("branch").contains("only a URL"), "{seen}");
    assert!(text("range").contains("one revision"), "{seen}");
    assert!(text("undeclared").contains("declared folders only"), "{seen}");
    assert!(text("revision").contains("no revision 'nosuch'"), "{seen}");
    assert!(text("stopped").contains("The explore has been stopped"), "{seen}");
    let sections: Vec<&str> =
        seen["sections"].as_array().unwrap().iter().map(|s| s.as_str().unwrap()).collect();
    for section in ["Changes", "Components", "Languages", "Where it starts", "Each component"] {
        assert!(sections.contains(&section), "{section}: {sections:?}");
    }
    assert!(text("changes").contains("0 commits, 1 changed file, +1 −0 lines"), "{seen}");
    assert!(seen["boxes"].as_u64() >= Some(2) && seen["edges"].as_u64() >= Some(1), "{seen}");
    assert_eq!(seen["focused"], "card", "{seen}");
    // Text of the repository is shown as text, and its hidden characters are visible.
    assert!(text("page").contains("<img src=x onerror=window.harmed=1>"), "{seen}");
    assert!(text("page").contains("\\u{202e}"), "{seen}");
    assert_eq!((&seen["images"], &seen["harmed"]), (&json!(0), &Value::Null), "{seen}");
    assert_eq!(seen["hidden"], json!(0), "{seen}");
    for width in ["wide", "narrow"] {
        assert_eq!(seen[width], json!(true), "the page is wider than its window: {seen}");
    }
    assert_eq!((&seen["reader"], &seen["allowed"]), (&json!(false), &json!(true)), "{seen}");
    assert_eq!(seen["unnamed"], json!([]), "controls without a name: {seen}");
    assert_eq!(seen["reopened"], "repo", "{seen}");
}

/// Creates a folder to serve: the example page, and the client as published.
fn page(dir: &Path, modules: &Path) {
    let build_output = modules.join("cairn-client/dist");
    std::fs::create_dir_all(dir.join("cairn-client")).unwrap();
    for file in std::fs::read_dir(build_output).unwrap().flatten() {
        std::fs::copy(file.path(), dir.join("cairn-client").join(file.file_name())).unwrap();
    }
    let example = project().join("client-sdk/typescript/examples/page.html");
    std::fs::copy(example, dir.join("page.html")).unwrap();
}

#[test]
fn typescript_client_works_in_a_browser() {
    let (Some(python), Some(chromium), Some((_, modules))) =
        (python("websockets"), chromium(), node())
    else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (home, root, site) =
        (dir.path().join("home"), dir.path().join("repo"), dir.path().join("site"));
    page(&site, &modules);
    let mut driver = Command::new(python);
    driver
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/page.py"))
        .arg(chromium)
        .arg(&site);
    let mut driver =
        driver.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let origin = lines.next().expect("an origin").unwrap();

    let write = json!({"path": "made.txt", "content": "by leave\n"});
    let script = json!({"model": "script", "contextTokens": 16384, "answers": [calls("write_file", &write), text_answer("done")]});
    tree(
        dir.path(),
        &[
            ("script.json", &script.to_string()),
            ("repo/ledger.py", "def open_ledger(path):\n    return path\n"),
            ("repo/.git/HEAD", "x"),
        ],
    );
    let config = json!({
        "llm": {"provider": "scripted", "endpoint": dir.path().join("script.json")},
        "listen": {"allowedOrigins": [origin]},
    });
    tree(&home, &[("config/config.json", &config.to_string())]);
    let daemon = Daemon::start_in(&home, &[]);
    let driver_input = json!({
        "address": daemon.address(), "token": daemon.token(), "root": root, "query": "open the ledger",
    });
    writeln!(driver.stdin.take().unwrap(), "{driver_input}").unwrap();
    let seen = lines.next().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let output = driver.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen = seen.unwrap();
    let example = seen["example"].as_str().unwrap();
    assert!(example.starts_with("1 ") && example.contains("completed"), "{example}");
    assert!(example.contains("\nledger.py:1-"), "{example}");
    // The connection was cut while the approval was pending: no record is missing or duplicated.
    let seqs: Vec<u64> = serde_json::from_value(seen["turn"]["seqs"].clone()).unwrap();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{seen}");
    assert_eq!(
        (&seen["turn"]["outcome"], &seen["turn"]["reconnects"]),
        (&json!("completed"), &json!(1)),
        "{seen}"
    );
    assert_eq!(std::fs::read_to_string(root.join("made.txt")).unwrap(), "by leave\n");
    assert_eq!(
        (&seen["post"], &seen["token"]),
        (&json!(true), &json!("UnauthorizedError")),
        "{seen}"
    );
    assert_eq!(seen["unreachable"], "ConnectError", "{seen}");
    // A page of an origin that is not allowed is refused in both ways.
    assert_eq!(
        (&seen["stranger"], &seen["strangerPost"]),
        (&json!("ConnectError"), &json!("TypeError")),
        "{seen}"
    );
}
