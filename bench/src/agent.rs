//! `cairn-bench agent`: tokens and calls that deterministic policies need until they have seen the
//! lines that answer a question. The policies stand for an agent that greps and reads, and for one
//! that searches with Cairn; no model takes part.

mod cairn;
mod grep;
mod report;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use cairn_search_metrics::{
    Expected, ResultSpan, packed_recall,
    queries::{Query, parse},
};
use cairn_tokenizer::model_tokens;

/// Questions about the sources of this repository, with the beginning of each answer.
const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/agent/questions.jsonl");
/// Folder of the sample in its repository; questions are no answers.
const EXCLUDED: &str = "bench/agent";

/// One policy on one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Tokens of the output of all calls.
    pub tokens: u32,
    pub calls: u32,
    /// True if the output has at least half of the lines of an answer.
    pub is_solved: bool,
}

/// The outputs of a policy's calls so far.
pub struct Transcript<'a> {
    expected: &'a [Expected],
    printed: Vec<ResultSpan>,
    pub effort: Effort,
}

impl<'a> Transcript<'a> {
    fn new(expected: &'a [Expected]) -> Self {
        let effort = Effort { tokens: 0, calls: 0, is_solved: false };
        Self { expected, printed: Vec::new(), effort }
    }

    /// Adds the output of one call, with the lines of files that it has. Returns true once the
    /// answer was seen.
    pub fn add(&mut self, output: &str, lines: impl IntoIterator<Item = ResultSpan>) -> bool {
        self.effort.calls += 1;
        self.effort.tokens = self.effort.tokens.saturating_add(model_tokens::tokens(output));
        self.printed.extend(lines);
        self.effort.is_solved = self.expected.iter().any(|answer| {
            packed_recall(&self.printed, std::slice::from_ref(answer)).is_some_and(|r| r > 0.0)
        });
        self.effort.is_solved
    }
}

/// The compared policies, the baseline first.
pub const POLICIES: [&str; 4] =
    ["skilled grep", "naive grep", "cairn, one call", "cairn, one follow-up"];

/// A question with the effort of each policy, in the order of [`POLICIES`].
pub struct Measured {
    pub kind: String,
    pub efforts: [Effort; 4],
}

/// Runs the policies and prints the table.
///
/// # Errors
/// A message for the terminal.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let (file, folder) = match arguments {
        [] => (PathBuf::from(SAMPLE), None),
        [file, option, folder] if option == "--repos" => {
            (PathBuf::from(file), Some(PathBuf::from(folder)))
        }
        _ => return Err("usage: cairn-bench agent [QUERIES --repos FOLDER]".to_owned()),
    };
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let queries =
        parse(&text).map_err(|broken| format!("{}: {}", file.display(), broken.join("\n")))?;
    let (with_lines, without): (Vec<Query>, Vec<Query>) = queries
        .all
        .into_iter()
        .partition(|query| query.expected.iter().any(|answer| answer.lines.is_some()));
    let mut by_repo: BTreeMap<String, Vec<Query>> = BTreeMap::new();
    for query in with_lines {
        by_repo.entry(query.repo.clone()).or_default().push(query);
    }
    let mut measured = Vec::new();
    for (repo, queries) in by_repo {
        match &folder {
            Some(folder) => measured.extend(measure(&folder.join(&repo), &queries)?),
            None => {
                let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no repository")?;
                measured.extend(measure(top, &anchored(&text, top, queries)?)?);
            }
        }
    }
    report::print(&measured, without.len());
    Ok(())
}

/// Measures the questions about one repository.
fn measure(top: &Path, queries: &[Query]) -> Result<Vec<Measured>, String> {
    let top = top.canonicalize().map_err(|e| format!("{}: {e}", top.display()))?;
    let index = cairn::Index::build(&top)?;
    let one = |query: &Query| {
        let run = |policy: &dyn Fn(&mut Transcript<'_>) -> Result<(), String>| {
            let mut transcript = Transcript::new(&query.expected);
            policy(&mut transcript).map(|()| transcript.effort)
        };
        Ok(Measured {
            kind: query.kind.clone(),
            efforts: [
                run(&|transcript| grep::skilled(&top, &query.query, transcript))?,
                run(&|transcript| grep::naive(&top, &query.query, transcript))?,
                run(&|transcript| index.one_call(&query.query, transcript))?,
                run(&|transcript| index.with_follow_up(&query.query, transcript))?,
            ],
        })
    };
    queries.iter().map(one).collect()
}

/// Moves the lines of the sample's answers to where their first line is now: each row names it.
fn anchored(text: &str, top: &Path, mut queries: Vec<Query>) -> Result<Vec<Query>, String> {
    let rows: Vec<serde_json::Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for query in &mut queries {
        let row = rows.iter().find(|row| row["query"] == *query.query);
        let relevant = row.and_then(|row| row["relevant"].as_array()).ok_or("a row is missing")?;
        for (answer, relevant) in query.expected.iter_mut().zip(relevant) {
            let anchor = relevant["anchor"].as_str().unwrap_or_default();
            let source = std::fs::read_to_string(top.join(&answer.path))
                .map_err(|e| format!("{}: {e}", answer.path))?;
            let mut at = source.lines().zip(1..).filter(|(line, _)| line.contains(anchor));
            let (Some((_, first)), None, Some((start, end))) = (at.next(), at.next(), answer.lines)
            else {
                return Err(format!("{}: '{anchor}' is not on exactly one line", answer.path));
            };
            answer.lines = Some((first, first + (end - start)));
        }
    }
    Ok(queries)
}

#[cfg(test)]
mod tests;
