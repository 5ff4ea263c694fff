//! Searches and reads, as clients ask for them: off the async threads, cancelled with their caller.

use std::sync::Arc;

use cairn_protocol::{
    content::{DirListing, ListDirParams, Span, SpanParams},
    error::Failure,
    git::{GitStatus, GitStatusParams},
    search::{
        GrepAnswer, GrepParams, SearchAnswer, SearchParams, SearchPartial, SymbolsAnswer, SymbolsParams,
    },
};
use cairn_search::{CancelFlag, Indexes};

use crate::{Engine, roots::blocking};

/// Which search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchKind {
    /// Words.
    Lexical,
    /// Meaning.
    Semantic,
    /// Both.
    Hybrid,
}

/// Told about partial results.
pub type OnPartial = Box<dyn Fn(SearchPartial) + Send + Sync>;

/// Sets the flag when the future that holds it is dropped: the blocking search then ends early.
struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Engine {
    async fn cancellable<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Indexes, &CancelFlag) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let flag = CancelFlag::new();
        let _guard = CancelOnDrop(flag.clone());
        let indexes = Arc::clone(&self.inner.indexes);
        blocking(move || work(&indexes, &flag)).await
    }

    /// A search. Partial results are told while it runs.
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

    /// Search over lines.
    ///
    /// # Errors
    /// As [`Engine::search`].
    pub async fn grep(&self, params: GrepParams) -> Result<GrepAnswer, Failure> {
        self.cancellable(move |indexes, flag| indexes.grep(&params, flag)).await
    }

    /// Definitions by name, or the outline of a file.
    ///
    /// # Errors
    /// As [`Engine::search`].
    pub async fn symbols(&self, params: SymbolsParams) -> Result<SymbolsAnswer, Failure> {
        self.cancellable(move |indexes, _| indexes.symbols(&params)).await
    }

    /// A bounded range of lines, of any file inside a declared root.
    ///
    /// # Errors
    /// `path_outside_roots`, `path_blocked`, `path_not_found`, `not_a_file`, `invalid_params`.
    pub async fn get_span(&self, params: SpanParams) -> Result<Span, Failure> {
        let roots = Arc::clone(&self.inner.roots);
        blocking(move || {
            let (root, rel) = roots.resolve(&params.path, params.root.as_deref())?;
            cairn_workspace::read_span(&root, &rel, &params)
        })
        .await
    }

    /// A bounded listing of a folder.
    ///
    /// # Errors
    /// As [`Engine::get_span`], `not_a_directory`.
    pub async fn list_dir(&self, params: ListDirParams) -> Result<DirListing, Failure> {
        let roots = Arc::clone(&self.inner.roots);
        blocking(move || {
            let (root, rel) = roots.resolve(&params.path, params.root.as_deref())?;
            cairn_workspace::list_dir(&root, &rel, params.depth)
        })
        .await
    }

    /// State of a repository.
    ///
    /// # Errors
    /// As [`Engine::get_span`], `git_failed`.
    pub async fn git_status(&self, params: GitStatusParams) -> Result<GitStatus, Failure> {
        let roots = Arc::clone(&self.inner.roots);
        blocking(move || {
            let (root, rel) = roots.resolve(&params.path, None)?;
            cairn_workspace::git::git_status(&root, &rel)
        })
        .await
    }
}
