//! Answers that outlive their call: where they apply, and what they take precedence over.

use std::{path::Path, sync::Arc};

use cairn_harness::Rules;
use cairn_protocol::{
    approval::{Approval, ApprovalDecision, ApprovalListParams, ApprovalResolveParams},
    error::{Failure, Reason},
};
use serde_json::{Value, json};

use crate::fixture::Fixture;

fn write(path: &str) -> Value {
    json!({"path": path, "content": "new\n"})
}

/// Answers the next request that waits, once it does.
async fn answer(fixture: &Fixture, decision: ApprovalDecision) -> Approval {
    let approval = loop {
        let waiting = fixture.trace().approvals(ApprovalListParams::default()).await.unwrap();
        match waiting.into_iter().next() {
            Some(approval) => break approval,
            None => tokio::task::yield_now().await,
        }
    };
    let params = ApprovalResolveParams {
        approval_id: approval.approval_id,
        decision,
        reason: None,
        pattern: None,
        values: Default::default(),
    };
    fixture.harness.resolve(params, "tester").await.unwrap()
}

/// Makes a call, which must need an answer.
async fn answered(
    fixture: &Fixture,
    path: &str,
    decision: ApprovalDecision,
) -> Result<Value, Failure> {
    tokio::join!(fixture.call("write_file", write(path)), answer(fixture, decision)).0
}

fn rules(deny: &[&str]) -> Rules {
    Rules { deny: deny.iter().map(|rule| rule.parse().unwrap()).collect(), ..Rules::default() }
}

#[tokio::test]
async fn session_answer_has_precedence_over_a_denied_path() {
    let fixture = Fixture::new(&[("secret/key.txt", "old\n")], rules(&["*(secret)"])).await;
    let _approver = fixture.harness.approvals().join();
    let refused = fixture.call("write_file", write("secret/new.txt")).await.unwrap_err();
    assert!(refused.message.contains("deny: *(secret)"), "{refused}");
    answered(&fixture, "a.txt", ApprovalDecision::Session).await.unwrap();
    fixture.call("write_file", write("secret/new.txt")).await.unwrap();
    assert_eq!(fixture.read("secret/new.txt").as_deref(), Some("new\n"));
    // The answer was for one tool: no other shows the path.
    let refused = fixture.call("read_file", json!({"path": "secret/key.txt"})).await.unwrap_err();
    assert!(refused.message.contains("deny: *(secret)"), "{refused}");
}

#[tokio::test]
async fn denials_precede_permanent_answers() {
    let fixture = Fixture::new(&[("secret/key.txt", "old\n")], Rules::default()).await;
    let _approver = fixture.harness.approvals().join();
    answered(&fixture, "a.txt", ApprovalDecision::Always).await.unwrap();
    fixture.call("write_file", write("b.txt")).await.unwrap();
    // A rule that was granted for good comes after every denial.
    fixture.set_rules(rules(&["write_file(secret)"]));
    let refused = fixture.call("write_file", write("secret/key.txt")).await.unwrap_err();
    assert!(refused.message.contains("deny: write_file(secret)"), "{refused}");
    let final_deny = vec!["*(secret)".parse().unwrap()];
    fixture.set_rules(Rules { final_deny, ..Rules::default() });
    let refused = fixture.call("write_file", write("secret/key.txt")).await.unwrap_err();
    assert!(refused.message.contains("finalDeny: *(secret)"), "{refused}");
    assert_eq!(fixture.read("secret/key.txt").as_deref(), Some("old\n"));
}

#[tokio::test]
async fn always_applies_in_one_project_and_its_work_trees() {
    let fixture = Fixture::new(&[], Rules::default()).await;
    let folder = fixture.path("..").canonicalize().unwrap();
    for name in ["other", "tree"] {
        std::fs::create_dir(folder.join(name)).unwrap();
    }
    let (other, tree) =
        (fixture.declare(&folder.join("other")), fixture.declare(&folder.join("tree")));
    let project = folder.join("work");
    let (tree_path, repository) = (tree.path.clone(), project.clone());
    fixture.harness.approvals().set_repositories(Arc::new(move |folder| {
        (folder == tree_path).then(|| repository.clone())
    }));
    let approver = fixture.harness.approvals().join();
    answered(&fixture, "a.txt", ApprovalDecision::Always).await.unwrap();
    drop(approver);
    let granted = fixture.harness.granted();
    assert_eq!(granted.len(), 1, "{granted:?}");
    assert_eq!(granted[0].project.as_deref().map(Path::new), Some(project.as_path()));
    // Another session of the project and of a work tree needs no answer, another project does.
    fixture.in_other_session("write_file", write("b.txt")).await.unwrap();
    fixture.in_root(&tree, "write_file", write("c.txt")).await.unwrap();
    let refused = fixture.in_root(&other, "write_file", write("d.txt")).await.unwrap_err();
    assert_eq!(refused.reason, Reason::NoApprover, "{refused}");
    assert!(!other.path.join("d.txt").exists());
}

#[tokio::test]
async fn everywhere_applies_in_every_project() {
    let fixture = Fixture::new(&[], Rules::default()).await;
    let folder = fixture.path("..").canonicalize().unwrap().join("other");
    std::fs::create_dir(&folder).unwrap();
    let other = fixture.declare(&folder);
    let approver = fixture.harness.approvals().join();
    answered(&fixture, "a.txt", ApprovalDecision::Everywhere).await.unwrap();
    drop(approver);
    assert_eq!(fixture.harness.granted()[0].project, None);
    fixture.in_root(&other, "write_file", write("d.txt")).await.unwrap();
}
