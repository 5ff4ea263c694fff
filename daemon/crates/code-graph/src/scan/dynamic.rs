//! Ruby and Lua, whose imports are calls.

use super::collect::Collector;
use super::read::{
    Comments, Reader, Stops, after, before, line_end, line_end_near, line_start, starts_word,
    string_end, word_at,
};
use crate::import::{Import, ImportKind, ImportedName};

static RUBY: Stops = Stops::with_capitals(b"\"'#rlacm=<_");
static LUA: Stops = Stops::new(b"\"'-[rd");

/// Maximum bytes of a here-document, so that unclosed ones cost a bounded time each.
const MAX_HEREDOC: usize = 32 * 1024;

pub fn scan_ruby<'a>(text: &'a [u8], out: &mut Collector<'a>) {
    let mut at = 0;
    while let Some(stop) = RUBY.next(text, at) {
        let starts_line = stop == 0 || text[stop - 1] == b'\n';
        at = match text[stop] {
            // A character literal, `?#`, and an interpolation are no comment.
            b'#' if stop > 0 && text[stop - 1] == b'?' => stop + 1,
            b'#' if text.get(stop + 1) == Some(&b'{') => stop + 1,
            b'#' => line_end(text, stop),
            b'"' | b'\'' => string_end(text, stop),
            b'=' if starts_line && text[stop..].starts_with(b"=begin") => {
                after(text, stop, b"\n=end")
            }
            b'<' => heredoc_end(text, stop),
            b'_' if starts_line && text[stop..].starts_with(b"__END__") => return,
            _ if !starts_word(text, stop) || stop > 0 && text[stop - 1] == b'.' => stop + 1,
            byte if byte.is_ascii_uppercase() => {
                let word = word_at(text, stop);
                out.use_type(word);
                stop + word.len()
            }
            _ if stop > 0 && text[stop - 1] == b':' => stop + 1,
            b'c' | b'm' => ruby_definition(text, stop, out),
            _ => ruby_call(text, stop, out).unwrap_or(stop + 1),
        };
    }
}

/// Declares the class or module that is opened at `at`.
fn ruby_definition<'a>(text: &'a [u8], at: usize, out: &mut Collector<'a>) -> usize {
    let word = word_at(text, at);
    let end = at + word.len().max(1);
    let is_alone = text[line_start(text, at)..at].trim_ascii().is_empty();
    if !is_alone || !matches!(word, b"class" | b"module") {
        return end;
    }
    let mut reader = Reader::new(&text[..line_end_near(text, at)], end, Comments::Hash);
    let mut names = Vec::new();
    while let Some(name) = reader.ident().filter(|n| n.starts_with(|c: char| c.is_uppercase())) {
        names.push(name);
        if !reader.eat(b"::") {
            break;
        }
    }
    if let (Some(first), Some(last)) = (names.first(), names.last()) {
        let package = out.file.package.get_or_insert_with(|| (*first).to_owned());
        // `class Rack::Builder` opens what belongs to another namespace.
        if names.len() == 1 || package == first {
            out.declare(last.as_bytes());
        }
    }
    reader.at.max(end)
}

fn ruby_call<'a>(text: &'a [u8], at: usize, out: &mut Collector<'a>) -> Option<usize> {
    let word = word_at(text, at);
    let kind = match word {
        b"require" | b"require_relative" | b"load" => ImportKind::Require,
        b"autoload" => ImportKind::Autoload,
        _ => return Some(at + word.len().max(1)),
    };
    let end = line_end_near(text, at);
    let mut reader = Reader::new(&text[..end], at + word.len(), Comments::Hash);
    reader.skip_spaces();
    reader.eat(b"(");
    let mut import = Import::new(kind, "", out.line_at(at));
    if kind == ImportKind::Autoload {
        reader.eat(b":");
        import.names.push(ImportedName::new(reader.ident()?));
        if reader.eat(b",")
            && let Some(path) = reader.string(b"\"'")
        {
            import.specifier = path.to_owned();
        }
        out.push(import);
        return Some(reader.at);
    }
    let literal = reader.string(b"\"'");
    let rest = &text[reader.at.min(end)..end];
    let from_file = literal.is_none()
        && (memchr::memmem::find(rest, b"__FILE__").is_some()
            || memchr::memmem::find(rest, b"__dir__").is_some()
            || memchr::memmem::find(rest, b"__DIR__").is_some());
    let path = match literal {
        Some(path) => path,
        None if from_file => {
            let quote = rest.iter().position(|b| matches!(b, b'"' | b'\''))?;
            reader.at += quote;
            reader.string(b"\"'")?
        }
        None => return None,
    };
    if path.contains("#{") {
        return None;
    }
    import.specifier = if from_file {
        // A path from the file itself begins with a step out of it.
        let path = if memchr::memmem::find(rest, b"__FILE__").is_some() {
            path.trim_start_matches('/').strip_prefix("../").unwrap_or(path)
        } else {
            path.trim_start_matches('/')
        };
        format!("./{path}")
    } else if word == b"require_relative" {
        format!("./{path}")
    } else {
        path.to_owned()
    };
    out.push(import);
    Some(reader.at)
}

/// The end of a here-document that begins at `at`, or `at + 1` if none does.
fn heredoc_end(text: &[u8], at: usize) -> usize {
    let Some(head) = text[at..].strip_prefix(b"<<") else { return at + 1 };
    let marker = head.iter().take(2).take_while(|b| matches!(b, b'-' | b'~')).count();
    let quoted = head.get(marker).is_some_and(|b| matches!(b, b'"' | b'\''));
    let word = word_at(head, marker + usize::from(quoted));
    let is_constant = word.first().is_some_and(u8::is_ascii_uppercase);
    // `a << B` appends and `class << self` opens a class.
    let is_bare = marker == 0 && !quoted;
    let follows = before(text, at).map_or(b'\n', |i| text[i]);
    if word.is_empty()
        || !(is_constant || quoted)
        || is_bare && !matches!(follows, b'=' | b'(' | b',')
    {
        return at + 2;
    }
    let text = &text[..text.len().min(at + MAX_HEREDOC)];
    let mut line = line_end(text, at);
    while line < text.len() {
        let rest = &text[line + 1..line_end(text, line + 1)];
        if rest.trim_ascii() == word {
            return line + 1 + rest.len();
        }
        line += 1 + rest.len();
    }
    // An unclosed one is more likely an operator.
    at + 2
}

pub fn scan_lua<'a>(text: &'a [u8], out: &mut Collector<'a>) {
    let mut at = 0;
    while let Some(stop) = LUA.next(text, at) {
        at = match text[stop] {
            b'"' | b'\'' => string_end(text, stop),
            b'-' if text.get(stop + 1) == Some(&b'-') => match long_bracket(text, stop + 2) {
                Some(end) => end,
                None => line_end(text, stop),
            },
            b'[' => long_bracket(text, stop).unwrap_or(stop + 1),
            b'-' => stop + 1,
            _ if !starts_word(text, stop) || stop > 0 && matches!(text[stop - 1], b'.' | b':') => {
                stop + 1
            }
            _ => lua_call(text, stop, out).unwrap_or(stop + 1),
        };
    }
}

/// The end of `[[…]]` or `[=[…]=]` at `at`.
fn long_bracket(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?.strip_prefix(b"[")?;
    let level = rest.iter().take(64).take_while(|b| **b == b'=').count();
    if rest.get(level) != Some(&b'[') {
        return None;
    }
    let mut close = vec![b']'];
    close.resize(level + 1, b'=');
    close.push(b']');
    Some(after(text, at + level + 2, &close))
}

fn lua_call<'a>(text: &'a [u8], at: usize, out: &mut Collector<'a>) -> Option<usize> {
    let word = word_at(text, at);
    let kind = match word {
        b"require" => ImportKind::Require,
        b"dofile" => ImportKind::Include,
        _ => return Some(at + word.len().max(1)),
    };
    let mut reader = Reader::new(text, at + word.len(), Comments::Dashes);
    reader.eat(b"(");
    reader.skip_blank();
    let specifier = if text[reader.at..].starts_with(b"[[") {
        let end = long_bracket(text, reader.at)?;
        std::str::from_utf8(text.get(reader.at + 2..end.checked_sub(2)?)?).ok()?
    } else {
        reader.string(b"\"'")?
    };
    let mut import = Import::new(kind, specifier, out.line_at(at));
    // `local x = require "x"` binds the module.
    let head = text[line_start(text, at)..at].trim_ascii();
    if let Some(target) = head.strip_prefix(b"local ").and_then(|h| h.strip_suffix(b"="))
        && let Ok(name) = std::str::from_utf8(target.trim_ascii())
    {
        import.alias = Some(name.to_owned());
    }
    out.push(import);
    Some(reader.at)
}
