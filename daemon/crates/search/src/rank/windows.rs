//! The first step of ranking: candidate windows by word counts, cosines and paths, without reading
//! text.

use cairn_protocol::search::Fusion;
use rustc_hash::FxHashMap;

use super::prior::{QueryTopics, is_document, prior};
use super::{Features, Mode, Scored};
use crate::candidates::Candidate;
use crate::lexical::Term;
use crate::named::{Named, NamedFile};
use crate::parsed::{ParsedQuery, QueryKind, QueryName};
use crate::scripts::is_overlap;
use cairn_tokenizer::words;

/// Weight of names defined in the window relative to words of the body in BM25F.
const DEFS: f32 = 1.8;
/// Weight of the path relative to words of the body in BM25F.
const PATH: f32 = 3.2;
pub(super) const K1: f32 = 1.2;
/// Length normalisation of BM25.
const B: f32 = 0.95;
/// Weights of the first order, relative to 1 for words: cosines, words of the file, and path.
const DENSE: f32 = 1.6;
const FILE_WORDS: f32 = 1.0;
const IN_PATH: f32 = 0.6;
/// Added for windows with a definition or line that the query names, so that they are read.
const NAMED: f32 = 1.0;
/// Added instead for the definitions of a query that is one name: more than all else together, so
/// that windows of code with parts of the name do not precede a definition in a test.
const DEFINED: f32 = 2.0 + DENSE + FILE_WORDS + IN_PATH;
/// Minimum assumed difference between the cosines of the farthest and the nearest window, since few
/// windows say little about the range.
const RANGE: f32 = 0.2;

/// The position of a root and the id of a file.
type FileKey = (usize, u32);

/// The query data of the ranker.
pub struct Ranker<'a> {
    topics: QueryTopics,
    pub(super) kind: QueryKind,
    pub(super) names: &'a [QueryName],
    /// Terms of each root.
    terms: &'a [Vec<Term>],
    /// Quoted lines by the terms of each root.
    quotes: Vec<Vec<Quote>>,
    /// Named files of each root.
    named: &'a [Named],
    pub(super) mode: Mode,
}

/// A line that the query quotes.
pub(super) struct Quote {
    /// True for the terms in it, in the order of the terms.
    pub terms: Vec<bool>,
    /// Sum of their rarities.
    pub total: f32,
}

/// The quoted lines of a query, by the terms of a root.
fn quotes(parsed: &ParsedQuery, terms: &[Term]) -> Vec<Quote> {
    let quote = |stems: &Vec<words::Stem>| {
        let terms_in: Vec<bool> = terms.iter().map(|t| stems.contains(&t.stem)).collect();
        let rarities = terms.iter().zip(&terms_in).filter(|(_, is_in)| **is_in);
        let total = rarities.map(|(t, _)| t.rarity).sum::<f32>().max(0.001);
        Quote { terms: terms_in, total }
    };
    parsed.quotes.iter().map(quote).collect()
}

/// The result of the first step.
pub struct Base {
    /// Features of each candidate, without those that need its text.
    pub features: Vec<Features>,
    /// Candidate indexes with scores, best first.
    pub order: Vec<Scored>,
    /// The minimum cosine of the candidates and the range to the maximum; `None` if no cosine is
    /// known.
    pub(super) cosines: Option<(f32, f32)>,
}

impl<'a> Ranker<'a> {
    /// Creates a ranker for a query with its terms in each root.
    pub fn new(
        parsed: &'a ParsedQuery,
        terms: &'a [Vec<Term>],
        named: &'a [Named],
        mode: Mode,
    ) -> Self {
        Self {
            topics: QueryTopics::new(parsed),
            kind: parsed.kind,
            names: &parsed.names,
            terms,
            quotes: terms.iter().map(|terms| quotes(parsed, terms)).collect(),
            named,
            mode,
        }
    }

    /// The quoted lines by the terms of a candidate's root.
    pub(super) fn quotes(&self, c: &Candidate) -> &[Quote] {
        &self.quotes[c.root]
    }

    /// Computes the features and the first order of the candidates.
    pub fn windows(&self, candidates: &[Candidate], fusion: Fusion) -> Base {
        let tokens = candidates.iter().map(|c| c.tokens as f32).sum::<f32>();
        let average = (tokens / candidates.len().max(1) as f32).max(1.0);
        let by_words = self.mode != Mode::Semantic;
        let by_meaning = self.mode != Mode::Lexical;
        let list = |values: Vec<f32>, counts: bool| match (counts, fusion) {
            (false, _) => vec![0.0; values.len()],
            (true, Fusion::Minmax) => scaled(&values),
            (true, Fusion::Rrf) => reciprocal(&values),
        };
        let words = list(
            candidates.iter().map(|c| bm25f(c, &self.terms[c.root], average)).collect(),
            by_words,
        );
        let cosines: Vec<f32> = candidates.iter().map(|c| c.cosine.unwrap_or(0.0)).collect();
        let min = cosines.iter().copied().fold(f32::MAX, f32::min);
        let range = (cosines.iter().copied().fold(f32::MIN, f32::max) - min).max(RANGE);
        let known = by_meaning && candidates.iter().any(|c| c.cosine.is_some());
        let near = match fusion {
            Fusion::Minmax if known => cosines.iter().map(|c| (c - min) / range).collect(),
            _ => list(cosines, by_meaning),
        };
        let files =
            if by_words { by_file(candidates, self.terms, average) } else { FxHashMap::default() };
        let nearest = nearest_of_files(candidates, &near);
        let mut paths: FxHashMap<FileKey, (f32, f32)> = FxHashMap::default();
        let mut order: Vec<Scored> = Vec::with_capacity(candidates.len());
        let feature = |(i, c): (usize, &Candidate)| {
            let key = (c.root, c.file);
            let (prior, file_name) = *paths.entry(key).or_insert_with(|| {
                (self.prior(c), if by_words { self.file_name_match(c) } else { 0.0 })
            });
            let named = self.named_file(c);
            let mut window_features = Features {
                window_words: words[i],
                file_words: files.get(&key).copied().unwrap_or(0.0),
                file_meaning: nearest.get(&key).copied().unwrap_or(0.0),
                meaning: near[i],
                prior,
                file_name,
                file_names: named.by_names.min(1.0),
                named_path: named.by_path,
                document: f32::from(u8::from(is_document(&c.path))),
                ..Features::default()
            };
            if by_words {
                let hit = |(n, t): (&[u16; 3], &Term)| if n[2] > 0 { t.rarity } else { 0.0 };
                window_features.path =
                    c.counts.iter().zip(self.terms(c)).map(hit).sum::<f32>() / self.total(c);
            }
            let first = words[i]
                + DENSE * near[i]
                + FILE_WORDS * window_features.file_words
                + IN_PATH * window_features.path;
            let named = if c.named && self.kind == QueryKind::Identifier {
                DEFINED
            } else if c.named || self.has_all_parts(c) {
                NAMED
            } else {
                0.0
            };
            order.push((i, first * window_features.prior + named));
            window_features
        };
        let features = candidates.iter().enumerate().map(feature).collect();
        sort(&mut order, candidates);
        Base { features, order, cosines: known.then_some((min, range)) }
    }

    /// True for a window with all words of a query that is one name.
    fn has_all_parts(&self, c: &Candidate) -> bool {
        self.kind == QueryKind::Identifier && c.counts.iter().all(|n| n[0] > 0)
    }

    /// The factor of a candidate's path: 1 for a file that the query names.
    fn prior(&self, c: &Candidate) -> f32 {
        if self.named_file(c).by_path > 0.0 { 1.0 } else { prior(&c.path, &self.topics) }
    }

    fn named_file(&self, c: &Candidate) -> NamedFile {
        let files = self.named.get(c.root).map(|named| &named.files);
        files.and_then(|files| files.get(&c.file)).copied().unwrap_or_default()
    }

    /// 1 if every word of the file's name is among the terms.
    fn file_name_match(&self, c: &Candidate) -> f32 {
        let mut stems = words::query_stems(significant_name(&c.path));
        stems.retain(|s| s.len() > 1);
        let is_in_query = |stem: &words::Stem| self.terms(c).iter().any(|t| t.stem == *stem);
        f32::from(u8::from(!stems.is_empty() && stems.iter().all(is_in_query)))
    }

    pub(super) fn terms(&self, c: &Candidate) -> &'a [Term] {
        &self.terms[c.root]
    }

    /// Number of the words that a candidate contains, and their share of the query by rarity. Of two
    /// overlapping pairs of characters only the first counts as a word, since a question in a
    /// script without spaces has almost as many pairs as characters.
    pub fn coverage(&self, c: &Candidate) -> (usize, f32) {
        let (mut words, mut sum) = (0, 0.0);
        let mut counted: Option<&words::Stem> = None;
        for (counts, term) in c.counts.iter().zip(self.terms(c)) {
            if counts.iter().all(|n| *n == 0) {
                counted = None;
                continue;
            }
            sum += term.rarity;
            let is_word = !counted.is_some_and(|before| is_overlap(before, &term.stem));
            counted = is_word.then_some(&term.stem);
            words += usize::from(is_word);
        }
        (words, sum / self.total(c))
    }

    /// Sum of the rarities of all terms.
    pub(super) fn total(&self, c: &Candidate) -> f32 {
        self.terms(c).iter().map(|t| t.rarity).sum::<f32>().max(0.001)
    }
}

/// The significant name of a file: its name up to the first dot, or its folder's name if the file
/// name is common.
fn significant_name(path: &str) -> &str {
    const COMMON: [&str; 5] = ["mod", "index", "__init__", "lib", "main"];
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.split('.').next().unwrap_or(name);
    let folder = folders.rsplit('/').next().unwrap_or(folders);
    if COMMON.contains(&stem) && !folder.is_empty() { folder } else { stem }
}

/// Sorts by score, ties by path and line.
fn sort(order: &mut [Scored], candidates: &[Candidate]) {
    order.sort_unstable_by(|a, b| {
        let (x, y) = (&candidates[a.0], &candidates[b.0]);
        b.1.total_cmp(&a.1).then_with(|| x.path.cmp(&y.path)).then(x.start_line.cmp(&y.start_line))
    });
}

fn bm25f(c: &Candidate, terms: &[Term], average: f32) -> f32 {
    let length = 1.0 - B + B * c.tokens as f32 / average;
    let part = |(n, term): (&[u16; 3], &Term)| {
        let tf = f32::from(n[0]) / length
            + DEFS * f32::from(n[1].min(3))
            + PATH * f32::from(n[2].min(2));
        term.rarity * tf * (K1 + 1.0) / (tf + K1)
    };
    c.counts.iter().zip(terms).map(part).sum()
}

/// Scores of files by the words of all their candidates, scaled to 0..1.
fn by_file(all: &[Candidate], terms: &[Vec<Term>], average: f32) -> FxHashMap<FileKey, f32> {
    let mut sums: FxHashMap<FileKey, Vec<f32>> = FxHashMap::default();
    for c in all {
        let sum = sums.entry((c.root, c.file)).or_insert_with(|| vec![0.0; c.counts.len()]);
        let length = 1.0 - B + B * c.tokens as f32 / average;
        for (s, n) in sum.iter_mut().zip(&c.counts) {
            *s += f32::from(n[0]) / length + DEFS * f32::from(n[1].min(3));
        }
    }
    let score = |(key, sum): (&FileKey, &Vec<f32>)| {
        let parts =
            sum.iter().zip(&terms[key.0]).map(|(tf, term)| term.rarity * tf / (tf + 2.0 * K1));
        (*key, parts.sum::<f32>())
    };
    let scores: Vec<_> = sums.iter().map(score).collect();
    let max = scores.iter().fold(f32::MIN_POSITIVE, |m, s| m.max(s.1));
    scores.into_iter().map(|(key, s)| (key, s / max)).collect()
}

fn nearest_of_files(all: &[Candidate], near: &[f32]) -> FxHashMap<FileKey, f32> {
    let mut best: FxHashMap<FileKey, f32> = FxHashMap::default();
    for (c, near) in all.iter().zip(near) {
        let max = best.entry((c.root, c.file)).or_default();
        *max = max.max(*near);
    }
    best
}

fn scaled(values: &[f32]) -> Vec<f32> {
    let (min, max) = values.iter().fold((f32::MAX, f32::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
    let range = max - min;
    values.iter().map(|v| if range > 0.0 { (v - min) / range } else { 1.0 }).collect()
}

/// Reciprocal rank with the usual constant, 61 / (60 + rank), so that the weights apply to 0..1; 0
/// for values without a score.
fn reciprocal(values: &[f32]) -> Vec<f32> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    let mut out = vec![0.0; values.len()];
    for (rank, i) in order.into_iter().enumerate() {
        if values[i] > 0.0 {
            out[i] = 61.0 / (61.0 + rank as f32);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosine_range_has_a_minimum_and_needs_a_cosine() {
        let window = |cosine| Candidate {
            root: 0,
            chunk: 1,
            file: 1,
            path: "a.rs".into(),
            start_line: 1,
            end_line: 9,
            fingerprint: 0,
            tokens: 5,
            spans: Vec::new(),
            counts: Vec::new(),
            cosine,
            named: false,
        };
        let (terms, parsed) = ([Vec::new()], ParsedQuery::new("open"));
        let ranker = Ranker::new(&parsed, &terms, &[], Mode::Hybrid);
        let cosines_of = |all: &[Candidate]| ranker.windows(all, Fusion::Minmax).cosines;
        assert_eq!(cosines_of(&[window(None), window(None)]), None);
        assert_eq!(cosines_of(&[window(Some(0.5))]), Some((0.5, RANGE)));
        assert_eq!(cosines_of(&[window(Some(0.75)), window(Some(0.25))]), Some((0.25, 0.5)));
    }

    #[test]
    fn significant_name_is_the_file_name_or_the_folder() {
        for (path, name) in [
            ("src/line_index.rs", "line_index"),
            ("src/parser/mod.rs", "parser"),
            ("pkg/click/__init__.py", "click"),
            ("main.go", "main"),
            ("lib/core.test.js", "core"),
            ("src/.hidden", ""),
            ("Makefile", "Makefile"),
        ] {
            assert_eq!(significant_name(path), name, "{path}");
        }
    }

    #[test]
    fn scaling_preserves_order_and_range() {
        assert_eq!(scaled(&[1.0, 3.0, 2.0]), [0.0, 1.0, 0.5]);
        assert_eq!(scaled(&[2.0, 2.0]), [1.0, 1.0]);
        let r = reciprocal(&[0.5, 0.9, 0.0]);
        assert!(r[1] > r[0] && r[2] == 0.0);
    }
}
