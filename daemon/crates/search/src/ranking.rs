//! The second step of a search: from candidates to passages in order. Windows are ranked by the
//! data of the index; the best of them are read and ranked by the definitions in them.

use cairn_protocol::error::Failure;
use cairn_protocol::search::Fusion;
use cairn_text_index::packed::text_of;
use rustc_hash::FxHashMap;

use crate::candidates::Candidate;
use crate::hits;
use crate::parsed::QueryKind;
use crate::query::Query;
use crate::rank::{self, Mode, Passage, Repeat, Scored, Script, Translation, Weights};
use crate::reading::read_best;
use crate::rescore::{Rescored, rescore};

/// Maximum number of windows that are read and ranked by their definitions.
const MAX_READ: usize = 40;
/// First passages by which an answer is judged to be weak, and the limits of their features. On the
/// 50 commit subjects and 50 comments of flask's tuning queries, 4 and 0 answers are weak; on 26
/// questions about other subjects, 25.
const JUDGED: usize = 3;
const WEAK_COVERAGE: f32 = 0.34;
const WEAK_NAME: f32 = 0.2;
/// Words of the query that no passage contains by chance.
const MANY_WORDS: usize = 4;
/// Passages that MMR chooses from, per requested result.
const MMR_DEPTH: usize = 3;

/// Ranked passages with their candidates.
pub struct Ranking {
    pub candidates: Vec<Candidate>,
    pub passages: Vec<Passage>,
    /// Passages with their scores, best first.
    pub scored: Vec<Scored>,
    /// Texts of the candidates that were read, by candidate index; others are read on demand.
    pub texts: FxHashMap<usize, Vec<u8>>,
    pub rescored: Rescored,
}

impl Ranking {
    /// Ranks the candidates, then the definitions in the best of them.
    ///
    /// # Errors
    /// `cancelled`, or when the database cannot be read.
    pub fn new(query: &Query<'_>, mut candidates: Vec<Candidate>) -> Result<Self, Failure> {
        let ranker = query.ranker();
        let base = ranker.windows(&candidates, query.params.fusion.unwrap_or(Fusion::Minmax));
        let by_kind = !query.filters.kinds.is_empty();
        // Definitions of a query that is one name do not take the place of other windows.
        let is_name = query.parsed.kind == QueryKind::Identifier;
        let defined = candidates.iter().filter(|c| is_name && c.named).count();
        let most = match by_kind {
            true => candidates.len(),
            false => defined + MAX_READ.max(query.params.k as usize),
        };
        let mut passages = Vec::new();
        let mut texts = FxHashMap::default();
        for window in read_best(query, &candidates, &ranker, &base, most)? {
            // With a filter by kind only definitions are results, not windows.
            passages.extend(window.passages.into_iter().filter(|p| p.span.is_some() || !by_kind));
            candidates[window.candidate].spans = window.spans;
            texts.insert(window.candidate, window.text);
        }
        let rest = base.order.iter().skip(most);
        passages
            .extend(rest.map(|(i, _)| rank::window_passage(&ranker, *i, &candidates[*i], &base)));
        let scored =
            sorted(&candidates, &passages, Weights::of(query.mode, query.parsed.kind, false));
        let unscored = Self { candidates, passages, scored, texts, rescored: Rescored::Off };
        let mut ranking = rescore(query, unscored)?;
        let mut scores = vec![0.0; ranking.passages.len()];
        ranking.scored.iter().for_each(|(i, score)| scores[*i] = *score);
        rank::trim(&mut ranking.passages, &scores);
        Ok(ranking)
    }

    /// The windows of one list in its order, before fusion.
    pub fn of_list(query: &Query<'_>, candidates: Vec<Candidate>) -> Self {
        let ranker = query.ranker();
        let base = ranker.windows(&candidates, Fusion::Minmax);
        let passages: Vec<Passage> = candidates
            .iter()
            .enumerate()
            .map(|(i, c)| rank::window_passage(&ranker, i, c, &base))
            .collect();
        let scored = (0..passages.len()).map(|i| (i, 1.0 / (1.0 + i as f32))).collect();
        Self { candidates, passages, scored, texts: FxHashMap::default(), rescored: Rescored::Off }
    }

    /// Removes translations of documents, then diversifies the order according to the parameters.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn diversified(mut self, query: &Query<'_>) -> Result<Self, Failure> {
        let repeat = match query.parsed.kind {
            _ if query.params.diversify == Some(true) => Repeat::DIVERSE,
            QueryKind::Issue => Repeat::ISSUE,
            _ => Repeat::DEFAULT,
        };
        self.remove_translations(query);
        rank::diversify(&mut self.scored, repeat, |i| {
            let c = &self.candidates[self.passages[i].candidate];
            (c.root, c.file)
        });
        if let Some(lambda) = query.params.mmr {
            let depth = (MMR_DEPTH * query.params.k as usize).min(self.scored.len());
            let text = |(i, _): &Scored| Ok(self.text(query, &self.passages[*i])?.into_bytes());
            let texts =
                self.scored[..depth].iter().map(text).collect::<Result<Vec<_>, Failure>>()?;
            rank::mmr(&mut self.scored, &texts, lambda as f32);
        }
        Ok(self)
    }

    fn remove_translations(&mut self, query: &Query<'_>) {
        let script = Script::of_query(&query.params.query);
        rank::one_translation(&mut self.scored, script, |i| {
            let passage = &self.passages[i];
            let c = &self.candidates[passage.candidate];
            let is_named = passage.features.named_path > 0.0;
            ((c.root, c.file), Translation::of(&c.path), is_named)
        });
    }

    /// True if the first passages contain so little of the query that they probably do not answer
    /// it: few of its words by rarity, no name from it and none of similar meaning.
    pub fn is_weak(&self, query: &Query<'_>) -> bool {
        if query.mode == Mode::Semantic {
            return false;
        }
        let ranker = query.ranker();
        self.scored.iter().take(JUDGED).all(|(i, _)| {
            let passage = &self.passages[*i];
            let features = &passage.features;
            let (words, share) = ranker.coverage(&self.candidates[passage.candidate]);
            words < MANY_WORDS
                && share < WEAK_COVERAGE
                && features.name_meaning < WEAK_NAME
                && features.exact == 0.0
        })
    }

    /// The weights of the features.
    pub fn weights(&self, query: &Query<'_>) -> &'static Weights {
        Weights::of(query.mode, query.parsed.kind, self.rescored.counts())
    }

    /// The indexed text of a passage.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn text(&self, query: &Query<'_>, passage: &Passage) -> Result<String, Failure> {
        let c = &self.candidates[passage.candidate];
        let read;
        let text = match self.texts.get(&passage.candidate) {
            Some(text) => text,
            None => {
                read = text_of(&*query.roots[c.root].index.readers.get()?, c.chunk)?
                    .unwrap_or_default();
                &read
            }
        };
        Ok(hits::lines(text, c.start_line, passage.lines.0, passage.lines.1))
    }
}

/// Sorts passages by score, ties by path and line.
pub fn sorted(candidates: &[Candidate], passages: &[Passage], weights: &Weights) -> Vec<Scored> {
    let mut scored: Vec<Scored> =
        passages.iter().map(|p| p.features.score(weights)).enumerate().collect();
    let location = |i: usize| (&candidates[passages[i].candidate].path, passages[i].lines);
    scored.sort_unstable_by(|a, b| {
        b.1.total_cmp(&a.1).then_with(|| location(a.0).cmp(&location(b.0)))
    });
    scored
}
