//! One search from parameters to answer: candidates by words and by vectors side by side, then rank, then hits.

use std::sync::Arc;
use std::time::Instant;

use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::index::IndexState;
use cairn_protocol::search::{Corpus, Fusion, SearchAnswer, SearchItem, SearchParams, SearchPartial};
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, OptionalExtension};

use crate::dense::{FileSet, dot_blob};
use crate::filters::{Filters, check_search};
use crate::gather::{Candidate, gather};
use crate::hits;
use crate::indexes::Indexes;
use crate::lexical::{self, Term};
use crate::live::Live;
use crate::rank::{self, Mode, Scored};
use crate::sync::CancelFlag;
use crate::words::{Stem, query_stems};

/// Candidates of each list, and of the int8 scan before its rescore.
const LIST: usize = 200;
const SCAN: usize = 400;

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
        let scored = query.order();
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
    /// Terms and number of chunks of each root.
    terms: Vec<Vec<Term>>,
    chunks: Vec<u64>,
    pub candidates: Vec<Candidate>,
    cancel: CancelFlag,
    late: bool,
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
            chunks: Vec::new(),
            candidates: Vec::new(),
            cancel,
            late: false,
        }
    }

    /// Adds the candidates of one root.
    fn collect(&mut self, live: &Arc<Live>, partial: OnPartial<'_>) -> Result<(), Failure> {
        let mut conn = match live.readers.get() {
            Ok(conn) => conn,
            // An index that could not be opened says why.
            Err(error) => return Err(live.now().error.unwrap_or_else(|| error.into())),
        };
        let table = live.files(&conn)?;
        let files = self.filters.files(&table);
        let lexical = self.mode != Mode::Semantic;
        let vector = if self.mode == Mode::Lexical {
            Vec::new()
        } else {
            live.opts.embedder.embed(&[self.params.query.as_bytes()])
        };
        let terms = lexical::terms(live, &conn, &self.stems)?;
        let root = self.roots.len();
        let limit = self.list_length();
        let (words, near) = std::thread::scope(|scope| {
            let near =
                (!vector.is_empty()).then(|| scope.spawn(|| nearest(live, &vector, limit, files.as_ref())));
            let words = if lexical {
                lexical::candidates(&mut conn, &terms, limit, files.as_ref(), &self.cancel)
            } else {
                Ok(lexical::Found::default())
            };
            (words, near.map_or_else(|| Ok(Vec::new()), |n| n.join().unwrap_or_else(|_| Ok(Vec::new()))))
        });
        let (words, near) = (words?, near?);
        self.late |= words.late;
        self.roots.push(Arc::clone(live));
        self.chunks.push(live.now().counts.chunks);
        self.terms.push(terms);
        let mut ids = words.chunks;
        if self.mode == Mode::Hybrid && self.params.request_id.is_some() {
            self.partials(&conn, &table, root, &ids, &near, partial)?;
        }
        let seen: rustc_hash::FxHashSet<i64> = ids.iter().copied().collect();
        ids.extend(near.iter().map(|n| n.0).filter(|id| !seen.contains(id)));
        let vector = Some(vector.as_slice()).filter(|v| !v.is_empty());
        let mut found = gather(&conn, &table, root, &ids, &self.terms[root], vector)?;
        self.keep_kinds(&mut found);
        self.candidates.append(&mut found);
        Ok(())
    }

    /// Candidates of each list: those of a semantic search are in order already, but for what is aside or gone.
    fn list_length(&self) -> usize {
        let few = self.mode == Mode::Semantic && self.filters.kinds.is_empty();
        if few { 30 + 2 * self.params.k as usize } else { LIST.max(2 * self.params.k as usize) }
    }

    /// With a filter by kind, only candidates inside such a definition stay.
    fn keep_kinds(&self, found: &mut Vec<Candidate>) {
        if !self.filters.kinds.is_empty() {
            for c in found.iter_mut() {
                c.spans.retain(|s| self.filters.kinds.contains(&s.kind));
            }
            found.retain(|c| !c.spans.is_empty());
        }
    }

    /// Sends both lists of one root as they are before fusion.
    fn partials(
        &self,
        conn: &Connection,
        table: &crate::live::FileTable,
        root: usize,
        words: &[i64],
        near: &[(i64, f32)],
        partial: OnPartial<'_>,
    ) -> Result<(), Failure> {
        let near: Vec<i64> = near.iter().map(|n| n.0).collect();
        for (corpus, ids) in [(Corpus::Lex, words), (Corpus::Sem, &near)] {
            let first = &ids[..ids.len().min(self.params.k as usize)];
            let mut candidates = gather(conn, table, root, first, &self.terms[root], None)?;
            self.keep_kinds(&mut candidates);
            let scored: Vec<Scored> = (0..candidates.len()).map(|i| (i, 1.0 / (1.0 + i as f32))).collect();
            let items: Vec<SearchItem> = hits::of_candidates(self, &candidates, &scored, &self.cancel)?;
            let request_id = self.params.request_id.clone().unwrap_or_default();
            partial(SearchPartial { request_id, corpus, items, done: false });
        }
        Ok(())
    }

    fn order(&self) -> Vec<Scored> {
        let fusion = self.params.fusion.unwrap_or(Fusion::Minmax);
        let mut scored =
            rank::rank(&self.params.query, &self.candidates, &self.terms, &self.chunks, self.mode, fusion);
        if self.params.diversify == Some(true) {
            rank::diversify(&mut scored, &self.candidates);
        }
        if let Some(lambda) = self.params.mmr {
            rank::mmr(&mut scored, &self.candidates, lambda as f32, 3 * self.params.k as usize);
        }
        scored
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
        note(self.late, "lexical_time");
        what
    }

    /// Whether a stem is a word of the query.
    pub fn has(&self, stem: &Stem) -> bool {
        self.terms.iter().flatten().any(|t| t.stem == *stem)
    }

    /// Rarity of each term of a root, for choosing lines.
    pub fn weights(&self, root: usize) -> Vec<f32> {
        let all = self.chunks.get(root).copied().unwrap_or(0) as f32;
        let of = |t: &Term| (1.0 + all / (1.0 + t.chunks as f32)).ln();
        self.terms.get(root).map_or_else(Vec::new, |terms| terms.iter().map(of).collect())
    }

    /// The query's terms in a root.
    pub fn terms(&self, root: usize) -> &[Term] {
        self.terms.get(root).map_or(&[], |t| t)
    }
}

/// The chunks nearest to the query: the int8 scan, scored again with the stored vectors.
fn nearest(
    live: &Live,
    vector: &[f32],
    limit: usize,
    files: Option<&FileSet>,
) -> Result<Vec<(i64, f32)>, Failure> {
    let mut near = live.dense.nearest(vector, (2 * limit).min(SCAN).max(limit), files);
    let conn = live.readers.get()?;
    let mut get =
        conn.prepare_cached("SELECT vec FROM chunk_vec WHERE chunk_id = ?").map_err(StoreError::from)?;
    for (id, score) in &mut near {
        let exact =
            get.query_row([*id], |r| Ok(r.get_ref(0)?.as_blob().map(|b| dot_blob(b, vector)).unwrap_or(0.0)));
        *score = exact.optional().map_err(StoreError::from)?.unwrap_or(0.0);
    }
    near.retain(|(_, score)| *score > 0.0);
    near.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    near.truncate(limit);
    Ok(near)
}

/// The failure of a root that is there but has no such file.
pub fn no_file(path: &str) -> Failure {
    Failure::new(Reason::PathNotFound, format!("'{}' is not in the index", path.escape_default()))
}
