//! The arithmetic of an evaluation, and nothing else: what was found where, as figures.

use std::collections::BTreeMap;

/// Results of a query that count; further ones are not read.
pub const DEPTH: usize = 100;
/// Results within which an answer must lie for recall, MRR and nDCG.
const TOP: usize = 10;
/// Lines of a result up to which it can be a span hit; a longer definition may be answered by twice its own.
const MAX_SPAN: u32 = 120;
/// Queries that a cell needs to count in the overall means.
pub const MIN_CELL: usize = 10;

/// Lines of a file, both included, counted from 1.
pub type Lines = (u32, u32);

/// One result, as far as it is scored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub path: String,
    pub lines: Lines,
}

/// One right answer: a file, and the lines in it when they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub path: String,
    pub lines: Option<Lines>,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Files: the first result of each counts, further ones take no rank.
    File,
    /// Results as they are ranked, right when they share lines with the answer.
    Span,
}

/// The figures of one query, or means of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Right answers among the first one, five and ten, as a share of what could be there.
    pub recall_at1: f64,
    pub recall_at5: f64,
    pub recall_at10: f64,
    /// 1 over the rank of the first right answer of the first ten.
    pub mrr_at10: f64,
    /// With binary gain.
    pub ndcg_at10: f64,
    /// Whether a right answer came before 200 or 400 lines were told; it may itself cross that line.
    pub at200_lines: f64,
    pub at400_lines: f64,
}

impl Figures {
    /// In the order in which they are shown.
    pub fn all(&self) -> [f64; 7] {
        let Self { recall_at1, recall_at5, recall_at10, mrr_at10, ndcg_at10, at200_lines, at400_lines } =
            *self;
        [recall_at1, recall_at5, recall_at10, mrr_at10, ndcg_at10, at200_lines, at400_lines]
    }
}

/// Names of the figures, in the order of [`Figures::all`].
pub const NAMES: [&str; 7] = ["R@1", "R@5", "R@10", "MRR", "nDCG", "@200L", "@400L"];

/// The mean of each figure; nothing for no rows.
pub fn mean<'a>(rows: impl IntoIterator<Item = &'a Figures>) -> Option<Figures> {
    let mut sums = [0.0; 7];
    let mut count = 0.0;
    for row in rows {
        sums.iter_mut().zip(row.all()).for_each(|(sum, value)| *sum += value);
        count += 1.0;
    }
    let [recall_at1, recall_at5, recall_at10, mrr_at10, ndcg_at10, at200_lines, at400_lines] =
        sums.map(|sum| sum / count);
    let mean = Figures { recall_at1, recall_at5, recall_at10, mrr_at10, ndcg_at10, at200_lines, at400_lines };
    (count > 0.0).then_some(mean)
}

/// How one query was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    pub file: Figures,
    /// Only for a query that names lines.
    pub span: Option<Figures>,
    /// Rank, from 1, of each wanted file among the files found; in the order wanted.
    pub file_ranks: Vec<Option<usize>>,
    /// Rank of each wanted span among the results; empty for a query that names no lines.
    pub span_ranks: Vec<Option<usize>>,
}

impl Scored {
    /// Whether the answer is among the first ten: its lines when the query names lines, else its file.
    pub fn is_hit(&self) -> bool {
        let ranks = if self.span.is_some() { &self.span_ranks } else { &self.file_ranks };
        ranks.iter().flatten().any(|rank| *rank <= TOP)
    }
}

/// Scores the first [`DEPTH`] of the results, best first. A query without results scores 0.
pub fn score(found: &[Found], wanted: &[Wanted]) -> Scored {
    let found = &found[..found.len().min(DEPTH)];
    let mut right: Vec<&str> = Vec::new();
    for want in wanted {
        if !right.contains(&&*want.path) {
            right.push(&want.path);
        }
    }
    let mut files: Vec<&str> = Vec::new();
    for result in found {
        if !files.contains(&&*result.path) {
            files.push(&result.path);
        }
    }
    let which = |path: &str| right.iter().position(|p| *p == path);
    let by_file: Vec<Option<usize>> = files.iter().map(|f| which(f)).collect();
    let by_result: Vec<Option<usize>> = found.iter().map(|f| which(&f.path)).collect();
    let file = figures(&by_file, right.len(), found, &by_result);
    let rank = |path: &str| files.iter().position(|f| *f == path).map(|at| at + 1);
    let file_ranks = wanted.iter().map(|w| rank(&w.path)).collect();

    let spans = wanted.iter().all(|w| w.lines.is_some()) && !wanted.is_empty();
    if !spans {
        return Scored { file, span: None, file_ranks, span_ranks: Vec::new() };
    }
    let meets =
        |f: &Found, w: &Wanted| f.path == w.path && w.lines.is_some_and(|lines| overlaps(f.lines, lines));
    let by_span: Vec<Option<usize>> = found.iter().map(|f| wanted.iter().position(|w| meets(f, w))).collect();
    let rank = |w: &Wanted| found.iter().position(|f| meets(f, w)).map(|at| at + 1);
    Scored {
        file,
        span: Some(figures(&by_span, wanted.len(), found, &by_span)),
        file_ranks,
        span_ranks: wanted.iter().map(rank).collect(),
    }
}

/// `ranked`: which of the `right` answers each rank is, if any; `told` the same for the results whose lines are counted.
fn figures(ranked: &[Option<usize>], right: usize, found: &[Found], told: &[Option<usize>]) -> Figures {
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
    let recall =
        |k: usize| seen.values().filter(|rank| **rank < k).count() as f64 / right.min(k).max(1) as f64;
    let ideal: f64 = (0..right.clamp(1, TOP)).map(discount).sum();
    Figures {
        recall_at1: recall(1),
        recall_at5: recall(5),
        recall_at10: recall(TOP),
        mrr_at10: seen.values().min().map_or(0.0, |rank| 1.0 / (rank + 1) as f64),
        ndcg_at10: gain / ideal,
        at200_lines: within(found, told, 200),
        at400_lines: within(found, told, 400),
    }
}

fn discount(rank: usize) -> f64 {
    1.0 / ((rank + 2) as f64).log2()
}

/// 1 when a right answer begins before more than `budget` lines were told.
fn within(found: &[Found], told: &[Option<usize>], budget: u64) -> f64 {
    let mut used = 0;
    for (result, answer) in found.iter().zip(told) {
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

/// Whether a result answers for a span: it shares at least half of the shorter one's lines, and is not much longer.
fn overlaps(found: Lines, wanted: Lines) -> bool {
    let (long, want) = (length(found), length(wanted));
    if long > u64::from(MAX_SPAN).max(2 * want) {
        return false;
    }
    let shared = (u64::from(found.1.min(wanted.1)) + 1).saturating_sub(found.0.max(wanted.0).into());
    shared >= 1 && shared * 2 >= long.min(want)
}

/// Mean figures of the queries of one group.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cell {
    pub repo: String,
    pub kind: String,
    pub level: Level,
    pub queries: usize,
    /// Whether it is part of the overall figures: it has enough queries, or no cell has.
    pub counts: bool,
    #[serde(flatten)]
    pub figures: Figures,
}

/// Figures over all repositories.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overall {
    /// None for the mean over all kinds.
    pub kind: Option<String>,
    pub level: Level,
    #[serde(flatten)]
    pub figures: Figures,
}

/// One row for each repository, kind and level, in that order.
pub fn cells<'a>(scored: impl IntoIterator<Item = (&'a str, &'a str, &'a Scored)>) -> Vec<Cell> {
    let mut groups: BTreeMap<(&str, &str, Level), Vec<Figures>> = BTreeMap::new();
    for (repo, kind, one) in scored {
        groups.entry((repo, kind, Level::File)).or_default().push(one.file);
        if let Some(span) = one.span {
            groups.entry((repo, kind, Level::Span)).or_default().push(span);
        }
    }
    let enough = |rows: &[Figures]| rows.len() >= MIN_CELL;
    let all_small = !groups.values().any(|rows| enough(rows));
    let cell = |((repo, kind, level), rows): (&(&str, &str, Level), &Vec<Figures>)| {
        Some(Cell {
            repo: (*repo).to_owned(),
            kind: (*kind).to_owned(),
            level: *level,
            queries: rows.len(),
            counts: all_small || enough(rows),
            figures: mean(rows)?,
        })
    };
    groups.iter().filter_map(cell).collect()
}

/// For each kind the mean of the repositories' means, and for each level the mean of those of the kinds: a large
/// repository, or a kind with many queries, counts no more than others.
pub fn overall(cells: &[Cell]) -> Vec<Overall> {
    let mut kinds: BTreeMap<(&str, Level), Vec<&Figures>> = BTreeMap::new();
    for cell in cells.iter().filter(|c| c.counts) {
        kinds.entry((&cell.kind, cell.level)).or_default().push(&cell.figures);
    }
    let row = |((kind, level), rows): (&(&str, Level), &Vec<&Figures>)| {
        Some(Overall { kind: Some((*kind).to_owned()), level: *level, figures: mean(rows.iter().copied())? })
    };
    let mut all: Vec<Overall> = kinds.iter().filter_map(row).collect();
    for level in [Level::File, Level::Span] {
        let figures = mean(all.iter().filter(|o| o.level == level).map(|o| &o.figures));
        all.extend(figures.map(|figures| Overall { kind: None, level, figures }));
    }
    all
}

#[cfg(test)]
#[path = "score_tests.rs"]
mod tests;
