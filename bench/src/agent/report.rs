//! The table of efforts.

use std::collections::BTreeSet;

use super::{Effort, Measured, POLICIES};
use crate::meter::{report, value};

/// Tokens of which the share of solved questions is printed.
const LIMITS: [u32; 3] = [2_000, 4_000, 8_000];

/// The summary of a policy on some questions.
#[derive(Debug, PartialEq)]
pub struct Summary {
    /// Share of questions solved within each of [`LIMITS`], and at all.
    pub within: [f64; 3],
    pub solved: f64,
    /// Medians over all questions, where an unsolved one counts as endless; `None` if more than
    /// half are unsolved.
    pub tokens: Option<u32>,
    pub calls: Option<u32>,
}

pub fn summary(efforts: &[Effort]) -> Summary {
    let all = efforts.len().max(1) as f64;
    let share =
        |is: &dyn Fn(&Effort) -> bool| efforts.iter().filter(|e| is(e)).count() as f64 / all;
    let median = |of: fn(&Effort) -> u32| {
        let mut values: Vec<u32> = efforts.iter().filter(|e| e.is_solved).map(of).collect();
        values.sort_unstable();
        values.get(efforts.len().saturating_sub(1) / 2).copied()
    };
    Summary {
        within: LIMITS.map(|limit| share(&|e| e.is_solved && e.tokens <= limit)),
        solved: share(&|e| e.is_solved),
        tokens: median(|e| e.tokens),
        calls: median(|e| e.calls),
    }
}

/// Prints the table, for all questions and for each kind.
pub fn print(measured: &[Measured], without_lines: usize) {
    report(
        "| kind | questions | policy | ≤ 2k | ≤ 4k | ≤ 8k | solved | median tokens | median calls |",
    );
    report("|---|---|---|---|---|---|---|---|---|");
    let kinds: BTreeSet<&str> = measured.iter().map(|m| &*m.kind).collect();
    let groups = std::iter::once(None).chain(kinds.into_iter().map(Some));
    for kind in groups {
        let of: Vec<&Measured> =
            measured.iter().filter(|m| kind.is_none_or(|kind| m.kind == kind)).collect();
        for (at, policy) in POLICIES.iter().enumerate() {
            let efforts: Vec<Effort> = of.iter().map(|m| m.efforts[at]).collect();
            let summary = summary(&efforts);
            let shares: Vec<String> =
                summary.within.iter().chain([&summary.solved]).map(|s| format!("{s:.3}")).collect();
            let number = |n: Option<u32>| n.map_or_else(|| "—".to_owned(), |n| n.to_string());
            report(format!(
                "| {} | {} | {policy} | {} | {} | {} |",
                kind.unwrap_or("all"),
                of.len(),
                shares.join(" | "),
                number(summary.tokens),
                number(summary.calls),
            ));
            if kind.is_none() {
                value(&format!("agent {policy} within 4k share"), summary.within[1]);
            }
        }
    }
    if without_lines > 0 {
        report(format!("{without_lines} queries without lines are left out"));
    }
}
