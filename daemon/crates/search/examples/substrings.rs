//! Measures lexical search in scripts without spaces against the text itself:
//! `cargo run --release -p cairn-code-search --example substrings -- FOLDER [COUNT]` samples parts of
//! two to four characters of the files of a folder, and prints the share of the files containing
//! one that the search returns, and the rank of the last of them where they are at most three.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for a terminal")]

use std::path::{Path, PathBuf};

use cairn_protocol::search::{MAX_K, SearchParams};
use cairn_search::{CancelFlag, Embedder, IndexOptions, Indexes, Until};
use cairn_test_support::random;
use cairn_tokenizer::scripts::is_unsegmented;
use cairn_workspace::Roots;

/// Files that are searched by this program; an index skips larger ones.
const MAX_BYTES: u64 = 1024 * 1024;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let top = PathBuf::from(arguments.first().map_or(".", String::as_str)).canonicalize().unwrap();
    let count = arguments.get(1).and_then(|n| n.parse().ok()).unwrap_or(500);
    let index = tempfile::tempdir().unwrap();
    let mut options = IndexOptions::new(Embedder::builtin().unwrap()).unwrap();
    options.watch = false;
    options.sweep_seconds = 0;
    let indexes = Indexes::open(index.path().to_owned(), options, None);
    let root = Roots::new(Vec::new()).declare(&top).unwrap();
    let id = root.id.clone();
    indexes.add_root(root).unwrap();
    let status = indexes.build_and_wait(&id, Until::Everything, &CancelFlag::new()).unwrap();
    println!("{} windows", status.chunks);
    let files = texts_below(&top);
    let with_script: Vec<&(String, Vec<char>)> =
        files.iter().filter(|(_, text)| text.iter().any(|c| is_unsegmented(*c))).collect();
    println!("{} of {} files contain such a script", with_script.len(), files.len());
    let texts: Vec<(&str, String)> =
        files.iter().map(|(path, text)| (path.as_str(), text.iter().collect())).collect();
    let mut rng = random("substrings");
    let (mut total, mut returned, mut rare, mut rare_first, mut rare_ten) = (0, 0, 0, 0, 0);
    let mut micros = Vec::new();
    for _ in 0..count {
        let (_, text) = with_script[rng.usize(..with_script.len())];
        let starts: Vec<usize> = (0..text.len()).filter(|at| is_unsegmented(text[*at])).collect();
        let from = starts[rng.usize(..starts.len())];
        let end = from + rng.usize(2..=4);
        let Some(part) = text.get(from..end).filter(|p| p.iter().all(|c| is_unsegmented(*c)))
        else {
            continue;
        };
        let part: String = part.iter().collect();
        let containing: Vec<&str> =
            texts.iter().filter(|(_, text)| text.contains(&part)).map(|(path, _)| *path).collect();
        if containing.len() > 50 {
            continue;
        }
        let params = SearchParams { k: MAX_K, ..SearchParams::new(&part) };
        let answer = indexes.lexical(&params, &CancelFlag::new(), &|_| {}).unwrap();
        micros.push(answer.took_us);
        let rank = |path: &&str| answer.items.iter().position(|item| item.path == **path);
        let ranks: Vec<Option<usize>> = containing.iter().map(rank).collect();
        total += containing.len();
        returned += ranks.iter().flatten().count();
        if ranks.iter().any(Option::is_none) {
            println!(
                "not all files of {part}: {} of {}",
                ranks.iter().flatten().count(),
                ranks.len()
            );
        }
        if containing.len() <= 3 {
            rare += 1;
            let last = ranks.iter().map(|rank| rank.unwrap_or(usize::MAX)).max();
            rare_first += usize::from(last.is_some_and(|last| last < containing.len()));
            rare_ten += usize::from(last.is_some_and(|last| last < 10));
        }
    }
    micros.sort_unstable();
    println!("{returned} of {total} files returned");
    println!("{rare} rare parts: {rare_first} before all others, {rare_ten} among ten");
    if let Some(most) = micros.get(micros.len() * 95 / 100) {
        println!("{} queries, p95 {most} us", micros.len());
    }
}

/// Paths and characters of the files below `top`, without hidden ones, which an index skips.
fn texts_below(top: &Path) -> Vec<(String, Vec<char>)> {
    let mut folders = vec![top.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path()) {
            let Ok(data) = path.symlink_metadata() else { continue };
            if data.is_dir() {
                folders.push(path);
            } else if data.is_file() && data.len() <= MAX_BYTES {
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                let name = path.strip_prefix(top).unwrap().to_string_lossy().into_owned();
                files.push((name, text.chars().collect()));
            }
        }
    }
    files.retain(|(name, _)| !name.split('/').any(|part| part.starts_with('.')));
    files
}
