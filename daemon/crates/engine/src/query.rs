//! Searches and reads for clients: run off the async threads, cancelled with their caller.

use std::sync::Arc;

use cairn_protocol::{
    content::{DirListing, ListDirParams, Span, SpanParams},
    error::Failure,
    git::{GitStatus, GitStatusParams},
    lines::{FileLines, GrepStreamEnd, GrepStreamParams, LinesCorpus, LinesPartial},
    map::{MapAnswer, MapParams},
    search::{
        GrepAnswer, GrepCorpus, GrepParams, GrepPartial, MAX_GREP_K, SearchAnswer, SearchParams,
        SearchPartial, SymbolsAnswer, SymbolsParams,
    },
};
use cairn_search::{CancelFlag, Indexes, cursor_after};

use crate::{Engine, roots::blocking};

/// Kind of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchKind {
    /// Lexical search, by words.
    Lexical,
    /// Semantic search, by meaning.
    Semantic,
    /// Lexical and semantic search, fused.
    Hybrid,
}

/// Callback for partial results.
pub type OnPartial = Box<dyn Fn(SearchPartial) + Send + Sync>;

/// Callback for the next lines of a grep.
pub type OnLines = Box<dyn Fn(GrepPartial) + Send + Sync>;

/// Consumer of the next lines; may block until there is room for them. Returns false to stop the
/// search.
pub type TakeLines = Box<dyn Fn(LinesPartial) -> bool + Send + Sync>;

/// Lines of the first partial result of a grep; each further one has four times as many, so that
/// the first arrives early and a long answer is not searched in many pieces.
const FIRST_LINES: u32 = 50;

/// Sets the flag when the future that owns it is dropped: the blocking search then returns early.
struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Engine {
    pub(crate) async fn cancellable<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Indexes, &CancelFlag) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let flag = CancelFlag::new();
        let _guard = CancelOnDrop(flag.clone());
        let indexes = Arc::clone(&self.inner.indexes);
        blocking(move || work(&indexes, &flag)).await
    }

    /// Searches the indexes. Partial results are passed to the callback meanwhile.
    ///
    /// # Errors
    /// `invalid_params`, `bad_pattern`, `root_not_found`, `no_roots`.
    pub async fn search(
        &self,
        kind: SearchKind,
        params: SearchParams,
        on_partial: Option<OnPartial>,
    ) -> Result<SearchAnswer, Failure> {
        self.cancellable(move |indexes, flag| {
            let tell = |partial| {
                if let Some(tell) = &on_partial {
                    tell(partial);
                }
            };
            let partial: cairn_search::OnPartial<'_> = &tell;
            match kind {
                SearchKind::Lexical => indexes.lexical(&params, flag, partial),
                SearchKind::Semantic => indexes.semantic(&params, flag, partial),
                SearchKind::Hybrid => indexes.hybrid(&params, flag, partial),
            }
        })
        .await
    }

    /// Searches lines. The next lines are passed to the callback meanwhile; the answer has all of
    /// them.
    ///
    /// # Errors
    /// As [`Engine::search`].
    pub async fn grep(&self, params: GrepParams, on_lines: Option<OnLines>) -> Result<GrepAnswer, Failure> {
        self.cancellable(move |indexes, flag| match on_lines {
            Some(tell) if !params.count_only && params.k <= MAX_GREP_K => {
                grep_in_parts(&params, |part| indexes.grep(part, flag), &*tell)
            }
            _ => indexes.grep(&params, flag),
        })
        .await
    }

    /// Passes all lines of a grep to the consumer, in order; none is dropped.
    ///
    /// # Errors
    /// As [`Engine::search`].
    pub async fn grep_stream(
        &self,
        params: GrepStreamParams,
        take: TakeLines,
    ) -> Result<GrepStreamEnd, Failure> {
        self.cancellable(move |indexes, flag| {
            let tell = |files: Vec<FileLines>, done| {
                let (request_id, cursor) = (params.request_id.clone(), files.last().map(cursor_after));
                take(LinesPartial { request_id, corpus: LinesCorpus::Lines, files, cursor, done })
            };
            indexes.grep_stream(&params, flag, &tell)
        })
        .await
    }

    /// Returns definitions by name, or the outline of a file.
    ///
    /// # Errors
    /// As [`Engine::search`].
    pub async fn symbols(&self, params: SymbolsParams) -> Result<SymbolsAnswer, Failure> {
        self.cancellable(move |indexes, _| indexes.symbols(&params)).await
    }

    /// Returns the map of a repository.
    ///
    /// # Errors
    /// `invalid_params`, `root_not_found`, `no_roots`, `path_not_found`.
    pub async fn map(&self, params: MapParams) -> Result<MapAnswer, Failure> {
        self.cancellable(move |indexes, flag| indexes.map(&params, flag)).await
    }

    /// Returns a bounded range of lines of any file inside a declared root.
    ///
    /// # Errors
    /// `path_outside_roots`, `path_blocked`, `path_not_found`, `not_a_file`, `invalid_params`.
    pub async fn get_span(&self, params: SpanParams) -> Result<Span, Failure> {
        let roots = Arc::clone(&self.inner.roots);
        blocking(move || {
            let place = roots.resolve(&params.path, params.root.as_deref())?;
            Ok(cairn_workspace::read_span(place.root(), place.real(), &params)?)
        })
        .await
    }

    /// Returns a bounded listing of a folder.
    ///
    /// # Errors
    /// As [`Engine::get_span`], `not_a_directory`.
    pub async fn list_dir(&self, params: ListDirParams) -> Result<DirListing, Failure> {
        let roots = Arc::clone(&self.inner.roots);
        blocking(move || {
            let place = roots.resolve(&params.path, params.root.as_deref())?;
            Ok(cairn_workspace::list_dir(place.root(), place.real(), params.depth)?)
        })
        .await
    }

    /// Returns the status of a repository.
    ///
    /// # Errors
    /// As [`Engine::get_span`], `git_failed`.
    pub async fn git_status(&self, params: GitStatusParams) -> Result<GitStatus, Failure> {
        let roots = Arc::clone(&self.inner.roots);
        blocking(move || {
            let place = roots.resolve(&params.path, None)?;
            cairn_workspace::git::git_status(place.root(), place.real())
        })
        .await
    }
}

/// Greps page after page and passes each on; the answer is that of one grep.
fn grep_in_parts(
    params: &GrepParams,
    grep: impl Fn(&GrepParams) -> Result<GrepAnswer, Failure>,
    tell: &dyn Fn(GrepPartial),
) -> Result<GrepAnswer, Failure> {
    let mut whole = GrepAnswer::default();
    let (mut lines, mut cursor) = (FIRST_LINES, params.cursor.clone());
    loop {
        let left = params.k - u32::try_from(whole.items.len()).unwrap_or(u32::MAX).min(params.k);
        let part = grep(&GrepParams { k: lines.min(left), cursor: cursor.take(), ..params.clone() })?;
        let done = part.next_cursor.is_none() || part.items.len() >= left as usize;
        let request_id = params.request_id.clone().unwrap_or_default();
        tell(GrepPartial { request_id, corpus: GrepCorpus::Grep, items: part.items.clone(), done });
        whole.total = whole.items.len() as u64 + part.total;
        whole.items.extend(part.items);
        whole.files_searched += part.files_searched;
        whole.took_us += part.took_us;
        for path in part.unreadable {
            if !whole.unreadable.contains(&path) {
                whole.unreadable.push(path);
            }
        }
        whole.complete = part.complete;
        whole.restricted |= part.restricted;
        if done {
            return Ok(GrepAnswer { truncated: part.truncated, next_cursor: part.next_cursor, ..whole });
        }
        cursor = part.next_cursor;
        lines = lines.saturating_mul(4);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use cairn_protocol::search::GrepItem;

    use super::*;

    /// Simulates a grep over `all` lines of one file, with the paging of the real one.
    fn pages(all: u32, asked: &GrepParams) -> GrepAnswer {
        let from = asked.cursor.as_ref().map_or(0, |c| c.parse::<u32>().unwrap());
        let item = |line| GrepItem {
            path: "a".into(),
            root: cairn_protocol::id::RootId("r".into()),
            line,
            text: String::new(),
            ranges: vec![],
            before: vec![],
            after: vec![],
        };
        let items: Vec<GrepItem> = (from + 1..=all).take(asked.k as usize).map(item).collect();
        let last = from + items.len() as u32;
        let truncated = last < all;
        let next_cursor = truncated.then(|| last.to_string());
        let total = u64::from(all - from);
        GrepAnswer { items, truncated, next_cursor, total, complete: true, ..GrepAnswer::default() }
    }

    #[test]
    fn parts_are_the_whole() {
        for (all, k) in
            [(0, 200), (49, 200), (50, 200), (51, 200), (1_000, 200), (1_000, 50), (1_000, 10_000)]
        {
            let asked = GrepParams {
                k,
                request_id: Some("r".into()),
                ..serde_json::from_str(r#"{"pattern": "x"}"#).unwrap()
            };
            let told = Mutex::new(Vec::new());
            let tell = |part: GrepPartial| told.lock().unwrap().push(part);
            let got = grep_in_parts(&asked, |part| Ok(pages(all, part)), &tell).unwrap();
            assert_eq!(got, pages(all, &asked), "{all} {k}");
            let told = told.into_inner().unwrap();
            assert_eq!(told.iter().filter(|p| p.done).count(), 1);
            assert!(told.last().unwrap().done);
            assert!(told.first().unwrap().items.len() <= FIRST_LINES as usize);
            let lines: Vec<GrepItem> = told.into_iter().flat_map(|p| p.items).collect();
            assert_eq!(lines, got.items);
        }
    }
}
