//! C#: namespaces, `using`, declared and used types.

use super::collect::Collector;
use super::read::{Comments, Reader, Stops, before, slash_comment_end, string_end};
use super::types::{self, Language};
use crate::import::{Import, ImportKind};

static STOPS: Stops = Stops::with_capitals(b"{}/\"'nucsierd");

/// The depth of braces at which types of the namespace are declared.
#[derive(Default)]
struct CSharp {
    level: usize,
}

pub fn scan<'a>(text: &'a [u8], out: &mut Collector<'a>) {
    types::scan(&mut CSharp::default(), text, out);
}

impl<'a> Language<'a> for CSharp {
    fn stops(&self) -> &'static Stops {
        &STOPS
    }

    fn skip(&self, text: &'a [u8], at: usize) -> Option<usize> {
        match text[at] {
            b'/' => Some(slash_comment_end(text, at)),
            b'"' if text[at..].starts_with(b"\"\"\"") => {
                Some(super::read::after(text, at + 3, b"\"\"\""))
            }
            b'"' if is_verbatim(text, at) => Some(verbatim_end(text, at)),
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
        let mut reader = Reader::new(text, end, Comments::Slashes);
        match word {
            b"namespace" => {
                if let Some(name) = reader.path(b".") {
                    out.file.package.get_or_insert(name);
                    self.level = depth + usize::from(!reader.eat(b";"));
                }
                // The brace is counted by the pass.
                reader.at
            }
            b"using" if depth <= self.level => using(text, at, end, out).unwrap_or(end),
            b"class" | b"struct" | b"interface" | b"enum" | b"record" | b"delegate"
                if depth == self.level =>
            {
                let first = reader.ident();
                let name = match first {
                    Some("class" | "struct") if word == b"record" => reader.ident(),
                    // The name of a delegate follows its type.
                    Some(_) if word == b"delegate" => reader.ident(),
                    name => name,
                };
                if let Some(name) = name {
                    out.declare(name.as_bytes());
                }
                end
            }
            _ => end,
        }
    }
}

fn is_verbatim(text: &[u8], at: usize) -> bool {
    text[..at].iter().rev().take(2).take_while(|b| matches!(b, b'@' | b'$')).any(|b| *b == b'@')
}

/// The end of a verbatim string, in which two quotes stand for one.
fn verbatim_end(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(found) = memchr::memchr(b'"', text.get(at..).unwrap_or_default()) {
        at += found + 1;
        if text.get(at) != Some(&b'"') {
            return at;
        }
        at += 1;
    }
    text.len()
}

fn using<'a>(text: &'a [u8], at: usize, end: usize, out: &mut Collector<'a>) -> Option<usize> {
    let mut reader = Reader::new(text, end, Comments::Slashes);
    let is_static = reader.eat_word(b"static");
    reader.eat_word(b"unsafe");
    let first = reader.path(b".:")?;
    // `global using` is seen by all files of the project.
    let is_global = before(text, at).is_some_and(|end| text[..=end].ends_with(b"global"));
    let kind = if is_global { ImportKind::ReExport } else { ImportKind::Static };
    let mut import = Import::new(kind, "", out.line_at(at));
    if reader.eat(b"=") {
        import.alias = Some(first);
        import.specifier = reader.path(b".:")?.replace("global::", "");
    } else {
        // A declaration, `using var x = …`, has no `;` after its first words.
        reader.eat(b";").then_some(())?;
        import.specifier = first.replace("global::", "");
    }
    if is_static {
        import.names.push(crate::import::ImportedName::new("*"));
    }
    out.push(import);
    Some(reader.at)
}
