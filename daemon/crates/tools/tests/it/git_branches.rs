//! Branches, stashes and restored files, in repositories that name programs; git itself reads the
//! results.

use std::{os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use cairn_protocol::error::Reason;
use serde_json::{Value, json};

use crate::fixture::{Fixture, allow, within};

/// Returns the output of git.
fn git(at: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=u", "-c", "user.email=u@x", "-c", "commit.gpgsign=false"])
        .args(args)
        .current_dir(at)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

const TOOLS: &[&str] = &["git_branch", "git_stash", "git_checkout", "git_commit", "write_file"];

/// Creates a repository with a commit, whose hooks, filters and monitor leave a mark.
async fn hostile() -> Fixture {
    let files = [("a.txt", "one\n"), ("b.txt", "b\n"), ("sub/c.txt", "c\n")];
    let fixture = Fixture::new(&files, allow(TOOLS)).await;
    let at = fixture.path(".");
    git(&at, &["init", "-q", "-b", "main"]);
    git(&at, &["add", "."]);
    git(&at, &["commit", "-q", "-m", "first"]);
    let mark = fixture.beside("ran");
    let program = fixture.beside("program");
    std::fs::write(&program, format!("#!/bin/sh\necho \"$0\" >> {}\ncat\n", mark.display()))
        .unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    for hook in [
        "pre-commit",
        "post-commit",
        "commit-msg",
        "prepare-commit-msg",
        "post-checkout",
        "post-index-change",
        "reference-transaction",
    ] {
        std::fs::create_dir_all(at.join(".git/hooks")).unwrap();
        std::fs::copy(&program, at.join(".git/hooks").join(hook)).unwrap();
    }
    let program = program.to_string_lossy().into_owned();
    for key in ["filter.x.clean", "filter.x.smudge", "core.fsmonitor", "diff.external"] {
        git2::Repository::open(&at).unwrap().config().unwrap().set_str(key, &program).unwrap();
    }
    std::fs::write(at.join(".git/info/attributes"), "* filter=x\n").unwrap();
    fixture
}

fn has_run(fixture: &Fixture) -> bool {
    fixture.beside("ran").exists()
}

#[tokio::test]
async fn no_tool_of_git_runs_a_program_of_the_repository() {
    let fixture = hostile().await;
    let at = fixture.path(".");
    let call = |name: &'static str, arguments: Value| fixture.call(name, arguments);
    let created = call("git_branch", json!({"action": "create", "name": "topic"})).await.unwrap();
    assert_eq!(created["branch"], "topic");
    std::fs::write(at.join("a.txt"), "two\n").unwrap();
    std::fs::write(at.join("new.txt"), "new\n").unwrap();
    let commit = json!({"paths": ["a.txt", "new.txt"], "message": "second"});
    let committed = call("git_commit", commit).await.unwrap();
    std::fs::write(at.join("b.txt"), "changed\n").unwrap();
    std::fs::write(at.join("loose.txt"), "loose\n").unwrap();
    let push = json!({"action": "push", "message": "later", "include_untracked": true});
    let pushed = call("git_stash", push).await.unwrap();
    assert_eq!(pushed["paths"], json!(["b.txt", "loose.txt"]), "{pushed}");
    assert_eq!((fixture.read("b.txt").as_deref(), fixture.read("loose.txt")), (Some("b\n"), None));
    let stashes = call("git_stash_list", json!({})).await.unwrap();
    assert!(stashes["stashes"][0]["message"].as_str().unwrap().contains("later"), "{stashes}");
    call("git_branch", json!({"action": "switch", "name": "main"})).await.unwrap();
    assert_eq!((fixture.read("a.txt").as_deref(), fixture.read("new.txt")), (Some("one\n"), None));
    call("git_branch", json!({"action": "switch", "name": "topic"})).await.unwrap();
    assert_eq!(fixture.read("a.txt").as_deref(), Some("two\n"));
    let popped = call("git_stash", json!({"action": "pop"})).await.unwrap();
    assert_eq!(popped["stash"], pushed["stash"]);
    assert_eq!(fixture.read("b.txt").as_deref(), Some("changed\n"));
    assert_eq!(fixture.read("loose.txt").as_deref(), Some("loose\n"));
    let restored = call("git_checkout", json!({"paths": ["b.txt"]})).await.unwrap();
    assert_eq!(restored["restored"], json!(["b.txt"]));
    let old = json!({"paths": ["a.txt", "sub/c.txt"], "revision": "main"});
    assert_eq!(call("git_checkout", old).await.unwrap()["restored"], json!(["a.txt"]));
    for (name, arguments) in
        [("git_status", json!({"path": "."})), ("git_diff", json!({})), ("git_log", json!({}))]
    {
        call(name, arguments).await.unwrap();
    }
    assert!(!has_run(&fixture));
    // Git agrees; its own configuration is set aside for that.
    let plain = |args: &[&str]| {
        let neutral = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
        let filters = ["-c", "filter.x.clean=cat", "-c", "filter.x.smudge=cat"];
        git(&at, &[&neutral, &filters, args].concat())
    };
    assert_eq!(plain(&["rev-parse", "--abbrev-ref", "HEAD"]), "topic\n");
    assert_eq!(plain(&["rev-parse", "HEAD"]).trim(), committed["commit"]);
    assert_eq!(plain(&["status", "--porcelain"]), " M a.txt\n?? loose.txt\n");
    assert_eq!(plain(&["stash", "list"]), "");
    plain(&["fsck", "--strict"]);
    assert!(!has_run(&fixture));
    // Control: plain git runs the programs.
    git(&at, &["checkout", "-q", "a.txt"]);
    assert!(has_run(&fixture));
}

#[tokio::test]
async fn overwriting_and_forbidden_changes_are_refused() {
    let fixture = hostile().await;
    let at = fixture.path(".");
    let branch = |action: &str, name: &str| {
        fixture.call("git_branch", json!({"action": action, "name": name}))
    };
    branch("create", "topic").await.unwrap();
    std::fs::write(at.join("a.txt"), "two\n").unwrap();
    let commit = json!({"paths": ["a.txt"], "message": "second"});
    fixture.call("git_commit", commit).await.unwrap();
    // Uncommitted changes that the switch would overwrite.
    std::fs::write(at.join("a.txt"), "precious\n").unwrap();
    let error = branch("switch", "main").await.unwrap_err();
    assert!(error.reason == Reason::GitFailed && error.message.contains("conflict"), "{error}");
    assert_eq!(fixture.read("a.txt").as_deref(), Some("precious\n"));
    for name in ["gone", "-x", "a..b", ""] {
        let error = branch("switch", name).await.unwrap_err();
        assert!([Reason::GitFailed, Reason::InvalidParams].contains(&error.reason), "{error}");
    }
    for name in ["main", "-x", "a b", "a..b", "x.lock"] {
        assert!(branch("create", name).await.is_err(), "{name}");
    }
    // A run with paths of its own changes no others.
    let push = json!({"action": "push"});
    let error = fixture.with("git_stash", push.clone(), within(&["sub"])).await.unwrap_err();
    assert_eq!(error.reason, Reason::ToolDenied, "{error}");
    assert_eq!(fixture.read("a.txt").as_deref(), Some("precious\n"));
    fixture.call("git_stash", push.clone()).await.unwrap();
    // Nothing is left to stash, and a conflict applies nothing.
    assert_eq!(fixture.call("git_stash", push).await.unwrap_err().reason, Reason::GitFailed);
    std::fs::write(at.join("a.txt"), "other\n").unwrap();
    let error = fixture.call("git_stash", json!({"action": "pop"})).await.unwrap_err();
    assert_eq!(error.reason, Reason::GitFailed, "{error}");
    assert_eq!(fixture.read("a.txt").as_deref(), Some("other\n"));
    // Restoring writes files, and so the rules about writing apply.
    fixture.set_rules(cairn_harness::Rules {
        deny: vec!["write_file(a.txt)".parse().unwrap()],
        ..allow(TOOLS)
    });
    let checkout = json!({"paths": ["a.txt"]});
    let error = fixture.call("git_checkout", checkout).await.unwrap_err();
    assert_eq!(error.reason, Reason::ToolDenied, "{error}");
    let absent = json!({"paths": ["b.txt"], "revision": "no-such"});
    assert!(fixture.call("git_checkout", absent).await.is_err());
    assert!(!has_run(&fixture));
}

#[tokio::test]
async fn branch_with_files_that_run_programs_needs_an_approval_whatever_the_rules() {
    let fixture = hostile().await;
    let at = fixture.path(".");
    let neutral = ["-c", "core.hooksPath=/dev/null", "-c", "filter.x.clean=cat"];
    let plain = |args: &[&str]| git(&at, &[&neutral, args].concat());
    plain(&["checkout", "-q", "-b", "evil"]);
    std::fs::write(at.join(".envrc"), "touch /tmp/owned\n").unwrap();
    plain(&["add", "-f", ".envrc"]);
    plain(&["commit", "-q", "-m", "evil"]);
    plain(&["checkout", "-q", "main"]);
    let switch = json!({"action": "switch", "name": "evil"});
    let error = fixture.call("git_branch", switch).await.unwrap_err();
    assert_eq!(error.reason, Reason::NoApprover, "{error}");
    assert!(!at.join(".envrc").exists());
}
