//! Policies that search with Cairn.

use std::path::{Path, PathBuf};

use cairn_protocol::{
    id::RootId,
    search::{SearchAnswer, SearchFilters, SearchParams},
};
use cairn_search::{CancelFlag, Embedder, IndexOptions, Indexes, Until};
use cairn_search_metrics::ResultSpan;

use super::{EXCLUDED, Transcript, grep::read};

/// Tokens of the only search, and of each of two.
const ONE_CALL: u32 = 4_000;
const TWO_CALLS: u32 = 2_000;
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

    fn search(&self, query: &str, tokens: u32, offset: u32) -> Result<SearchAnswer, String> {
        let roots = vec![self.root.to_string()];
        let params = SearchParams {
            k: RESULTS,
            offset,
            max_tokens: Some(tokens),
            filters: Some(SearchFilters { roots, ..SearchFilters::default() }),
            ..SearchParams::new(query)
        };
        self.indexes.hybrid(&params, &CancelFlag::new(), &|_| ()).map_err(|e| e.message)
    }

    /// Searches once with the larger budget.
    pub fn one_call(&self, query: &str, transcript: &mut Transcript<'_>) -> Result<(), String> {
        add(&self.search(query, ONE_CALL, 0)?, transcript);
        Ok(())
    }

    /// Searches with half of the tokens. The second call continues with the results that did not
    /// fit, or reads around the best one if all did.
    pub fn with_follow_up(
        &self,
        query: &str,
        transcript: &mut Transcript<'_>,
    ) -> Result<(), String> {
        let first = self.search(query, TWO_CALLS, 0)?;
        if add(&first, transcript) {
            return Ok(());
        }
        let next = first.omitted.and_then(|omitted| omitted.next_offset);
        if let Some(offset) = next {
            add(&self.search(query, TWO_CALLS, offset)?, transcript);
        } else if let Some(best) = first.items.first() {
            let from = best.start_line.saturating_sub(AROUND).max(1);
            read(&self.top, &best.path, from, best.end_line + AROUND, transcript);
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
