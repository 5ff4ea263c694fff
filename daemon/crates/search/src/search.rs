//! One search from parameters to answer: candidates by words and by vectors side by side, then rank, then hits.

use std::sync::Arc;
use std::time::Instant;

use crate::dense::FileSet;
use crate::filters::{Filters, check_search};
use crate::gather::{Candidate, gather, load_spans, text_of};
use crate::hits;
use crate::indexes::Indexes;
use crate::lexical::{self, Term};
use crate::live::{FileTable, Live};
use crate::postings::{Place, Snapshot};
use crate::rank::{self, Mode, Ranker, Scored};
use crate::sync::CancelFlag;
use crate::words::{Stem, query_stems};
use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::index::IndexState;
use cairn_protocol::search::{Corpus, Fusion, SearchAnswer, SearchItem, SearchParams, SearchPartial};

/// Candidates of each list.
const LIST: usize = 200;
/// Candidates whose definitions are looked at.
const DEFINED: usize = 60;
/// Answers that MMR chooses from, for each one asked for.
const MMR_DEPTH: usize = 3;

/// Receives partial answers.
pub type OnPartial<'a> = &'a (dyn Fn(SearchPartial) + Sync);

impl Indexes {
    /// `search.lexical`: by words.
    ///
    /// # Errors
    /// `invalid_params`, `bad_pattern`, `root_not_found`, `no_roots`, `cancelled`, or a storage failure.
    pub fn lexical(
        &self,
        params: &SearchParams,
        cancel: &CancelFlag,
        partial: OnPartial<'_>,
    ) -> Result<SearchAnswer, Failure> {
        self.search(params, Mode::Lexical, cancel, partial)
    }

    /// `search.semantic`: by vectors.
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

    /// `search.hybrid`: by both, fused and ranked.
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

    fn search(
        &self,
        params: &SearchParams,
        mode: Mode,
        cancel: &CancelFlag,
        partial: OnPartial<'_>,
    ) -> Result<SearchAnswer, Failure> {
        let started = Instant::now();
        check_search(params)?;
        let filters = Filters::new(params.filters.as_ref(), None)?;
        let lives = self.named(&filters.roots)?;
        let mut query = Query::new(params, mode, filters, cancel.clone());
        for live in &lives {
            query.collect(live, partial)?;
            cancel.check()?;
        }
        let scored = query.order()?;
        let items = hits::build(&query, &scored, cancel)?;
        let mut degraded = query.degraded(&lives);
        let complete = lives.iter().all(|l| l.now().state == Some(IndexState::Ready));
        if !complete && degraded.is_empty() {
            degraded.push("indexing".into());
        }
        if let Some(request) = &params.request_id {
            let corpus = match mode {
                Mode::Lexical => Corpus::Lex,
                Mode::Semantic => Corpus::Sem,
                Mode::Hybrid => Corpus::Fused,
            };
            partial(SearchPartial { request_id: request.clone(), corpus, items: items.clone(), done: true });
        }
        Ok(SearchAnswer { items, complete, degraded, took_us: started.elapsed().as_micros() as u64 })
    }
}

/// A search at work.
pub struct Query<'a> {
    pub params: &'a SearchParams,
    pub mode: Mode,
    pub filters: Filters,
    pub stems: Vec<Stem>,
    pub roots: Vec<Arc<Live>>,
    /// Terms of each root.
    terms: Vec<Vec<Term>>,
    pub candidates: Vec<Candidate>,
    cancel: CancelFlag,
}

impl<'a> Query<'a> {
    fn new(params: &'a SearchParams, mode: Mode, filters: Filters, cancel: CancelFlag) -> Self {
        let stems = query_stems(&params.query);
        Self {
            params,
            mode,
            filters,
            stems,
            roots: Vec::new(),
            terms: Vec::new(),
            candidates: Vec::new(),
            cancel,
        }
    }

    /// Adds the candidates of one root.
    fn collect(&mut self, live: &Arc<Live>, partial: OnPartial<'_>) -> Result<(), Failure> {
        let conn = match live.readers.get() {
            Ok(conn) => conn,
            // An index that could not be opened says why.
            Err(error) => return Err(live.now().error.unwrap_or_else(|| error.into())),
        };
        let table = live.files(&conn)?;
        let snapshot = live.postings.snapshot();
        let files = self.filters.files(&table);
        let vector = if self.mode == Mode::Lexical {
            Vec::new()
        } else {
            live.opts.embedder.embed(&[self.params.query.as_bytes()])
        };
        let terms = lexical::terms(&snapshot, &self.stems);
        let root = self.roots.len();
        let (words, near) = self.lists(live, &snapshot, &terms, &vector, files.as_ref())?;
        self.roots.push(Arc::clone(live));
        self.terms.push(terms);
        if self.mode == Mode::Hybrid && self.params.request_id.is_some() {
            self.partials(&snapshot, &table, root, &words, &near, partial)?;
        }
        let mut places = words;
        let seen: rustc_hash::FxHashSet<Place> = places.iter().copied().collect();
        places.extend(near.iter().map(|n| n.0).filter(|p| !seen.contains(p)));
        let mut found = gather(&snapshot, &table, root, &places, &self.terms[root]);
        if !vector.is_empty() {
            let chunks: Vec<i64> = found.iter().map(|c| c.chunk).collect();
            for (c, cosine) in found.iter_mut().zip(live.dense.cosines(&vector, &chunks)) {
                c.cosine = cosine;
            }
        }
        self.keep_kinds(&conn, &mut found)?;
        self.candidates.append(&mut found);
        Ok(())
    }

    /// The best windows by words and by vectors, looked for side by side.
    fn lists(
        &self,
        live: &Live,
        snapshot: &Snapshot,
        terms: &[Term],
        vector: &[f32],
        files: Option<&FileSet>,
    ) -> Result<(Vec<Place>, Vec<Near>), Failure> {
        let limit = self.list_length();
        let by_words = || {
            if self.mode == Mode::Semantic {
                return Ok(Vec::new());
            }
            let hits = lexical::candidates(snapshot, terms, limit, files, &self.cancel)?;
            Ok::<_, Failure>(hits.iter().map(|h| Place { segment: h.segment, doc: h.doc }).collect())
        };
        if vector.is_empty() {
            return Ok((by_words()?, Vec::new()));
        }
        let (words, near) = std::thread::scope(|scope| {
            let near = scope.spawn(|| nearest(live, snapshot, vector, limit, files));
            (by_words(), near.join().unwrap_or_default())
        });
        Ok((words?, near))
    }

    /// Candidates of each list: those of a semantic search are in order already, but for what is aside or gone.
    fn list_length(&self) -> usize {
        let few = self.mode == Mode::Semantic && self.filters.kinds.is_empty();
        if few { 30 + 2 * self.params.k as usize } else { LIST.max(2 * self.params.k as usize) }
    }

    /// With a filter by kind, only candidates inside such a definition stay.
    fn keep_kinds(
        &self,
        conn: &cairn_store::rusqlite::Connection,
        found: &mut Vec<Candidate>,
    ) -> Result<(), Failure> {
        if !self.filters.kinds.is_empty() {
            for c in found.iter_mut() {
                load_spans(conn, c)?;
                c.spans.retain(|s| self.filters.kinds.contains(&s.kind));
            }
            found.retain(|c| !c.spans.is_empty());
        }
        Ok(())
    }

    /// Sends both lists of one root as they are before fusion.
    fn partials(
        &self,
        snapshot: &Snapshot,
        table: &FileTable,
        root: usize,
        words: &[Place],
        near: &[Near],
        partial: OnPartial<'_>,
    ) -> Result<(), Failure> {
        let near: Vec<Place> = near.iter().map(|n| n.0).collect();
        for (corpus, places) in [(Corpus::Lex, words), (Corpus::Sem, &near)] {
            let first = &places[..places.len().min(self.params.k as usize)];
            let mut candidates = gather(snapshot, table, root, first, &self.terms[root]);
            let conn = self.roots[root].readers.get()?;
            self.keep_kinds(&conn, &mut candidates)?;
            let scored: Vec<Scored> = (0..candidates.len()).map(|i| (i, 1.0 / (1.0 + i as f32))).collect();
            let items: Vec<SearchItem> = hits::of_candidates(self, &candidates, &scored, &self.cancel)?;
            let request_id = self.params.request_id.clone().unwrap_or_default();
            partial(SearchPartial { request_id, corpus, items, done: false });
        }
        Ok(())
    }

    /// Ranks the candidates: by what is known of all of them first, then the best of these by their definitions too.
    fn order(&mut self) -> Result<Vec<Scored>, Failure> {
        let fusion = self.params.fusion.unwrap_or(Fusion::Minmax);
        let ranker = Ranker::new(&self.params.query, &self.terms, self.mode);
        let mut features = ranker.features(&self.candidates, fusion);
        let first = rank::order(&self.candidates, &features);
        for (i, _) in first.iter().take(DEFINED.max(2 * self.params.k as usize)) {
            let c = &mut self.candidates[*i];
            if c.spans.is_empty() {
                load_spans(&*self.roots[c.root].readers.get()?, c)?;
            }
            ranker.define(&mut features[*i], c);
        }
        let mut scored = rank::order(&self.candidates, &features);
        if self.params.diversify == Some(true) {
            rank::diversify(&mut scored, &self.candidates);
        }
        if let Some(lambda) = self.params.mmr {
            let depth = (MMR_DEPTH * self.params.k as usize).min(scored.len());
            let text = |(i, _): &Scored| {
                let c = &self.candidates[*i];
                Ok(text_of(&*self.roots[c.root].readers.get()?, c.chunk)?.unwrap_or_default())
            };
            let texts = scored[..depth].iter().map(text).collect::<Result<Vec<_>, Failure>>()?;
            rank::mmr(&mut scored, &texts, lambda as f32);
        }
        Ok(scored)
    }

    fn degraded(&self, lives: &[Arc<Live>]) -> Vec<String> {
        let mut what = Vec::new();
        let states: Vec<_> = lives.iter().map(|l| l.now()).collect();
        let mut note = |is: bool, name: &str| {
            if is {
                what.push(name.to_owned());
            }
        };
        note(states.iter().any(|p| p.state == Some(IndexState::Indexing) || p.pending > 0), "indexing");
        note(
            self.mode != Mode::Lexical && states.iter().any(|p| p.counts.vectors < p.counts.chunks),
            "vectors",
        );
        note(states.iter().any(|p| p.counts.symbol_files < p.counts.files), "symbols");
        note(states.iter().any(|p| p.state == Some(IndexState::Failed)), "failed");
        what
    }

    /// Whether a stem is a word of the query.
    pub fn has(&self, stem: &Stem) -> bool {
        self.terms.iter().flatten().any(|t| t.stem == *stem)
    }

    /// The query's terms in a root.
    pub fn terms(&self, root: usize) -> &[Term] {
        self.terms.get(root).map_or(&[], |t| t)
    }
}

/// A window, its chunk, and its cosine.
type Near = (Place, i64, f32);

/// The windows nearest to the query.
fn nearest(
    live: &Live,
    snapshot: &Snapshot,
    vector: &[f32],
    limit: usize,
    files: Option<&FileSet>,
) -> Vec<Near> {
    let near = live.dense.nearest(vector, limit, files);
    near.into_iter().filter_map(|(id, score)| Some((snapshot.find(id as u64)?, id, score))).collect()
}

/// The failure of a root that is there but has no such file.
pub fn no_file(path: &str) -> Failure {
    Failure::new(Reason::PathNotFound, format!("'{}' is not in the index", path.escape_default()))
}
