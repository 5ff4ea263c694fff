//! Comments of source files and of their definitions.

use super::prose::{normalised, plain};

/// Lines of a file that may be its head: a licence, then the comment of the module.
const HEAD_LINES: usize = 300;

/// Returns the comment at the head of a source file, with its line, if it describes the file.
pub fn head_comment(path: &str, text: &str) -> Option<(usize, String)> {
    let lines: Vec<&str> = text.lines().take(HEAD_LINES).collect();
    let mut at = 0;
    let mut blocks = 0;
    while at < lines.len() && blocks < 4 {
        let line = lines[at].trim();
        let is_noise = line.is_empty()
            || line.starts_with("#!")
            || (line.starts_with('#') && path.ends_with(".py"))
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
    let is_licence = ["copyright", "license", "licence", "spdx", "all rights reserved", "@author"]
        .iter()
        .any(|word| lower.contains(word));
    let is_directive = [
        "do not ",
        "don't ",
        "deprecated",
        "internal",
        "@private",
        "@internal",
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

/// Openings of the documents of a module in Elixir.
const MODULE_DOCS: &[&str] = &["@moduledoc \"\"\"", "@moduledoc ~S\"\"\""];

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
    if let Some(opening) = MODULE_DOCS.iter().find(|opening| line.starts_with(**opening)) {
        return block(lines, at, opening, "\"\"\"");
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
        is_first &= !rest.is_empty() || text.is_empty();
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
        let Some((keyword, name)) = defined(line.trim_start()) else { continue };
        // A function whose name only contains the word is one of many.
        let is_type = !["def", "func", "fn", "function", "const"].contains(&keyword);
        let most = if is_type { 1 } else { 0 };
        let Some(rank) = closeness(&name, words).filter(|rank| *rank <= most) else { continue };
        if best.as_ref().is_some_and(|(known, ..)| *known <= rank) {
            continue;
        }
        if let Some(comment) = comment_of(path, &lines, at).filter(|c| is_description(c)) {
            best = Some((rank, at + 1, comment));
        }
    }
    best.map(|(_, line, comment)| (line, comment))
}

/// The name that a line defines, if it is public by its spelling, with the keyword before it.
fn defined(line: &str) -> Option<(&str, String)> {
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
    let keyword = words.next().filter(|word| KEYWORDS.contains(word))?;
    let mut rest = words.next()?;
    // An attribute of the linker: `class EXPORTED_API Name`.
    if keyword == "class" && rest.contains('_') && !rest.contains(char::is_lowercase) {
        rest = words.next()?;
    }
    // The receiver of a method in Go.
    if rest.starts_with('(') {
        if !rest.ends_with(')') {
            words.find(|word| word.ends_with(')'))?;
        }
        rest = words.next()?;
    }
    let name: String =
        rest.chars().take_while(|c| c.is_alphanumeric() || "_.:".contains(*c)).collect();
    let last = name.trim_end_matches([':', '.']).rsplit(['.', ':']).next().unwrap_or("").to_owned();
    (!last.is_empty() && !last.starts_with('_')).then_some((keyword, last))
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
        let opening = first_of_body(lines, at)?;
        let line = lines[opening].trim();
        let is_comment =
            ["\"\"\"", "'''", "r\"\"\""].iter().chain(MODULE_DOCS).any(|o| line.starts_with(o));
        return is_comment
            .then(|| comment_at(path, lines, opening))
            .flatten()
            .map(|(_, text)| text);
    }
    let is_comment = |line: &str| {
        ["/*", "*", "///", "//", "#", "@", "["].iter().any(|mark| line.starts_with(mark))
    };
    let mut first = at;
    while first > 0 && is_comment(lines[first - 1].trim()) && at - first < 200 {
        first -= 1;
        if lines[first].trim().starts_with("/*") {
            break;
        }
    }
    // Attributes may precede it.
    (first..at).find_map(|line| comment_at(path, lines, line)).map(|(_, comment)| comment)
}

/// The first line of the body of the definition at a line, whose head may have several.
fn first_of_body(lines: &[&str], at: usize) -> Option<usize> {
    let ends = |line: &&str| {
        let line = line.split(" #").next().unwrap_or(line).trim_end();
        line.ends_with(':') || line.ends_with(" do")
    };
    let end = at + lines[at..].iter().take(12).position(ends)?;
    let is_other = |line: &&str| defined(line.trim_start()).is_some();
    if lines[at + 1..=end.max(at)].iter().any(is_other) {
        return None;
    }
    let next = end + 1 + lines.get(end + 1..)?.iter().position(|line| !line.trim().is_empty())?;
    Some(next)
}

#[cfg(test)]
#[path = "comments_tests.rs"]
mod tests;
