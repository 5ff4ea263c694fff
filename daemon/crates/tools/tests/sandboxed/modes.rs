//! The mode `auto` in the real sandbox, and what git shows of its placeholders.

use cairn_harness::{Grants, Rules};
use cairn_protocol::{approval::ApprovalDecision, error::Reason, turn::ExecutionMode};
use cairn_workspace::{AutorunClass, autorun_examples};
use serde_json::json;

use crate::fixture::{Fixture, allow};

fn in_mode(mode: ExecutionMode) -> Grants {
    Grants { mode, ..Grants::default() }
}

pub async fn only_confined_commands_run_without_an_approval() {
    let Some(sandbox) = crate::sandbox() else { return };
    let fixture = Fixture::sandboxed(&[], Rules::default(), |deps| deps, sandbox).await;
    let write = json!({"command": "echo x > made.txt"});
    let auto = in_mode(ExecutionMode::Auto);
    let got = fixture.with("run_shell", write.clone(), auto.clone()).await.unwrap();
    assert_eq!(got["exit_code"], 0, "{got}");
    assert_eq!(fixture.read("made.txt").as_deref(), Some("x\n"));
    let audit = fixture.audit().await;
    assert!(audit.iter().any(|entry| entry.rule.contains("mode auto")), "{audit:?}");
    // With more reach, and in other modes, the same command needs an approver.
    for grants in [
        Grants { unconfined: true, ..auto.clone() },
        Grants { network: true, ..auto },
        in_mode(ExecutionMode::AcceptEdits),
        in_mode(ExecutionMode::Ask),
    ] {
        let error = fixture.with("run_shell", write.clone(), grants.clone()).await.unwrap_err();
        assert_eq!(error.reason, Reason::NoApprover, "{grants:?}: {error}");
    }
    let planning = in_mode(ExecutionMode::Plan);
    let error = fixture.with("run_shell", write, planning).await.unwrap_err();
    assert_eq!(error.reason, Reason::ToolDenied, "{error}");
}

pub async fn git_status_omits_placeholders_and_shows_files_of_the_user() {
    let Some(sandbox) = crate::sandbox() else { return };
    let files = [("a.txt", "a\n")];
    let fixture = Fixture::sandboxed(&files, allow(&["run_shell"]), |deps| deps, sandbox).await;
    git2::Repository::init(fixture.path(".")).unwrap();
    let status = || fixture.call("run_shell", json!({"command": "git status --porcelain"}));
    assert_eq!(status().await.unwrap()["stdout"], "?? a.txt\n");
    // Control: the placeholders exist meanwhile.
    let list = json!({"command": "ls -A"});
    let list = fixture.call("run_shell", list).await.unwrap();
    assert!(list["stdout"].as_str().unwrap().contains(".envrc\n"), "{list}");
    std::fs::write(fixture.path(".envrc"), "export A=1\n").unwrap();
    assert_eq!(status().await.unwrap()["stdout"], "?? .envrc\n?? a.txt\n");
}

/// Commands in a row that write every name of the table, in every mode that runs them.
pub async fn command_leaves_no_file_that_runs_later() {
    let Some(sandbox) = crate::sandbox() else { return };
    let files = [(".envrc", "old\n"), (".github/workflows/ci.yml", "old\n"), ("a.txt", "a\n")];
    let mut rules = allow(&["run_shell"]);
    rules.allow.push("autorun(.allowed)".parse().unwrap());
    rules.allow.push("autorun(.npmrc)".parse().unwrap());
    let fixture = Fixture::sandboxed(&files, rules, |deps| deps, sandbox).await;
    let names: Vec<(String, AutorunClass)> = autorun_examples()
        .filter(|(name, class)| *class != AutorunClass::Source && name != ".npmrc")
        .collect();
    assert!(names.len() > 200);
    for mode in [ExecutionMode::Ask, ExecutionMode::AcceptEdits, ExecutionMode::Auto] {
        let mut script = String::from("for f in");
        for (name, _) in &names {
            // Beneath a folder, since the sandbox itself reserves some names at the top.
            script.push_str(&format!(" 'sub/{name}'"));
        }
        script.push_str(
            " .npmrc sub/plain.txt; do mkdir -p \"$(dirname \"$f\")\"; echo evil > \"$f\"; done; \
             echo evil >> .github/workflows/ci.yml; mv .github moved; \
             python3 -c 'import os; os.rename(\"moved\", \".github\")'",
        );
        let grants = in_mode(mode);
        let got = fixture.with("run_shell", json!({"command": script}), grants).await.unwrap();
        assert_eq!(got["exit_code"], 0, "{got}");
        for (name, class) in &names {
            let path = format!("sub/{name}");
            assert_eq!(fixture.read(&path), None, "{mode:?} {class:?} {path}");
        }
        assert_eq!(fixture.read(".github/workflows/ci.yml").as_deref(), Some("old\n"));
        let text = got.to_string();
        assert!(text.contains("were put back as they were"), "{text}");
        // Controls: an ordinary file, and one that a rule allows.
        assert_eq!(fixture.read("sub/plain.txt").as_deref(), Some("evil\n"));
        assert_eq!(fixture.read(".npmrc").as_deref(), Some("evil\n"));
        std::fs::remove_file(fixture.path("sub/plain.txt")).unwrap();
    }
    let rows = fixture.audit().await;
    let put_back = rows.iter().filter(|r| r.tool == "autorun" && r.decision == "deny").count();
    assert!(put_back > 50, "{put_back}");
    assert!(rows.iter().any(|r| r.tool == "autorun" && r.decision == "allow"));
}

/// An approver sees what a command left, and keeps it or not.
pub async fn approver_decides_about_files_that_run_later() {
    let Some(sandbox) = crate::sandbox() else { return };
    let fixture = Fixture::sandboxed(&[], allow(&["run_shell"]), |deps| deps, sandbox).await;
    let _approver = fixture.harness.approvals().join();
    for (decision, kept) in [(ApprovalDecision::Deny, false), (ApprovalDecision::Once, true)] {
        let command = json!({"command": "mkdir -p .zed; echo '[1]' > .zed/tasks.json"});
        let answering = async {
            let request = super::network::answer(&fixture, decision).await;
            assert_eq!(request.tool, "autorun");
            assert_eq!(request.preview.paths, [".zed/tasks.json"]);
            assert!(request.preview.diff.unwrap().contains("+[1]"));
        };
        let (got, ()) = tokio::join!(fixture.call("run_shell", command), answering);
        got.unwrap();
        assert_eq!(fixture.read(".zed/tasks.json").is_some(), kept, "{decision:?}");
    }
}
