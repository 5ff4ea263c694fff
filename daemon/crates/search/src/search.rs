//! The query pipeline: candidates by words and by vectors in parallel, then ranking, then result items.

use std::sync::Arc;
use std::time::Instant;

use crate::filters::{Filters, check_search};
use crate::gather::{Candidate, gather, spans};
use crate::hits;
use crate::hits::Ranked;
use crate::indexes::Indexes;
use crate::lexical::{self, Term};
use crate::rank::{self, Mode, Passage, Ranker, Repeat, Scored, Weights};
use crate::rescore::Rescored;
use cairn_index_base::FileSet;
use cairn_index_base::FileTable;
use cairn_text_index::packed::text_of;
use cairn_text_index::{Position, Snapshot};

use crate::root_index::{Progress, RootIndex};
use cairn_index_base::CancelFlag;
use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::index::IndexState;
use cairn_protocol::search::{Corpus, Fusion, SearchAnswer, SearchItem, SearchParams, SearchPartial};
use cairn_tokenizer::words::{Stem, query_stems};
use rustc_hash::FxHashMap;

/// Candidates of each list, unless `k` needs more.
const CANDIDATES_PER_LIST: usize = 200;
/// Maximum number of windows that are read and ranked by their definitions.
const MAX_READ: usize = 40;
/// Passages that MMR chooses from, per requested result.
const MMR_DEPTH: usize = 3;

pub type OnPartial<'a> = &'a (dyn Fn(SearchPartial) + Sync);

impl Indexes {
    /// `search.lexical`: search by words.
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

    /// All ranked passages of a search with their features, best first and without deduplication, for fitting the weights.
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
        let ranking = query.rank()?;
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
        let mut ranking = query.rank()?;
        query.diversify(&mut ranking)?;
        let ranked = Ranked {
            candidates: &query.candidates,
            passages: &ranking.passages,
            scored: ranking.scored,
            texts: &ranking.texts,
        };
        let items = hits::build(&query, &ranked, cancel)?;
        // The state after the search counts as well: parts that were added during the search were not seen.
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

/// Emits a partial answer for a list of one root.
type Emit<'a> = &'a dyn Fn(Corpus, &[Position]) -> Result<(), Failure>;

/// The state of a running search.
pub struct Query<'a> {
    pub params: &'a SearchParams,
    pub mode: Mode,
    pub filters: Filters,
    pub stems: Vec<Stem>,
    pub roots: Vec<Arc<RootIndex>>,
    /// Terms of each root.
    terms: Vec<Vec<Term>>,
    /// The query's vector; empty for a lexical search.
    pub vector: Vec<f32>,
    /// The query's vector by the static table, if a transformer computed the vectors of the index.
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
            rescored: Rescored::Off,
        }
    }

    /// Adds the candidates of one root.
    fn collect(&mut self, index: &Arc<RootIndex>, partial: OnPartial<'_>) -> Result<(), Failure> {
        let conn = match index.readers.get() {
            Ok(conn) => conn,
            // The progress has the reason if the index could not be opened.
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
        let emits_partials = self.mode == Mode::Hybrid && self.params.request_id.is_some();
        let emit = |corpus: Corpus, positions: &[Position]| match emits_partials {
            true => self.partial(&snapshot, &table, root, corpus, positions, partial),
            false => Ok(()),
        };
        let (words, nearest) = self.lists(index, &snapshot, root, files.as_ref(), &emit)?;
        let mut positions = words;
        let seen: rustc_hash::FxHashSet<Position> = positions.iter().copied().collect();
        positions.extend(nearest.iter().map(|n| n.0).filter(|p| !seen.contains(p)));
        let mut candidates = gather(&snapshot, &table, root, &positions, &self.terms[root]);
        if !self.vector.is_empty() {
            let mut known: FxHashMap<i64, f32> =
                nearest.iter().map(|(_, chunk, cosine)| (*chunk, *cosine)).collect();
            let by_words: Vec<i64> =
                candidates.iter().map(|c| c.chunk).filter(|c| !known.contains_key(c)).collect();
            let cosines = index.dense.cosines(&self.vector, &by_words);
            known.extend(by_words.iter().zip(cosines).filter_map(|(chunk, cosine)| Some((*chunk, cosine?))));
            candidates.iter_mut().for_each(|c| c.cosine = known.get(&c.chunk).copied());
        }
        self.retain_kinds(&conn, &mut candidates)?;
        self.candidates.append(&mut candidates);
        Ok(())
    }

    /// Finds the best windows by words and by vectors in parallel and emits each list as soon as it is complete.
    fn lists(
        &self,
        index: &RootIndex,
        snapshot: &Snapshot,
        root: usize,
        files: Option<&FileSet>,
        emit: Emit<'_>,
    ) -> Result<(Vec<Position>, Vec<Neighbour>), Failure> {
        let limit = self.list_len();
        let by_words = || {
            let hits = lexical::candidates(snapshot, &self.terms[root], limit, files, &self.cancel)?;
            let positions: Vec<Position> =
                hits.iter().map(|h| Position { segment: h.segment, doc: h.doc }).collect();
            emit(Corpus::Lex, &positions)?;
            Ok::<_, Failure>(positions)
        };
        if self.vector.is_empty() {
            return Ok((by_words()?, Vec::new()));
        }
        let scan = index.dense.scan(&self.vector, limit, files);
        let mut words = Ok(Vec::new());
        index.opts.helpers.in_place_scope(|scope| {
            if self.mode == Mode::Hybrid || scan.is_large() {
                scope.spawn(|_| scan.run());
            }
            if self.mode == Mode::Hybrid {
                words = by_words();
            }
            scan.run();
        });
        let nearest = scan.finish().into_iter();
        let nearest: Vec<Neighbour> =
            nearest.filter_map(|(id, score)| Some((snapshot.find(id as u64)?, id, score))).collect();
        if self.mode == Mode::Semantic {
            return Ok((Vec::new(), nearest));
        }
        let positions: Vec<Position> = nearest.iter().map(|n| n.0).collect();
        emit(Corpus::Sem, &positions)?;
        Ok((words?, nearest))
    }

    /// Length of each list. A semantic search needs few, because its list is already in order except for secondary and
    /// removed files.
    fn list_len(&self) -> usize {
        let is_short = self.mode == Mode::Semantic && self.filters.kinds.is_empty();
        if is_short {
            30 + 2 * self.params.k as usize
        } else {
            CANDIDATES_PER_LIST.max(2 * self.params.k as usize)
        }
    }

    /// With a filter by kind, removes candidates without a definition of that kind.
    fn retain_kinds(
        &self,
        conn: &cairn_store::rusqlite::Connection,
        candidates: &mut Vec<Candidate>,
    ) -> Result<(), Failure> {
        if !self.filters.kinds.is_empty() {
            for c in candidates.iter_mut() {
                c.spans = spans(conn, c)?;
                c.spans.retain(|s| self.filters.kinds.contains(&s.kind));
            }
            candidates.retain(|c| !c.spans.is_empty());
        }
        Ok(())
    }

    /// Emits a list of one root before fusion.
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
        self.retain_kinds(&*self.roots[root].readers.get()?, &mut candidates)?;
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

    /// Ranks the candidates, then the definitions in the best of them.
    fn rank(&mut self) -> Result<Ranking, Failure> {
        let fusion = self.params.fusion.unwrap_or(Fusion::Minmax);
        let ranker = Ranker::new(&self.params.query, &self.terms, self.mode);
        let base = ranker.windows(&self.candidates, fusion);
        let by_kind = !self.filters.kinds.is_empty();
        let most = if by_kind { self.candidates.len() } else { MAX_READ.max(self.params.k as usize) };
        let read = self.read_best(&ranker, &base, most)?;
        let (mut passages, mut texts) = (Vec::new(), FxHashMap::default());
        for window in read {
            // With a filter by kind only definitions are results, not windows.
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

    /// The weights of the features in this search.
    pub fn weights(&self) -> &'static Weights {
        Weights::of(self.mode, self.rescored.counts())
    }

    /// Sorts passages by score, ties by path and line.
    pub fn sorted(&self, passages: &[Passage]) -> Vec<Scored> {
        let weights = self.weights();
        let mut scored: Vec<Scored> =
            passages.iter().map(|p| p.features.score(weights)).enumerate().collect();
        let location = |i: usize| (&self.candidates[passages[i].candidate].path, passages[i].lines);
        scored.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| location(a.0).cmp(&location(b.0))));
        scored
    }

    /// Diversifies the results according to the parameters.
    fn diversify(&self, ranking: &mut Ranking) -> Result<(), Failure> {
        let passages = &ranking.passages;
        let repeat = if self.params.diversify == Some(true) { Repeat::DIVERSE } else { Repeat::DEFAULT };
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

    /// The indexed text of a passage.
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
        let mut reasons = Vec::new();
        let mut add_if = |is: bool, name: &str| {
            if is {
                reasons.push(name.to_owned());
            }
        };
        add_if(states.iter().any(|p| p.state == Some(IndexState::Indexing) || p.pending > 0), "indexing");
        add_if(
            self.mode != Mode::Lexical && states.iter().any(|p| p.counts.vectors < p.counts.chunks),
            "vectors",
        );
        add_if(states.iter().any(|p| p.counts.symbol_files < p.counts.files), "symbols");
        add_if(states.iter().any(|p| p.state == Some(IndexState::Failed)), "failed");
        add_if(self.rescored.is_partial(), "rerank");
        reasons
    }

    /// True if a stem is a word of the query.
    pub fn has_stem(&self, stem: &Stem) -> bool {
        self.terms.iter().flatten().any(|t| t.stem == *stem)
    }
}

/// The result of ranking.
pub struct Ranking {
    pub passages: Vec<Passage>,
    pub scored: Vec<Scored>,
    /// Texts of the candidates that were read, by candidate index.
    pub texts: FxHashMap<usize, Vec<u8>>,
}

/// The position of a window, its chunk id and its cosine.
type Neighbour = (Position, i64, f32);

/// The failure for a path that is not in the index.
pub fn no_file(path: &str) -> Failure {
    Failure::new(Reason::PathNotFound, format!("'{}' is not in the index", path.escape_default()))
}
