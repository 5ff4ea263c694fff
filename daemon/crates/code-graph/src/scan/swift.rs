//! Swift: imported modules, declared and used types. The package of a file is found by its path.

use super::collect::Collector;
use super::read::{Comments, Reader, Stops, after, before, slash_comment_end, string_end, word_at};
use super::types::{self, Language};
use crate::import::{Import, ImportKind, ImportedName};

static STOPS: Stops = Stops::with_capitals(b"{}/\"icsepatf");

struct Swift;

pub fn scan<'a>(_path: &str, text: &'a [u8], out: &mut Collector<'a>) {
    types::scan(&mut Swift, text, out);
}

impl<'a> Language<'a> for Swift {
    fn stops(&self) -> &'static Stops {
        &STOPS
    }

    fn skip(&self, text: &'a [u8], at: usize) -> Option<usize> {
        match text[at] {
            b'/' => Some(slash_comment_end(text, at)),
            b'"' if text[at..].starts_with(b"\"\"\"") => Some(after(text, at + 3, b"\"\"\"")),
            b'"' => Some(string_end(text, at)),
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
            b"import" if depth == 0 => import(text, at, end, out).unwrap_or(end),
            b"class" | b"struct" | b"enum" | b"protocol" | b"actor" | b"typealias" | b"func"
                if depth == 0 =>
            {
                let mut reader = Reader::new(text, end, Comments::Slashes);
                if let Some(name) = reader.ident() {
                    out.declare(name.as_bytes());
                }
                end
            }
            _ => end,
        }
    }
}

fn import<'a>(text: &'a [u8], at: usize, end: usize, out: &mut Collector<'a>) -> Option<usize> {
    // Attributes and access levels may precede it on the line.
    before(text, at).is_none_or(|i| text[i] != b'.').then_some(())?;
    let mut reader = Reader::new(text, end, Comments::Slashes);
    reader.skip_spaces();
    let kind = word_at(text, reader.at);
    let kinds: [&[u8]; 8] =
        [b"struct", b"class", b"enum", b"protocol", b"typealias", b"func", b"let", b"var"];
    let is_single = kinds.contains(&kind);
    if is_single {
        reader.at += kind.len();
        reader.skip_spaces();
    }
    let path = reader.path(b".")?;
    let (module, name) = path.split_once('.').map_or((path.as_str(), None), |(m, n)| (m, Some(n)));
    let mut import = Import::new(ImportKind::Static, module, out.line_at(at));
    import.names.extend(name.filter(|_| is_single).map(ImportedName::new));
    out.push(import);
    Some(reader.at)
}
