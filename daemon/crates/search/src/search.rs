//! One search from parameters to answer: candidates by words and by vectors side by side, then rank, then hits.

use std::sync::Arc;
use std::time::Instant;

use crate::dense::FileSet;
use crate::filters::{Filters, check_search};
use crate::gather::{Candidate, gather, spans};
use crate::hits;
use crate::hits::Ranked;
use crate::indexes::Indexes;
use crate::lexical::{self, Term};
use crate::packed::text_of;
use crate::postings::{Position, Snapshot};
use crate::rank::{self, Mode, Passage, Ranker, Repeat, Scored, Weights};
use crate::rescore::Rescored;
use crate::root_index::{FileTable, Progress, RootIndex};
use crate::sync::CancelFlag;
use crate::words::{Stem, query_stems};
use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::index::IndexState;
use cairn_protocol::search::{Corpus, Fusion, SearchAnswer, SearchItem, SearchParams, SearchPartial};
use rustc_hash::FxHashMap;

/// Candidates of each list.
const LIST: usize = 200;
/// Windows that are read and judged by their definitions.
const READ: usize = 40;
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

    /// Everything that a search ranks, best first and nothing left out, with what speaks for it: for fitting the
    /// weights.
    ///
    /// # Errors
    /// As [`Indexes::hybrid`].
    pub fn ranked(&self, params: &SearchParams, mode: Mode) -> Result<Vec<RankedLines>, Failure> {
        let filters = Filters::new(params.filters.as_ref(), None)?;
        let indexes = self.named(&filters.roots)?;
        let mut query = Query::new(params, mode, filters, CancelFlag::new());
        for index in &indexes {
            query.collect(index, &|_| ())?;
        }
        let ranking = query.order()?;
        let lines = |(i, _): &Scored| {
            let passage = &ranking.passages[*i];
            let c = &query.candidates[passage.candidate];
            let (start_line, end_line) = hits::answer_range(c, passage, false).1;
            let values = passage.features.values();
            RankedLines { path: c.path.to_string(), start_line, end_line, values }
        };
        Ok(ranking.scored.iter().map(lines).collect())
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
        let indexes = self.named(&filters.roots)?;
        let mut states: Vec<Progress> = indexes.iter().map(|index| index.progress()).collect();
        let mut query = Query::new(params, mode, filters, cancel.clone());
        for index in &indexes {
            query.collect(index, partial)?;
            cancel.check()?;
        }
        let mut ranking = query.order()?;
        query.spread(&mut ranking)?;
        let ranked = Ranked {
            candidates: &query.candidates,
            passages: &ranking.passages,
            scored: ranking.scored,
            texts: &ranking.texts,
        };
        let items = hits::build(&query, &ranked, cancel)?;
        // What was being made when it was looked into was not seen, though it may be whole by now.
        states.extend(indexes.iter().map(|index| index.progress()));
        let mut degraded = query.degraded(&states);
        let complete = states.iter().all(|p| p.state == Some(IndexState::Ready));
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
        let restricted = indexes.iter().any(|index| !index.root.view().is_complete());
        Ok(SearchAnswer {
            items,
            complete,
            degraded,
            took_us: started.elapsed().as_micros() as u64,
            restricted,
        })
    }
}

/// Lines that were ranked.
#[derive(Debug, Clone)]
pub struct RankedLines {
    /// Path in its root.
    pub path: String,
    /// First line that would be told.
    pub start_line: u32,
    /// Last line.
    pub end_line: u32,
    /// Each feature by its name on the wire, and the factor of the path as `prior`.
    pub values: Vec<(&'static str, f32)>,
}

/// Sends a list of one root.
type Tell<'a> = &'a dyn Fn(Corpus, &[Position]) -> Result<(), Failure>;

/// A search at work.
pub struct Query<'a> {
    pub params: &'a SearchParams,
    pub mode: Mode,
    pub filters: Filters,
    pub stems: Vec<Stem>,
    pub roots: Vec<Arc<RootIndex>>,
    /// Terms of each root.
    terms: Vec<Vec<Term>>,
    /// The query's vector; empty when meaning does not count.
    pub vector: Vec<f32>,
    /// The same by the static table, when the vectors of the index are not its own.
    pub by_table: Option<Vec<f32>>,
    pub candidates: Vec<Candidate>,
    pub cancel: CancelFlag,
    pub rescored: Rescored,
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
            vector: Vec::new(),
            by_table: None,
            candidates: Vec::new(),
            cancel,
            rescored: Rescored::Not,
        }
    }

    /// Adds the candidates of one root.
    fn collect(&mut self, index: &Arc<RootIndex>, partial: OnPartial<'_>) -> Result<(), Failure> {
        let conn = match index.readers.get() {
            Ok(conn) => conn,
            // An index that could not be opened says why.
            Err(error) => return Err(index.progress().error.unwrap_or_else(|| error.into())),
        };
        let table = index.files(&conn)?;
        let snapshot = index.postings.snapshot();
        let files = self.filters.files(&table, &index.root.view());
        if self.mode != Mode::Lexical && self.vector.is_empty() {
            let (embedder, text) = (&index.opts.embedder, [self.params.query.as_bytes()]);
            self.vector = embedder.embed(&text)?;
            self.by_table = embedder.is_transformer().then(|| embedder.table().embed(&text));
        }
        let root = self.roots.len();
        self.terms.push(lexical::terms(&snapshot, &self.stems));
        self.roots.push(Arc::clone(index));
        let told = self.mode == Mode::Hybrid && self.params.request_id.is_some();
        let tell = |corpus: Corpus, positions: &[Position]| match told {
            true => self.partial(&snapshot, &table, root, corpus, positions, partial),
            false => Ok(()),
        };
        let (words, near) = self.lists(index, &snapshot, root, files.as_ref(), &tell)?;
        let mut positions = words;
        let seen: rustc_hash::FxHashSet<Position> = positions.iter().copied().collect();
        positions.extend(near.iter().map(|n| n.0).filter(|p| !seen.contains(p)));
        let mut found = gather(&snapshot, &table, root, &positions, &self.terms[root]);
        if !self.vector.is_empty() {
            let mut known: FxHashMap<i64, f32> =
                near.iter().map(|(_, chunk, cosine)| (*chunk, *cosine)).collect();
            let by_words: Vec<i64> =
                found.iter().map(|c| c.chunk).filter(|c| !known.contains_key(c)).collect();
            let cosines = index.dense.cosines(&self.vector, &by_words);
            known.extend(by_words.iter().zip(cosines).filter_map(|(chunk, cosine)| Some((*chunk, cosine?))));
            found.iter_mut().for_each(|c| c.cosine = known.get(&c.chunk).copied());
        }
        self.keep_kinds(&conn, &mut found)?;
        self.candidates.append(&mut found);
        Ok(())
    }

    /// The best windows by words and by vectors, looked for side by side; each list is told as soon as it is there.
    fn lists(
        &self,
        index: &RootIndex,
        snapshot: &Snapshot,
        root: usize,
        files: Option<&FileSet>,
        tell: Tell<'_>,
    ) -> Result<(Vec<Position>, Vec<Near>), Failure> {
        let limit = self.list_length();
        let by_words = || {
            let hits = lexical::candidates(snapshot, &self.terms[root], limit, files, &self.cancel)?;
            let positions: Vec<Position> =
                hits.iter().map(|h| Position { segment: h.segment, doc: h.doc }).collect();
            tell(Corpus::Lex, &positions)?;
            Ok::<_, Failure>(positions)
        };
        if self.vector.is_empty() {
            return Ok((by_words()?, Vec::new()));
        }
        let scan = index.dense.scan(&self.vector, limit, files);
        let mut words = Ok(Vec::new());
        index.opts.helpers.in_place_scope(|scope| {
            if self.mode == Mode::Hybrid || scan.is_large() {
                scope.spawn(|_| scan.work());
            }
            if self.mode == Mode::Hybrid {
                words = by_words();
            }
            scan.work();
        });
        let near = scan.finish().into_iter();
        let near: Vec<Near> =
            near.filter_map(|(id, score)| Some((snapshot.find(id as u64)?, id, score))).collect();
        if self.mode == Mode::Semantic {
            return Ok((Vec::new(), near));
        }
        let positions: Vec<Position> = near.iter().map(|n| n.0).collect();
        tell(Corpus::Sem, &positions)?;
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
                c.spans = spans(conn, c)?;
                c.spans.retain(|s| self.filters.kinds.contains(&s.kind));
            }
            found.retain(|c| !c.spans.is_empty());
        }
        Ok(())
    }

    /// Sends a list of one root as it is before fusion.
    fn partial(
        &self,
        snapshot: &Snapshot,
        table: &FileTable,
        root: usize,
        corpus: Corpus,
        positions: &[Position],
        partial: OnPartial<'_>,
    ) -> Result<(), Failure> {
        let first = &positions[..positions.len().min(self.params.k as usize)];
        let mut candidates = gather(snapshot, table, root, first, &self.terms[root]);
        self.keep_kinds(&*self.roots[root].readers.get()?, &mut candidates)?;
        let ranker = Ranker::new(&self.params.query, &self.terms, self.mode);
        let base = ranker.windows(&candidates, Fusion::Minmax);
        let passages: Vec<Passage> =
            candidates.iter().enumerate().map(|(i, c)| rank::window_passage(&ranker, i, c, &base)).collect();
        let scored: Vec<Scored> = (0..passages.len()).map(|i| (i, 1.0 / (1.0 + i as f32))).collect();
        let ranked =
            Ranked { candidates: &candidates, passages: &passages, scored, texts: &FxHashMap::default() };
        let items: Vec<SearchItem> = hits::build(self, &ranked, &self.cancel)?;
        let request_id = self.params.request_id.clone().unwrap_or_default();
        partial(SearchPartial { request_id, corpus, items, done: false });
        Ok(())
    }

    /// Ranks the candidates, and then what the best of them hold.
    fn order(&mut self) -> Result<Ranking, Failure> {
        let fusion = self.params.fusion.unwrap_or(Fusion::Minmax);
        let ranker = Ranker::new(&self.params.query, &self.terms, self.mode);
        let base = ranker.windows(&self.candidates, fusion);
        let by_kind = !self.filters.kinds.is_empty();
        let most = if by_kind { self.candidates.len() } else { READ.max(self.params.k as usize) };
        let read = self.read_best(&ranker, &base, most)?;
        let (mut passages, mut texts) = (Vec::new(), FxHashMap::default());
        for window in read {
            // With a filter by kind, a window is no answer, only what it holds.
            passages.extend(window.passages.into_iter().filter(|p| p.span.is_some() || !by_kind));
            self.candidates[window.candidate].spans = window.spans;
            texts.insert(window.candidate, window.text);
        }
        let rest = base.order.iter().skip(most);
        passages.extend(rest.map(|(i, _)| rank::window_passage(&ranker, *i, &self.candidates[*i], &base)));
        let mut ranking = Ranking { scored: self.sorted(&passages), passages, texts };
        self.rescore(&mut ranking)?;
        let mut scores = vec![0.0; ranking.passages.len()];
        ranking.scored.iter().for_each(|(i, score)| scores[*i] = *score);
        rank::trim(&mut ranking.passages, &scores);
        Ok(ranking)
    }

    /// What each feature counts in this search.
    pub fn weights(&self) -> &'static Weights {
        Weights::of(self.mode, self.rescored.counts())
    }

    /// Best first; ties by path and line.
    pub fn sorted(&self, passages: &[Passage]) -> Vec<Scored> {
        let weights = self.weights();
        let mut scored: Vec<Scored> =
            passages.iter().map(|p| p.features.score(weights)).enumerate().collect();
        let place = |i: usize| (&self.candidates[passages[i].candidate].path, passages[i].lines);
        scored.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| place(a.0).cmp(&place(b.0))));
        scored
    }

    /// Spreads the answers as far as it was asked for.
    fn spread(&self, ranking: &mut Ranking) -> Result<(), Failure> {
        let passages = &ranking.passages;
        let repeat = if self.params.diversify == Some(true) { Repeat::DIVERSE } else { Repeat::USUAL };
        rank::diversify(&mut ranking.scored, repeat, |i| {
            let c = &self.candidates[passages[i].candidate];
            (c.root, c.file)
        });
        if let Some(lambda) = self.params.mmr {
            let depth = (MMR_DEPTH * self.params.k as usize).min(ranking.scored.len());
            let text = |(i, _): &Scored| Ok(self.text(&passages[*i], &ranking.texts)?.into_bytes());
            let texts = ranking.scored[..depth].iter().map(text).collect::<Result<Vec<_>, Failure>>()?;
            rank::mmr(&mut ranking.scored, &texts, lambda as f32);
        }
        Ok(())
    }

    /// The text of a passage as it is indexed.
    pub fn text(&self, passage: &Passage, known: &FxHashMap<usize, Vec<u8>>) -> Result<String, Failure> {
        let c = &self.candidates[passage.candidate];
        let read;
        let own = match known.get(&passage.candidate) {
            Some(text) => text,
            None => {
                read = text_of(&*self.roots[c.root].readers.get()?, c.chunk)?.unwrap_or_default();
                &read
            }
        };
        Ok(hits::lines(own, c.start_line, passage.lines.0, passage.lines.1))
    }

    fn degraded(&self, states: &[Progress]) -> Vec<String> {
        let mut what = Vec::new();
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
        note(self.rescored.lacks(), "rerank");
        what
    }

    /// Whether a stem is a word of the query.
    pub fn has(&self, stem: &Stem) -> bool {
        self.terms.iter().flatten().any(|t| t.stem == *stem)
    }
}

/// What a ranking gives.
pub struct Ranking {
    pub passages: Vec<Passage>,
    pub scored: Vec<Scored>,
    /// Texts of the candidates that were read, by index.
    pub texts: FxHashMap<usize, Vec<u8>>,
}

/// A window, its chunk, and its cosine.
type Near = (Position, i64, f32);

/// The failure of a root that is there but has no such file.
pub fn no_file(path: &str) -> Failure {
    Failure::new(Reason::PathNotFound, format!("'{}' is not in the index", path.escape_default()))
}
