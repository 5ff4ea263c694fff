//! Reports of an evaluation, for people and for programs.

use std::{collections::BTreeMap, fmt::Write as _};

use cairn_protocol::search::SearchItem;
use cairn_search_metrics::{self as metrics, Cell, Expected, Figures, Level, MIN_CELL};
use console::style;
use serde_json::{Value, json};

use super::{Answered, EvalArgs, Outcome};
use crate::render::output::plain;

/// Maximum characters of a query in a list.
const WIDTH: usize = 100;

/// Renders a row for each group, then the overall rows.
pub fn table(cells: &[Cell], budgets: &[u32]) -> String {
    let wide = |least: usize, names: &mut dyn Iterator<Item = &str>| {
        names.map(|n| n.chars().count()).fold(least, usize::max)
    };
    let repo = wide("overall".len(), &mut cells.iter().map(|c| &*c.repo));
    let kind = wide("kind".len(), &mut cells.iter().map(|c| &*c.kind));
    let mut out = String::new();
    let has_budgets = cells.iter().any(|cell| !cell.budgets.is_empty());
    let budgets = budgets.iter().filter(|_| has_budgets).map(|tokens| budget_name(*tokens));
    let names = metrics::NAMES.map(str::to_owned).into_iter().chain(budgets);
    let heads: String = names.map(|name| format!("{name:>7}")).collect();
    let head = format!("{:<repo$}  {:<kind$}  level  queries{heads}", "repo", "kind");
    let _infallible = writeln!(out, "{}", style(head).dim());
    let row = |name: &str, of: &str, level: Level, queries: &str, figures: (&Figures, &[f64])| {
        let all = figures.0.all();
        let figures: String = all.iter().chain(figures.1).map(|f| format!("{f:>7.3}")).collect();
        format!("{name:<repo$}  {of:<kind$}  {:<5}  {queries:>7}{figures}", level_name(level))
    };
    for cell in cells {
        let line = row(
            &plain(&cell.repo),
            &plain(&cell.kind),
            cell.level,
            &cell.queries.to_string(),
            (&cell.figures, &cell.budgets),
        );
        let note = if cell.counts { "" } else { "  (too few)" };
        let _infallible = writeln!(out, "{line}{note}");
    }
    for all in metrics::overall(cells) {
        let of = all.kind.as_deref().map_or_else(|| "all".to_owned(), plain);
        let line = row("overall", &of, all.level, "", (&all.figures, &all.budgets));
        let _infallible = writeln!(out, "{}", style(line).bold());
    }
    if cells.iter().any(|c| !c.counts) {
        let _infallible = writeln!(
            out,
            "(too few): fewer than {MIN_CELL} queries, not part of the overall figures"
        );
    }
    out
}

/// The head of a column: thousands of tokens with a `k`.
fn budget_name(tokens: u32) -> String {
    match tokens % 1000 {
        0 => format!("@{}k", tokens / 1000),
        _ => format!("@{tokens}"),
    }
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::File => "file",
        Level::Span => "span",
    }
}

/// Lists the queries without a correct answer among the first ten, with the first results.
pub fn misses(outcome: &Outcome) -> String {
    let missed: Vec<&Answered> = outcome.answered.iter().filter(|a| !a.scored.is_hit()).collect();
    let mut out = format!("\n{} of {} queries missed\n", missed.len(), outcome.answered.len());
    for one in missed {
        let query: String = plain(&one.query.query).chars().take(WIDTH).collect();
        let of = format!(
            "line {}  {} {}",
            one.query.line,
            plain(&one.query.repo),
            plain(&one.query.kind)
        );
        let _infallible = writeln!(out, "{}  {query}", style(of).dim());
        for (n, expected) in one.query.expected.iter().enumerate() {
            let rank = |of: Option<usize>| {
                of.map_or_else(|| "not found".into(), |rank| format!("at {rank}"))
            };
            let mut ranks = format!("file {}", rank(one.scored.file_ranks[n]));
            if let Some(span) = one.scored.span_ranks.get(n) {
                let _infallible = write!(ranks, ", lines {}", rank(*span));
            }
            let _infallible =
                writeln!(out, "    wanted  {}  ({ranks})", style(location(expected)).green());
        }
        let first = one.items.first().map_or_else(|| "nothing".into(), item_location);
        let _infallible = writeln!(out, "    first   {first}");
    }
    out
}

fn location(expected: &Expected) -> String {
    let path = plain(&expected.path);
    expected.lines.map_or_else(|| path.clone(), |(start, end)| format!("{path}:{start}-{end}"))
}

fn item_location(item: &SearchItem) -> String {
    format!("{}:{}-{}", plain(&item.path), item.start_line, item.end_line)
}

/// Renders all metrics, and the ranks of each query.
pub fn json(outcome: &Outcome, cells: &[Cell], args: &EvalArgs) -> Value {
    json!({
        "mode": args.mode.name(),
        "k": args.k,
        "budgets": args.budget,
        "queries": outcome.answered.len(),
        "skipped": outcome.skipped,
        "cells": cells,
        "overall": metrics::overall(cells),
        "perQuery": outcome.answered.iter().map(one).collect::<Vec<_>>(),
        "remarks": outcome.notes,
    })
}

fn one(answered: &Answered) -> Value {
    let Answered { query, scored, items } = answered;
    let relevant = query.expected.iter().enumerate().map(|(n, expected)| {
        json!({
            "path": expected.path,
            "start": expected.lines.map(|l| l.0),
            "end": expected.lines.map(|l| l.1),
            "fileRank": scored.file_ranks[n],
            "spanRank": scored.span_ranks.get(n).copied().flatten(),
        })
    });
    json!({
        "line": query.line,
        "queryId": query.id,
        "query": query.query,
        "repo": query.repo,
        "kind": query.kind,
        "hit": scored.is_hit(),
        "relevant": relevant.collect::<Vec<_>>(),
        "first": items.first().map(result),
        "file": scored.file,
        "span": scored.span,
        "budgets": scored.budgets,
    })
}

fn result(item: &SearchItem) -> Value {
    json!({"path": item.path, "start": item.start_line, "end": item.end_line, "score": item.score})
}

/// Renders the results of each query by its id, best first.
pub fn answers(outcome: &Outcome) -> BTreeMap<&str, Vec<Value>> {
    let of = |a: &Answered| a.items.iter().map(result).collect();
    outcome.answered.iter().map(|a| (&*a.query.id, of(a))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_rendered() {
        console::set_colors_enabled(false);
        let figures = Figures { recall_at1: 0.5, recall_at5: 1.0, ..Figures::default() };
        let cell = |repo: &str, queries, counts, level| Cell {
            repo: repo.into(),
            kind: "doc".into(),
            level,
            queries,
            counts,
            figures,
            budgets: if level == Level::Span { vec![0.25, 1.0] } else { Vec::new() },
        };
        let cells =
            [cell("flask", 56, true, Level::File), cell("a-longer-one", 1, false, Level::Span)];
        let answer = "\
repo          kind  level  queries    R@1    R@5   R@10    MRR   nDCG  @200L  @400L    @1k   @250
flask         doc   file        56  0.500  1.000  0.000  0.000  0.000  0.000  0.000
a-longer-one  doc   span         1  0.500  1.000  0.000  0.000  0.000  0.000  0.000  0.250  1.000  (too few)
overall       doc   file            0.500  1.000  0.000  0.000  0.000  0.000  0.000
overall       all   file            0.500  1.000  0.000  0.000  0.000  0.000  0.000
(too few): fewer than 10 queries, not part of the overall figures
";
        assert_eq!(table(&cells, &[1000, 250]), answer);
    }
}
