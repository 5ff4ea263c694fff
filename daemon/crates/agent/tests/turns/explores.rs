//! Explores of the built-in explorer that are interrupted and resumed.

use std::{collections::HashMap, path::Path, sync::Arc};

use cairn_agent::Explorer;
use cairn_llm::Scripted;
use cairn_protocol::{
    envelope::{Body, Envelope},
    event::AgentEvt,
    explore::ExploreStartParams,
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
