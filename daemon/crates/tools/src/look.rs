//! Tools that models read files with: `read_file`, `list_files`, `search_files`, `search_code`,
//! `datetime`.

use std::{fmt::Write as _, sync::Arc};

use cairn_harness::Tool;
use cairn_protocol::{
    error::{Failure, Reason},
    search::{GrepParams, SearchFilters, SearchParams},
    session::Empty,
    time::Timestamp,
};
use cairn_workspace::{Encoding, TextFile};
use globset::GlobBuilder;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Deps, reading::reading, search::scope};

/// Most bytes of a file whose lines are counted and that counts as read.
const MAX_COUNTED: u64 = 8 * 1024 * 1024;
/// Most lines of one result.
const MAX_LINES: u32 = 2000;
/// Most bytes of one result in byte mode.
const MAX_BYTES: u64 = 1024 * 1024;
/// Longest line that is shown, in characters.
const MAX_LINE: usize = 2000;

/// Arguments of the tool `read_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// Path of the file, relative to the workspace.
    path: String,
    /// First line, from 1.
    #[serde(default = "one")]
    offset: u32,
    /// Number of lines, at most 2,000.
    #[serde(default = "lines")]
    limit: u32,
    /// For byte mode: first byte, from 0. Lines are counted from there on.
    #[serde(default)]
    byte_offset: Option<u64>,
    /// For byte mode: number of bytes, 65,536 by default, at most 1,048,576.
    #[serde(default)]
    byte_limit: Option<u64>,
}

fn one() -> u32 {
    1
}

fn lines() -> u32 {
    500
}

/// Arguments of the tool `list_files`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFiles {
    /// Glob, such as `**/*.rs` or `src/*.ts`.
    pattern: String,
    /// Folder to look in.
    #[serde(default = "here")]
    path: String,
    /// Number of files, at most 1,000.
    #[serde(default = "hundred")]
    max_results: usize,
}

fn here() -> String {
    ".".into()
}

fn hundred() -> usize {
    100
}

/// Arguments of the tool `search_files`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchFiles {
    /// Regular expression to search for.
    pattern: String,
    /// Folder or file to search.
    #[serde(default = "here")]
    path: String,
    /// Glob of files, such as `*.rs`.
    #[serde(default)]
    file_pattern: Option<String>,
    /// Lines before and after each match, at most 20.
    #[serde(default = "two")]
    context_lines: u32,
    /// Number of matches, at most 500.
    #[serde(default = "fifty")]
    max_results: u32,
}

fn two() -> u32 {
    2
}

fn fifty() -> u32 {
    50
}

/// Arguments of the tool `search_code`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchCode {
    /// The search text: a question in plain words, names, or both.
    query: String,
    /// Only under this path.
    #[serde(default)]
    path: Option<String>,
    /// Number of passages, at most 20.
    #[serde(default = "eight")]
    max_results: u32,
}

fn eight() -> u32 {
    8
}

pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    let read = reading(
        deps,
        "read_file",
        "Reads a file with line numbers. Use it before you edit: the text before `|` is the line \
        number, not part of the line. Returns 500 lines from `offset` on; the answer has the total number, \
        and `form` if the file has other than plain line ends, tabs, or another encoding than UTF-8.",
        "file",
        read_file,
    );
    let list = reading(
        deps,
        "list_files",
        "Finds files by a glob pattern, without ignored files. Use it to learn the layout of a tree.",
        "file_list",
        list_files,
    );
    let grep = reading(
        deps,
        "search_files",
        "Finds lines by a regular expression, with lines around them. Use it for exact names and texts.",
        "matches",
        search_files,
    );
    let code = reading(
        deps,
        "search_code",
        "Finds passages of code by meaning: a question in plain words, names, or both. The best first \
        step in an unfamiliar repository.",
        "passages",
        search_code,
    );
    let time = reading(
        deps,
        "datetime",
        "Returns the date and time, in UTC.",
        "datetime",
        |_, _, _: Empty, _| Ok((json!({"utc": Timestamp::now()}), false)),
    );
    vec![
        Arc::new(read.offered()),
        Arc::new(list.narrowing().offered()),
        Arc::new(grep.narrowing().offered()),
        Arc::new(code.narrowing().offered()),
        Arc::new(time.offered()),
    ]
}

/// Reads a file, which the session has then seen.
pub fn read_file(
    deps: &Deps,
    permit: &cairn_harness::Permit,
    args: ReadFile,
    _: &cairn_search::CancelFlag,
) -> Result<(Value, bool), Failure> {
    let target = permit.resolve(&args.path, None)?;
    let (root, rel) = (target.root(), target.real());
    let bytes = root.open_file(rel)?.metadata().map_or(0, |m| m.len());
    if bytes > MAX_COUNTED {
        return part_of_large(root, rel, &args);
    }
    let content = root.read_file(rel, MAX_COUNTED)?.unwrap_or_default();
    if permit.root().is_some_and(|own| own.id == root.id) {
        deps.seen.note(permit.session(), rel, &content);
    }
    Ok(render_file(rel, &content, &args))
}

/// Returns a range of a file, with line numbers.
pub fn render_file(rel: &str, bytes: &[u8], args: &ReadFile) -> (Value, bool) {
    let file = TextFile::parse(bytes);
    let is_wide = file.as_ref().is_some_and(|file| file.encoding() != Encoding::Utf8);
    if !is_wide && bytes.iter().take(8192).any(|b| *b == 0) {
        return (json!({"path": rel, "binary": true, "bytes": bytes.len()}), false);
    }
    let (mut value, cut) = match (args.byte_offset, args.byte_limit, &file) {
        (None, None, Some(file)) => render_lines(rel, file, args),
        (None, None, None) => {
            let text = String::from_utf8_lossy(bytes);
            match TextFile::parse(text.as_bytes()) {
                Some(file) => render_lines(rel, &file, args),
                None => (json!({"path": rel, "binary": true, "bytes": bytes.len()}), false),
            }
        }
        (offset, limit, _) => render_bytes(rel, bytes, (offset, limit)),
    };
    let notes = match &file {
        Some(file) => file.notes(),
        None => vec!["not UTF-8: edit_file cannot change it".to_owned()],
    };
    // An edit must match, and writes like the file, what its text does not show.
    if !notes.is_empty() {
        value["form"] = notes.join("; ").into();
    }
    (value, cut)
}

fn render_lines(rel: &str, file: &TextFile, args: &ReadFile) -> (Value, bool) {
    let lines = file.lines();
    let first = args.offset.max(1) as usize;
    let limit = args.limit.clamp(1, MAX_LINES) as usize;
    let mut content = String::new();
    let mut last = first - 1;
    for (at, line) in lines.iter().enumerate().skip(first - 1).take(limit) {
        last = at + 1;
        let _ok = writeln!(content, "{last}|{}", clipped(line.text));
    }
    let cut = last < lines.len();
    let value = json!({
        "content": content, "path": rel, "start_line": first, "end_line": last,
        "total_lines": lines.len(), "truncated": cut,
    });
    (value, cut)
}

/// Returns a range of bytes; its first and last lines may be parts.
fn render_bytes(
    rel: &str,
    bytes: &[u8],
    (offset, limit): (Option<u64>, Option<u64>),
) -> (Value, bool) {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let from = size(offset.unwrap_or(0)).min(bytes.len());
    let most = size(limit.unwrap_or(65_536).clamp(1, MAX_BYTES));
    let part = &bytes[from..from.saturating_add(most).min(bytes.len())];
    let before = bytes[..from].iter().filter(|b| **b == b'\n').count();
    let mut content = String::new();
    let mut last = before;
    for (at, line) in String::from_utf8_lossy(part).lines().enumerate() {
        last = before + at + 1;
        let _ok = writeln!(content, "{last}|{}", clipped(line));
    }
    let cut = from + part.len() < bytes.len();
    let value = json!({
        "content": content, "path": rel, "start_line": before + 1, "end_line": last,
        "total_lines": count_lines(bytes), "truncated": cut,
    });
    (value, cut)
}

fn count_lines(bytes: &[u8]) -> usize {
    let ends = bytes.iter().filter(|b| **b == b'\n').count();
    ends + usize::from(bytes.last().is_some_and(|b| *b != b'\n'))
}

fn clipped(line: &str) -> String {
    let line = line.trim_end_matches('\r');
    match line.char_indices().nth(MAX_LINE) {
        None => line.to_owned(),
        Some((at, _)) => format!("{}… [{} more bytes in this line]", &line[..at], line.len() - at),
    }
}

/// Returns a range of a file that is too large to be read completely.
fn part_of_large(
    root: &cairn_workspace::Root,
    rel: &str,
    args: &ReadFile,
) -> Result<(Value, bool), Failure> {
    let first = args.offset.max(1);
    let last = first.saturating_add(args.limit.clamp(1, MAX_LINES) - 1);
    let params = cairn_protocol::content::SpanParams {
        path: rel.to_owned(),
        root: None,
        start: first,
        end: last,
        context: None,
        content_hash: None,
    };
    let span = cairn_workspace::read_span(root, rel, &params)?;
    let mut content = String::new();
    for (at, line) in span.text.lines().enumerate() {
        let _ok = writeln!(content, "{}|{}", first as usize + at, clipped(line));
    }
    let value = json!({
        "content": content, "path": rel, "start_line": span.start_line, "end_line": span.end_line,
        "total_lines": span.total_lines, "truncated": true,
    });
    Ok((value, true))
}

/// Finds files by a glob.
pub fn list_files(
    _: &Deps,
    permit: &cairn_harness::Permit,
    args: ListFiles,
    _: &cairn_search::CancelFlag,
) -> Result<(Value, bool), Failure> {
    let (target, _) = permit.resolve_with_parts(&args.path, None)?;
    let (root, rel) = (target.root(), target.real());
    let bad =
        |e: globset::Error| Failure::new(Reason::BadPattern, format!("pattern: {}", e.kind()));
    // Without a slash a pattern matches a name at any depth, as users expect.
    let text = if args.pattern.contains('/') {
        args.pattern.clone()
    } else {
        format!("**/{}", args.pattern)
    };
    let glob = GlobBuilder::new(text.trim_start_matches("./"))
        .literal_separator(true)
        .build()
        .map_err(bad)?;
    let matcher = glob.compile_matcher();
    let prefix = if rel.is_empty() || rel == "." {
        String::new()
    } else {
        format!("{}/", rel.trim_end_matches('/'))
    };
    let own = permit.root().is_some_and(|own| own.id == root.id);
    let view = root.view();
    let mut files = Vec::new();
    let mut accept = |file: String| {
        let Some(inner) = file.strip_prefix(&prefix) else { return };
        let is_visible = if own { permit.shows(&file) } else { view.shows(&file) };
        if is_visible && matcher.is_match(inner) {
            files.push(file);
        }
    };
    let examined = cairn_workspace::find_files(root, rel, &mut accept)?;
    files.sort();
    let total = files.len();
    files.truncate(args.max_results.clamp(1, 1000));
    let cut = files.len() < total || !examined.complete;
    let content = files.join("\n");
    let mut value = json!({
        "content": content, "files": files, "total_matches": total, "truncated": cut,
    });
    if !view.is_complete() {
        value["note"] = HIDDEN_NOTE.into();
    }
    Ok((value, cut))
}

/// Finds lines by a regular expression.
pub fn search_files(
    deps: &Deps,
    permit: &cairn_harness::Permit,
    args: SearchFiles,
    flag: &cairn_search::CancelFlag,
) -> Result<(Value, bool), Failure> {
    let prefix = (args.path != "." && !args.path.is_empty()).then_some(args.path);
    let filters = SearchFilters {
        path_prefix: prefix,
        globs: args.file_pattern.into_iter().collect(),
        ..SearchFilters::default()
    };
    let mut params: GrepParams =
        serde_json::from_value(json!({"pattern": args.pattern, "isRegex": true}))
            .map_err(|e| Failure::new(Reason::Internal, format!("search_files: {e}")))?;
    params.k = args.max_results.clamp(1, 500);
    params.context_lines = args.context_lines.min(20);
    params.filters = Some(filters);
    scope(permit, &mut params.filters)?;
    let answer = deps.indexes.grep(&params, flag)?;
    let mut content = String::new();
    let mut file = String::new();
    let mut matches = Vec::new();
    let clip = |lines: &[String]| lines.iter().map(|line| clipped(line)).collect::<Vec<_>>();
    for item in &answer.items {
        matches.push(json!({
            "file": item.path, "line": item.line, "content": clipped(&item.text),
            "context_before": clip(&item.before), "context_after": clip(&item.after),
        }));
        if item.path != file {
            let _ok = writeln!(content, "{}{}", if file.is_empty() { "" } else { "\n" }, item.path);
            file.clone_from(&item.path);
        }
        let from = item.line as usize - item.before.len().min(item.line as usize - 1);
        for (at, line) in item.before.iter().enumerate() {
            let _ok = writeln!(content, "{}-{}", from + at, clipped(line));
        }
        let _ok = writeln!(content, "{}:{}", item.line, clipped(&item.text));
        for (at, line) in item.after.iter().enumerate() {
            let _ok = writeln!(content, "{}-{}", item.line as usize + 1 + at, clipped(line));
        }
    }
    let note = note(answer.complete, permit.hides());
    let value = json!({
        "content": content, "matches": matches, "total_matches": answer.total,
        "truncated": answer.truncated, "note": note,
    });
    Ok((value, answer.truncated))
}

fn search_code(
    deps: &Deps,
    permit: &cairn_harness::Permit,
    args: SearchCode,
    flag: &cairn_search::CancelFlag,
) -> Result<(Value, bool), Failure> {
    let filters = SearchFilters { path_prefix: args.path, ..SearchFilters::default() };
    let mut params = SearchParams::new(&args.query);
    params.k = args.max_results.clamp(1, 20);
    params.include_text = true;
    params.filters = Some(filters);
    scope(permit, &mut params.filters)?;
    let answer = deps.indexes.hybrid(&params, flag, &|_| ())?;
    let mut content = String::new();
    for hit in &answer.items {
        let symbol = hit.symbol.as_ref().map_or(String::new(), |s| format!("  ({})", s.name));
        let _ok = writeln!(content, "{}:{}-{}{symbol}", hit.path, hit.start_line, hit.end_line);
        for (at, line) in hit.text.as_deref().unwrap_or_default().lines().enumerate() {
            let _ok = writeln!(content, "{}|{}", hit.start_line as usize + at, clipped(line));
        }
        content.push('\n');
    }
    let note = note(answer.complete, permit.hides());
    Ok((
        json!({"content": content.trim_end(), "passages": answer.items.len(), "note": note}),
        false,
    ))
}

/// Note in an answer when rules hide a part of the searched files.
const HIDDEN_NOTE: &str = "paths that rules hide are omitted";

fn note(complete: bool, hides: bool) -> Option<String> {
    let pending = (!complete).then_some("the index is not complete yet: there may be more");
    let notes: Vec<&str> = pending.into_iter().chain(hides.then_some(HIDDEN_NOTE)).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, args: Value) -> Value {
        let mut all = json!({"path": "f"});
        all.as_object_mut().unwrap().extend(args.as_object().unwrap().clone());
        render_file("f", text.as_bytes(), &serde_json::from_value(all).unwrap()).0
    }

    #[test]
    fn lines_are_numbered_and_truncation_is_reported() {
        let text = "a\nb\r\nc\nd";
        assert_eq!(read(text, json!({}))["content"], "1|a\n2|b\n3|c\n4|d\n");
        let part = read(text, json!({"offset": 2, "limit": 2}));
        assert_eq!(
            (part["content"].as_str().unwrap(), part["truncated"].as_bool()),
            ("2|b\n3|c\n", Some(true))
        );
        assert_eq!((part["total_lines"].as_u64(), part["end_line"].as_u64()), (Some(4), Some(3)));
        let past = read(text, json!({"offset": 9}));
        assert_eq!(
            (past["content"].as_str().unwrap(), past["truncated"].as_bool()),
            ("", Some(false))
        );
        let bytes = read(text, json!({"byte_offset": 2, "byte_limit": 4}));
        assert_eq!(
            (bytes["content"].as_str().unwrap(), bytes["truncated"].as_bool()),
            ("2|b\n3|c\n", Some(true))
        );
        assert_eq!(read("\0\u{1}", json!({}))["binary"], true);
        assert_eq!(
            part["form"],
            "mixed line ends: 2 LF, 1 CRLF; no line end at the end of the file"
        );
        assert_eq!(read("a\n  b\n", json!({})).get("form"), None);
        let wide = render_file(
            "f",
            b"\xff\xfea\0\n\0b\0",
            &serde_json::from_value(json!({"path": "f"})).unwrap(),
        );
        assert_eq!(wide.0["content"], "1|a\n2|b\n");
        assert_eq!(read("\u{feff}a\rb", json!({}))["content"], "1|a\n2|b\n");
        assert!(
            read(&"x".repeat(9000), json!({}))["content"]
                .as_str()
                .unwrap()
                .contains("7000 more bytes")
        );
        assert_eq!(read("", json!({}))["total_lines"], 0);
    }
}
