//! Paths of the chat's folder, as the daemon lists them: without ignored and hidden ones.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cairn_client_sdk::Client;
use cairn_protocol::content::{EntryKind, ListDirParams};
use fuzzy_matcher::{FuzzyMatcher as _, skim::SkimMatcherV2};
use tokio::runtime::Handle;

/// Time for which a listing is used.
const FRESH: Duration = Duration::from_secs(10);
/// Most time that a listing may take while the user types.
const TIMEOUT: Duration = Duration::from_millis(700);
/// Levels of folders in a listing; the daemon limits the entries.
const DEPTH: u32 = 16;
/// Maximum number of suggested paths.
const MAX_SUGGESTIONS: usize = 30;

/// The paths below a root. Clones share them.
#[derive(Clone, Default)]
pub struct Files(Arc<Mutex<Listing>>);

#[derive(Default)]
struct Listing {
    source: Option<Source>,
    paths: Vec<String>,
    read_at: Option<Instant>,
    is_truncated: bool,
}

#[derive(Clone)]
struct Source {
    client: Client,
    root: String,
    runtime: Handle,
}

impl Files {
    /// Sets the connection and the root.
    pub fn connect(&self, client: Client, root: String) {
        let mut listing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let runtime = Handle::current();
        *listing = Listing { source: Some(Source { client, root, runtime }), ..Listing::default() };
    }

    /// Lists the paths that fit a typed one best; folders end with a slash. This blocks.
    pub fn matching(&self, typed: &str) -> Vec<String> {
        let mut listing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listing.refresh();
        let folder = typed.rfind('/').map_or("", |at| &typed[..=at]);
        if listing.is_truncated && !folder.is_empty() {
            let inner = listing.list(folder.trim_end_matches('/'), 1);
            if let Some((paths, _)) = inner {
                return best(&paths, typed);
            }
        }
        best(&listing.paths, typed)
    }
}

impl Listing {
    fn refresh(&mut self) {
        if self.read_at.is_some_and(|at| at.elapsed() < FRESH) {
            return;
        }
        // A failure is not repeated with each key.
        self.read_at = Some(Instant::now());
        if let Some((paths, is_truncated)) = self.list(".", DEPTH) {
            self.paths = paths;
            self.is_truncated = is_truncated;
        }
    }

    fn list(&self, path: &str, depth: u32) -> Option<(Vec<String>, bool)> {
        let source = self.source.clone()?;
        let params = ListDirParams { path: path.to_owned(), depth, root: Some(source.root) };
        let listing =
            async move { tokio::time::timeout(TIMEOUT, source.client.fs_list_dir(&params)).await };
        let listing = source.runtime.block_on(listing).ok()?.ok()?;
        let paths = listing.entries.into_iter().filter(|e| !e.path.contains(char::is_control));
        let paths = paths.map(|e| match e.kind {
            EntryKind::Dir => e.path + "/",
            _ => e.path,
        });
        Some((paths.collect(), listing.truncated))
    }
}

/// Returns the paths that fit best: without a typed text those of the folder itself.
fn best(paths: &[String], typed: &str) -> Vec<String> {
    if typed.is_empty() || typed.ends_with('/') {
        let direct = paths.iter().filter_map(|path| {
            let inner = path.strip_prefix(typed)?.trim_end_matches('/');
            (!inner.is_empty() && !inner.contains('/')).then(|| path.clone())
        });
        return direct.take(MAX_SUGGESTIONS).collect();
    }
    let matcher = SkimMatcherV2::default();
    let mut scored: Vec<(bool, i64, &String)> = paths
        .iter()
        .filter_map(|path| {
            let score = matcher.fuzzy_match(path, typed)?;
            Some((!path.starts_with(typed), -score, path))
        })
        .collect();
    scored.sort();
    scored.into_iter().take(MAX_SUGGESTIONS).map(|(_, _, path)| path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_paths_begin_with_the_typed_text() {
        let paths: Vec<String> =
            ["src/", "src/parse/", "src/parse/token.rs", "src/main.rs", "docs/", "docs/main.md"]
                .map(str::to_owned)
                .to_vec();
        for (typed, expected) in [
            ("", vec!["src/", "docs/"]),
            ("src/", vec!["src/parse/", "src/main.rs"]),
            ("src/m", vec!["src/main.rs"]),
            ("token", vec!["src/parse/token.rs"]),
            ("docmd", vec!["docs/main.md"]),
            ("zzz", vec![]),
        ] {
            assert_eq!(best(&paths, typed), expected, "{typed}");
        }
        assert_eq!(best(&paths, "s")[0], "src/");
        assert!(Files::default().matching("src").is_empty());
    }
}
