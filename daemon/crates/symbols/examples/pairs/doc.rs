//! The documentation of a definition, from the comment above it or its docstring: the first
//! paragraph in plain words.

use std::collections::HashMap;

use cairn_symbols::languages::grammar;
use tree_sitter::Node;

/// Maximum lines of attributes, decorators and the like between a comment and its definition.
const MAX_BETWEEN: usize = 8;
/// Maximum lines of a comment.
const MAX_LINES: usize = 60;
/// Number of English words of a usable sentence.
const WORDS: std::ops::RangeInclusive<usize> = 5..=45;

/// The comments of a file by row, counted from 0.
pub struct Comments {
    /// For each row that only contains a comment, the comment's first row.
    rows: Vec<Option<usize>>,
    /// Rows of docstrings by the first row of their definition.
    strings: HashMap<usize, (usize, usize)>,
}

impl Comments {
    /// Finds the comments in the syntax tree of a text.
    pub fn find(lang: &str, text: &[u8], lines: usize) -> Self {
        let mut comments = Self { rows: vec![None; lines], strings: HashMap::new() };
        let mut parser = cairn_parsing::parser();
        let tree = grammar(lang).and_then(|g| {
            parser.set_language(&g.language).ok()?;
            parser.parse(text, None)
        });
        let Some(tree) = tree else { return comments };
        let mut cursor = tree.walk();
        loop {
            comments.add(&cursor.node(), text);
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return comments;
                }
            }
        }
    }

    fn add(&mut self, node: &Node<'_>, text: &[u8]) {
        let (from, to) = rows(node);
        if node.kind().contains("comment") && node.kind() != "doc_comment" {
            let line = &text[node.start_byte() - node.start_position().column..node.start_byte()];
            if line.trim_ascii().is_empty() {
                self.rows.iter_mut().take(to + 1).skip(from).for_each(|row| *row = Some(from));
            }
        } else if matches!(node.kind(), "function_definition" | "class_definition") {
            let string = || {
                let first = node.child_by_field_name("body")?.named_child(0)?;
                let string_node = if first.kind() == "expression_statement" {
                    first.named_child(0)?
                } else {
                    first
                };
                (string_node.kind() == "string" && rows(&string_node).0 > from)
                    .then(|| rows(&string_node))
            };
            if let Some(rows) = string() {
                self.strings.insert(from, rows);
            }
        }
    }

    /// Rows of the docstring of the definition that starts at `row`.
    pub fn docstring(&self, row: usize) -> Option<(usize, usize)> {
        self.strings.get(&row).copied()
    }

    /// Rows of the comment directly above `row`, apart from attributes between them.
    pub fn comment_above(&self, lines: &[String], row: usize) -> Option<(usize, usize)> {
        let mut last = row.checked_sub(1)?;
        for _ in 0..MAX_BETWEEN {
            if self.rows.get(last)?.is_some() || !is_between(&lines[last]) {
                break;
            }
            last = last.checked_sub(1)?;
        }
        let mut first = (*self.rows.get(last)?)?;
        let is_line = first == last && !lines[last].trim_start().starts_with("/*");
        while is_line && first > 0 && last - first < MAX_LINES {
            match self.rows[first - 1] {
                Some(comment_above)
                    if comment_above == first - 1
                        && !lines[comment_above].trim_start().starts_with("/*") =>
                {
                    first = comment_above
                }
                _ => break,
            }
        }
        Some((first, last.min(first + MAX_LINES)))
    }
}

/// First and last row of a node; if it includes the trailing newline, it ends on the row before.
fn rows(node: &Node<'_>) -> (usize, usize) {
    let (from, to) = (node.start_position(), node.end_position());
    (from.row, if to.column == 0 && to.row > from.row { to.row - 1 } else { to.row })
}

fn is_between(line: &str) -> bool {
    let line = line.trim();
    ["#[", "@", "[", "template"].iter().any(|s| line.starts_with(s))
        || matches!(line, "static" | "inline" | "export")
}

/// The first paragraph of a comment in plain words; `None` if it is not an English sentence, or too
/// short or long.
pub fn clean(lang: &str, lines: &[String]) -> Option<String> {
    let mut paragraph = String::new();
    for line in lines {
        let without_marks = without_marks(lang, line);
        let (without_marks, is_text) = without_tag(without_marks);
        let is_rule = without_marks.chars().filter(|c| c.is_alphanumeric()).count() * 3
            < without_marks.chars().count();
        if without_marks.is_empty() || !is_text || is_rule || is_heading(without_marks) {
            if paragraph.is_empty() {
                continue;
            }
            break;
        }
        paragraph.push_str(without_marks);
        paragraph.push(' ');
        if ["</summary>", "<p>", "</p>", "<para>"].iter().any(|e| without_marks.ends_with(e)) {
            break;
        }
    }
    let text = without_markup(&paragraph);
    let text = first_sentence_if_long(&text);
    is_english(text).then(|| text.to_owned())
}

/// A line of a comment without its marks.
fn without_marks<'a>(lang: &str, line: &'a str) -> &'a str {
    let line = line.trim();
    let line = match lang {
        "python" => {
            let opened = line.trim_start_matches(['r', 'R', 'u', 'U', 'b', 'f']);
            let line = if opened.starts_with(['"', '\'']) { opened } else { line };
            line.trim_matches(['"', '\'']).trim_start_matches('#')
        }
        "lua" => line.trim_start_matches('-').trim_start_matches("[[").trim_end_matches("]]"),
        "ruby" | "bash" => line.trim_start_matches('#'),
        _ => {
            line.trim_end_matches("*/").trim_start_matches(['/', '*', '!']).trim_start_matches("# ")
        }
    };
    line.trim()
}

/// The line after a tag that starts a description, and false if the line is not text.
fn without_tag(line: &str) -> (&str, bool) {
    let tags = [
        "@description",
        "@brief",
        "\\brief",
        "@summary",
        "@desc",
        "Summary:",
        "Description:",
        "Public:",
        "Internal:",
        "Private:",
    ];
    for tag in tags {
        if let Some(rest) = line.strip_prefix(tag) {
            return (rest.trim(), true);
        }
    }
    let is_tag = [
        "@",
        "\\",
        ":param",
        ":return",
        "- Parameter",
        "- Returns",
        "- returns",
        "- parameter",
        ">>>",
        "```",
        "|",
        "+-",
        "<param",
        "<returns",
    ];
    (line, !is_tag.iter().any(|t| line.starts_with(t)))
}

fn is_heading(line: &str) -> bool {
    let heads = [
        "Args:",
        "Arguments:",
        "Parameters",
        "Returns:",
        "Return:",
        "Raises:",
        "Example",
        "Note:",
        "Examples",
        "Usage:",
        "# ",
        "See also",
        "TODO",
        "FIXME",
        "XXX",
        "eslint",
        "eslint-disable",
        "istanbul",
        "rubocop:",
        "noinspection",
        "SPDX",
        "Copyright",
        "(c) ",
    ];
    heads.iter().any(|h| line.starts_with(h))
}

/// The text without markup of XML, Markdown, reStructuredText and Javadoc.
fn without_markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['<', '{', '`', '[', ']', '(', '*']) {
        out.push_str(&rest[..at]);
        let here = &rest[at..];
        let mut used = 1;
        match here.as_bytes()[0] {
            b'<' if here[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') => {
                if let Some(end) = here.find('>').filter(|e| *e < 120) {
                    let name = here[..end]
                        .split_once("ref=\"")
                        .or_else(|| here[..end].split_once("name=\""))
                        .or_else(|| here[..end].split_once("langword=\""));
                    if let Some((_, name)) = name {
                        let name =
                            name.split('"').next().unwrap_or("").split('(').next().unwrap_or("");
                        out.push_str(name.rsplit(['.', ':']).next().unwrap_or(""));
                    }
                    used = end + 1;
                }
            }
            b'{' if here.starts_with("{@") => used = here.find(' ').map_or(1, |e| e + 1),
            b'(' if out.ends_with('\u{1}') => {
                out.pop();
                used = here.find(')').map_or(1, |e| e + 1);
            }
            b']' if here[1..].starts_with('(') => out.push('\u{1}'),
            b'(' => out.push('('),
            b'<' => out.push('<'),
            _ => {}
        }
        rest = &here[used..];
    }
    out.push_str(rest);
    let out = out.replace(['}', '\u{1}'], "");
    out.split_whitespace().map(without_role).collect::<Vec<_>>().join(" ")
}

/// `:class:name` without the role.
fn without_role(word: &str) -> &str {
    match word.strip_prefix(':').and_then(|w| w.split_once(':')) {
        Some((role, name)) if !name.is_empty() && role.chars().all(|c| c.is_ascii_alphabetic()) => {
            name
        }
        _ => word,
    }
}

/// The text, or its first sentence if it is too long.
fn first_sentence_if_long(text: &str) -> &str {
    if count(text) <= *WORDS.end() {
        return text;
    }
    text.find(". ").map_or(text, |end| &text[..=end])
}

fn count(text: &str) -> usize {
    text.split_whitespace()
        .filter(|w| w.chars().filter(char::is_ascii_alphabetic).count() >= 2)
        .count()
}

fn is_english(text: &str) -> bool {
    let all = text.split_whitespace().count();
    let lower = text.to_ascii_lowercase();
    let known = [
        " the ", " a ", " an ", " of ", " to ", " is ", " and ", " for ", " in ", " with ", " if ",
        " this ", " from ", " by ", " on ", " or ", " that ", " as ",
    ];
    let padded = format!(" {lower} ");
    WORDS.contains(&count(text))
        && all < 70
        && text.bytes().filter(|b| !b.is_ascii()).count() * 20 < text.len()
        && text.bytes().filter(|b| matches!(b, b';' | b'=' | b'{' | b'|' | b'\\')).count() * 25
            < text.len()
        && known.iter().any(|k| padded.contains(k))
        && !["copyright", "licensed under", "http://", "https://", "inheritdoc"]
            .iter()
            .any(|m| lower.contains(m))
}
