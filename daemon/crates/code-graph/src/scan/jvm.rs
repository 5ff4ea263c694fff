//! Java, Kotlin, Groovy and Scala: package, imports, declared and used types.

use super::collect::Collector;
use super::read::{
    Comments, Reader, Stops, after, before, line_end_near, slash_comment_end, string_end, word_at,
};
use super::types::{self, Language};
use crate::import::{Import, ImportKind, ImportedName};

/// Java's keywords of interest begin with `p`, `i`, `c`, `e`, `r` and `@`.
static JAVA: Stops = Stops::with_capitals(b"{}/\"'picer");
static KOTLIN: Stops = Stops::with_capitals(b"{}/\"'picofvt");

struct Jvm {
    is_java: bool,
}

pub fn scan<'a>(lang: &str, text: &'a [u8], out: &mut Collector<'a>) {
    types::scan(&mut Jvm { is_java: lang == "java" }, text, out);
}

impl<'a> Language<'a> for Jvm {
    fn stops(&self) -> &'static Stops {
        if self.is_java { &JAVA } else { &KOTLIN }
    }

    fn skip(&self, text: &'a [u8], at: usize) -> Option<usize> {
        match text[at] {
            b'/' => Some(slash_comment_end(text, at)),
            b'"' if text[at..].starts_with(b"\"\"\"") => Some(after(text, at + 3, b"\"\"\"")),
            b'"' | b'\'' => Some(string_end(text, at)),
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
        match word {
            b"package" | b"import" if depth == 0 && starts_statement(text, at) => {
                self.statement(text, at, end, out).unwrap_or(end)
            }
            b"class" | b"interface" | b"enum" | b"record" | b"object" | b"typealias"
                if depth == 0 =>
            {
                let mut reader = Reader::new(text, end, Comments::Slashes);
                if let Some(name) = reader.ident().filter(|n| *n != "class") {
                    out.declare(name.as_bytes());
                }
                end
            }
            b"fun" | b"val" | b"var" if depth == 0 && !self.is_java => {
                if let Some(name) = function_name(text, end) {
                    out.declare(name);
                }
                end
            }
            _ => end,
        }
    }
}

/// True at the start of a line or after `;`.
fn starts_statement(text: &[u8], at: usize) -> bool {
    before(text, at).is_none_or(|i| matches!(text[i], b'\n' | b'\r' | b';' | b'/'))
}

/// The name of a function or property at the top level, after type parameters and a receiver.
fn function_name(text: &[u8], end: usize) -> Option<&[u8]> {
    let head = &text[end..line_end_near(text, end)];
    let stop =
        head.iter().position(|b| matches!(b, b'(' | b'=' | b':' | b'{')).unwrap_or(head.len());
    let head = head[..stop].trim_ascii_end();
    let start = head.iter().rposition(|b| matches!(b, b' ' | b'.' | b'>')).map_or(0, |i| i + 1);
    let name = word_at(head, start);
    (!name.is_empty()).then_some(name)
}

impl Jvm {
    fn statement<'a>(
        &self,
        text: &'a [u8],
        at: usize,
        end: usize,
        out: &mut Collector<'a>,
    ) -> Option<usize> {
        let mut reader = Reader::new(text, end, Comments::Slashes);
        if word_at(text, at) == b"package" {
            out.file.package = reader.path(b".");
            return Some(reader.at);
        }
        let is_static = reader.eat_word(b"static");
        let mut import = Import::new(ImportKind::Static, reader.path(b".")?, out.line_at(at));
        reader.skip_spaces();
        // Scala writes `a.{B, C}` and `a._`.
        if reader.eat(b".") {
            if reader.eat(b"*") {
                import.names.push(ImportedName::new("*"));
            } else if reader.eat(b"{") {
                while let Some(name) = reader.ident() {
                    import.names.push(ImportedName::new(name));
                    if !reader.eat(b",") {
                        break;
                    }
                }
            }
        } else if let Some((package, name)) = import.specifier.rsplit_once('.') {
            let name = if name == "_" { "*" } else { name };
            import.names.push(ImportedName::new(name));
            import.specifier = package.to_owned();
        }
        reader.skip_spaces();
        if word_at(text, reader.at) == b"as"
            && let Some(name) = import.names.first_mut()
        {
            reader.at += 2;
            name.alias = reader.ident().map(str::to_owned);
        }
        // A static import names a member of a type, so its package is one level up.
        if is_static {
            import.alias = Some("static".to_owned());
        }
        out.push(import);
        Some(reader.at)
    }
}
