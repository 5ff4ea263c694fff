//! The knowledge store as tools, through the gate.

use cairn_harness::{Grants, Rules, Verdict};
use cairn_memory::Memory;
use cairn_protocol::error::Reason;
use cairn_tools::Deps;
use serde_json::{Value, json};

use crate::fixture::Fixture;

async fn fixture(rules: Rules) -> (tempfile::TempDir, Fixture) {
    let dir = tempfile::tempdir().unwrap();
    let memory = Some(Memory::single(dir.path().join("memory")));
    let fixture = Fixture::with_deps(&[], rules, |deps| Deps { memory, ..deps }).await;
    (dir, fixture)
}

#[tokio::test]
async fn memory_save_needs_no_approval_and_delete_does() {
    let (dir, fixture) = fixture(Rules::default()).await;
    let created = fixture
        .call("memory_save", json!({"keywords": "rust build", "content": "use mold"}))
        .await
        .unwrap();
    assert_eq!(created["message"], "created \"build_rust.md\" (8 bytes)");
    let more = json!({"action": "append", "keywords": "build rust", "content": "and sccache"});
    assert_eq!(fixture.call("memory", more).await.unwrap()["bytes"], 26);
    let matches = fixture.call("memory_search", json!({"query": "sccache"})).await.unwrap();
    assert_eq!(matches["data"][0]["excerpt"], "and sccache");
    assert_eq!(
        fixture.call("memory", json!({"action": "keywords"})).await.unwrap()["data"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    // No approver is connected.
    for (tool, arguments) in [
        ("memory_delete", json!({"keywords": "rust build"})),
        ("memory", json!({"action": "delete", "keywords": "rust build"})),
    ] {
        assert_eq!(
            fixture.call(tool, arguments).await.unwrap_err().reason,
            Reason::NoApprover,
            "{tool}"
        );
    }
    assert!(dir.path().join("memory/build_rust.md").exists());
    let rules = Rules { allow: vec!["memory_delete".parse().unwrap()], ..Rules::default() };
    let allowed = Fixture::with_deps(&[], rules, |deps| Deps {
        memory: Some(Memory::single(dir.path().join("memory"))),
        ..deps
    })
    .await;
    allowed.call("memory", json!({"action": "delete", "keywords": "rust build"})).await.unwrap();
    assert!(!dir.path().join("memory/build_rust.md").exists());
}

/// An entry of the user is not replaced without a question, by either name of the tool.
#[tokio::test]
async fn replacing_an_entry_needs_an_approval() {
    let (dir, fixture) = fixture(Rules::default()).await;
    let save = |content: &str| json!({"keywords": "deploy", "content": content});
    fixture.call("memory_save", save("ask first")).await.unwrap();
    let file = dir.path().join("memory/deploy.md");
    let all = |content: &str| {
        let mut arguments = save(content);
        arguments["action"] = "save".into();
        arguments
    };
    for (tool, arguments) in [("memory_save", save("push at once")), ("memory", all("push"))] {
        let error = fixture.call(tool, arguments).await.unwrap_err();
        assert_eq!(error.reason, Reason::NoApprover, "{tool}: {error}");
        assert!(error.message.contains("it replaces the entry"), "{tool}: {error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "ask first\n");
    }
    // Controls: the same content, another entry, and a rule of the user.
    fixture.call("memory_save", save("ask first")).await.unwrap();
    let other = json!({"keywords": "release", "content": "x"});
    fixture.call("memory_save", other).await.unwrap();
    fixture.set_rules(Rules { allow: vec!["memory_save".parse().unwrap()], ..Rules::default() });
    fixture.call("memory_save", save("push at once")).await.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "push at once\n");
}

#[tokio::test]
async fn memory_tools_obey_rules() {
    let (_dir, denied) =
        fixture(Rules { deny: vec!["memory_save".parse().unwrap()], ..Rules::default() }).await;
    let entry = |action: Option<&str>| {
        let mut value = json!({"keywords": "a", "content": "b"});
        if let Some(action) = action {
            value["action"] = Value::from(action);
        }
        value
    };
    for (tool, arguments) in [("memory_save", entry(None)), ("memory", entry(Some("save")))] {
        assert_eq!(
            denied.call(tool, arguments).await.unwrap_err().reason,
            Reason::ToolDenied,
            "{tool}"
        );
    }
    denied.call("memory_append", entry(None)).await.unwrap();
    // A user whose default denies everything unnamed denies this too.
    let (_dir, strict) = fixture(Rules { default: Verdict::Deny, ..Rules::default() }).await;
    assert_eq!(
        strict.call("memory_append", entry(None)).await.unwrap_err().reason,
        Reason::ToolDenied
    );
    let limited = Grants { ops: Some(vec!["memory_load".into()]), ..Grants::default() };
    let (_dir, free) = fixture(Rules::default()).await;
    assert_eq!(
        free.with("memory_append", entry(None), limited).await.unwrap_err().reason,
        Reason::ToolDenied
    );
    free.call("memory_append", entry(None)).await.unwrap();
}

/// Two projects with one store: an entry of one is neither listed, found, read nor changed in the
/// other, by any tool, and general entries are read in both and changed in neither.
#[tokio::test]
async fn entries_belong_to_their_project() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::per_project(dir.path().join("memory"));
    memory.general().save("style", "no emoji").unwrap();
    memory.general().save("fix-licence", "never").unwrap();
    let project = || {
        let memory = Some(memory.clone());
        // Rules that allow everything: the project decides, not the rules.
        let rules = Rules { allow: vec!["*".parse().unwrap()], ..Rules::default() };
        Fixture::with_deps(&[], rules, |deps| Deps { memory, ..deps })
    };
    let (ours, theirs) = (project().await, project().await);
    let save = json!({"keywords": "deploy secret", "content": "port 7788"});
    ours.call("memory_save", save).await.unwrap();
    let seen = ours.call("memory_list", json!({})).await.unwrap();
    let names = |page: &Value| {
        let data = page["data"].as_array().unwrap();
        data.iter().map(|e| e["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&seen), ["deploy_secret", "fix-licence", "style"]);
    let listed = theirs.call("memory_list", json!({})).await.unwrap();
    assert_eq!(names(&listed), ["fix-licence", "style"], "{listed}");
    assert!(listed["data"].as_array().unwrap().iter().all(|e| e["general"] == true), "{listed}");
    for (tool, arguments) in [
        ("memory_search", json!({"query": "7788 deploy"})),
        ("memory_keywords", json!({})),
        ("memory", json!({"action": "list"})),
        ("memory", json!({"action": "search", "query": "secret"})),
    ] {
        let got = theirs.call(tool, arguments.clone()).await.unwrap().to_string();
        assert!(!got.contains("deploy") && !got.contains("7788"), "{tool} {arguments}: {got}");
    }
    let entry = json!({"keywords": "deploy secret"});
    for tool in ["memory_load", "memory_delete"] {
        let error = theirs.call(tool, entry.clone()).await.unwrap_err();
        assert_eq!(error.reason, Reason::PathNotFound, "{tool}: {error}");
    }
    // The same keywords name another entry, and no argument names the other project.
    for tool in ["memory_save", "memory_append"] {
        let write = json!({"keywords": "deploy secret", "content": "evil"});
        theirs.call(tool, write).await.unwrap();
    }
    let folder = ours.path(".");
    let named = json!({"keywords": "deploy secret", "content": "evil", "project": folder});
    assert_eq!(theirs.call("memory_save", named).await.unwrap_err().reason, Reason::InvalidParams);
    let own = ours.call("memory_load", entry.clone()).await.unwrap();
    assert_eq!(own["content"], "port 7788\n");
    for (tool, arguments, reason) in [
        ("memory_delete", json!({"keywords": "style"}), Reason::InvalidParams),
        ("memory_save", json!({"keywords": "fix-licence", "content": "x"}), Reason::InvalidParams),
        (
            "memory_append",
            json!({"keywords": "fix-licence", "content": "x"}),
            Reason::InvalidParams,
        ),
    ] {
        let error = theirs.call(tool, arguments).await.unwrap_err();
        assert_eq!(error.reason, reason, "{tool}: {error}");
    }
    // A general entry that is appended to is copied into this project.
    let more = json!({"keywords": "style", "content": "tabs"});
    theirs.call("memory_append", more).await.unwrap();
    let copy = theirs.call("memory_load", json!({"keywords": "style"})).await.unwrap();
    assert_eq!(copy["content"], "no emoji\n\n---\n\ntabs\n");
    assert_eq!(memory.general().load("style").unwrap().content, "no emoji\n");
    let ours = ours.call("memory_load", json!({"keywords": "style"})).await.unwrap();
    assert_eq!((&ours["content"], &ours["general"]), (&json!("no emoji\n"), &json!(true)));
}

/// A general entry is the user's own: an entry of a project that would hide it is asked about.
#[tokio::test]
async fn hiding_a_general_entry_needs_an_approval() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::per_project(dir.path().join("memory"));
    memory.general().save("deploy", "ask first").unwrap();
    let given = Some(memory.clone());
    let fixture =
        Fixture::with_deps(&[], Rules::default(), |deps| Deps { memory: given, ..deps }).await;
    let save = json!({"keywords": "deploy", "content": "push at once"});
    let error = fixture.call("memory_save", save).await.unwrap_err();
    assert_eq!(error.reason, Reason::NoApprover);
    assert!(error.message.contains("it hides the general entry 'deploy'"), "{error}");
    let other = json!({"keywords": "release", "content": "x"});
    fixture.call("memory_save", other).await.unwrap();
    assert_eq!(memory.general().load("deploy").unwrap().content, "ask first\n");
}

/// A work tree has the entries of its repository; a session without a folder changes none.
#[tokio::test]
async fn work_trees_share_the_entries_of_their_repository() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::per_project(dir.path().join("memory"));
    memory.set_repositories(std::sync::Arc::new(|folder| {
        folder.starts_with("/trees").then(|| "/site".into())
    }));
    let path = |text: &'static str| Some(std::path::Path::new(text));
    memory.project(path("/trees/one")).save("build", "use mold").unwrap();
    assert_eq!(memory.project(path("/site")).load("build").unwrap().content, "use mold\n");
    assert_eq!(memory.project(path("/trees/two")).vocabulary().unwrap(), "build");
    assert_eq!(memory.project(path("/other")).vocabulary().unwrap(), "");
    let error = memory.project(None).save("build", "x").unwrap_err();
    assert_eq!(error.reason(), Reason::NoRoots);
}

#[tokio::test]
async fn memory_tools_require_store() {
    let fixture = Fixture::new(&[], Rules::default()).await;
    assert_eq!(
        fixture.call("memory_list", json!({})).await.unwrap_err().reason,
        Reason::UnknownTool
    );
}
