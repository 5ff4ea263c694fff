//! The one place where answers are put in order. Candidates come with features; each weight is named here.

use cairn_protocol::search::Fusion;
use rustc_hash::FxHashMap;

use crate::gather::Candidate;
use crate::lexical::Term;

/// Weights, tuned on the repositories of the evaluation's tuning split.
#[derive(Debug, Clone)]
pub struct Weights {
    /// Names defined here and the path, against a word of the body, in BM25F.
    pub defs: f32,
    pub path: f32,
    /// BM25's saturation and length normalisation.
    pub k1: f32,
    pub b: f32,
    /// Of the list of cosines, against 1 for words.
    pub dense: f32,
    /// Of the file's own score by all its candidates.
    pub file: f32,
    /// Of the share of the query (by rarity) that one defined name covers.
    pub named: f32,
    /// Of a defined name that is the query or one of its identifiers.
    pub exact: f32,
    /// Of the share of the query that the path covers.
    pub in_path: f32,
    /// Factor for tests, docs, examples and vendored code the query does not ask for.
    pub aside: f32,
    /// Factor for each further result of one file with `diversify`.
    pub repeat: f32,
}

/// The weights in use.
pub const WEIGHTS: Weights = Weights {
    defs: 1.8,
    path: 3.2,
    k1: 1.2,
    b: 0.95,
    dense: 1.6,
    file: 1.0,
    named: 1.0,
    exact: 0.2,
    in_path: 0.6,
    aside: 0.3,
    repeat: 0.8,
};

/// Which lists count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Words only.
    Lexical,
    /// Vectors only.
    Semantic,
    /// Both.
    Hybrid,
}

/// A candidate's index in the list and its score.
pub type Scored = (usize, f32);

/// What speaks for a candidate; each but the last from 0 on, about 1 at most.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Features {
    /// Both lists fused, or the one that counts.
    pub fused: f32,
    /// Of its file, by all its candidates.
    pub file: f32,
    /// Share of the query (by rarity) that the path covers.
    pub in_path: f32,
    /// Share that the best defined name covers.
    pub named: f32,
    /// 1 when a defined name is the query or one of its identifiers.
    pub exact: f32,
    /// The factor of its path.
    pub prior: f32,
}

impl Features {
    /// The score: a weighted sum, times the path's factor.
    pub fn score(&self, w: &Weights) -> f32 {
        let sum = self.fused
            + w.file * self.file
            + w.in_path * self.in_path
            + w.named * self.named
            + w.exact * self.exact;
        sum * self.prior
    }
}

/// A query as the ranker sees it.
pub struct Ranker<'a> {
    asked: Asked,
    names: Vec<String>,
    /// Of each root.
    terms: &'a [Vec<Term>],
    mode: Mode,
}

impl<'a> Ranker<'a> {
    /// For a query with its terms in each root.
    pub fn new(query: &str, terms: &'a [Vec<Term>], mode: Mode) -> Self {
        let asked = Asked::of(query);
        let names = asked.names();
        Self { asked, names, terms, mode }
    }

    /// All features but those that need the candidates' definitions.
    pub fn features(&self, candidates: &[Candidate], fusion: Fusion) -> Vec<Features> {
        let w = &WEIGHTS;
        let average =
            candidates.iter().map(|c| c.tokens as f32).sum::<f32>() / candidates.len().max(1) as f32;
        let average = average.max(1.0);
        let lexical: Vec<f32> =
            candidates.iter().map(|c| bm25f(c, &self.terms[c.root], average, w)).collect();
        let cosine: Vec<f32> = candidates.iter().map(|c| c.cosine.unwrap_or(0.0)).collect();
        let fused: Vec<f32> = match self.mode {
            Mode::Lexical => scaled(&lexical),
            Mode::Semantic => cosine,
            Mode::Hybrid => fuse(&lexical, &cosine, fusion, w),
        };
        let by_words = self.mode != Mode::Semantic;
        let files = if by_words { by_file(candidates, self.terms, average, w) } else { FxHashMap::default() };
        let mut priors: FxHashMap<(usize, u32), f32> = FxHashMap::default();
        let feature = |(c, fused): (&Candidate, f32)| {
            let key = (c.root, c.file);
            let prior = *priors.entry(key).or_insert_with(|| prior(&c.path, &self.asked, w));
            let mut made = Features { fused, prior, ..Features::default() };
            if by_words {
                made.file = files.get(&key).copied().unwrap_or(0.0);
                let hit = |(n, t): (&[u16; 3], &Term)| if n[2] > 0 { t.rarity } else { 0.0 };
                made.in_path = c.counts.iter().zip(&self.terms[c.root]).map(hit).sum::<f32>() / self.total(c);
            }
            made
        };
        candidates.iter().zip(fused).map(feature).collect()
    }

    /// Adds what a candidate's definitions say.
    pub fn define(&self, features: &mut Features, c: &Candidate) {
        if self.mode == Mode::Semantic {
            return;
        }
        features.named = best_name(c, &self.terms[c.root]) / self.total(c);
        let is = |s: &crate::gather::Span| {
            s.start_line >= c.start_line && self.names.iter().any(|n| *n == s.name.to_lowercase())
        };
        features.exact = if c.spans.iter().any(is) { 1.0 } else { 0.0 };
    }

    fn total(&self, c: &Candidate) -> f32 {
        self.terms[c.root].iter().map(|t| t.rarity).sum::<f32>().max(0.001)
    }
}

/// Best first; ties by path and line.
pub fn order(candidates: &[Candidate], features: &[Features]) -> Vec<Scored> {
    let mut scored: Vec<Scored> = features.iter().map(|f| f.score(&WEIGHTS)).enumerate().collect();
    scored.sort_unstable_by(|a, b| {
        let (x, y) = (&candidates[a.0], &candidates[b.0]);
        b.1.total_cmp(&a.1).then_with(|| x.path.cmp(&y.path)).then(x.start_line.cmp(&y.start_line))
    });
    scored
}

fn bm25f(c: &Candidate, terms: &[Term], average: f32, w: &Weights) -> f32 {
    let length = 1.0 - w.b + w.b * c.tokens as f32 / average;
    let part = |(n, term): (&[u16; 3], &Term)| {
        let tf = f32::from(n[0]) / length + w.defs * f32::from(n[1].min(3)) + w.path * f32::from(n[2].min(2));
        term.rarity * tf * (w.k1 + 1.0) / (tf + w.k1)
    };
    c.counts.iter().zip(terms).map(part).sum()
}

/// Scores of whole files by what all their candidates hold, scaled to 0..1.
fn by_file(
    all: &[Candidate],
    terms: &[Vec<Term>],
    average: f32,
    w: &Weights,
) -> FxHashMap<(usize, u32), f32> {
    let mut sums: FxHashMap<(usize, u32), (Vec<f32>, usize)> = FxHashMap::default();
    for c in all {
        let (sum, _) = sums.entry((c.root, c.file)).or_insert_with(|| (vec![0.0; c.counts.len()], c.root));
        let length = 1.0 - w.b + w.b * c.tokens as f32 / average;
        for (s, n) in sum.iter_mut().zip(&c.counts) {
            *s += f32::from(n[0]) / length + w.defs * f32::from(n[1].min(3));
        }
    }
    let score = |(sum, root): &(Vec<f32>, usize)| {
        sum.iter().zip(&terms[*root]).map(|(tf, term)| term.rarity * tf / (tf + 2.0 * w.k1)).sum::<f32>()
    };
    let scores: Vec<_> = sums.iter().map(|(key, value)| (*key, score(value))).collect();
    let most = scores.iter().fold(f32::MIN_POSITIVE, |m, s| m.max(s.1));
    scores.into_iter().map(|(key, s)| (key, s / most)).collect()
}

/// The most of the query (by rarity) that one name defined here covers.
fn best_name(c: &Candidate, terms: &[Term]) -> f32 {
    let mut best = 0f32;
    for span in c.spans.iter().filter(|s| s.start_line >= c.start_line) {
        let mut stems = crate::words::query_stems(&span.name);
        stems.retain(|s| s.len() > 1);
        let covered: f32 = terms.iter().filter(|t| stems.contains(&t.stem)).map(|t| t.rarity).sum();
        let hit = stems.iter().filter(|s| terms.iter().any(|t| t.stem == **s)).count() as f32;
        // A name with much else in it is less of an answer.
        best = best.max(covered * (0.5 + 0.5 * hit / stems.len().max(1) as f32));
    }
    best
}

fn scaled(values: &[f32]) -> Vec<f32> {
    let (low, high) = values.iter().fold((f32::MAX, f32::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
    let range = high - low;
    values.iter().map(|v| if range > 0.0 { (v - low) / range } else { 1.0 }).collect()
}

fn fuse(lexical: &[f32], cosine: &[f32], fusion: Fusion, w: &Weights) -> Vec<f32> {
    match fusion {
        Fusion::Minmax => scaled(lexical).iter().zip(scaled(cosine)).map(|(l, c)| l + w.dense * c).collect(),
        Fusion::Rrf => {
            let (l, c) = (reciprocal(lexical), reciprocal(cosine));
            // Brought to the same range as the scaled scores, so that the other weights mean the same.
            l.iter().zip(&c).map(|(l, c)| (l + c) * 61.0).collect()
        }
    }
}

/// 1 / (60 + rank), the usual constant; nothing for what has no score.
fn reciprocal(values: &[f32]) -> Vec<f32> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    let mut out = vec![0.0; values.len()];
    for (rank, i) in order.into_iter().enumerate() {
        if values[i] > 0.0 {
            out[i] = 1.0 / (61.0 + rank as f32);
        }
    }
    out
}

/// What the words of a query ask for beside their meaning.
struct Asked {
    lower: String,
    tests: bool,
    docs: bool,
    examples: bool,
}

impl Asked {
    fn of(query: &str) -> Self {
        let lower = query.to_lowercase();
        let has = |words: &[&str]| lower.split(|c: char| !c.is_alphanumeric()).any(|w| words.contains(&w));
        Self {
            tests: has(&[
                "test",
                "tests",
                "testing",
                "spec",
                "specs",
                "fixture",
                "fixtures",
                "mock",
                "bench",
                "benchmark",
            ]),
            docs: has(&["doc", "docs", "documentation", "readme", "changelog", "guide", "tutorial"]),
            examples: has(&["example", "examples", "sample", "demo"]),
            lower,
        }
    }

    /// Identifiers of the query, lower-cased.
    fn names(&self) -> Vec<String> {
        let name = |c: char| c.is_alphanumeric() || c == '_';
        self.lower
            .split(|c| !name(c))
            .filter(|w| w.len() > 2 && !crate::words::is_stop(w))
            .map(str::to_owned)
            .collect()
    }
}

/// Whether a path is a test, document, example, vendored or data file.
pub fn is_aside(path: &str) -> bool {
    prior(path, &Asked::of(""), &WEIGHTS) < 1.0
}

/// How much a path counts: code first, unless the query asks for something else.
fn prior(path: &str, asked: &Asked, w: &Weights) -> f32 {
    let lower = path.to_lowercase();
    if !asked.lower.is_empty() && asked.lower.contains(&lower) {
        return 1.0;
    }
    let (folders, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
    let has = |words: &[&str]| folders.split('/').any(|f| words.contains(&f));
    let stem = name.split('.').next().unwrap_or(name);
    let test = has(&[
        "test",
        "tests",
        "testing",
        "spec",
        "specs",
        "__tests__",
        "testdata",
        "fixtures",
        "e2e",
        "bench",
        "benches",
        "benchmarks",
    ]) || stem.starts_with("test_")
        || ["_test", "_tests", "_spec", "-test"].iter().any(|e| stem.ends_with(e))
        || path.ends_with("Test.java")
        || path.ends_with("Tests.java")
        || name.contains(".test.")
        || name.contains(".spec.")
        || name == "conftest.py";
    let ending = name.rsplit('.').next().unwrap_or("");
    let doc = has(&["doc", "docs", "documentation"])
        || matches!(ending, "md" | "rst" | "txt" | "adoc" | "html" | "css" | "svg" | "po")
        || ["changelog", "changes", "history", "news", "readme", "license"].contains(&stem);
    let example =
        has(&["example", "examples", "sample", "samples", "demo", "demos", "tutorial", "tutorials"]);
    let vendored = has(&[
        "vendor",
        "vendored",
        "third_party",
        "third-party",
        "node_modules",
        "dist",
        "generated",
        "gen",
    ]);
    let data = matches!(ending, "json" | "yaml" | "yml" | "toml" | "lock" | "cfg" | "ini" | "xml" | "csv");
    let mut factor = 1.0;
    for (is, wanted) in
        [(test, asked.tests), (doc, asked.docs), (example, asked.examples), (vendored, false), (data, false)]
    {
        if is && !wanted {
            factor *= w.aside;
        }
    }
    factor
}

/// Orders anew so that further results of one file count less.
pub fn diversify(scored: &mut [Scored], candidates: &[Candidate]) {
    let mut seen: FxHashMap<(usize, u32), i32> = FxHashMap::default();
    for (i, score) in scored.iter_mut() {
        let n = seen.entry((candidates[*i].root, candidates[*i].file)).or_default();
        *score *= WEIGHTS.repeat.powi(*n);
        *n += 1;
    }
    scored.sort_by(|a, b| b.1.total_cmp(&a.1));
}

/// Maximal marginal relevance over the first of `scored`, whose texts these are: likeness is the share of words in
/// common.
pub fn mmr(scored: &mut [Scored], texts: &[Vec<u8>], lambda: f32) {
    let depth = texts.len().min(scored.len());
    let top = scored.first().map_or(1.0, |s| s.1).max(f32::MIN_POSITIVE);
    let bags: Vec<rustc_hash::FxHashSet<crate::words::Stem>> = texts[..depth]
        .iter()
        .map(|text| crate::words::query_stems(&String::from_utf8_lossy(text)).into_iter().collect())
        .collect();
    let mut likeness = vec![0f32; depth];
    let mut left: Vec<usize> = (0..depth).collect();
    let mut order = Vec::with_capacity(depth);
    while !left.is_empty() {
        let value = |n: usize| lambda * scored[n].1 / top - (1.0 - lambda) * likeness[n];
        let best =
            left.iter().enumerate().max_by(|a, b| value(*a.1).total_cmp(&value(*b.1)).then(b.0.cmp(&a.0)));
        let Some(at) = best.map(|(at, _)| at) else { break };
        let taken = left.remove(at);
        for other in &left {
            let both = bags[taken].intersection(&bags[*other]).count() as f32;
            let any = (bags[taken].len() + bags[*other].len()) as f32 - both;
            likeness[*other] = likeness[*other].max(both / any.max(1.0));
        }
        order.push(scored[taken]);
    }
    scored[..depth].copy_from_slice(&order);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_aside_counts_less_unless_asked_for() {
        let p = |path, query| prior(path, &Asked::of(query), &WEIGHTS);
        assert_eq!(p("src/server.rs", "start server"), 1.0);
        for path in [
            "tests/server.rs",
            "src/server_test.go",
            "docs/server.md",
            "vendor/x/server.go",
            "test_server.py",
        ] {
            assert!(p(path, "start server") < 1.0, "{path}");
        }
        assert_eq!(p("tests/server.rs", "server tests"), 1.0);
    }

    #[test]
    fn scaling_keeps_order_and_range() {
        assert_eq!(scaled(&[1.0, 3.0, 2.0]), [0.0, 1.0, 0.5]);
        assert_eq!(scaled(&[2.0, 2.0]), [1.0, 1.0]);
        let r = reciprocal(&[0.5, 0.9, 0.0]);
        assert!(r[1] > r[0] && r[2] == 0.0);
    }
}
