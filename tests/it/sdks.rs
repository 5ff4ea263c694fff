//! The clients in other languages: examples, misuse, and restarts of the daemon.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    chat::{calls, scripted, text_answer},
    contents::{complete, index, sources},
    sealed::{Daemon, binary, missing, python, tree},
};

pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Returns a command without variables of this machine that could affect it.
fn sealed(program: &str, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("CAIRN_HOME", home).env("HOME", home).env("CAIRN_BIN", binary());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the output of a command; panics if it failed.
fn printed(mut command: Command, answers: &str) -> String {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(answers.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the explore example, while its daemon is killed after the first record and restarted.
async fn explores_across_a_kill(
    run: &impl Fn(&str) -> Command,
    root: &Path,
    home: &Path,
) -> String {
    let mut daemon = Daemon::start_in(home, &[]);
    let mut child = run("explore").arg(root).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = vec![lines.next().expect("a first record").unwrap()];
    daemon.kill9();
    let daemon = Daemon::start_in(home, &[]);
    let mut raw = daemon.client().await;
    let session = raw.ok("session.list", json!({})).await["data"][0].clone();
    assert_eq!(session["state"], "interrupted", "{session}");
    raw.ok("session.resume", json!({"sessionId": session["sessionId"]})).await;
    seen.extend(lines.map(Result::unwrap));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let languages = seen.pop().unwrap();
    let seqs: Vec<u64> =
        seen.iter().map(|l| l.split(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{seen:#?}");
    assert!(seen.iter().any(|l| l.contains(" resumed")), "{seen:#?}");
    let end = raw.ok("session.get", json!({"sessionId": session["sessionId"]})).await;
    assert_eq!(end["headSeq"], seqs.len());
    // The next search needs a complete index, regardless of the client that opened it.
    complete(&mut raw).await;
    languages
}

/// Runs all checks that each client must pass.
async fn proves_itself(run: &impl Fn(&str) -> Command, home: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    sources(&root, 400);
    let languages = explores_across_a_kill(run, &root, home).await;
    assert!(languages.contains("Python"), "{languages}");

    // The daemon of that home was stopped: the search starts one on demand, which the script stops
    // at the end.
    let results = printed(with(run("search"), &["ledger7"]), "");
    assert!(results.lines().any(|l| l.starts_with("part0/unit7.py:")), "{results}");
    let misuse: Value = serde_json::from_str(&printed(run("misuse"), "")).unwrap();
    assert_eq!(
        misuse,
        json!({
            "absent": "NotRunningError",
            "token": "UnauthorizedError",
            "unreachable": "ConnectError",
            "version": "IncompatibleError",
            "rpc": {"reason": "session_not_found", "retryable": false, "hint": true, "code": misuse["rpc"]["code"]},
            "late": "TimedOutError",
            "after": "ClosedError",
            "broken": "StartError",
        })
    );
}

fn with(mut command: Command, args: &[&str]) -> Command {
    command.args(args);
    command
}

/// Runs the approve example with a model that wants to write a file.
fn approves(run: &impl Fn(&Path) -> Command, answer: &str) -> (String, String) {
    let write = calls("write_file", &json!({"path": "notes.txt", "content": "new\n"}));
    let read = calls("read_file", &json!({"path": "notes.txt"}));
    let cairn = scripted(&json!([read, write, text_answer("done")]));
    let mut command = run(&cairn.daemon.home);
    command.arg(&cairn.folder).arg("write it");
    let out = printed(command, answer);
    (out, std::fs::read_to_string(cairn.folder.join("notes.txt")).unwrap())
}

fn approve_both(run: &impl Fn(&Path) -> Command) {
    let (out, notes) = approves(run, "y\n");
    assert!(out.contains("-old\n+new\n") && out.ends_with("completed\n"), "{out}");
    assert_eq!(notes, "new\n");
    let (out, notes) = approves(run, "n\n");
    assert!(out.contains("-old\n+new\n"), "{out}");
    assert_eq!(notes, "old\n");
}

fn python_script(python: &str, name: &str, home: &Path) -> Command {
    let sdk = project().join("client-sdk/python");
    let folder = if matches!(name, "misuse" | "lines" | "reconnect") {
        project().join("tests/conformance/sdk")
    } else {
        sdk.join("examples")
    };
    let mut command = sealed(python, home);
    command.env("PYTHONPATH", sdk.join("src")).args(["-u", "-W", "error", "-X", "dev"]);
    command.arg(folder.join(format!("{name}.py")));
    command
}

#[tokio::test]
async fn python_client_explores_searches_and_survives_a_kill() {
    let Some(python) = python("websockets") else { return };
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    proves_itself(&|name: &str| python_script(&python, name, &home), &home).await;
}

/// Runs the script of a client that reads all lines of a pattern.
async fn reads_all_lines(run: &impl Fn(&Path) -> Command) {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    let rows = |n: u32| (0..n).map(|row| format!("the {row}. ledger\n")).collect::<String>();
    // The longest file exceeds the buffer of a client, and the buffer for one file.
    tree(dir.path(), &[("a.txt", &rows(40)), ("b/many.txt", &rows(150_000)), ("c.txt", &rows(3))]);
    let mut raw = daemon.client().await;
    index(&mut raw, dir.path()).await;
    let report: Value = serde_json::from_str(&printed(run(&daemon.home), "")).unwrap();
    let parts = report["parts"].as_u64().unwrap();
    assert!(parts > 10, "{report}");
    let expected =
        json!({"lines": 150_043, "same": true, "parts": parts, "bad": "bad_pattern", "some": true});
    assert_eq!(report, expected);
}

#[tokio::test]
async fn python_client_reads_all_lines() {
    let Some(python) = python("websockets") else { return };
    reads_all_lines(&|home: &Path| python_script(&python, "lines", home)).await;
}

#[test]
fn python_client_calls_a_restarted_daemon() {
    let Some(python) = python("websockets") else { return };
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let mut command = python_script(&python, "reconnect", &home);
    command.arg(binary());
    let report: Value = serde_json::from_str(&printed(command, "")).unwrap();
    let closed = "the connection ended: by this client";
    assert_eq!(
        report,
        json!({"cut": "ClosedError", "restarted": true, "same": true, "closed": closed})
    );
}

#[test]
fn python_client_approves() {
    let Some(python) = python("websockets") else { return };
    approve_both(&|home: &Path| python_script(&python, "approve", home));
}

/// Returns Node, and the folder of packages including the client built from its sources; `None`
/// after a notice.
pub fn node() -> Option<(PathBuf, PathBuf)> {
    static CLIENT: std::sync::OnceLock<Option<(PathBuf, PathBuf)>> = std::sync::OnceLock::new();
    CLIENT
        .get_or_init(|| {
            let peers = project().join("target/peers");
            let (node, modules) = (peers.join("bin/node"), peers.join("npm/node_modules"));
            let compiler = modules.join("typescript/bin/tsc");
            if !(node.exists() && compiler.exists()) {
                missing("npm's typescript in target/peers");
                return None;
            }
            let (sdk, package) =
                (project().join("client-sdk/typescript"), modules.join("cairn-client"));
            std::fs::create_dir_all(&package).unwrap();
            std::fs::copy(sdk.join("package.json"), package.join("package.json")).unwrap();
            let mut check = Command::new(&node);
            check.arg(compiler).arg("-p").arg(&sdk).arg("--outDir").arg(package.join("dist"));
            let output = check.arg("--typeRoots").arg(modules.join("@types")).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            Some((node, modules))
        })
        .clone()
}

/// Writes a script beside the packages, because Node resolves them from there.
pub fn node_script((node, modules): &(PathBuf, PathBuf), name: &str, home: &Path) -> Command {
    let from = match name {
        "editor" => project().join("tests/conformance/editor.mjs"),
        "misuse" | "lines" => project().join(format!("tests/conformance/sdk/{name}.mjs")),
        _ => project().join(format!("client-sdk/typescript/examples/{name}.mjs")),
    };
    let script_path = modules.parent().unwrap().join(format!("{name}.mjs"));
    let text = std::fs::read(from).unwrap();
    // Tests run concurrently: an existing file stays unchanged.
    if std::fs::read(&script_path).ok().as_ref() != Some(&text) {
        std::fs::write(&script_path, text).unwrap();
    }
    let mut command = sealed(node.to_str().unwrap(), home);
    command.arg(script_path);
    command
}

#[tokio::test]
async fn typescript_client_explores_searches_and_survives_a_kill() {
    let Some(node) = node() else { return };
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    proves_itself(&|name: &str| node_script(&node, name, &home), &home).await;
}

#[tokio::test]
async fn typescript_client_reads_all_lines() {
    let Some(node) = node() else { return };
    reads_all_lines(&|home: &Path| node_script(&node, "lines", home)).await;
}

#[test]
fn typescript_client_approves() {
    let Some(node) = node() else { return };
    approve_both(&|home: &Path| node_script(&node, "approve", home));
}

#[test]
fn method_table_is_a_valid_openrpc_document() {
    let Some((node, modules)) = node() else { return };
    if !modules.join("@open-rpc/meta-schema").exists() {
        return missing("npm's @open-rpc/meta-schema");
    }
    let mut check = Command::new(node);
    check.arg(project().join("tests/conformance/openrpc.mjs"));
    check
        .arg(project().join("protocol/schema/openrpc.json"))
        .current_dir(modules.parent().unwrap());
    let output = check.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["methods"].as_u64() > Some(60) && report["refusesAnother"] == true, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn openrpc_test_tool_calls_the_daemon() {
    let Some((node, modules)) = node() else { return };
    if !modules.join("@open-rpc/test-coverage").exists() {
        return missing("npm's @open-rpc/test-coverage");
    }
    let (daemon, dir) = (Daemon::start(), tempfile::tempdir().unwrap());
    tree(dir.path(), &[("a.rs", "fn a() {}\n")]);
    let mut raw = daemon.client().await;
    index(&mut raw, dir.path()).await;
    let mut check = Command::new(node);
    check.arg(project().join("tests/conformance/coverage.mjs"));
    check
        .arg(project().join("protocol/schema/openrpc.json"))
        .args([daemon.address(), daemon.token()]);
    let output = check.current_dir(modules.parent().unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["wrong"], &report["refusesAnother"]),
        (&json!([]), &json!(true)),
        "{report}"
    );
    assert!(report["methods"].as_u64() > Some(15), "{report}");
}
