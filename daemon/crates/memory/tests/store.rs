//! The store through its public API, on real files.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use cairn_memory::{MAX_ENTRY, Memory, MemoryView};
use cairn_protocol::{
    error::Reason,
    memory::{MemoryKeywordsParams, MemoryListParams, MemoryOp, MemorySearchParams},
};
use serde_json::json;

fn store() -> (tempfile::TempDir, MemoryView) {
    let dir = tempfile::tempdir().unwrap();
    let store = Memory::single(folder(&dir)).general();
    (dir, store)
}

fn folder(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("memory")
}

fn search(store: &MemoryView, query: &str) -> Vec<String> {
    let params = MemorySearchParams { query: query.into(), ..Default::default() };
    store.search(&params).unwrap().data.into_iter().map(|e| e.name).collect()
}

#[test]
fn entries_are_created_appended_and_deleted() {
    let (dir, store) = store();
    assert!(search(&store, "anything").is_empty(), "an empty store finds nothing");
    let created = store.append("python async sockets", "Use streams.\n").unwrap();
    assert_eq!(created.message, "created \"async_python_sockets.md\" (12 bytes)");
    let more = store.append("sockets python async", "Close them.").unwrap();
    assert_eq!(more.message, "updated \"async_python_sockets.md\" (+11 B → 30 B total)");
    assert_eq!(
        store.load("async_python_sockets").unwrap().content,
        "Use streams.\n\n---\n\nClose them.\n"
    );
    assert_eq!(
        store.save("async python sockets", "New.").unwrap().message,
        "replaced \"async_python_sockets.md\" (4 bytes)"
    );
    let path = folder(&dir).join("async_python_sockets.md");
    assert_eq!(fs::read_to_string(&path).unwrap(), "New.\n", "a person reads the same");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(folder(&dir)).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(
        store.delete("python async sockets").unwrap().message,
        "deleted \"async_python_sockets.md\""
    );
    assert_eq!(store.load("python async sockets").unwrap_err().reason(), Reason::PathNotFound);
    assert_eq!(store.delete("python async sockets").unwrap_err().reason(), Reason::PathNotFound);
}

#[test]
fn fixed_entries_cannot_be_changed() {
    let (_dir, store) = store();
    store.save("fix-licence headers", "Never touch them.").unwrap();
    for refused in [
        store.save("fix-licence headers", "x"),
        store.append("headers fix-licence", "x"),
        store.delete("fix-licence_headers.md"),
    ] {
        let refused = refused.unwrap_err();
        assert!(
            refused.reason() == Reason::InvalidParams && refused.to_string().contains("immutable"),
            "{refused}"
        );
    }
    let loaded = store.load("fix-licence headers").unwrap();
    assert_eq!((loaded.content.as_str(), loaded.fixed), ("Never touch them.\n", true));
    // Control: an entry that is not fixed can be changed.
    store.save("licence headers", "a").unwrap();
    assert!(store.save("licence headers", "x").is_ok() && store.delete("licence headers").is_ok());
}

#[test]
fn keyword_matches_and_rare_words_rank_first() {
    let (_dir, store) = store();
    store.save("rust build", "cargo build takes long on slow disks").unwrap();
    store.save("release steps", "first build, then tag\nthe tag is signed").unwrap();
    store.save("coffee", "grind it fresh").unwrap();
    assert_eq!(search(&store, "build"), ["build_rust", "release_steps"]);
    assert_eq!(search(&store, "how is the tag made in a build"), ["release_steps", "build_rust"]);
    assert!(search(&store, "kubernetes").is_empty());
    let hit =
        store.search(&MemorySearchParams { query: "signed".into(), ..Default::default() }).unwrap();
    assert_eq!(hit.data[0].excerpt.as_deref(), Some("the tag is signed"));
    let empty = MemorySearchParams { query: " ?! ".into(), ..Default::default() };
    assert_eq!(store.search(&empty).unwrap_err().reason(), Reason::InvalidParams);
}

#[test]
fn lists_are_paged() {
    let (_dir, store) = store();
    for i in 0..230 {
        store.save(&format!("entry n{i:03}"), "text").unwrap();
    }
    let page = |limit, cursor| store.list(&MemoryListParams { limit, cursor }).unwrap();
    let first = page(None, None);
    assert_eq!((first.data.len(), first.next_cursor.as_deref()), (50, Some("50")));
    let second = page(Some(1000), first.next_cursor);
    assert_eq!((second.data.len(), second.next_cursor), (180, None));
    assert_eq!(second.data[0].name, "entry_n050");
    assert!(store.list(&MemoryListParams { limit: None, cursor: Some("x".into()) }).is_err());
    let found = store
        .search(&MemorySearchParams { query: "entry".into(), limit: Some(99), cursor: None })
        .unwrap();
    assert_eq!((found.data.len(), found.next_cursor.as_deref()), (20, Some("20")));
    let keywords = store.keywords(&MemoryKeywordsParams::default()).unwrap().data;
    assert_eq!(
        (keywords.len(), keywords[0].keyword.as_str(), keywords[0].entries),
        (200, "entry", 230)
    );
    assert_eq!(
        store.keywords(&MemoryKeywordsParams { limit: Some(9999) }).unwrap().data.len(),
        231
    );
}

#[test]
fn vocabulary_is_refreshed_after_changes() {
    let (dir, store) = store();
    assert_eq!(store.vocabulary().unwrap(), "");
    store.save("rust build", "a").unwrap();
    assert_eq!(store.vocabulary().unwrap(), "build, rust");
    store.save("rust test", "a").unwrap();
    assert_eq!(store.vocabulary().unwrap(), "build, rust (2), test");
    store.delete("rust build").unwrap();
    assert_eq!(store.vocabulary().unwrap(), "rust, test");
    // A person added this file.
    fs::write(folder(&dir).join("by_hand.md"), "x").unwrap();
    let other = Memory::single(folder(&dir)).general();
    assert_eq!(other.vocabulary().unwrap(), "by, hand, rust, test");
    assert_eq!(other.load("hand by").unwrap().content, "x");
}

#[test]
fn files_that_are_not_entries_are_ignored() {
    let (dir, store) = store();
    store.save("a", "text").unwrap();
    let secret = dir.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    std::os::unix::fs::symlink(&secret, folder(&dir).join("link.md")).unwrap();
    fs::create_dir(folder(&dir).join("folder.md")).unwrap();
    fs::write(folder(&dir).join("NOT NORMAL.md"), "x").unwrap();
    fs::write(folder(&dir).join("notes.txt"), "x").unwrap();
    let names: Vec<String> = store
        .list(&MemoryListParams::default())
        .unwrap()
        .data
        .into_iter()
        .map(|e| e.name)
        .collect();
    assert_eq!(names, ["a"]);
    assert!(store.load("link").is_err() && store.load("folder").is_err());
    // The new entry replaces the link and leaves the link's target alone.
    store.save("link", "mine").unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    let large = store.save("large", &"x".repeat(MAX_ENTRY + 1)).unwrap_err();
    assert_eq!(large.reason(), Reason::TooLarge);
    store.save("large", &"x".repeat(MAX_ENTRY - 10)).unwrap();
    assert_eq!(store.append("large", "more").unwrap_err().reason(), Reason::TooLarge);
    assert_eq!(store.save("empty", " \n").unwrap_err().reason(), Reason::InvalidParams);
}

#[test]
fn operations_round_trip_as_json() {
    let (_dir, store) = store();
    let op = |value| serde_json::from_value::<MemoryOp>(value);
    let save = op(json!({"action": "save", "keywords": "a b", "content": "text"})).unwrap();
    assert_eq!(
        store.apply(save).unwrap(),
        json!({"name": "a_b", "bytes": 4, "message": "created \"a_b.md\" (4 bytes)"})
    );
    let load = op(json!({"action": "load", "keywords": "b, a"})).unwrap();
    assert_eq!(
        store.apply(load).unwrap(),
        json!({"name": "a_b", "content": "text\n", "fixed": false})
    );
    for wrong in [
        json!({"action": "load"}),
        json!({"action": "drop", "keywords": "a"}),
        json!({"action": "load", "keywords": "a", "x": 1}),
    ] {
        assert!(op(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn concurrent_appends_are_not_lost() {
    let (_dir, store) = store();
    std::thread::scope(|scope| {
        for i in 0..8 {
            let store = store.clone();
            scope.spawn(move || {
                (0..5).for_each(|j| drop(store.append("shared", &format!("[{i}.{j}]")).unwrap()))
            });
        }
    });
    let text = store.load("shared").unwrap().content;
    assert_eq!(text.matches('[').count(), 40, "{text}");
}

#[test]
fn unfinished_entries_of_a_killed_process_are_removed() {
    let (dir, store) = store();
    store.save("first entry", "text").unwrap();
    let unfinished = folder(&dir).join(".newabcdef");
    fs::write(&unfinished, "half").unwrap();
    let store = Memory::single(folder(&dir)).general();
    assert!(!unfinished.exists());
    assert_eq!(store.load("first entry").unwrap().content, "text\n");
}
