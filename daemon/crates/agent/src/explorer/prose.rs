//! Sentences of documents and comments.

/// Returns the text without markup: links become their words, code its text.
pub fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['[', '`', '*', '<', '\\', '_', '{', ':']) {
        let (before, marked) = rest.split_at(at);
        out.push_str(before);
        rest = unmarked(marked, &mut out);
    }
    out.push_str(rest);
    let words: Vec<&str> = out.split_whitespace().collect();
    words.join(" ").replace(" .", ".").replace(" ,", ",")
}

/// Adds the first marked part of `text` as words, and returns what follows it.
fn unmarked<'a>(text: &'a str, out: &mut String) -> &'a str {
    let mut chars = text.chars();
    let first = chars.next().unwrap_or_default();
    match first {
        '[' => {
            if let Some((label, after)) = text[1..].split_once(']') {
                out.push_str(label.trim_start_matches('!'));
                let target = after.strip_prefix('(').and_then(|a| a.split_once(')'));
                let reference = after.strip_prefix('[').and_then(|a| a.split_once(']'));
                return target.or(reference).map_or(after, |(_, after)| after);
            }
        }
        '<' => {
            // A tag or an address; a comparison stays.
            if let Some((tag, after)) = text[1..].split_once('>')
                && !tag.contains([' ', '<']) | tag.contains('=') | tag.starts_with('/')
            {
                return after;
            }
        }
        // Roles of reStructuredText: `:class:`, and Javadoc's `{@link X}`.
        ':' => {
            if let Some((role, after)) = text[1..].split_once(':')
                && !role.is_empty()
                && role.chars().all(|c| c.is_ascii_lowercase() || c == '-')
                && after.starts_with('`')
            {
                return after;
            }
            out.push(':');
        }
        '{' => {
            if let Some((inner, after)) = text[1..].split_once('}')
                && let Some(word) = inner.strip_prefix('@')
            {
                out.push_str(word.split_once(' ').map_or("", |(_, name)| name));
                return after;
            }
            out.push('{');
        }
        '_' => {
            // Only as a mark at the edge of a word.
            let is_inner = out.ends_with(char::is_alphanumeric)
                && text[1..].starts_with(char::is_alphanumeric);
            if is_inner || text[1..].starts_with('_') {
                out.push('_');
            }
        }
        '`' | '*' | '\\' => {}
        _ => out.push(first),
    }
    chars.as_str()
}

/// Shortens to whole sentences, else to whole words, within `limit` characters.
pub fn shortened(text: &str, limit: usize) -> String {
    let text = text.trim().trim_end_matches([':', '—', '-']).trim();
    if let Some(end) = sentence_end(text)
        && end <= limit
    {
        return text[..end].trim_end_matches('.').to_owned();
    }
    if text.chars().count() <= limit {
        return text.trim_end_matches('.').to_owned();
    }
    let cut: String = text.chars().take(limit).collect();
    let cut = cut.rsplit_once(' ').map_or(cut.as_str(), |(head, _)| head);
    format!("{}…", cut.trim_end_matches([',', ';', ':']))
}

/// Byte position after the first sentence.
fn sentence_end(text: &str) -> Option<usize> {
    text.match_indices(['.', '!', '?']).map(|(at, _)| at + 1).find(|end| {
        let after = text[*end..].chars().next();
        let words = text[..*end].split_whitespace().count();
        let last = text[..*end - 1].rsplit([' ', '(']).next().unwrap_or("");
        let is_short = ["e.g", "i.e", "etc", "vs", "cf", "Dr", "St", "approx"].contains(&last);
        after.is_none_or(char::is_whitespace) && words >= 3 && !is_short
    })
}

/// Returns the rest of a line that starts with `word` (as a list item, table cell or heading) and
/// goes on with a description.
pub fn described<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    const MARKS: &[char] =
        &[' ', '\t', '-', '*', '|', '`', '+', '#', '[', '│', '├', '└', '─', '>', '/', '"'];
    let start = line.trim_start_matches(MARKS).trim_start_matches("./");
    let rest = start.strip_prefix(word)?;
    // The only file of a folder stands for it: `app/app.go   Wiring`.
    let rest = match rest.strip_prefix('/').and_then(|file| file.split_once("  ")) {
        Some((file, _)) if !file.is_empty() && !file.contains(' ') => &rest[file.len()..],
        _ => rest,
    };
    let after = rest.trim_start_matches(['/', '`', ']', '*', '"']);
    // The target of a link.
    let after = match after.strip_prefix('(') {
        Some(target) => target.split_once(')').map(|(_, after)| after)?,
        None => after,
    };
    // A listing of files: the name, spaces, and a comment.
    let is_listed = after.trim_start_matches(['`', '*', '/']).starts_with("  ");
    let after = after.trim_start_matches(['`', '*', '/', ' ']);
    let mark = after.chars().next()?;
    let is_separated = is_listed
        || [':', '|', '-', '–', '—', '#', '→', '='].contains(&mark)
        || ["is ", "are ", "contains ", "provides ", "has "].iter().any(|v| after.starts_with(v));
    if !is_separated || (rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-')) {
        return None;
    }
    let text = after.trim_start_matches([':', '|', '-', '–', '—', '#', '→', '=', ' ', '`']);
    let text = text.split(" | ").next().unwrap_or(text).trim_end_matches(['|', ' ']);
    (text.split_whitespace().count() >= 2).then_some(text)
}

/// Returns the description of the first file in a folder that a listing names without words of its
/// own.
pub fn nested<'a>(line: &str, word: &str, next: &&'a str) -> Option<&'a str> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let name = line.trim().trim_end_matches('/');
    if name != word || !line.trim().ends_with('/') || indent(next) <= indent(line) {
        return None;
    }
    let (file, text) = next.trim().split_once("  ")?;
    let text = text.trim();
    (file.contains('.') && text.split_whitespace().count() >= 2).then_some(text)
}

/// Returns the first sentences of prose in a document.
pub fn first_sentence(text: &str) -> Option<String> {
    let mut paragraphs = paragraphs(text);
    paragraphs.find_map(|paragraph| {
        let paragraph = match paragraph.trim_end().strip_suffix(':') {
            // "…, with a focus on being:" leads to a list.
            Some(lead) => lead.rsplit_once(',').map_or(lead, |(head, _)| head).to_owned(),
            None => paragraph,
        };
        is_statement(&paragraph).then_some(paragraph)
    })
}

/// Phrases of text that says nothing about the project itself.
const EMPTY_PHRASES: &[&str] = &[
    "this readme",
    "this document",
    "badge",
    "sponsor",
    "donat",
    "newsletter",
    "click here",
    "star this",
    "for more information",
    "documentation is",
    "documentation can",
    "see the ",
    "build status",
    "follow us",
    "is maintained",
    "no longer maintained",
    "table of contents",
    "looking for",
    "please ",
    "note that",
    "are you ",
    "welcome to",
    "copyright",
    "licensed under",
    "all rights reserved",
    "note:",
    "warning:",
    "available via",
    "available at",
    "learn how",
    "find out",
    "read the",
    "this repository is",
    "has moved",
    "go to ",
    "check out",
    "visit ",
    "join ",
    "ecmascript",
    "translations",
    "read this in",
    "if you ",
];

/// True if a paragraph says something about its subject.
fn is_statement(paragraph: &str) -> bool {
    let lower = paragraph.to_lowercase();
    let words = paragraph.split_whitespace().count();
    let ends_well = !paragraph.trim_end().ends_with(':');
    let head: String = lower.chars().take(120).collect();
    words >= 5
        && ends_well
        && !EMPTY_PHRASES.iter().any(|phrase| head.contains(phrase))
        && !lower.contains("http://")
        && !lower.contains("https://")
        && paragraph.chars().filter(|c| *c == '|' || *c == '•' || *c == '·').count() < 2
}

/// The paragraphs of a Markdown or reStructuredText document that are prose, without markup.
pub fn paragraphs(text: &str) -> impl Iterator<Item = String> {
    let mut out: Vec<String> = Vec::new();
    let mut current: Vec<String> = Vec::new();
    let (mut is_fenced, mut is_hidden) = (false, false);
    for line in text.lines().chain([""]) {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            is_fenced = !is_fenced;
        }
        if trimmed.starts_with("<!--") {
            is_hidden = true;
        }
        let was_hidden = is_hidden;
        if trimmed.contains("-->") {
            is_hidden = false;
        }
        let is_underline = trimmed.len() > 2 && trimmed.chars().all(|c| "=-~^*#_.+".contains(c));
        if is_underline {
            // The text above it was a heading.
            current.clear();
            continue;
        }
        let line = without_tags(trimmed);
        let is_quote = line.starts_with('>');
        let line = line.trim_start_matches(['>', ' ']);
        let is_indented = text.contains("\n\n") && line.is_empty() && !trimmed.is_empty();
        let is_prose = !is_fenced
            && !was_hidden
            && !is_indented
            && !line.is_empty()
            && !line.starts_with(['#', '!', '|', '=', '.', ':', '+', '@', '%'])
            && !(line.starts_with(['-', '*']) && line.get(1..2) == Some(" "))
            && !line.starts_with("[!")
            && !line.starts_with("[![")
            && !(line.starts_with('[')
                && (line.contains("]:") || line.ends_with(')'))
                && !line.contains("). "));
        if is_prose {
            current.push(line.to_owned());
            if is_quote {
                continue;
            }
        } else if !current.is_empty() {
            out.push(plain(&current.join(" ")));
            current.clear();
        }
    }
    out.into_iter()
}

/// The line without HTML tags; a line of tags alone is empty.
fn without_tags(line: &str) -> String {
    if !line.contains('<') {
        return line.to_owned();
    }
    let mut out = String::new();
    let mut is_tag = false;
    for c in line.chars() {
        match c {
            '<' => is_tag = true,
            '>' if is_tag => {
                is_tag = false;
                out.push(' ');
            }
            _ if !is_tag => out.push(c),
            _ => {}
        }
    }
    out.trim().to_owned()
}

/// Returns the comment at the head of a source file, with its line, if it describes the file.
pub fn head_comment(path: &str, text: &str) -> Option<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    let mut blocks = 0;
    while at < lines.len() && blocks < 4 {
        let line = lines[at].trim();
        let is_noise = line.is_empty()
            || line.starts_with("#!")
            || line.starts_with("# -*-")
            || line.starts_with("# frozen_string_literal")
            || line.starts_with("#pragma")
            || line.starts_with("'use strict'")
            || line.starts_with("<?php")
            || line.starts_with("declare(");
        if is_noise {
            at += 1;
            continue;
        }
        let (end, comment) = comment_at(path, &lines, at)?;
        if is_description(&comment) {
            return Some((at + 1, comment));
        }
        at = end;
        blocks += 1;
    }
    None
}

/// True if a comment is no licence, directive or drawing.
fn is_description(comment: &str) -> bool {
    let lower = comment.to_lowercase();
    let words = comment.split_whitespace().count();
    let is_licence = ["copyright", "license", "licence", "spdx", "all rights reserved"]
        .iter()
        .any(|word| lower.contains(word));
    let is_directive = [
        "eslint",
        "prettier",
        "@ts-",
        "nolint",
        "go:build",
        "+build",
        "pylint",
        "istanbul",
        "code generated",
        "todo",
    ]
    .iter()
    .any(|word| lower.starts_with(word));
    words >= 3 && !is_licence && !is_directive
}

/// Returns the comment that begins at a line, without its marks, up to its first paragraph's end,
/// and the line after all of it.
fn comment_at(path: &str, lines: &[&str], at: usize) -> Option<(usize, String)> {
    let line = lines[at].trim();
    let is_python = path.ends_with(".py");
    for quotes in ["\"\"\"", "'''", "r\"\"\""] {
        if is_python && line.starts_with(quotes) {
            return block(lines, at, quotes, if quotes == "'''" { "'''" } else { "\"\"\"" });
        }
    }
    if line.starts_with("/*") {
        return block(lines, at, "/*", "*/");
    }
    if line.starts_with("@moduledoc \"\"\"") {
        return block(lines, at, "@moduledoc \"\"\"", "\"\"\"");
    }
    let marks: &[&str] = match path.rsplit_once('.').map_or("", |(_, end)| end) {
        "rs" => &["//!", "///"],
        // In Python a comment is seldom about the module.
        "py" => return None,
        "rb" | "sh" | "ex" | "exs" | "pl" => &["#"],
        "lua" | "hs" | "sql" => &["--"],
        _ => &["//"],
    };
    let mark = marks.iter().find(|mark| line.starts_with(**mark))?;
    let mut end = at;
    let mut text: Vec<&str> = Vec::new();
    let mut is_first = true;
    while let Some(rest) = lines.get(end).and_then(|line| line.trim().strip_prefix(mark)) {
        let rest = rest.trim_start_matches(['/', '!', '#', '-']).trim();
        is_first &= !(rest.is_empty() && !text.is_empty());
        if is_first && !rest.is_empty() {
            text.push(rest);
        }
        end += 1;
    }
    Some((end, plain(&text.join(" "))))
}

fn block(lines: &[&str], at: usize, open: &str, close: &str) -> Option<(usize, String)> {
    let mut text: Vec<&str> = Vec::new();
    let mut is_first = true;
    for (number, line) in lines.iter().enumerate().skip(at).take(200) {
        let line = line.trim();
        let line = if number == at { &line[open.len().min(line.len())..] } else { line };
        let (body, is_end) = match line.find(close) {
            Some(found) => (&line[..found], true),
            None => (line, false),
        };
        let body = body.trim_start_matches(['*', ' ', '!']).trim_end_matches(['*', ' ']).trim();
        let is_tag = body.starts_with('@') && close == "*/";
        is_first &= !((body.is_empty() || is_tag) && !text.is_empty());
        if is_first && !body.is_empty() && !is_tag {
            text.push(body);
        }
        if is_end {
            return Some((number + 1, plain(&text.join(" "))));
        }
    }
    None
}

/// Returns the comment of the definition in a file that `words` name best, with its line.
pub fn definition_comment(path: &str, text: &str, words: &[String]) -> Option<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut best: Option<(usize, usize, String)> = None;
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = defined_name(line.trim_start()) else { continue };
        let Some(rank) = closeness(&name, words) else { continue };
        if best.as_ref().is_some_and(|(known, ..)| *known <= rank) {
            continue;
        }
        if let Some(comment) = comment_of(path, &lines, at).filter(|c| is_description(c)) {
            best = Some((rank, at + 1, comment));
        }
    }
    best.map(|(_, line, comment)| (line, comment))
}

/// The name that a line defines, if it is public by its spelling.
fn defined_name(line: &str) -> Option<String> {
    const MODIFIERS: &[&str] = &[
        "pub",
        "pub(crate)",
        "export",
        "default",
        "public",
        "abstract",
        "final",
        "open",
        "internal",
        "sealed",
        "static",
        "async",
        "declare",
        "partial",
        "data",
        "unsafe",
        "virtual",
        "protected",
    ];
    const KEYWORDS: &[&str] = &[
        "class",
        "def",
        "defmodule",
        "struct",
        "interface",
        "trait",
        "enum",
        "type",
        "func",
        "fn",
        "function",
        "module",
        "object",
        "protocol",
        "const",
        "record",
        "extension",
        "actor",
    ];
    let mut words = line.split_whitespace().skip_while(|word| MODIFIERS.contains(word));
    if !KEYWORDS.contains(&words.next()?) {
        return None;
    }
    let mut rest = words.next()?;
    // The receiver of a method in Go.
    if rest.starts_with('(') {
        rest = words.find(|word| !word.ends_with(')'))?;
    }
    let name: String =
        rest.chars().take_while(|c| c.is_alphanumeric() || "_.:".contains(*c)).collect();
    let last = name.trim_end_matches([':', '.']).rsplit(['.', ':']).next().unwrap_or("").to_owned();
    (!last.is_empty() && !last.starts_with('_')).then_some(last)
}

/// The rank of a name by how near it is to one of the words: equal, beginning with it, or with it
/// inside.
fn closeness(name: &str, words: &[String]) -> Option<usize> {
    let name = normalised(name);
    let rank = |word: &String| {
        if word.len() < 3 {
            return None;
        }
        let singular = name.trim_end_matches('s');
        match name.find(word.as_str()) {
            _ if singular == word || name == *word => Some(0),
            Some(0) => Some(1),
            Some(_) => Some(2),
            None => None,
        }
    };
    words.iter().filter_map(rank).min()
}

/// The comment that belongs to the definition at a line: below it in Python and Elixir, else above.
fn comment_of(path: &str, lines: &[&str], at: usize) -> Option<String> {
    if path.ends_with(".py") || path.ends_with(".ex") {
        let is_opening = |at: &usize| {
            let line = lines[*at].trim();
            ["\"\"\"", "r\"\"\"", "@moduledoc \"\"\""].iter().any(|quotes| line.starts_with(quotes))
        };
        let opening = (at + 1..lines.len().min(at + 12)).find(is_opening)?;
        return comment_at(path, lines, opening).map(|(_, comment)| comment);
    }
    let is_comment =
        |line: &str| ["/**", "*", "///", "//", "#", "@", "["].iter().any(|m| line.starts_with(m));
    let mut first = at;
    while first > 0 && is_comment(lines[first - 1].trim()) && at - first < 200 {
        first -= 1;
        if lines[first].trim().starts_with("/**") {
            break;
        }
    }
    (first < at).then(|| comment_at(path, lines, first)).flatten().map(|(_, comment)| comment)
}

/// A name in lower case without separators.
pub fn normalised(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric() || *c == ' ').flat_map(char::to_lowercase).collect()
}
