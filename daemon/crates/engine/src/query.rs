//! Searches and reads for clients: run off the async threads, cancelled with their caller.

use std::sync::Arc;

use cairn_protocol::{
    calls::{CallsAnswer, CallsParams},
    content::{DirListing, ListDirParams, Span, SpanParams},
    error::Failure,
    git::{GitStatus, GitStatusParams},
    lines::{FileLines, GrepStreamEnd, GrepStreamParams, LinesCorpus, LinesPartial},
    map::{MapAnswer, MapParams},
    search::{
        GrepAnswer, GrepCorpus, GrepParams, GrepPartial, ImpactAnswer, ImpactParams, MAX_GREP_K,
        ReferencesAnswer, ReferencesParams, SearchAnswer, SearchParams, SearchPartial,
        SymbolsAnswer, SymbolsParams,
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

impl Engine {
    pub(crate) async fn cancellable<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Indexes, &CancelFlag) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let flag = CancelFlag::new();
        let _guard = flag.cancel_on_drop();
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
            let emit = |partial| {
                if let Some(emit) = &on_partial {
                    emit(partial);
                }
            };
            let partial: cairn_search::OnPartial<'_> = &emit;
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
    pub async fn grep(
        &self,
        params: GrepParams,
        on_lines: Option<OnLines>,
    ) -> Result<GrepAnswer, Failure> {
        self.cancellable(move |indexes, flag| match on_lines {
            Some(emit) if !params.count_only && params.k <= MAX_GREP_K => {
                grep_in_parts(&params, |part| indexes.grep(part, flag), &*emit)
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
            let emit = |files: Vec<FileLines>, done| {
                let (request_id, cursor) =
                    (params.request_id.clone(), files.last().map(cursor_after));
                take(LinesPartial { request_id, corpus: LinesCorpus::Lines, files, cursor, done })
            };
            indexes.grep_stream(&params, flag, &emit)
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

    /// Returns the references to a definition.
    ///
    /// # Errors
    /// `invalid_params`, `root_not_found`, `no_roots`, `path_not_found`, `cancelled`.
    pub async fn references(&self, params: ReferencesParams) -> Result<ReferencesAnswer, Failure> {
        self.cancellable(move |indexes, flag| indexes.references(&params, flag)).await
    }

    /// Returns the definitions that call a definition.
    ///
    /// # Errors
    /// As [`Engine::references`].
    pub async fn callers(&self, params: CallsParams) -> Result<CallsAnswer, Failure> {
        self.cancellable(move |indexes, flag| indexes.callers(&params, flag)).await
    }

    /// Returns the definitions that a definition calls.
    ///
    /// # Errors
    /// As [`Engine::references`].
    pub async fn callees(&self, params: CallsParams) -> Result<CallsAnswer, Failure> {
        self.cancellable(move |indexes, flag| indexes.callees(&params, flag)).await
    }

    /// Returns the files that import a file, directly or by others.
    ///
    /// # Errors
    /// `invalid_params`, `root_not_found`, `no_roots`, `path_not_found`.
    pub async fn impact(&self, params: ImpactParams) -> Result<ImpactAnswer, Failure> {
        self.cancellable(move |indexes, _| indexes.impact(&params)).await
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
            let target = roots.resolve(&params.path, params.root.as_deref())?;
            Ok(cairn_workspace::read_span(target.root(), target.real(), &params)?)
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
            let target = roots.resolve(&params.path, params.root.as_deref())?;
            Ok(cairn_workspace::list_dir(target.root(), target.real(), params.depth)?)
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
            let target = roots.resolve(&params.path, None)?;
            cairn_workspace::git::git_status(target.root(), target.real())
        })
        .await
    }
}

/// Greps page after page and passes each on; the answer is that of one grep.
fn grep_in_parts(
    params: &GrepParams,
    grep: impl Fn(&GrepParams) -> Result<GrepAnswer, Failure>,
    emit: &dyn Fn(GrepPartial),
) -> Result<GrepAnswer, Failure> {
    let mut answer = GrepAnswer::default();
    let (mut lines, mut cursor) = (FIRST_LINES, params.cursor.clone());
    loop {
        let remaining =
            params.k - u32::try_from(answer.items.len()).unwrap_or(u32::MAX).min(params.k);
        let part =
            grep(&GrepParams { k: lines.min(remaining), cursor: cursor.take(), ..params.clone() })?;
        let done = part.next_cursor.is_none() || part.items.len() >= remaining as usize;
        let request_id = params.request_id.clone().unwrap_or_default();
        emit(GrepPartial { request_id, corpus: GrepCorpus::Grep, items: part.items.clone(), done });
        answer.total = answer.items.len() as u64 + part.total;
        answer.items.extend(part.items);
        answer.files_searched += part.files_searched;
        answer.took_us += part.took_us;
        for path in part.unreadable {
            if !answer.unreadable.contains(&path) {
                answer.unreadable.push(path);
            }
        }
        answer.complete = part.complete;
        answer.restricted |= part.restricted;
        if done {
            return Ok(GrepAnswer {
                truncated: part.truncated,
                next_cursor: part.next_cursor,
                ..answer
            });
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
    fn pages(all: u32, grep_params: &GrepParams) -> GrepAnswer {
        let from = grep_params.cursor.as_ref().map_or(0, |c| c.parse::<u32>().unwrap());
        let item = |line| GrepItem {
            path: "a".into(),
            root: cairn_protocol::id::RootId("r".into()),
            line,
            text: String::new(),
            ranges: vec![],
            before: vec![],
            after: vec![],
        };
        let items: Vec<GrepItem> =
            (from + 1..=all).take(grep_params.k as usize).map(item).collect();
        let last = from + items.len() as u32;
        let truncated = last < all;
        let next_cursor = truncated.then(|| last.to_string());
        let total = u64::from(all - from);
        GrepAnswer { items, truncated, next_cursor, total, complete: true, ..GrepAnswer::default() }
    }

    #[test]
    fn parts_add_up_to_complete_answer() {
        for (all, k) in
            [(0, 200), (49, 200), (50, 200), (51, 200), (1_000, 200), (1_000, 50), (1_000, 10_000)]
        {
            let grep_params = GrepParams {
                k,
                request_id: Some("r".into()),
                ..serde_json::from_str(r#"{"pattern": "x"}"#).unwrap()
            };
            let emitted = Mutex::new(Vec::new());
            let emit = |part: GrepPartial| emitted.lock().unwrap().push(part);
            let got = grep_in_parts(&grep_params, |part| Ok(pages(all, part)), &emit).unwrap();
            assert_eq!(got, pages(all, &grep_params), "{all} {k}");
            let emitted = emitted.into_inner().unwrap();
            assert_eq!(emitted.iter().filter(|p| p.done).count(), 1);
            assert!(emitted.last().unwrap().done);
            assert!(emitted.first().unwrap().items.len() <= FIRST_LINES as usize);
            let lines: Vec<GrepItem> = emitted.into_iter().flat_map(|p| p.items).collect();
            assert_eq!(lines, got.items);
        }
    }
}
