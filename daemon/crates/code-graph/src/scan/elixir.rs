//! Elixir: modules by `defmodule`, and the modules that a file names.

use super::collect::Collector;
use super::read::{Comments, Reader, Stops, after, line_end, starts_word, string_end, word_at};
use crate::import::{Import, ImportKind, ImportedName};

static STOPS: Stops = Stops::with_capitals(b"\"'#daiur?");

pub fn scan<'a>(text: &'a [u8], out: &mut Collector<'a>) {
    let mut at = 0;
    while let Some(stop) = STOPS.next(text, at) {
        at = match text[stop] {
            b'#' => line_end(text, stop),
            b'"' if text[stop..].starts_with(b"\"\"\"") => after(text, stop + 3, b"\"\"\""),
            b'"' | b'\'' => string_end(text, stop),
            // A character literal: `?"`.
            b'?' => stop + 2,
            _ if !starts_word(text, stop) => stop + 1,
            // A field, an atom or an attribute.
            _ if stop > 0 && matches!(text[stop - 1], b'.' | b':' | b'@') => stop + 1,
            byte if byte.is_ascii_uppercase() => named(text, stop, out),
            _ => statement(text, stop, out).unwrap_or(stop + 1),
        };
    }
}

/// A module that code names, such as `A.B` in `A.B.call()`.
fn named<'a>(text: &'a [u8], at: usize, out: &mut Collector<'a>) -> usize {
    let end = module_end(text, at);
    let name = &text[at..end];
    if out.is_new_path(name)
        && let Ok(name) = std::str::from_utf8(name)
    {
        let line = out.line_at(at);
        out.push(Import::new(ImportKind::Path, name, line));
    }
    end
}

/// The end of a module's name at `at`: capitalised words joined by points.
fn module_end(text: &[u8], at: usize) -> usize {
    let mut end = at + word_at(text, at).len();
    while text.get(end) == Some(&b'.') && text.get(end + 1).is_some_and(u8::is_ascii_uppercase) {
        end += 1 + word_at(text, end + 1).len();
    }
    end
}

fn statement<'a>(text: &'a [u8], at: usize, out: &mut Collector<'a>) -> Option<usize> {
    let word = word_at(text, at);
    let is_definition = matches!(word, b"defmodule" | b"defprotocol");
    if !is_definition && !matches!(word, b"alias" | b"import" | b"use" | b"require") {
        return Some(at + word.len().max(1));
    }
    let mut reader = Reader::new(text, at + word.len(), Comments::Hash);
    reader.skip_spaces();
    if !reader.peek().is_some_and(|byte| byte.is_ascii_uppercase()) {
        return Some(reader.at.max(at + 1));
    }
    let end = module_end(text, reader.at);
    let name = std::str::from_utf8(&text[reader.at..end]).ok()?;
    reader.at = end;
    if is_definition {
        define(name, out);
        return Some(end);
    }
    let mut import = Import::new(ImportKind::Static, name, out.line_at(at));
    if text[end..].starts_with(b".{") {
        reader.at += 2;
        names(&mut reader, &mut import);
    } else if reader.eat(b",") && reader.eat_word(b"as") && reader.eat(b":") {
        import.alias = reader.ident().map(str::to_owned);
    } else if word == b"alias" {
        import.alias = name.rsplit('.').next().map(str::to_owned);
    }
    out.push(import);
    Some(reader.at.max(end))
}

/// The modules in braces of `alias A.{B, C.D}`.
fn names(reader: &mut Reader<'_>, import: &mut Import) {
    while let Some(name) = reader.path(b".") {
        let last = name.rsplit('.').next().unwrap_or(&name).to_owned();
        import.names.push(ImportedName::renamed(&name, &last));
        if !reader.eat(b",") {
            break;
        }
    }
    reader.eat(b"}");
}

/// Declares a module; one inside of another bears the name of the first.
fn define(name: &str, out: &mut Collector<'_>) {
    out.declare(name.as_bytes());
    match &out.file.package {
        None => out.file.package = Some(name.to_owned()),
        Some(outer) => {
            let inner = format!("{outer}.{name}");
            out.declare(inner.as_bytes());
        }
    }
}
