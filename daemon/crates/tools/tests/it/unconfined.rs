//! A run whose user chose that commands are not confined.

use cairn_harness::{Grants, Rules, Sandbox};
use cairn_protocol::error::Reason;
use serde_json::json;

use crate::place::Place;

#[tokio::test]
async fn without_a_sandbox_a_command_runs_only_where_the_run_says_so_and_the_audit_tells() {
    let rules = Rules { allow: vec!["run_shell(echo *)".parse().unwrap()], ..Rules::default() };
    // Without a helper no sandbox is available.
    let place = Place::sandboxed(&[], rules, |deps| deps, Sandbox::new(None)).await;
    let echo = json!({"command": "echo free"});
    let refused = place.call("run_shell", echo.clone()).await.unwrap_err();
    assert_eq!(refused.reason, Reason::SandboxMissing);
    let grants = Grants { unconfined: true, ..Grants::default() };
    let output = place.with("run_shell", echo, grants.clone()).await.unwrap();
    assert_eq!(output["stdout"], "free\n");
    // Rules apply nevertheless.
    let denied = place.with("run_shell", json!({"command": "touch x"}), grants).await.unwrap_err();
    assert_eq!(denied.reason, Reason::NoApprover);
    let rows = place.audit().await;
    let told: Vec<bool> = rows.iter().map(|row| row.rule.contains("the run has no sandbox")).collect();
    assert!(told.contains(&true) && told.iter().filter(|t| **t).count() == 2, "{rows:?}");
}
