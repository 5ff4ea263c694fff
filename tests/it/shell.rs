//! `run_shell` and `evaluate` through the gate, with the real binary as the sandbox's helper.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{path::Path, sync::Arc, time::Duration};

use cairn_harness::{
    Call, GrantedRules, Grants, Harness, Registry, Rules, Sandbox,
    sandbox::{Host, Tier},
};
use cairn_protocol::error::{Failure, Reason};
use cairn_search::{Embedder, IndexOptions, Indexes};
use cairn_tools::{Deps, ShellMode, ShellOptions};
use cairn_trace::{NewSession, Trace};
use cairn_workspace::{Root, Roots};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::sealed::binary;

struct Fixture {
    dir: tempfile::TempDir,
    harness: Harness,
    session: cairn_protocol::id::SessionId,
    root: Root,
}

/// Creates a workspace and a gate with the tools; `None` without a full sandbox, which is a failure
/// where one is required.
async fn fixture(shell: ShellOptions, allow: &[&str], helper: bool) -> Option<Fixture> {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().canonicalize().unwrap();
    for (file, text) in
        [("work/read.txt", "inside\n"), ("work/sub/a.txt", "a\n"), ("out.txt", "s3cret")]
    {
        std::fs::create_dir_all(at.join(file).parent().unwrap()).unwrap();
        std::fs::write(at.join(file), text).unwrap();
    }
    let host = Host { path: vec!["/usr/bin".into(), "/bin".into()], ..Host::default() };
    let sandbox = Sandbox::new(helper.then(|| binary().to_owned())).for_host(host);
    if helper && sandbox.probe().tier != Tier::Full {
        crate::sealed::missing(&format!("a full sandbox ({:?})", sandbox.probe().why_not_full));
        return None;
    }
    let trace = Trace::open(&at.join("trace.db")).unwrap();
    let roots = Arc::new(Roots::new(vec![]));
    let root = roots.declare(&at.join("work")).unwrap();
    let options = IndexOptions::new(Embedder::builtin().unwrap()).unwrap();
    let indexes = Arc::new(Indexes::open(at.join("index"), options, None));
    let registry = Registry::default();
    cairn_tools::register(&registry, &Deps { shell, ..Deps::new(roots, indexes) }).unwrap();
    let allow = allow.iter().map(|r| r.parse().unwrap()).collect();
    let rules = Rules { allow, ..Rules::default() };
    let session = trace.create_session(NewSession::default()).await.unwrap().session_id;
    let granted = GrantedRules::load(None).unwrap();
    let harness = Harness::new(
        registry,
        rules,
        trace,
        granted,
        Duration::from_secs(60),
        CancellationToken::new(),
    )
    .with_sandbox(Arc::new(sandbox));
    Some(Fixture { dir, harness, session, root })
}

impl Fixture {
    async fn with(&self, name: &str, arguments: Value, grants: Grants) -> Result<Value, Failure> {
        let root = Some(self.root.clone());
        let call = Call { root, grants, ..Call::new(self.session.clone(), name, arguments) };
        self.harness.call(call).await.map(|o| o.value)
    }

    async fn call(&self, name: &str, arguments: Value) -> Result<Value, Failure> {
        self.with(name, arguments, Grants::default()).await
    }

    fn path(&self, inner: &str) -> std::path::PathBuf {
        self.dir.path().canonicalize().unwrap().join(inner)
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn command_respects_working_directory_and_timeout() {
    let Some(fixture) = fixture(ShellOptions::default(), &["run_shell"], true).await else {
        return;
    };
    let done = fixture
        .call("run_shell", json!({"command": "cat read.txt; echo oops >&2; exit 4"}))
        .await
        .unwrap();
    let want = json!({"exit_code": 4, "stdout": "inside\n", "stderr": "oops\n", "timed_out": false, "truncated": false, "sandbox": "full"});
    assert_eq!(done, want);
    // Empty input is not a pipe: some programs would read a pipe instead of the given files.
    let done = fixture.call(
        "run_shell",
        json!({"command": "readlink /proc/self/fd/0; cat; ls /proc/self/fd | wc -l"}),
    );
    assert_eq!(text(&done.await.unwrap(), "stdout"), "/dev/null\n4\n");
    // The tool's former name.
    let done = fixture
        .call("bash", json!({"command": "cat a.txt", "working_directory": "sub"}))
        .await
        .unwrap();
    assert_eq!(text(&done, "stdout"), "a\n");
    let slow = json!({"command": "echo a; sleep 60", "timeout_seconds": 1});
    let done = fixture.call("run_shell", slow).await.unwrap();
    assert_eq!((text(&done, "stdout"), &done["timed_out"]), ("a\n", &json!(true)));
    for outside in ["..", "/", "sub/../.."] {
        let arguments = json!({"command": "true", "working_directory": outside});
        let error = fixture.call("run_shell", arguments).await.unwrap_err();
        assert_eq!(error.reason, Reason::PathOutsideRoots, "{outside}: {error}");
    }
    let script = format!("cat {0}; echo x > {0}", fixture.path("out.txt").display());
    let done = fixture.call("run_shell", json!({"command": script})).await.unwrap();
    assert_eq!(text(&done, "stdout"), "");
    assert_eq!(std::fs::read_to_string(fixture.path("out.txt")).unwrap(), "s3cret");
}

#[test]
fn small_helper_of_the_same_build_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().canonicalize().unwrap();
    let (own, small) = (at.join("cairn"), at.join("cairn-sandbox"));
    // Links are used because a program written by this process may still be open in a child that is
    // starting, and then cannot be run.
    std::os::unix::fs::symlink(binary(), &own).unwrap();
    let ours = binary().with_file_name("cairn-sandbox");
    for (beside, used) in
        [(None, false), (Some(Path::new("/bin/echo")), false), (Some(&*ours), true)]
    {
        if let Some(beside) = beside {
            drop(std::fs::remove_file(&small));
            std::os::unix::fs::symlink(beside, &small).unwrap();
        }
        let sandbox = Sandbox::new(Some(own.clone()));
        if sandbox.probe().tier != Tier::Full {
            return crate::sealed::missing("a full sandbox");
        }
        assert_eq!(sandbox.helper().unwrap() == small, used, "{beside:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_is_restricted_to_its_paths() {
    let Some(fixture) = fixture(ShellOptions::default(), &["run_shell"], true).await else {
        return;
    };
    let grants = || Grants { paths: Some(vec!["sub".into()]), ..Grants::default() };
    let inside = json!({"command": "cat a.txt ../read.txt", "working_directory": "sub"});
    let done = fixture.with("run_shell", inside, grants()).await.unwrap();
    assert_eq!(text(&done, "stdout"), "a\n");
    let error = fixture
        .with("run_shell", json!({"command": "true", "working_directory": "."}), grants())
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::ToolDenied, "{error}");
    let code = json!({"code": "import os; print(os.listdir('.'))"});
    let done = fixture.with("evaluate", code, grants()).await.unwrap();
    assert_eq!(text(&done, "stdout"), "['a.txt']\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_apply_to_each_command_of_a_line() {
    let Some(fixture) =
        fixture(ShellOptions::default(), &["run_shell(cat *)", "run_shell(wc *)"], true).await
    else {
        return;
    };
    let done = fixture.call("run_shell", json!({"command": "cat read.txt | wc -l"})).await.unwrap();
    assert_eq!(text(&done, "stdout").trim(), "1");
    let error =
        fixture.call("run_shell", json!({"command": "cat read.txt; touch new"})).await.unwrap_err();
    assert!(error.reason == Reason::NoApprover && error.message.contains("'touch new'"), "{error}");
    assert!(!fixture.path("work/new").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn shell_modes_are_enforced() {
    let listed = |mode| ShellOptions { mode, ..ShellOptions::default() };
    let allowed = ShellMode::Allowlist(vec!["run_shell(cat *)".parse().unwrap()]);
    let Some(list) = fixture(listed(allowed), &["run_shell"], true).await else { return };
    assert!(list.call("run_shell", json!({"command": "cat read.txt"})).await.is_ok());
    for command in ["ls", "cat read.txt; ls", "cat $(ls)", "cat read.txt > new"] {
        let error = list.call("run_shell", json!({"command": command})).await.unwrap_err();
        assert!(
            error.reason == Reason::ToolDenied && error.message.contains("allowlist"),
            "{command}: {error}"
        );
    }
    let off = fixture(listed(ShellMode::Off), &["run_shell"], true).await.unwrap();
    let error = off.call("run_shell", json!({"command": "true"})).await.unwrap_err();
    assert_eq!(error.reason, Reason::UnknownTool);
    let small = ShellOptions {
        max_output: Some(1000),
        timeout: Some(Duration::from_secs(1)),
        anywhere: true,
        ..ShellOptions::default()
    };
    let small = fixture(small, &["run_shell"], true).await.unwrap();
    let done =
        small.call("run_shell", json!({"command": "yes", "timeout_seconds": 500})).await.unwrap();
    assert_eq!((&done["timed_out"], &done["truncated"]), (&json!(true), &json!(true)));
    assert!(text(&done, "stdout").len() < 1200 && text(&done, "stdout").contains("omitted"));
    let anywhere = json!({"command": "pwd", "working_directory": "/usr/bin"});
    assert_eq!(text(&small.call("run_shell", anywhere).await.unwrap(), "stdout"), "/usr/bin\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_runs_without_a_helper() {
    let fixture = fixture(ShellOptions::default(), &["run_shell"], false).await.unwrap();
    for (tool, arguments) in
        [("run_shell", json!({"command": "touch new"})), ("evaluate", json!({"code": "1"}))]
    {
        let error = fixture.call(tool, arguments).await.unwrap_err();
        assert_eq!(error.reason, Reason::SandboxMissing, "{error}");
    }
    assert!(!fixture.path("work/new").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_call_kills_its_process() {
    let Some(fixture) = fixture(ShellOptions::default(), &["run_shell"], true).await else {
        return;
    };
    let mark = fixture.path("work/ticks");
    let script = json!({"command": "while :; do echo x >> ticks; sleep 0.02; done"});
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
    let mut call = Box::pin(fixture.call("run_shell", script));
    while length(&mark) == 0 {
        let tick = tokio::time::timeout(Duration::from_millis(20), &mut call).await;
        assert!(tick.is_err(), "{tick:?}");
    }
    drop(call);
    let until = std::time::Instant::now() + Duration::from_secs(60);
    loop {
        let before = length(&mark);
        tokio::time::sleep(Duration::from_millis(300)).await;
        if length(&mark) == before {
            break;
        }
        assert!(std::time::Instant::now() < until, "it goes on");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn python_computes_and_writes_nothing() {
    let Some(fixture) = fixture(ShellOptions::default(), &[], true).await else { return };
    for (code, out, err) in [
        ("print(sum(range(10)))", "45\n", ""),
        ("print(open('read.txt').read())", "inside\n\n", ""),
        ("open('new', 'w')", "", "write_file"),
        ("open('new', 'x+')", "", "write_file"),
        ("import io; io.open('new', 'a')", "", "write_file"),
        ("import os; os.open('new', os.O_CREAT | os.O_WRONLY)", "", "write_file"),
        ("open('/etc/passwd')", "", "outside the workspace"),
        ("import os; os.mkdir('new')", "", "Read-only file system"),
        ("import os; os.remove('read.txt')", "", "Read-only file system"),
        ("import os; print(os.system('touch new') == 0)", "False\n", ""),
        ("import _io; _io.FileIO('new', 'w')", "", "Read-only file system"),
        ("import socket; socket.create_connection(('127.0.0.1', 1))", "", "refused"),
        ("raise ValueError('mine')", "", "ValueError: mine"),
        ("import sys; print(sys.flags.isolated, sys.flags.no_site)", "1 1\n", ""),
    ] {
        let done = fixture.call("python3", json!({"code": code})).await.unwrap();
        assert_eq!(text(&done, "stdout"), out, "{code}: {done}");
        assert!(text(&done, "stderr").contains(err), "{code}: {done}");
    }
    assert!(!fixture.path("work/new").exists() && fixture.path("work/read.txt").exists());
    let done = fixture
        .call("evaluate", json!({"code": "while True: pass", "timeout_seconds": 1}))
        .await
        .unwrap();
    assert_eq!(done["timed_out"], json!(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn shell_of_the_skill_takes_its_own_arguments() {
    let Some(fixture) = fixture(ShellOptions::default(), &["run_shell"], true).await else {
        return;
    };
    let done = fixture.call("shell", json!({"cmd": "cat a.txt", "cwd": "sub"})).await.unwrap();
    assert_eq!(text(&done, "stdout"), "a\n");
    let long = json!({"cmd": "seq 1000", "maxOutputChars": 10});
    let done = fixture.call("shell", long).await.unwrap();
    assert!(text(&done, "stdout").ends_with("… [cut]") && text(&done, "stdout").len() < 30);
    assert_eq!(done["truncated"], json!(true));
    let slow = json!({"cmd": "echo a; sleep 60", "timeoutMs": 800});
    assert_eq!(fixture.call("shell", slow).await.unwrap()["timed_out"], json!(true));
    let wrong = fixture.call("shell", json!({"command": "true"})).await.unwrap_err();
    assert_eq!(wrong.reason, Reason::InvalidParams);
}
