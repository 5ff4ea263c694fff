//! A run whose user chose that commands are not confined.

use cairn_harness::{Grants, Rules, Sandbox};
use cairn_protocol::error::Reason;
use serde_json::json;

use crate::fixture::Fixture;

#[tokio::test]
async fn unconfined_command_requires_grant_and_is_audited() {
    let rules = Rules { allow: vec!["run_shell(echo *)".parse().unwrap()], ..Rules::default() };
    // Without a helper no sandbox is available.
    let fixture = Fixture::sandboxed(&[], rules, |deps| deps, Sandbox::new(None)).await;
    let echo = json!({"command": "echo free"});
    let refused = fixture.call("run_shell", echo.clone()).await.unwrap_err();
    assert_eq!(refused.reason, Reason::SandboxMissing);
    let grants = Grants { unconfined: true, ..Grants::default() };
    let output = fixture.with("run_shell", echo, grants.clone()).await.unwrap();
    assert_eq!(output["stdout"], "free\n");
    // Rules apply nevertheless.
    let denied =
        fixture.with("run_shell", json!({"command": "touch x"}), grants).await.unwrap_err();
    assert_eq!(denied.reason, Reason::NoApprover);
    let rows = fixture.audit().await;
    let is_unconfined: Vec<bool> =
        rows.iter().map(|row| row.rule.contains("the run has no sandbox")).collect();
    assert!(
        is_unconfined.contains(&true) && is_unconfined.iter().filter(|t| **t).count() == 2,
        "{rows:?}"
    );
}
