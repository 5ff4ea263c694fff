//! The methods that search: a query's candidates by words and by vectors, then ranking, then result
//! items.

use std::time::{Duration, Instant};

use cairn_index_base::CancelFlag;
use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::id::RootId;
use cairn_protocol::index::IndexState;
use cairn_protocol::search::{Corpus, SearchAnswer, SearchItem, SearchParams, SearchPartial};

use crate::budget;
use crate::candidates::{self, Candidate};
use crate::filters::{Filters, check_search};
use crate::hits;
use crate::indexes::Indexes;
use crate::query::Query;
use crate::rank::{Mode, Scored};
use crate::ranking::Ranking;
use crate::rescore::Rescored;
use crate::root_index::Progress;
use crate::scripts;

pub type OnPartial<'a> = &'a (dyn Fn(SearchPartial) + Sync);

impl Indexes {
    /// `search.lexical`: search by words.
    ///
    /// # Errors
    /// `invalid_params`, `bad_pattern`, `root_not_found`, `no_roots`, `cancelled`, or a storage
    /// failure.
    pub fn lexical(
        &self,
        params: &SearchParams,
        cancel: &CancelFlag,
        partial: OnPartial<'_>,
    ) -> Result<SearchAnswer, Failure> {
        self.search(params, Mode::Lexical, cancel, partial)
    }

    /// `search.semantic`: search by vectors.
    ///
    /// # Errors
    /// As [`Indexes::lexical`].
    pub fn semantic(
        &self,
        params: &SearchParams,
        cancel: &CancelFlag,
        partial: OnPartial<'_>,
    ) -> Result<SearchAnswer, Failure> {
        self.search(params, Mode::Semantic, cancel, partial)
    }

    /// `search.hybrid`: search by words and vectors, fused and ranked.
    ///
    /// # Errors
    /// As [`Indexes::lexical`].
    pub fn hybrid(
        &self,
        params: &SearchParams,
        cancel: &CancelFlag,
        partial: OnPartial<'_>,
    ) -> Result<SearchAnswer, Failure> {
        self.search(params, Mode::Hybrid, cancel, partial)
    }

    /// All ranked passages of a search with their features, best first and without deduplication,
    /// for fitting the weights.
    ///
    /// # Errors
    /// As [`Indexes::hybrid`].
    pub fn ranked(&self, params: &SearchParams, mode: Mode) -> Result<Vec<RankedLines>, Failure> {
        let filters = Filters::new(params.filters.as_ref(), None)?;
        let indexes = self.named(&filters.roots)?;
        let query = Query::new(params, mode, filters, &indexes, CancelFlag::new())?;
        let ranking = Ranking::new(&query, candidates::collect(&query, None)?)?;
        let lines = |(i, _): &Scored| {
            let passage = &ranking.passages[*i];
            let c = &ranking.candidates[passage.candidate];
            let (start_line, end_line) = hits::answer_range(c, passage, false).1;
            let values = passage.features.values();
            RankedLines { path: c.path.to_string(), start_line, end_line, values }
        };
        Ok(ranking.scored.iter().map(lines).collect())
    }

    /// The time that packing the results of a hybrid search into `maxTokens` takes, for measuring.
    ///
    /// # Errors
    /// As [`Indexes::hybrid`].
    pub fn packing_time(&self, params: &SearchParams, tokens: u32) -> Result<Duration, Failure> {
        let filters = Filters::new(params.filters.as_ref(), None)?;
        let (indexes, cancel) = (self.named(&filters.roots)?, CancelFlag::new());
        let query = Query::new(params, Mode::Hybrid, filters, &indexes, cancel.clone())?;
        let ranking = Ranking::new(&query, candidates::collect(&query, None)?)?;
        let items = hits::build(&query, &ranking.diversified(&query)?)?;
        let started = Instant::now();
        budget::pack(&query, &indexes, items, tokens, &cancel)?;
        Ok(started.elapsed())
    }

    fn search(
        &self,
        params: &SearchParams,
        mode: Mode,
        cancel: &CancelFlag,
        partial: OnPartial<'_>,
    ) -> Result<SearchAnswer, Failure> {
        let started = Instant::now();
        check_search(params)?;
        budget::check(params)?;
        // Results before the offset are ranked as well, because the answer continues after them.
        let depth = SearchParams { k: params.k + params.offset, ..params.clone() };
        let params = &depth;
        let filters = Filters::new(params.filters.as_ref(), None)?;
        let indexes = self.in_scope(&filters, cancel)?;
        let mut states: Vec<Progress> = indexes.iter().map(|index| index.progress()).collect();
        let query = Query::new(params, mode, filters, &indexes, cancel.clone())?;
        let emit = |corpus: Corpus, root: Option<RootId>, items: Vec<SearchItem>| {
            let done = root.is_none();
            if let Some(request_id) = params.request_id.clone() {
                partial(SearchPartial { request_id, corpus, root, items, done });
            }
        };
        let on_list = |corpus: Corpus, candidates: Vec<Candidate>| {
            let Some(first) = candidates.first() else { return Ok(()) };
            let root = query.roots[first.root].index.root.id.clone();
            let items = hits::build(&query, &Ranking::of_list(&query, candidates))?;
            // An empty list has no news for its reader.
            if !items.is_empty() {
                emit(corpus, Some(root), items);
            }
            Ok(())
        };
        let emits_lists = mode == Mode::Hybrid && params.request_id.is_some();
        let candidates = candidates::collect(&query, emits_lists.then_some(&on_list))?;
        let ranking = Ranking::new(&query, candidates)?.diversified(&query)?;
        let mut items = hits::build(&query, &ranking)?;
        items.drain(..items.len().min(params.offset as usize));
        let mut answer = SearchAnswer::default();
        if let Some(tokens) = params.max_tokens {
            let packed = budget::pack(&query, &indexes, items, tokens, cancel)?;
            items = packed.items;
            answer.packed = Some(packed.text);
            answer.omitted = packed.omitted;
        }
        // The state after the search counts as well: parts that were added during the search were
        // not seen.
        states.extend(indexes.iter().map(|index| index.progress()));
        let mut degraded = degraded(mode, &states, ranking.rescored);
        let complete = states.iter().all(|p| p.state == Some(IndexState::Ready));
        if !complete && degraded.is_empty() {
            degraded.push("indexing".into());
        }
        degraded.extend(scripts::is_unknown(&query).then(|| "script".to_owned()));
        let corpus = match mode {
            Mode::Lexical => Corpus::Lex,
            Mode::Semantic => Corpus::Sem,
            Mode::Hybrid => Corpus::Fused,
        };
        emit(corpus, None, items.clone());
        let restricted = indexes.iter().any(|index| !index.root.view().is_complete());
        let took_us = started.elapsed().as_micros() as u64;
        let weak = !items.is_empty() && ranking.is_weak(&query);
        let kind = params.explain.then_some(query.parsed.kind);
        Ok(SearchAnswer { items, complete, degraded, took_us, restricted, kind, weak, ..answer })
    }
}

#[derive(Debug, Clone)]
pub struct RankedLines {
    /// Path in its root.
    pub path: String,
    /// First line of the result.
    pub start_line: u32,
    /// Last line of the result.
    pub end_line: u32,
    /// Each feature by its name on the wire, and the path's factor as `prior`.
    pub values: Vec<(&'static str, f32)>,
}

/// The reasons why an answer may lack results.
fn degraded(mode: Mode, states: &[Progress], rescored: Rescored) -> Vec<String> {
    let any = |is: fn(&Progress) -> bool| states.iter().any(is);
    let reasons = [
        ("indexing", any(|p| p.state == Some(IndexState::Indexing) || p.pending > 0)),
        ("vectors", mode != Mode::Lexical && any(|p| p.counts.vectors < p.counts.chunks)),
        ("symbols", any(|p| p.counts.symbol_files < p.counts.files)),
        ("failed", any(|p| p.state == Some(IndexState::Failed))),
        ("rerank", rescored.is_partial()),
    ];
    reasons.into_iter().filter(|(_, applies)| *applies).map(|(name, _)| name.to_owned()).collect()
}

/// The failure for a path that is not in the index.
pub fn no_file(path: &str) -> Failure {
    Failure::new(Reason::PathNotFound, format!("'{}' is not in the index", path.escape_default()))
}
