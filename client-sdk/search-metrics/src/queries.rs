//! Query files: JSON lines, each a query with its correct answers.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Expected;

/// Default names of groups.
const ONE_REPO: &str = "all";
const ONE_KIND: &str = "query";

/// One query with its correct answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Line number in the file.
    pub line: usize,
    pub id: String,
    pub query: String,
    /// The group that its metrics belong to.
    pub repo: String,
    /// Set if the line itself names the repository.
    pub names_repo: bool,
    pub kind: String,
    pub expected: Vec<Expected>,
}

/// A parsed query file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Queries {
    pub all: Vec<Query>,
    /// Number of lines with `"skip": true`.
    pub skipped: usize,
}

/// A line of the file; unknown fields are ignored.
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

/// Parses the lines of a query file.
///
/// # Errors
/// A description of each invalid line.
pub fn parse(text: &str) -> Result<Queries, Vec<String>> {
    let mut queries = Queries::default();
    let mut broken = Vec::new();
    let mut ids: BTreeMap<String, usize> = BTreeMap::new();
    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        match query(line, text) {
            Ok(None) => queries.skipped += 1,
            Ok(Some(query)) => {
                if let Some(first) = ids.insert(query.id.clone(), line) {
                    broken.push(format!(
                        "line {line}: query_id '{}' is already used in line {first}",
                        query.id
                    ));
                }
                queries.all.push(query);
            }
            Err(why) => broken.push(format!("line {line}: {why}")),
        }
    }
    if broken.is_empty() && queries.all.is_empty() {
        broken.push("it contains no query".into());
    }
    if broken.is_empty() { Ok(queries) } else { Err(broken) }
}

/// Parses one query; `None` for a skipped one.
fn query(line: usize, text: &str) -> Result<Option<Query>, String> {
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
    let expected: Vec<Expected> =
        row.relevant.into_iter().map(expected).collect::<Result<_, _>>()?;
    if expected.iter().any(|w| w.lines.is_some() != expected[0].lines.is_some()) {
        return Err("some relevant paths have lines and others have none".into());
    }
    Ok(Some(Query {
        line,
        id: row.query_id.unwrap_or_else(|| format!("line {line}")),
        query: row.query,
        names_repo: row.repo.is_some(),
        repo: row.repo.unwrap_or_else(|| ONE_REPO.into()),
        kind: row.kind.unwrap_or_else(|| ONE_KIND.into()),
        expected,
    }))
}

fn expected(relevant: Relevant) -> Result<Expected, String> {
    let Relevant { path, start, end } = relevant;
    let path = path.strip_prefix("./").unwrap_or(&path).to_owned();
    if path.is_empty() || path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return Err(format!("relevant path '{}' is not inside its root", path.escape_default()));
    }
    let lines = match (start, end) {
        (None, None) => None,
        (Some(start), end) if start >= 1 && end.is_none_or(|end| end >= start) => {
            Some((start, end.unwrap_or(start)))
        }
        _ => {
            let level_name = |n: Option<u32>| n.map_or_else(|| "none".into(), |n| n.to_string());
            let path = path.escape_default();
            return Err(format!(
                "'{path}' from line {} to {} is not a range",
                level_name(start),
                level_name(end)
            ));
        }
    };
    Ok(Expected { path, lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_as_queries() {
        let text = concat!(
            r#"{"query": "a", "relevant": [{"path": "./x.rs", "start": 2, "end": 4}, {"path": "y.rs", "start": 7}]}"#,
            "\n\n",
            r#"{"query": "b", "relevant": [{"path": "x.rs"}], "kind": "doc", "repo": "r", "query_id": "q", "more": 1}"#,
            "\n",
            r#"{"query": "", "relevant": [], "skip": true}"#,
        );
        let read = parse(text).unwrap();
        assert_eq!((read.all.len(), read.skipped), (2, 1));
        let lines: Vec<_> = read.all[0].expected.iter().map(|w| (&*w.path, w.lines)).collect();
        assert_eq!(lines, [("x.rs", Some((2, 4))), ("y.rs", Some((7, 7)))]);
        let names =
            |a: &Query| format!("{} {} {} {} {}", a.line, a.id, a.repo, a.kind, a.names_repo);
        assert_eq!(names(&read.all[0]), "1 line 1 all query false");
        assert_eq!(names(&read.all[1]), "3 q r doc true");
    }

    #[test]
    fn invalid_lines_are_reported() {
        let x = r#"[{"path": "x"}]"#;
        for (text, answer) in [
            (String::new(), "it contains no query"),
            ("{".into(), "line 1: no query: EOF"),
            (r#"{"query": "a"}"#.into(), "line 1: no query: missing field `relevant`"),
            (r#"{"query": "a", "relevant": []}"#.into(), "line 1: the query has no relevant paths"),
            (format!(r#"{{"query": " ", "relevant": {x}}}"#), "line 1: the query is blank"),
            (
                r#"{"query": "a", "relevant": [{"path": "../x"}]}"#.into(),
                "line 1: relevant path '../x' is not inside",
            ),
            (
                r#"{"query": "a", "relevant": [{"path": "x", "start": 4, "end": 3}]}"#.into(),
                "line 1: 'x' from line 4 to 3 is not a range",
            ),
            (
                r#"{"query": "a", "relevant": [{"path": "x", "end": 3}]}"#.into(),
                "line 1: 'x' from line none to 3 is not a range",
            ),
            (
                r#"{"query": "a", "relevant": [{"path": "x", "start": 4}, {"path": "y"}]}"#.into(),
                "line 1: some relevant paths have lines and others have none",
            ),
        ] {
            let broken = parse(&text).unwrap_err();
            assert!(broken.len() == 1 && broken[0].starts_with(answer), "{text}: {broken:?}");
        }
        let one = format!(r#"{{"query": "a", "relevant": {x}, "query_id": "q"}}"#);
        assert_eq!(parse(&format!("{one}\n7\n{one}")).unwrap_err().len(), 2);
    }
}
