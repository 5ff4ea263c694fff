//! Callers without the right to declare roots cannot create any.

use std::{os::unix::fs::symlink, path::Path};

use cairn_protocol::{error::Reason, event::AgentEvt, tool::ToolCallParams, trace::ReplayParams};
use serde_json::json;

use crate::stage::{Setup, Stage, World};

fn roots(stage: &Stage) -> Vec<String> {
    stage.engine.roots().iter().map(|root| root.path.to_string_lossy().into_owned()).collect()
}

fn folder(path: &Path) -> std::path::PathBuf {
    std::fs::create_dir_all(path).unwrap();
    std::fs::write(path.join("a.txt"), "text\n").unwrap();
    path.canonicalize().unwrap()
}

#[tokio::test]
async fn symlink_that_replaces_a_declared_root_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::open(dir.path(), &World::default(), &Setup::new()).await;
    let outer = stage.root(&folder(&dir.path().join("outer"))).await;
    let inner = stage.root(&folder(&outer.join("inner"))).await;
    let outside = folder(&dir.path().join("outside"));
    let before = roots(&stage);
    std::fs::remove_dir_all(&inner).unwrap();
    symlink(&outside, &inner).unwrap();
    let params = stage.explore(None, &inner, &["one"]);
    // It may start: the root is declared. Nothing is read through the link.
    let _receipt = stage.engine.explore_declared_root(params, None).await;
    assert_eq!(roots(&stage), before);
    let undeclared = stage.explore(None, &outside, &["one"]);
    let refused = stage.engine.explore_declared_root(undeclared, None).await.unwrap_err();
    assert_eq!(refused.reason, Reason::RootNotFound);
    assert_eq!(roots(&stage), before);
    // Control: a caller that may declare roots declares the link's target.
    let params = stage.explore(None, &inner, &["two"]);
    stage.engine.start_explore(params, None).await.unwrap();
    assert!(roots(&stage).contains(&outside.to_string_lossy().into_owned()));
}

#[tokio::test]
async fn resume_and_replay_do_not_declare_removed_root() {
    let dir = tempfile::tempdir().unwrap();
    let first = Stage::open(dir.path(), &World::default(), &Setup::new()).await;
    let root = folder(&dir.path().join("repo"));
    let params = first.explore(None, &root, &["one", "gate go", "two"]);
    let cut = first.engine.start_explore(params, None).await.unwrap().session_id;
    first.world.acted("one").await;
    let params = first.explore(None, &root, &["three"]);
    let done = first.engine.start_explore(params, None).await.unwrap().session_id;
    first.until(&done, |e| matches!(e, AgentEvt::Completed { .. }).then_some(())).await;
    first.engine.close().await;
    let world = first.world.clone();
    drop(first);

    let next = Stage::open(dir.path(), &world, &Setup::new()).await;
    next.remove_root(&root).await;
    let replay = ReplayParams { trace_id: done, root: None };
    assert_eq!(next.engine.replay(replay.clone()).await.unwrap_err().reason, Reason::RootNotFound);
    assert_eq!(next.engine.resume_session(&cut).await.unwrap_err().reason, Reason::RootNotFound);
    assert!(roots(&next).is_empty());
    // Control: with the root declared both resume.
    next.root(&root).await;
    world.open("go");
    assert!(next.engine.replay(replay).await.is_ok());
    next.engine.resume_session(&cut).await.unwrap();
    next.until(&cut, |e| matches!(e, AgentEvt::Completed { .. }).then_some(())).await;
}

#[tokio::test]
async fn tool_declares_only_clones_as_roots() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::open(dir.path(), &World::default(), &Setup::new()).await;
    let root = stage.root(&folder(&dir.path().join("repo"))).await;
    let secrets = folder(&root.join("secrets"));
    let workspaces = dir.path().join("workspaces");
    let clone = folder(&workspaces.join("clone"));
    symlink(&secrets, workspaces.join("link")).unwrap();
    let session = stage.session(Some(&root)).await;
    let add = async |path: &Path| {
        let arguments = json!({"path": path.to_string_lossy()});
        let params = ToolCallParams {
            session_id: session.clone(),
            name: "index_add_root".into(),
            arguments,
        };
        let result = stage.engine.call_tool(params, None).await.unwrap();
        result.error.map(|error| error.reason)
    };
    let outside = Some(Reason::PathOutsideRoots.as_str().to_owned());
    for refused in [&secrets, &workspaces.join("link"), &workspaces, Path::new("/etc")] {
        assert_eq!(add(refused).await, outside, "{}", refused.display());
    }
    assert_eq!(roots(&stage).len(), 1);
    assert_eq!(add(&root).await, None);
    assert_eq!(add(&clone).await, None);
    assert_eq!(roots(&stage).len(), 2);
}
