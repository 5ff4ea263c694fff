//! Indexing: MB per CPU second until lexical search is usable and until complete, sizes, and a
//! second scan without changes.

use std::{path::Path, time::Instant};

use cairn_search::{CancelFlag, Embedder, IndexOptions, Indexes, Until};
use cairn_symbols::extract::parse_only;
use cairn_workspace::{Roots, WalkOptions, walk};

use crate::meter::{cpu, memory, report};

/// One of this many files is parsed for comparison.
const SAMPLE: usize = 20;

/// Indexes `folder` into `dir`; the index stays open.
pub fn run(folder: &Path, dir: &Path) -> (Indexes, cairn_workspace::Root) {
    let root = Roots::new(Vec::new()).declare(folder).expect("a folder");
    let mut options =
        IndexOptions::new(Embedder::builtin().expect("the embedder")).expect("threads");
    options.watch = false;
    options.sweep_seconds = 0;
    let indexes = Indexes::open(dir.to_owned(), options, None);
    let start = Instant::now();
    let before = cpu(None);
    indexes.add_root(root.clone()).expect("a root");
    let never = CancelFlag::new();
    let mut text = 0.0;
    let mut speed = 0.0;
    for (until, name, floor) in [
        (Until::Lexical, "index: until lexical is usable", "floor >= 30"),
        (Until::Vectors, "index: until vectors are in", "floor >= 22"),
        (Until::Everything, "index: until complete", "floor >= 5"),
    ] {
        let status = indexes.build_and_wait(&root.id, until, &never).expect("an index");
        let wall = start.elapsed().as_secs_f64();
        let spent = cpu(None) - before;
        text = status.bytes as f64 / 1e6;
        let files = status.files;
        let chunks = status.chunks;
        speed = text / spent;
        report(format!(
            "{name:34} {speed:.1} MB per CPU-s ({files} files, {text:.1} MB, {chunks} chunks, {wall:.1} s, {spent:.1} CPU-s)  {floor}"
        ));
    }
    parsing(&root, speed);
    let peak = memory(None, "VmHWM");
    let anonymous = memory(None, "RssAnon");
    report(format!(
        "index: memory of this process      peak {peak:.0} MB resident, {anonymous:.0} MB anonymous \
        now: unlike the daemon it is not trimmed"
    ));
    sizes(dir, text);
    rescan(&indexes, &root, &never);
    (indexes, root)
}

/// Parses a sample of the files with tree-sitter, on one thread and without using the trees.
fn parsing(root: &cairn_workspace::Root, complete: f64) {
    let files = std::sync::Mutex::new(Vec::new());
    walk(root, &WalkOptions { exclude: vec![], threads: 1, ..WalkOptions::default() }, &|file| {
        files.lock().expect("one thread").push(root.path.join(&file.rel));
    });
    let mut files = files.into_inner().expect("one thread");
    files.sort_unstable();
    let texts: Vec<_> = files
        .iter()
        .step_by(SAMPLE)
        .filter_map(|path| {
            Some((cairn_workspace::language_of(path.to_str()?)?, std::fs::read(path).ok()?))
        })
        .filter(|(_, text)| text.len() <= 1 << 20)
        .collect();
    let before = cpu(None);
    let parsed: usize =
        texts.iter().filter(|(lang, text)| parse_only(lang, text)).map(|(_, t)| t.len()).sum();
    let spent = (cpu(None) - before).max(0.01);
    let parsed = parsed as f64 / 1e6;
    let speed = parsed / spent;
    report(format!(
        "index: tree-sitter alone           {speed:.1} MB per CPU-s (every {SAMPLE}th file, {parsed:.1} MB of parsed languages, whole, one thread); complete index {:.2} x that",
        complete / speed
    ));
}

/// Reports the disk usage of the index by its parts.
fn sizes(dir: &Path, text: f64) {
    let mut vectors = 0.0;
    let mut rest = 0.0;
    let mut parts = Vec::new();
    let folders = std::fs::read_dir(dir).expect("the indexes").map(|e| e.expect("an index").path());
    for folder in folders.filter(|f| f.is_dir()) {
        for file in std::fs::read_dir(&folder).expect("an index").map(|e| e.expect("a file")) {
            let name = file.file_name().to_string_lossy().into_owned();
            let size = file.metadata().expect("a size").len() as f64 / 1e6;
            match name.as_str() {
                "index.db" => parts.extend(tables(&file.path())),
                // The write-ahead log and the shared memory; both are empty when the database is
                // closed.
                "index.db-wal" | "index.db-shm" => {}
                _ => parts.push((name.split(['-', '.']).next().unwrap_or("").to_owned(), size)),
            }
        }
    }
    let mut by_name: std::collections::BTreeMap<&str, f64> = std::collections::BTreeMap::new();
    for (name, size) in &parts {
        *by_name.entry(name).or_default() += size;
        *if name.contains("vec") { &mut vectors } else { &mut rest } += size;
    }
    let mut largest: Vec<_> = by_name.into_iter().collect();
    largest.sort_by(|a, b| b.1.total_cmp(&a.1));
    let largest: Vec<String> =
        largest.iter().take(9).map(|(n, s)| format!("{n} {:.2}", s / text)).collect();
    report(format!(
        "index: size                        {:.2} x text with vectors, {:.2} x with vectors left out ({})  floor <= 1.0",
        (vectors + rest) / text,
        rest / text,
        largest.join(", ")
    ));
}

/// Returns the tables and indexes of a database with their sizes in MB.
fn tables(path: &Path) -> Vec<(String, f64)> {
    let conn = cairn_store::open_read_only(path).expect("a database");
    let mut all =
        conn.prepare("SELECT name, sum(pgsize) / 1e6 FROM dbstat GROUP BY name").expect("dbstat");
    let rows = all.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).expect("tables");
    rows.map(|r| r.expect("a table")).collect()
}

fn rescan(indexes: &Indexes, root: &cairn_workspace::Root, never: &CancelFlag) {
    let before = cpu(None);
    let start = Instant::now();
    indexes.build_and_wait(&root.id, Until::Everything, never).expect("an index");
    let wall = start.elapsed().as_secs_f64() * 1000.0;
    let spent = cpu(None) - before;
    let before = cpu(None);
    let start = Instant::now();
    let options = WalkOptions { exclude: vec![], threads: 2, ..WalkOptions::default() };
    let seen = walk(root, &options, &|_| ());
    let walk_wall = start.elapsed().as_secs_f64() * 1000.0;
    let walk_spent = cpu(None) - before;
    report(format!(
        "index: rebuild without a change      {wall:.0} ms, {spent:.2} CPU-s; walk+stat of {} files \
        {walk_wall:.0} ms, {walk_spent:.2} CPU-s; ratio {:.2} wall",
        seen.files,
        wall / walk_wall
    ));
}
