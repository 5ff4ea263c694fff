//! An index whose vectors a transformer computes.

use std::fs;
use std::path::{Path, PathBuf};

use cairn_protocol::id::RootId;
use cairn_protocol::search::SearchParams;
use cairn_search::{CancelFlag, Embedder, IndexOptions, Indexes, Until};
use cairn_store::rusqlite::Connection;
use cairn_workspace::Roots;

use super::tiny;

struct World {
    dir: tempfile::TempDir,
    model: PathBuf,
}

impl World {
    /// Creates a root with some files, one of them with many chunks, and the tiny model.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (top, model) = (dir.path().join("root"), dir.path().join("tiny"));
        fs::create_dir(&top).unwrap();
        for (name, word) in
            [("socket.rs", "socket listen"), ("wombat.rs", "wombat"), ("math.rs", "matrix invert")]
        {
            fs::write(top.join(name), format!("fn {word}\n").repeat(12)).unwrap();
        }
        let lines = |n: usize| format!("fn read{n}() {{ file{n}() }}\n");
        fs::write(top.join("long.rs"), (0..4000).map(lines).collect::<String>()).unwrap();
        tiny::write(&model, 1);
        Self { dir, model }
    }

    fn open(&self, model: Embedder) -> (Indexes, RootId) {
        let mut opts = IndexOptions::new(model).unwrap();
        (opts.watch, opts.sweep_seconds) = (false, 0);
        let root = Roots::new(Vec::new()).declare(&self.dir.path().join("root")).unwrap();
        let id = root.id.clone();
        let indexes = Indexes::open(self.dir.path().join("index"), opts, None);
        indexes.add_root(root).unwrap();
        (indexes, id)
    }

    fn tiny(&self) -> Embedder {
        Embedder::from_folder(&self.model).unwrap()
    }

    fn database(&self, id: &RootId) -> PathBuf {
        self.dir.path().join("index").join(&*id.0).join("index.db")
    }
}

fn first(indexes: &Indexes, query: &str) -> (String, Vec<String>) {
    let answer = indexes.semantic(&SearchParams::new(query), &CancelFlag::new(), &|_| {}).unwrap();
    (answer.items.first().map(|i| i.path.clone()).unwrap_or_default(), answer.degraded)
}

/// Number of vectors by dimension, and number of chunks.
fn vectors(database: &Path) -> (Vec<(i64, i64)>, i64) {
    let conn = Connection::open(database).unwrap();
    let mut get = conn.prepare("SELECT dim, count(*) FROM chunk_vec GROUP BY dim").unwrap();
    let rows =
        get.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap().map(Result::unwrap).collect();
    (rows, conn.query_row("SELECT count(*) FROM chunk", [], |r| r.get(0)).unwrap())
}

#[test]
fn changed_model_replaces_all_vectors() {
    let world = World::new();
    let none = CancelFlag::new();
    let (mut counted, dim) = (None, tiny::DIM as i64);
    for (model, dim, name) in [
        (Embedder::builtin().unwrap(), 384, "static-code-v1"),
        (world.tiny(), dim, "tiny"),
        (world.tiny(), dim, "tiny"),
        (Embedder::builtin().unwrap(), 384, "static-code-v1"),
    ] {
        let (indexes, id) = world.open(model);
        // Lexical search does not wait for vectors.
        indexes.build_and_wait(&id, Until::Lexical, &none).unwrap();
        let words = indexes.lexical(&SearchParams::new("wombat"), &none, &|_| {}).unwrap();
        assert_eq!(words.items[0].path, "wombat.rs");
        let status = indexes.build_and_wait(&id, Until::Everything, &none).unwrap();
        assert_eq!((status.embedder.as_str(), status.vectors), (name, status.chunks));
        assert!(status.complete && status.chunks > 64, "{}", status.chunks);
        assert_eq!(first(&indexes, "fn wombat"), ("wombat.rs".into(), vec![]));
        assert_eq!(first(&indexes, "fn socket listen").0, "socket.rs");
        let hybrid = indexes.hybrid(&SearchParams::new("matrix invert"), &none, &|_| {}).unwrap();
        assert_eq!((hybrid.items[0].path.as_str(), hybrid.complete), ("math.rs", true));
        indexes.close();
        let (rows, chunks) = vectors(&world.database(&id));
        assert_eq!(rows, [(dim, chunks)]);
        assert_eq!(*counted.get_or_insert(chunks), chunks);
    }
}

#[test]
fn partially_embedded_file_is_completed() {
    let world = World::new();
    let none = CancelFlag::new();
    let (indexes, id) = world.open(world.tiny());
    indexes.build_and_wait(&id, Until::Everything, &none).unwrap();
    let before = indexes.nearest_chunks(&id, "fn read file", 1000).unwrap();
    assert!(before.len() > 64, "{}", before.len());
    indexes.close();
    let conn = Connection::open(world.database(&id)).unwrap();
    // The state after a crash within the long file.
    let long = "(SELECT id FROM file WHERE path = 'long.rs')";
    conn.execute_batch(&format!(
        "UPDATE file SET pending_stages = 2 WHERE path = 'long.rs'; UPDATE chunk_vec SET created_at = 1;
         DELETE FROM chunk_vec WHERE chunk_id % 2 AND chunk_id IN (SELECT id FROM chunk WHERE file_id = {long})"
    ))
    .unwrap();
    drop(conn);
    let (indexes, id) = world.open(world.tiny());
    let status = indexes.build_and_wait(&id, Until::Everything, &none).unwrap();
    assert_eq!(status.vectors, status.chunks);
    // Chunks of both kinds are found by their vectors.
    let conn = Connection::open(world.database(&id)).unwrap();
    let all: i64 = conn.query_row("SELECT count(*) FROM chunk", [], |r| r.get(0)).unwrap();
    assert_eq!(indexes.nearest_chunks(&id, "fn read file", 1000).unwrap(), before);
    indexes.close();
    let count = |what: &str| -> i64 {
        conn.query_row(&format!("SELECT count(*) FROM chunk_vec WHERE {what}"), [], |r| r.get(0))
            .unwrap()
    };
    assert_eq!(count("true"), all);
    assert!(
        count("created_at = 1") > 3 && count("created_at > 1") > 30,
        "remaining {}",
        count("created_at = 1")
    );
}
