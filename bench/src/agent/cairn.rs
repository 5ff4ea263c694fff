//! Policies that search with Cairn.

use std::path::{Path, PathBuf};

use cairn_protocol::{
    id::RootId,
    search::{SearchAnswer, SearchFilters, SearchParams},
};
use cairn_search::{CancelFlag, Embedder, IndexOptions, Indexes, Until};
use cairn_search_metrics::ResultSpan;

use super::{EXCLUDED, Transcript, grep::read};

/// Tokens of one search.
const TOKENS: u32 = 4_000;
/// Results of one search.
const RESULTS: u32 = 30;
/// Lines that are read around the best result.
const AROUND: u32 = 60;

/// The index of one repository, in a temporary folder.
pub struct Index {
    indexes: Indexes,
    root: RootId,
    top: PathBuf,
    _folder: tempfile::TempDir,
}

impl Index {
    /// Builds the index of a repository.
    ///
    /// # Errors
    /// A message for the terminal.
    pub fn build(top: &Path) -> Result<Self, String> {
        let text = |e: &dyn std::fmt::Display| format!("{}: {e}", top.display());
        let folder = tempfile::tempdir().map_err(|e| text(&e))?;
        let embedder = Embedder::builtin().map_err(|e| text(&e.message))?;
        let mut options = IndexOptions::new(embedder).map_err(|e| text(&e.message))?;
        options.watch = false;
        options.exclude.push(EXCLUDED.to_owned());
        let indexes = Indexes::open(folder.path().to_owned(), options, None);
        let declared =
            cairn_workspace::Roots::new(Vec::new()).declare(top).map_err(|e| text(&e))?;
        let root = declared.id.clone();
        indexes.add_root(declared).map_err(|e| text(&e.message))?;
        indexes
            .build_and_wait(&root, Until::Everything, &CancelFlag::new())
            .map_err(|e| text(&e.message))?;
        Ok(Self { indexes, root, top: top.to_owned(), _folder: folder })
    }

    fn search(&self, query: &str) -> Result<SearchAnswer, String> {
        let roots = vec![self.root.to_string()];
        let params = SearchParams {
            k: RESULTS,
            max_tokens: Some(TOKENS),
            filters: Some(SearchFilters { roots, ..SearchFilters::default() }),
            ..SearchParams::new(query)
        };
        self.indexes.hybrid(&params, &CancelFlag::new(), &|_| ()).map_err(|e| e.message)
    }

    /// Searches once.
    pub fn one_call(&self, query: &str, transcript: &mut Transcript<'_>) -> Result<(), String> {
        let answer = self.search(query)?;
        add(&answer, transcript);
        Ok(())
    }

    /// Searches, and then once more with the names of the best results; if they have no names, reads
    /// around the best one.
    pub fn with_follow_up(
        &self,
        query: &str,
        transcript: &mut Transcript<'_>,
    ) -> Result<(), String> {
        let first = self.search(query)?;
        if add(&first, transcript) {
            return Ok(());
        }
        let names: Vec<&str> = first
            .items
            .iter()
            .filter_map(|item| item.symbol.as_ref())
            .map(|symbol| &*symbol.name)
            .take(3)
            .collect();
        if let Some(best) = first.items.first().filter(|_| names.is_empty()) {
            let from = best.start_line.saturating_sub(AROUND).max(1);
            read(&self.top, &best.path, from, best.end_line + AROUND, transcript);
        } else {
            let second = self.search(&format!("{query} {}", names.join(" ")))?;
            add(&second, transcript);
        }
        Ok(())
    }
}

/// Adds a packed answer to the transcript.
fn add(answer: &SearchAnswer, transcript: &mut Transcript<'_>) -> bool {
    let Some(packed) = &answer.packed else { return false };
    let lines = packed.lines.iter().filter_map(|range| {
        let item = answer.items.get(range.item as usize)?;
        Some(ResultSpan { path: item.path.clone(), lines: (range.start_line, range.end_line) })
    });
    transcript.add(&packed.text, lines)
}
