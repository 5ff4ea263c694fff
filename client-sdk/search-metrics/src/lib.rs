//! Metrics of ranked search results against known answers: recall, MRR, nDCG and lines read until
//! the answer, over files and over lines. Pure arithmetic.

pub mod queries;

use std::collections::{BTreeMap, BTreeSet};

/// Number of results that are scored.
pub const DEPTH: usize = 100;
/// Number of results for recall, MRR and nDCG.
const TOP: usize = 10;
/// Maximum lines of a result that can be a span hit; for a longer definition, twice its length.
const MAX_SPAN: u32 = 120;
/// Number of queries that a cell needs to count in the overall means.
pub const MIN_CELL: usize = 10;

/// First and last line, inclusive, counted from 1.
pub type Lines = (u32, u32);

/// The scored part of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultSpan {
    pub path: String,
    pub lines: Lines,
}

/// A correct answer: a file, and the lines in it if they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    pub path: String,
    pub lines: Option<Lines>,
}

/// The unit of scoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Files: only the first result of each file takes a rank.
    File,
    /// Results as ranked, correct if they overlap with the answer's lines.
    Span,
}

/// The metrics of one query, or means of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Recall among the first 1, 5 and 10, relative to the reachable maximum.
    pub recall_at1: f64,
    pub recall_at5: f64,
    pub recall_at10: f64,
    /// Reciprocal rank of the first correct answer among the first ten.
    pub mrr_at10: f64,
    /// nDCG at 10 with binary gain.
    pub ndcg_at10: f64,
    /// 1 if a correct answer starts within the first 200 or 400 result lines, even if it crosses
    /// that limit.
    pub at200_lines: f64,
    pub at400_lines: f64,
}

impl Figures {
    /// Returns the metrics in display order.
    pub fn all(&self) -> [f64; 7] {
        let Self {
            recall_at1,
            recall_at5,
            recall_at10,
            mrr_at10,
            ndcg_at10,
            at200_lines,
            at400_lines,
        } = *self;
        [recall_at1, recall_at5, recall_at10, mrr_at10, ndcg_at10, at200_lines, at400_lines]
    }
}

/// Names of the metrics, in the order of [`Figures::all`].
pub const NAMES: [&str; 7] = ["R@1", "R@5", "R@10", "MRR", "nDCG", "@200L", "@400L"];

/// Returns the mean of each metric; `None` without rows.
pub fn mean<'a>(rows: impl IntoIterator<Item = &'a Figures>) -> Option<Figures> {
    let mut sums = [0.0; 7];
    let mut count = 0.0;
    for row in rows {
        sums.iter_mut().zip(row.all()).for_each(|(sum, value)| *sum += value);
        count += 1.0;
    }
    let [recall_at1, recall_at5, recall_at10, mrr_at10, ndcg_at10, at200_lines, at400_lines] =
        sums.map(|sum| sum / count);
    let mean = Figures {
        recall_at1,
        recall_at5,
        recall_at10,
        mrr_at10,
        ndcg_at10,
        at200_lines,
        at400_lines,
    };
    (count > 0.0).then_some(mean)
}

/// The score of one query.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    pub file: Figures,
    /// Set only for a query that names lines.
    pub span: Option<Figures>,
    /// Rank from 1 of each expected file among the found ones, in the order of the expected files.
    pub file_ranks: Vec<Option<usize>>,
    /// Rank of each expected span among the results; empty for a query without lines.
    pub span_ranks: Vec<Option<usize>>,
    /// Recall of the lines within each budget of tokens, by [`packed_recall`]; empty unless it was
    /// measured.
    pub budgets: Vec<f64>,
}

impl Scored {
    /// Returns true if an answer is among the first ten: its lines if the query names lines, else
    /// its file.
    pub fn is_hit(&self) -> bool {
        let ranks = if self.span.is_some() { &self.span_ranks } else { &self.file_ranks };
        ranks.iter().flatten().any(|rank| *rank <= TOP)
    }
}

/// Scores the first [`DEPTH`] results, best first. A query without results scores 0.
pub fn score(results: &[ResultSpan], expected: &[Expected]) -> Scored {
    let results = &results[..results.len().min(DEPTH)];
    let mut right: Vec<&str> = Vec::new();
    for answer in expected {
        if !right.contains(&&*answer.path) {
            right.push(&answer.path);
        }
    }
    let mut files: Vec<&str> = Vec::new();
    for result in results {
        if !files.contains(&&*result.path) {
            files.push(&result.path);
        }
    }
    let which = |path: &str| right.iter().position(|p| *p == path);
    let by_file: Vec<Option<usize>> = files.iter().map(|f| which(f)).collect();
    let by_result: Vec<Option<usize>> = results.iter().map(|f| which(&f.path)).collect();
    let file = figures(&by_file, right.len(), results, &by_result);
    let rank = |path: &str| files.iter().position(|f| *f == path).map(|at| at + 1);
    let file_ranks = expected.iter().map(|w| rank(&w.path)).collect();

    let spans = expected.iter().all(|w| w.lines.is_some()) && !expected.is_empty();
    if !spans {
        return Scored {
            file,
            span: None,
            file_ranks,
            span_ranks: Vec::new(),
            budgets: Vec::new(),
        };
    }
    let meets = |f: &ResultSpan, w: &Expected| {
        f.path == w.path && w.lines.is_some_and(|lines| overlaps(f.lines, lines))
    };
    let by_span: Vec<Option<usize>> =
        results.iter().map(|f| expected.iter().position(|w| meets(f, w))).collect();
    let rank = |w: &Expected| results.iter().position(|f| meets(f, w)).map(|at| at + 1);
    Scored {
        file,
        span: Some(figures(&by_span, expected.len(), results, &by_span)),
        file_ranks,
        span_ranks: expected.iter().map(rank).collect(),
        budgets: Vec::new(),
    }
}

/// Computes the metrics. `ranked`: the correct answer at each rank, if any; `by_lines`: the same
/// for the results whose lines are counted.
fn figures(
    ranked: &[Option<usize>],
    right: usize,
    results: &[ResultSpan],
    by_lines: &[Option<usize>],
) -> Figures {
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    let mut gain = 0.0;
    for (rank, answer) in ranked.iter().take(TOP).enumerate() {
        // Only the first result of an answer counts.
        if let Some(answer) = answer
            && !seen.contains_key(answer)
        {
            seen.insert(*answer, rank);
            gain += discount(rank);
        }
    }
    let recall = |k: usize| {
        seen.values().filter(|rank| **rank < k).count() as f64 / right.min(k).max(1) as f64
    };
    let ideal: f64 = (0..right.clamp(1, TOP)).map(discount).sum();
    Figures {
        recall_at1: recall(1),
        recall_at5: recall(5),
        recall_at10: recall(TOP),
        mrr_at10: seen.values().min().map_or(0.0, |rank| 1.0 / (rank + 1) as f64),
        ndcg_at10: gain / ideal,
        at200_lines: within(results, by_lines, 200),
        at400_lines: within(results, by_lines, 400),
    }
}

fn discount(rank: usize) -> f64 {
    1.0 / ((rank + 2) as f64).log2()
}

/// Returns 1 if a correct answer starts within the first `budget` lines.
fn within(results: &[ResultSpan], by_lines: &[Option<usize>], budget: u64) -> f64 {
    let mut used = 0;
    for (result, answer) in results.iter().zip(by_lines) {
        if used >= budget {
            return 0.0;
        }
        if answer.is_some() {
            return 1.0;
        }
        used += length(result.lines);
    }
    0.0
}

fn length((start, end): Lines) -> u64 {
    (u64::from(end) + 1).saturating_sub(start.into()).max(1)
}

/// Returns true if a result answers a span: it shares at least half of the shorter one's lines and
/// is not much longer.
fn overlaps(results: Lines, expected: Lines) -> bool {
    let long = length(results);
    let answer = length(expected);
    if long > u64::from(MAX_SPAN).max(2 * answer) {
        return false;
    }
    let shared =
        (u64::from(results.1.min(expected.1)) + 1).saturating_sub(results.0.max(expected.0).into());
    shared >= 1 && shared * 2 >= long.min(answer)
}

/// Share of the expected ranges of lines of which a text contains at least half; `None` for a query
/// without lines. `printed` has the ranges of the text in any order, also overlapping ones.
pub fn packed_recall(printed: &[ResultSpan], expected: &[Expected]) -> Option<f64> {
    let mut reached = 0;
    for answer in expected {
        let (start, end) = answer.lines?;
        let mut covered = BTreeSet::new();
        for span in printed.iter().filter(|span| span.path == answer.path) {
            covered.extend(span.lines.0.max(start)..=span.lines.1.min(end));
        }
        reached += usize::from(2 * covered.len() as u64 >= length((start, end)));
    }
    (!expected.is_empty()).then(|| reached as f64 / expected.len() as f64)
}

/// Computes the mean of each column, over the rows that have any.
fn columns<'a>(rows: impl IntoIterator<Item = &'a [f64]>) -> Vec<f64> {
    let mut sums: Vec<f64> = Vec::new();
    let mut count = 0.0;
    for row in rows.into_iter().filter(|row| !row.is_empty()) {
        sums.resize(row.len().max(sums.len()), 0.0);
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        count += 1.0;
    }
    sums.into_iter().map(|sum| sum / count).collect()
}

/// The mean metrics of one group of queries.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cell {
    pub repo: String,
    pub kind: String,
    pub level: Level,
    pub queries: usize,
    /// Set if the cell counts in the overall metrics: it has enough queries, or no cell has.
    pub counts: bool,
    #[serde(flatten)]
    pub figures: Figures,
    /// Mean recall within each budget, for lines only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<f64>,
}

/// Metrics over all repositories.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overall {
    /// `None` for the mean over all kinds.
    pub kind: Option<String>,
    pub level: Level,
    #[serde(flatten)]
    pub figures: Figures,
    /// Mean recall within each budget, for lines only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<f64>,
}

/// Figures of one query with its recall within budgets.
type Row<'a> = (Figures, &'a [f64]);

/// Computes one row for each repository, kind and level, in that order.
pub fn cells<'a>(scored: impl IntoIterator<Item = (&'a str, &'a str, &'a Scored)>) -> Vec<Cell> {
    let mut groups: BTreeMap<(&str, &str, Level), Vec<Row<'a>>> = BTreeMap::new();
    for (repo, kind, one) in scored {
        groups.entry((repo, kind, Level::File)).or_default().push((one.file, &[]));
        if let Some(span) = one.span {
            groups.entry((repo, kind, Level::Span)).or_default().push((span, &one.budgets));
        }
    }
    let enough = |rows: &[Row<'_>]| rows.len() >= MIN_CELL;
    let all_small = !groups.values().any(|rows| enough(rows));
    let cell = |((repo, kind, level), rows): (&(&str, &str, Level), &Vec<Row<'_>>)| {
        Some(Cell {
            repo: (*repo).to_owned(),
            kind: (*kind).to_owned(),
            level: *level,
            queries: rows.len(),
            counts: all_small || enough(rows),
            figures: mean(rows.iter().map(|row| &row.0))?,
            budgets: columns(rows.iter().map(|row| row.1)),
        })
    };
    groups.iter().filter_map(cell).collect()
}

/// Computes for each kind the mean of the repositories' means, and for each level the mean over
/// kinds, so that a large repository or a frequent kind has no more weight than others.
pub fn overall(cells: &[Cell]) -> Vec<Overall> {
    let mut kinds: BTreeMap<(&str, Level), Vec<&Cell>> = BTreeMap::new();
    for cell in cells.iter().filter(|c| c.counts) {
        kinds.entry((&cell.kind, cell.level)).or_default().push(cell);
    }
    let row = |((kind, level), rows): (&(&str, Level), &Vec<&Cell>)| {
        Some(Overall {
            kind: Some((*kind).to_owned()),
            level: *level,
            figures: mean(rows.iter().map(|cell| &cell.figures))?,
            budgets: columns(rows.iter().map(|cell| &*cell.budgets)),
        })
    };
    let mut all: Vec<Overall> = kinds.iter().filter_map(row).collect();
    for level in [Level::File, Level::Span] {
        let of_level = || all.iter().filter(|o| o.level == level);
        let budgets = columns(of_level().map(|o| &*o.budgets));
        let figures = mean(of_level().map(|o| &o.figures));
        all.extend(figures.map(|figures| Overall { kind: None, level, figures, budgets }));
    }
    all
}

#[cfg(test)]
mod tests;
