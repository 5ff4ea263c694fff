//! SQL: `CREATE` statements, whose bodies may contain semicolons between `BEGIN` and `END`.

use super::Outline;
use super::lexer::Token;

/// Words between `CREATE` and the kind of what is created.
const MODIFIERS: [&str; 17] = [
    "or",
    "replace",
    "alter",
    "temp",
    "temporary",
    "global",
    "local",
    "unlogged",
    "external",
    "virtual",
    "recursive",
    "materialized",
    "editionable",
    "noneditionable",
    "constraint",
    "public",
    "foreign",
];
const KINDS: [(&str, &str); 13] = [
    ("table", "struct"),
    ("view", "struct"),
    ("function", "function"),
    ("procedure", "function"),
    ("proc", "function"),
    ("trigger", "function"),
    ("event", "function"),
    ("macro", "macro"),
    ("aggregate", "function"),
    ("type", "type"),
    ("domain", "type"),
    ("schema", "module"),
    ("package", "module"),
];
/// Words after `END` that do not end a block that `BEGIN` or `CASE` started.
const INNER_ENDS: [&str; 5] = ["if", "loop", "while", "repeat", "for"];

pub fn read(outline: &mut Outline<'_>, tokens: &[Token]) {
    let mut at = 0;
    while at < tokens.len() {
        at = statement(outline, tokens, at);
    }
}

fn lower(outline: &Outline<'_>, tokens: &[Token], at: usize) -> String {
    let token = tokens.get(at).filter(|t| t.is_word());
    token.map_or_else(String::new, |t| outline.word(t).to_ascii_lowercase())
}

/// Reads one statement and returns the index after it.
fn statement(outline: &mut Outline<'_>, tokens: &[Token], start: usize) -> usize {
    let mut symbol = None;
    let mut has_body = false;
    if lower(outline, tokens, start) == "create"
        && let Some((kind, name_at)) = created(outline, tokens, start + 1)
        && let Some(name) = name(outline, tokens, name_at)
    {
        has_body = matches!(kind, "function" | "module");
        symbol = outline.define(kind, &name, None, tokens[start].line);
    }
    let mut blocks = 0_u32;
    // Declarations between `AS` and the first block end with semicolons as well.
    let mut is_declaring = false;
    for at in start..tokens.len() {
        let token = &tokens[at];
        if token.is(b';') && blocks == 0 && !is_declaring {
            outline.close(symbol, token.line);
            return at + 1;
        }
        // A missing semicolon, as before `GO`, ends the statement too.
        let is_next = at > start && token.is_first && token.column == 0 && blocks == 0;
        let word = if token.is_word() { lower(outline, tokens, at) } else { String::new() };
        if is_next && matches!(word.as_str(), "create" | "go" | "delimiter" | "alter" | "insert") {
            outline.close(symbol, tokens[at - 1].last_line);
            return if word == "go" { at + 1 } else { at };
        }
        match word.as_str() {
            "begin" | "case" if has_body && !ends_before(outline, tokens, at) => blocks += 1,
            "end" if !INNER_ENDS.contains(&lower(outline, tokens, at + 1).as_str()) => {
                blocks = blocks.saturating_sub(1);
                is_declaring &= blocks > 0;
            }
            "as" | "is" if has_body && blocks == 0 => {
                is_declaring = tokens.get(at + 1).is_some_and(Token::is_word);
            }
            _ => {}
        }
    }
    outline.close(symbol, tokens.last().map_or(1, |t| t.last_line));
    tokens.len()
}

/// True for the second word of `END CASE`.
fn ends_before(outline: &Outline<'_>, tokens: &[Token], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| lower(outline, tokens, before) == "end")
}

/// The kind of what a statement creates, and the position of its name.
fn created(outline: &Outline<'_>, tokens: &[Token], from: usize) -> Option<(&'static str, usize)> {
    // `DEFINER = user@host` and `ALGORITHM = x` precede the kind in MySQL.
    for at in from..tokens.len().min(from + 16) {
        let word = lower(outline, tokens, at);
        if let Some((_, kind)) = KINDS.iter().find(|(name, _)| *name == word) {
            let has_body = usize::from(lower(outline, tokens, at + 1) == "body");
            return Some((*kind, at + 1 + has_body));
        }
        let is_setting = ["definer", "algorithm", "sql", "security"].contains(&word.as_str());
        let after_sign = tokens[at - 1].is(b'=') || tokens[at - 1].is(b'@');
        let is_known = MODIFIERS.contains(&word.as_str()) || is_setting || after_sign;
        let is_sign = !tokens[at].is_word();
        if !is_known && !is_sign && !["definer", "invoker"].contains(&word.as_str()) {
            return None;
        }
    }
    None
}

/// The last part of a name with a schema, without quotes.
fn name(outline: &Outline<'_>, tokens: &[Token], mut at: usize) -> Option<String> {
    if lower(outline, tokens, at) == "if" {
        at += 1;
        while matches!(lower(outline, tokens, at).as_str(), "not" | "exists") {
            at += 1;
        }
    }
    while tokens.get(at + 1).is_some_and(|t| t.is(b'.')) {
        at += 2;
    }
    let token = tokens.get(at).filter(|t| t.is_word())?;
    let quotes: &[char] = &['"', '`', '[', ']'];
    Some(outline.word(token).trim_matches(quotes).to_owned())
}
