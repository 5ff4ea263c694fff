//! PHP: namespace, `use`, `require` and `include`, declared and used types.

use super::collect::Collector;
use super::read::{Comments, Reader, Stops, line_end, long_string_end, slash_comment_end, word_at};
use super::types::{self, Language};
use crate::import::{Import, ImportKind, ImportedName, MAX_NAMES};

static STOPS: Stops = Stops::with_capitals(b"{}/#\"'<nucietfr");

#[derive(Default)]
struct Php {
    /// The depth of braces at which the namespace's types are declared.
    level: usize,
}

pub fn scan<'a>(text: &'a [u8], out: &mut Collector<'a>) {
    types::scan(&mut Php::default(), text, out);
}

impl<'a> Language<'a> for Php {
    fn stops(&self) -> &'static Stops {
        &STOPS
    }

    fn skip(&self, text: &'a [u8], at: usize) -> Option<usize> {
        match text[at] {
            b'/' => Some(slash_comment_end(text, at)),
            // `#[` begins an attribute.
            b'#' if text.get(at + 1) != Some(&b'[') => Some(line_end(text, at)),
            b'"' | b'\'' => Some(long_string_end(text, at)),
            b'<' if text[at..].starts_with(b"<<<") => Some(heredoc_end(text, at)),
            _ => None,
        }
    }

    fn word(
        &mut self,
        text: &'a [u8],
        at: usize,
        word: &'a [u8],
        depth: usize,
        out: &mut Collector<'a>,
    ) -> usize {
        let end = at + word.len();
        if at > 0 && matches!(text[at - 1], b'$' | b'>' | b':' | b'\\') {
            return end;
        }
        let mut reader = Reader::new(text, end, Comments::SlashesAndHash);
        match word {
            b"namespace" => {
                if let Some(name) = reader.path(b"\\") {
                    out.file.package = Some(name);
                    self.level = depth + usize::from(!reader.eat(b";"));
                    return reader.at;
                }
                end
            }
            b"use" if depth <= self.level => uses(text, at, end, out).unwrap_or(end),
            b"require" | b"require_once" | b"include" | b"include_once" => {
                required(text, at, end, out);
                end
            }
            b"class" | b"interface" | b"trait" | b"enum" | b"function" if depth <= self.level => {
                if let Some(name) = reader.ident() {
                    out.declare(name.as_bytes());
                }
                end
            }
            _ => end,
        }
    }
}

fn heredoc_end(text: &[u8], at: usize) -> usize {
    let mut start = at + 3;
    while matches!(text.get(start), Some(b' ' | b'"' | b'\'')) {
        start += 1;
    }
    let word = word_at(text, start);
    if word.is_empty() {
        return at + 3;
    }
    let mut line = line_end(text, start);
    while line < text.len() {
        let rest = &text[line + 1..line_end(text, line + 1)];
        if word_at(rest.trim_ascii_start(), 0) == word {
            return line + 1 + rest.len();
        }
        line += 1 + rest.len();
    }
    text.len()
}

/// `use A\B as C, D;`, `use A\{B, C as D};`, `use function a\b;`.
fn uses<'a>(text: &'a [u8], at: usize, end: usize, out: &mut Collector<'a>) -> Option<usize> {
    let mut reader = Reader::new(text, end, Comments::SlashesAndHash);
    let is_function = reader.eat_word(b"function") || reader.eat_word(b"const");
    let line = out.line_at(at);
    for _ in 0..MAX_NAMES {
        reader.eat(b"\\");
        let path = reader.path(b"\\")?;
        if reader.eat(b"\\") && reader.eat(b"{") {
            for _ in 0..MAX_NAMES {
                let Some(name) = reader.path(b"\\") else { break };
                bind(&mut reader, &format!("{path}\\{name}"), line, is_function, out);
                if !reader.eat(b",") {
                    break;
                }
            }
            reader.eat(b"}");
        } else {
            bind(&mut reader, &path, line, is_function, out);
        }
        if !reader.eat(b",") {
            break;
        }
    }
    Some(reader.at)
}

fn bind<'a>(
    reader: &mut Reader<'a>,
    path: &str,
    line: u32,
    is_function: bool,
    out: &mut Collector<'a>,
) {
    let (package, name) = path.rsplit_once('\\').unwrap_or(("", path));
    let mut name = ImportedName::new(name);
    if reader.eat_word(b"as") {
        name.alias = reader.ident().map(str::to_owned);
    }
    let mut import = Import::new(ImportKind::Static, package, line);
    if is_function {
        import.alias = Some("function".to_owned());
    }
    import.names.push(name);
    out.push(import);
}

/// `require __DIR__ . '/x.php'`: the literal, made relative if the folder of the file precedes it.
fn required<'a>(text: &'a [u8], at: usize, end: usize, out: &mut Collector<'a>) {
    let mut reader = Reader::new(text, end, Comments::SlashesAndHash);
    reader.eat(b"(");
    let mut ups = 0;
    while reader.eat_word(b"dirname") && ups < 8 {
        reader.eat(b"(");
        ups += 1;
    }
    let is_local = reader.eat_word(b"__DIR__");
    let is_file = !is_local && reader.eat_word(b"__FILE__");
    for _ in 0..ups {
        reader.eat(b")");
    }
    if is_local || is_file {
        reader.eat(b".");
        ups -= i32::from(is_file && ups > 0);
    }
    let Some(path) = reader.string(b"\"'") else { return };
    let prefix = if is_local || is_file {
        format!("./{}", "../".repeat(ups as usize))
    } else {
        String::new()
    };
    let path = if prefix.is_empty() { path } else { path.trim_start_matches('/') };
    let kind =
        if word_at(text, at).starts_with(b"r") { ImportKind::Require } else { ImportKind::Include };
    let line = out.line_at(at);
    out.push(Import::new(kind, format!("{prefix}{path}"), line));
}
