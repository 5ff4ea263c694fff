//! Rust: `mod x;`, `use` with its tree, `extern crate`, and lower-case paths in code.
//!
//! Specifiers are relative to the module of the file: an inline module is part of the path.

use super::collect::Collector;
use super::read::{
    Comments, Reader, Stops, after, is_ident, line_end, line_end_near, line_start, starts_word,
    word_at,
};
use crate::import::{Import, ImportKind, ImportedName, MAX_NAME};

static STOPS: Stops = Stops::new(b"\"'/:#{}ume");

/// Maximum nesting of a tree of `use`, and of inline modules.
const MAX_DEPTH: usize = 32;
/// Maximum segments of a path.
const MAX_SEGMENTS: usize = 32;
/// Crates that no repository contains.
const STANDARD: [&[u8]; 3] = [b"std", b"core", b"alloc"];

/// An inline module, and the depth of braces inside it.
type Inline<'a> = (&'a str, usize);

struct Scan<'a, 'o> {
    text: &'a [u8],
    out: &'o mut Collector<'a>,
    depth: usize,
    inline: Vec<Inline<'a>>,
    /// The value of `#[path]` before the next module; true if it holds under a condition only.
    path: Option<(&'a str, bool)>,
}

pub fn scan<'a>(text: &'a [u8], out: &mut Collector<'a>) {
    let mut scan = Scan { text, out, depth: 0, inline: Vec::new(), path: None };
    let mut at = 0;
    while let Some(stop) = STOPS.next(text, at) {
        at = scan.step(stop);
    }
}

impl<'a> Scan<'a, '_> {
    fn step(&mut self, at: usize) -> usize {
        match self.text[at] {
            b'"' => string_end(self.text, at),
            b'\'' => char_end(self.text, at),
            b'/' => comment_end(self.text, at),
            b':' if self.text.get(at + 1) == Some(&b':') => self.path_in_code(at),
            b'#' => self.attribute(at),
            b'{' => {
                self.depth += 1;
                at + 1
            }
            b'}' => {
                self.depth = self.depth.saturating_sub(1);
                self.inline.retain(|(_, depth)| *depth <= self.depth);
                at + 1
            }
            _ if !starts_word(self.text, at) => at + 1,
            _ => self.keyword(at),
        }
    }

    fn keyword(&mut self, at: usize) -> usize {
        let word = word_at(self.text, at);
        let end = at + word.len();
        let next = match word {
            b"use" => self.use_statement(at, end),
            b"mod" => self.module(at, end),
            b"extern" => self.extern_crate(at, end),
            _ => None,
        };
        next.unwrap_or(if word == b"use" { end } else { at + 1 })
    }

    fn attribute(&mut self, at: usize) -> usize {
        let mut reader = Reader::new(self.text, at + 1, Comments::Slashes);
        if reader.peek() != Some(b'[') || !reader.eat(b"[") {
            return at + 1;
        }
        let is_conditional = reader.eat_word(b"cfg_attr");
        if is_conditional {
            let line = &self.text[reader.at..line_end_near(self.text, reader.at)];
            let Some(found) = memchr::memmem::find(line, b", path") else { return at + 1 };
            reader.at += found + 1;
        }
        if reader.eat_word(b"path")
            && reader.eat(b"=")
            && let Some(path) = reader.string(b"\"")
        {
            self.path = Some((path, is_conditional));
            return reader.at;
        }
        at + 1
    }

    fn module(&mut self, start: usize, end: usize) -> Option<usize> {
        let mut reader = Reader::new(self.text, end, Comments::Slashes);
        let name = reader.ident()?;
        let path = self.path.take();
        if reader.eat(b";") {
            let mut import = Import::new(ImportKind::Module, "", self.out.line_at(start));
            let scopes = self.inline.iter().map(|(scope, _)| *scope);
            import.specifier = scopes.chain([name]).collect::<Vec<_>>().join("::");
            if path.is_none_or(|(_, is_conditional)| is_conditional) {
                self.out.push(import.clone());
            }
            if let Some((path, _)) = path {
                import.alias = Some(path.to_owned());
                self.out.push(import);
            }
            return Some(reader.at);
        }
        if reader.eat(b"{") {
            self.depth += 1;
            if self.inline.len() < MAX_DEPTH {
                self.inline.push((name, self.depth));
            }
            return Some(reader.at);
        }
        None
    }

    fn extern_crate(&mut self, start: usize, end: usize) -> Option<usize> {
        let mut reader = Reader::new(self.text, end, Comments::Slashes);
        if !reader.eat_word(b"crate") {
            return None;
        }
        let name = reader.ident()?;
        if !STANDARD.contains(&name.as_bytes()) && name != "self" {
            let mut import = Import::new(ImportKind::Static, name, self.out.line_at(start));
            if reader.eat_word(b"as") {
                import.alias = reader.ident().map(str::to_owned);
            }
            self.out.push(import);
        }
        Some(reader.at)
    }

    fn use_statement(&mut self, start: usize, end: usize) -> Option<usize> {
        let mut reader = Reader::new(self.text, end, Comments::Slashes);
        reader.skip_blank();
        // A precise capture, `use<'a>`, is no statement.
        if reader.peek() == Some(b'<') {
            return None;
        }
        let leaves = use_leaves(&mut reader)?;
        let line = self.out.line_at(start);
        let kind =
            if is_exported(self.text, start) { ImportKind::ReExport } else { ImportKind::Static };
        let mut imports: Vec<Import> = Vec::new();
        for (mut path, alias) in leaves {
            if path.last() == Some(&"self") && path.len() > 1 {
                path.pop();
            }
            if path.first().is_none_or(|head| STANDARD.contains(&head.as_bytes())) {
                continue;
            }
            let Some(name) = path.pop() else { continue };
            let specifier = self.in_scope(path).join("::");
            let name = ImportedName { name: name.to_owned(), alias };
            match imports.iter_mut().rev().take(8).find(|i| i.specifier == specifier) {
                Some(import) => import.names.push(name),
                None => {
                    let mut import = Import::new(kind, specifier, line);
                    import.names.push(name);
                    imports.push(import);
                }
            }
        }
        imports.into_iter().for_each(|import| self.out.push(import));
        Some(reader.at)
    }

    /// The path from the module of the file instead of the inline module around the statement.
    fn in_scope(&self, path: Vec<&'a str>) -> Vec<&'a str> {
        let scopes: Vec<&str> = self.inline.iter().map(|(scope, _)| *scope).collect();
        if scopes.is_empty() || !matches!(path.first(), Some(&("self" | "super"))) {
            return path;
        }
        let ups = path.iter().take_while(|s| **s == "super").count();
        let rest = path.iter().skip_while(|s| matches!(**s, "self" | "super")).copied();
        let outer = scopes.len().saturating_sub(ups);
        let above = ups.saturating_sub(scopes.len());
        let head = if above > 0 { vec!["super"; above] } else { vec!["self"] };
        head.into_iter().chain(scopes[..outer].iter().copied()).chain(rest).collect()
    }

    /// A path such as `crate::a::f` outside of `use`, at its first `::`.
    fn path_in_code(&mut self, at: usize) -> usize {
        let text = self.text;
        let length = text[..at].iter().rev().take(MAX_NAME).take_while(|b| is_ident(**b)).count();
        let start = at - length;
        let mut end = at;
        let mut segments = vec![&text[start..at]];
        while text[end..].starts_with(b"::") {
            let segment = word_at(text, end + 2);
            if segment.is_empty() || segments.len() == MAX_SEGMENTS {
                break;
            }
            segments.push(segment);
            end += 2 + segment.len();
        }
        let head = segments[0];
        let is_module = head.first().is_some_and(|b| b.is_ascii_lowercase() || *b == b'_');
        if !is_module || segments.len() < 2 || STANDARD.contains(&head) {
            return end.max(at + 2);
        }
        // The path ends at its first type; a function is its last segment.
        let is_type = |s: &&[u8]| s.first().is_some_and(u8::is_ascii_uppercase);
        let last = segments.iter().position(is_type).unwrap_or(segments.len() - 1);
        let length: usize = segments[..=last].iter().map(|s| s.len() + 2).sum::<usize>() - 2;
        if self.out.is_new_path(&text[start..start + length])
            && let Ok(mut path) = segments[..=last]
                .iter()
                .map(|s| std::str::from_utf8(s))
                .collect::<Result<Vec<_>, _>>()
        {
            let name = path.pop().unwrap_or_default();
            let specifier = self.in_scope(path).join("::");
            let mut import = Import::new(ImportKind::Path, specifier, self.out.line_at(start));
            import.names.push(ImportedName::new(name));
            self.out.push(import);
        }
        end.max(at + 2)
    }
}

/// True if `pub` or `pub(…)` precedes the statement.
fn is_exported(text: &[u8], start: usize) -> bool {
    text[line_start(text, start)..start].trim_ascii().starts_with(b"pub")
}

/// The paths of a tree of `use` with their aliases.
fn use_leaves<'a>(reader: &mut Reader<'a>) -> Option<Vec<(Vec<&'a str>, Option<String>)>> {
    let mut leaves = Vec::new();
    let mut path: Vec<&str> = Vec::new();
    let mut groups: Vec<usize> = Vec::new();
    let mut alias = None;
    loop {
        reader.skip_blank();
        let base = groups.last().copied().unwrap_or(0);
        match reader.peek()? {
            byte @ (b',' | b'}' | b';') => {
                reader.at += 1;
                if path.len() > base && leaves.len() < crate::import::MAX_NAMES {
                    leaves.push((path.clone(), alias.take()));
                }
                match byte {
                    b',' => path.truncate(base),
                    b';' => return groups.is_empty().then_some(leaves),
                    _ => {
                        groups.pop()?;
                        path.truncate(groups.last().copied().unwrap_or(0));
                    }
                }
            }
            b'{' if groups.len() < MAX_DEPTH => {
                reader.at += 1;
                groups.push(path.len());
            }
            b'*' => {
                reader.at += 1;
                path.push("*");
            }
            b':' => reader.eat(b"::").then_some(())?,
            _ => match reader.ident()? {
                // Another statement, after one that is damaged.
                "use" => return None,
                "as" => alias = Some(reader.ident()?.to_owned()),
                "r" if reader.peek() == Some(b'#') => reader.at += 1,
                name if path.len() < MAX_SEGMENTS => path.push(name),
                _ => return None,
            },
        }
    }
}

/// The end of a string, which is raw if `r` and hashes precede its quote.
fn string_end(text: &[u8], at: usize) -> usize {
    let hashes = text[..at].iter().rev().take(255).take_while(|b| **b == b'#').count();
    let is_raw = at > hashes && text[at - hashes - 1] == b'r' && {
        let start = at - hashes - 1;
        starts_word(text, start)
            || (matches!(text[start - 1], b'b' | b'c') && starts_word(text, start - 1))
    };
    if !is_raw {
        return super::read::long_string_end(text, at);
    }
    let mut end = vec![b'"'];
    end.resize(hashes + 1, b'#');
    after(text, at + 1, &end)
}

/// The end of a character, or the position after the quote of a lifetime.
fn char_end(text: &[u8], at: usize) -> usize {
    let rest = &text[at + 1..];
    let Some(first) = rest.first() else { return text.len() };
    if *first == b'\\' {
        let close = rest.iter().skip(2).take(10).position(|b| *b == b'\'');
        return close.map_or(at + 2, |i| at + i + 4);
    }
    let width = match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    };
    if rest.get(width) == Some(&b'\'') { at + width + 2 } else { at + 1 }
}

/// The end of a comment; block comments nest.
fn comment_end(text: &[u8], at: usize) -> usize {
    match text.get(at + 1) {
        Some(b'/') => return line_end(text, at),
        Some(b'*') => {}
        _ => return at + 1,
    }
    let mut depth = 1_usize;
    let mut at = at + 2;
    while depth > 0 {
        let Some(found) = memchr::memchr2(b'/', b'*', text.get(at..).unwrap_or_default()) else {
            return text.len();
        };
        at += found;
        match &text[at..text.len().min(at + 2)] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
    }
    at
}
