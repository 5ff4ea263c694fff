//! Query files: JSON lines, each a query with its right answers.

use std::{collections::BTreeMap, io::Read, path::Path};

use serde::Deserialize;

use super::score::Wanted;
use crate::exit::Failure;

/// Bytes of a query file at most.
const MAX_FILE: u64 = 64 << 20;
/// Broken lines told at once.
const MAX_TOLD: usize = 20;
/// Names of what a line does not name.
const ONE_REPO: &str = "all";
const ONE_KIND: &str = "query";

/// One query with its right answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its line in the file.
    pub line: usize,
    pub id: String,
    pub query: String,
    /// The group its figures belong to.
    pub repo: String,
    /// Whether the line itself names the repository.
    pub names_repo: bool,
    pub kind: String,
    pub wanted: Vec<Wanted>,
}

/// A query file that was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Queries {
    pub all: Vec<Asked>,
    /// Lines with `"skip": true`.
    pub skipped: usize,
}

/// A line as it is written. Further fields are left to whoever wrote them.
#[derive(Deserialize)]
struct Row {
    query: String,
    relevant: Vec<Relevant>,
    kind: Option<String>,
    repo: Option<String>,
    query_id: Option<String>,
    #[serde(default)]
    skip: bool,
}

#[derive(Deserialize)]
struct Relevant {
    path: String,
    start: Option<u32>,
    end: Option<u32>,
}

/// Reads a query file.
///
/// # Errors
/// When it cannot be read, or has lines that are no queries: each is named.
pub fn read(path: &Path) -> Result<Queries, Failure> {
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|e| Failure::path(path, &e))?;
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(|e| Failure::path(path, &e))?;
    if text.len() as u64 > MAX_FILE {
        return Err(Failure::usage(format!("{} is longer than {MAX_FILE} bytes", path.display())));
    }
    parse(&text).map_err(|broken| {
        let mut lines: Vec<String> = broken.iter().take(MAX_TOLD).cloned().collect();
        if broken.len() > MAX_TOLD {
            lines.push(format!("{} more lines are broken", broken.len() - MAX_TOLD));
        }
        Failure::usage(format!("{}: {}", path.display(), lines.join("\n  "))).hint(
            "a line is {\"query\": \"...\", \"relevant\": [{\"path\": \"...\"}]}; see 'cairn eval --help'",
        )
    })
}

/// The queries of a text, or what is wrong with each broken line.
fn parse(text: &str) -> Result<Queries, Vec<String>> {
    let mut queries = Queries::default();
    let mut broken = Vec::new();
    let mut ids: BTreeMap<String, usize> = BTreeMap::new();
    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        match asked(line, text) {
            Ok(None) => queries.skipped += 1,
            Ok(Some(asked)) => {
                if let Some(first) = ids.insert(asked.id.clone(), line) {
                    broken.push(format!("line {line}: query_id '{}' is that of line {first}", asked.id));
                }
                queries.all.push(asked);
            }
            Err(why) => broken.push(format!("line {line}: {why}")),
        }
    }
    if broken.is_empty() && queries.all.is_empty() {
        broken.push("there is no query in it".into());
    }
    if broken.is_empty() { Ok(queries) } else { Err(broken) }
}

/// The query of a line; nothing for one that is to be left out.
fn asked(line: usize, text: &str) -> Result<Option<Asked>, String> {
    let row: Row = serde_json::from_str(text).map_err(|e| format!("no query: {e}"))?;
    if row.skip {
        return Ok(None);
    }
    if row.query.trim().is_empty() {
        return Err("the query is blank".into());
    }
    if row.relevant.is_empty() {
        return Err("the query has no relevant paths".into());
    }
    let wanted: Vec<Wanted> = row.relevant.into_iter().map(wanted).collect::<Result<_, _>>()?;
    if wanted.iter().any(|w| w.lines.is_some() != wanted[0].lines.is_some()) {
        return Err("some relevant paths have lines and others have none".into());
    }
    Ok(Some(Asked {
        line,
        id: row.query_id.unwrap_or_else(|| format!("line {line}")),
        query: row.query,
        names_repo: row.repo.is_some(),
        repo: row.repo.unwrap_or_else(|| ONE_REPO.into()),
        kind: row.kind.unwrap_or_else(|| ONE_KIND.into()),
        wanted,
    }))
}

fn wanted(relevant: Relevant) -> Result<Wanted, String> {
    let Relevant { path, start, end } = relevant;
    let path = path.strip_prefix("./").unwrap_or(&path).to_owned();
    if path.is_empty() || path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return Err(format!("relevant path '{}' is not one inside its root", path.escape_default()));
    }
    let lines = match (start, end) {
        (None, None) => None,
        (Some(start), end) if start >= 1 && end.is_none_or(|end| end >= start) => {
            Some((start, end.unwrap_or(start)))
        }
        _ => {
            let shown = |n: Option<u32>| n.map_or_else(|| "none".into(), |n| n.to_string());
            let path = path.escape_default();
            return Err(format!("'{path}' from line {} to {} is no range", shown(start), shown(end)));
        }
    };
    Ok(Wanted { path, lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_queries() {
        let text = concat!(
            r#"{"query": "a", "relevant": [{"path": "./x.rs", "start": 2, "end": 4}, {"path": "y.rs", "start": 7}]}"#,
            "\n\n",
            r#"{"query": "b", "relevant": [{"path": "x.rs"}], "kind": "doc", "repo": "r", "query_id": "q", "more": 1}"#,
            "\n",
            r#"{"query": "", "relevant": [], "skip": true}"#,
        );
        let read = parse(text).unwrap();
        assert_eq!((read.all.len(), read.skipped), (2, 1));
        let lines: Vec<_> = read.all[0].wanted.iter().map(|w| (&*w.path, w.lines)).collect();
        assert_eq!(lines, [("x.rs", Some((2, 4))), ("y.rs", Some((7, 7)))]);
        let names = |a: &Asked| format!("{} {} {} {} {}", a.line, a.id, a.repo, a.kind, a.names_repo);
        assert_eq!(names(&read.all[0]), "1 line 1 all query false");
        assert_eq!(names(&read.all[1]), "3 q r doc true");
    }

    #[test]
    fn each_broken_line_is_named() {
        let x = r#"[{"path": "x"}]"#;
        for (text, want) in [
            (String::new(), "there is no query in it"),
            ("{".into(), "line 1: no query: EOF"),
            (r#"{"query": "a"}"#.into(), "line 1: no query: missing field `relevant`"),
            (r#"{"query": "a", "relevant": []}"#.into(), "line 1: the query has no relevant paths"),
            (format!(r#"{{"query": " ", "relevant": {x}}}"#), "line 1: the query is blank"),
            (
                r#"{"query": "a", "relevant": [{"path": "../x"}]}"#.into(),
                "line 1: relevant path '../x' is not one inside",
            ),
            (
                r#"{"query": "a", "relevant": [{"path": "x", "start": 4, "end": 3}]}"#.into(),
                "line 1: 'x' from line 4 to 3 is no range",
            ),
            (
                r#"{"query": "a", "relevant": [{"path": "x", "end": 3}]}"#.into(),
                "line 1: 'x' from line none to 3 is no range",
            ),
            (
                r#"{"query": "a", "relevant": [{"path": "x", "start": 4}, {"path": "y"}]}"#.into(),
                "line 1: some relevant paths have lines and others have none",
            ),
        ] {
            let broken = parse(&text).unwrap_err();
            assert!(broken.len() == 1 && broken[0].starts_with(want), "{text}: {broken:?}");
        }
        let one = format!(r#"{{"query": "a", "relevant": {x}, "query_id": "q"}}"#);
        assert_eq!(parse(&format!("{one}\n7\n{one}")).unwrap_err().len(), 2);
    }
}
