//! The mode `auto` in the real sandbox, and what git shows of its placeholders.

use cairn_harness::{Grants, Rules};
use cairn_protocol::{error::Reason, turn::ExecutionMode};
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
