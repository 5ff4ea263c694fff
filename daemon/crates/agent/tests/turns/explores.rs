//! Explores of the built-in explorer: interrupted and resumed, and with changes since a revision.

use std::{collections::HashMap, path::Path, sync::Arc};

use cairn_agent::Explorer;
use cairn_llm::Scripted;
use cairn_protocol::{
    envelope::{Body, Envelope},
    event::AgentEvt,
    explore::{ExploreDetails, ExploreStartParams},
};

use crate::stage::{Stage, allow_all, quick};

fn repo(root: &Path) {
    std::fs::create_dir_all(root.join("src")).unwrap();
    std::fs::write(root.join("Cargo.toml"), "[package]\nname = \"zebra\"\n").unwrap();
    std::fs::write(root.join("README.md"), "# Zebra\n\nRun `cargo test`.\n").unwrap();
    std::fs::write(root.join("src/main.rs"), "mod stripes;\nfn main() { stripes::paint() }\n")
        .unwrap();
    std::fs::write(root.join("src/stripes.rs"), "pub fn paint() {}\n").unwrap();
}

async fn records(stage: &Stage) -> Vec<Envelope> {
    stage.engine.trace().records(&stage.session, 0, 500).await.unwrap()
}

/// Counts the calls that have an outcome, by call.
fn outcomes(records: &[Envelope]) -> HashMap<String, u32> {
    let mut calls = HashMap::new();
    let mut counts = HashMap::new();
    for record in records {
        match &record.body {
            Body::Cmd { cmd } => {
                let call = cmd.clone().into_call();
                calls.insert(record.id, format!("{} {}", call.name, call.arguments));
            }
            Body::Evt { evt: AgentEvt::Error { reason: Some(reason), .. } }
                if reason == "interrupted" => {}
            Body::Evt { evt: AgentEvt::Result { .. } | AgentEvt::Error { .. } } => {
                if let Some(call) = record.parent_id.and_then(|id| calls.get(&id)) {
                    *counts.entry(call.clone()).or_default() += 1;
                }
            }
            Body::Evt { .. } => {}
        }
    }
    counts
}

// R5
#[tokio::test]
async fn resumed_explore_repeats_no_call_with_recorded_outcome() {
    for cut in [1, 4, 8, 12] {
        let mut stage = Stage::with(Scripted::new(vec![]), allow_all(), quick()).await;
        stage.engine.set_explorer(Arc::new(Explorer));
        let root = stage.dir.path().join("repo");
        repo(&root);
        let params = ExploreStartParams {
            root: Some(root.to_string_lossy().into_owned()),
            ..Default::default()
        };
        stage.session = stage.engine.start_explore(params, None).await.unwrap().session_id;
        let is_finished = |all: &[Envelope]| {
            all.iter().any(|r| matches!(r.body.evt(), Some(AgentEvt::Completed { .. })))
        };
        loop {
            let all = records(&stage).await;
            if is_finished(&all) || outcomes(&all).len() >= cut {
                break;
            }
            tokio::task::yield_now().await;
        }
        stage.engine.close().await;
        let before = records(&stage).await;
        let (dir, session) = (Arc::clone(&stage.dir), stage.session.clone());
        drop(stage);
        let next =
            Stage::over(dir, Some(session), Scripted::new(vec![]), allow_all(), quick()).await;
        next.engine.set_explorer(Arc::new(Explorer));
        if !is_finished(&before) {
            next.engine.resume_session(&next.session).await.unwrap();
        }
        while !is_finished(&records(&next).await) {
            tokio::task::yield_now().await;
        }
        let counts = outcomes(&records(&next).await);
        let repeated: Vec<_> = counts.iter().filter(|(_, times)| **times > 1).collect();
        assert!(repeated.is_empty(), "cut after {cut}: {repeated:?}");
        assert!(counts.len() >= 8, "{counts:?}");
    }
}

fn git(folder: &Path, args: &[&str]) {
    let settings = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
    let mut command = std::process::Command::new("git");
    command.args(settings).args(args).current_dir(folder);
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Explores a repository since a revision; returns the details of the summary, or the error's
/// reason and message.
async fn explore_since(
    revision: &str,
    prepare: fn(&Path),
) -> Result<ExploreDetails, (String, String)> {
    let mut stage = Stage::with(Scripted::new(vec![]), allow_all(), quick()).await;
    stage.engine.set_explorer(Arc::new(Explorer));
    let root = stage.dir.path().join("repo");
    repo(&root);
    prepare(&root);
    let params = ExploreStartParams {
        root: Some(root.to_string_lossy().into_owned()),
        since: Some(revision.to_owned()),
        ..Default::default()
    };
    stage.session = stage.engine.start_explore(params, None).await.unwrap().session_id;
    loop {
        for record in records(&stage).await {
            match record.body.evt() {
                Some(AgentEvt::Completed { summary }) => return Ok(summary.details.clone()),
                Some(AgentEvt::Error { op, message, reason, .. }) if op == "explore" => {
                    return Err((reason.clone().unwrap_or_default(), message.clone()));
                }
                _ => {}
            }
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn changes_since_a_revision_are_reported_with_dependents_and_risks() {
    let details = explore_since("HEAD", |root| {
        git(root, &["init", "-q"]);
        git(root, &["add", "."]);
        git(root, &["commit", "-qm", "first"]);
        std::fs::write(root.join("src/stripes.rs"), "pub fn paint() {}\npub fn wash() {}\n")
            .unwrap();
        std::fs::write(root.join("Cargo.toml"), "[package]\nname = \"zebra2\"\n").unwrap();
    })
    .await
    .unwrap();
    let changes = details.changes.unwrap();
    assert_eq!((changes.commits, changes.files, changes.added_lines), (0, 2, 2), "{changes:?}");
    assert_eq!(changes.impact[0].path, "src/stripes.rs", "{changes:?}");
    assert_eq!(changes.impact[0].dependents, ["src/main.rs"], "{changes:?}");
    let risks: Vec<&str> = changes.risks.iter().map(|risk| risk.path.as_str()).collect();
    assert_eq!(risks, ["Cargo.toml"], "{changes:?}");
}

#[tokio::test]
async fn unknown_revision_ends_the_explore() {
    let commit = |root: &Path| {
        git(root, &["init", "-q"]);
        git(root, &["add", "."]);
        git(root, &["commit", "-qm", "first"]);
    };
    let (reason, message) = explore_since("v9", commit).await.unwrap_err();
    assert_eq!(reason, "revision_not_found");
    assert!(message.contains("no revision 'v9'"), "{message}");
    let (reason, message) = explore_since("HEAD", |_| {}).await.unwrap_err();
    assert_eq!(reason, "revision_not_found");
    assert!(message.contains("is not the top folder of a git repository"), "{message}");
    let unchanged = explore_since("HEAD", commit).await.unwrap().changes.unwrap();
    assert_eq!((unchanged.files, unchanged.commits), (0, 0), "{unchanged:?}");
}
