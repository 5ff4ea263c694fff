//! Python: `import`, `from … import`, `import_module("…")`, also inside functions and under
//! `if TYPE_CHECKING`.

use super::collect::Collector;
use super::read::{
    Comments, Reader, Stops, after, before, line_end, line_end_near, line_start, starts_word,
    string_end, word_at,
};
use crate::import::{Import, ImportKind, ImportedName, MAX_NAMES};

static STOPS: Stops = Stops::new(b"\"'#if_T");

/// A block under `if TYPE_CHECKING:`.
struct TypeBlock {
    indent: usize,
    /// The position up to which all lines are in the block.
    until: usize,
}

pub fn scan<'a>(text: &'a [u8], out: &mut Collector<'a>) {
    let mut types = None;
    let mut at = 0;
    while let Some(stop) = STOPS.next(text, at) {
        at = match text[stop] {
            b'#' => line_end(text, stop),
            b'"' | b'\'' => literal_end(text, stop),
            _ if !starts_word(text, stop) => stop + 1,
            _ => word(text, stop, &mut types, out),
        };
    }
}

fn literal_end(text: &[u8], at: usize) -> usize {
    let quote = text[at];
    if text[at..].starts_with(&[quote; 3]) {
        let mut from = at + 3;
        loop {
            let end = after(text, from, &[quote; 3]);
            let escapes = text[from..end.saturating_sub(3).max(from)].iter().rev();
            if end >= text.len() || escapes.take_while(|b| **b == b'\\').count() % 2 == 0 {
                return end;
            }
            from = end - 2;
        }
    }
    string_end(text, at)
}

fn word<'a>(
    text: &'a [u8],
    at: usize,
    types: &mut Option<TypeBlock>,
    out: &mut Collector<'a>,
) -> usize {
    let word = word_at(text, at);
    let end = at + word.len();
    let read = match word {
        b"import" if starts_statement(text, at) => import_statement(text, at, end, out),
        b"from" if starts_statement(text, at) => from_statement(text, at, end, out),
        b"__import__" | b"import_module" => call(text, at, end, out),
        b"TYPE_CHECKING" => {
            *types = type_block(text, at, end).or(types.take());
            None
        }
        _ => None,
    };
    let Some((next, first)) = read else { return end };
    if is_in_block(text, at, types) {
        for import in &mut out.file.imports[first..] {
            import.is_type_only = true;
        }
    }
    next
}

/// True if a statement may begin at `at`: at the start of a line, after `;` or after `:`.
fn starts_statement(text: &[u8], at: usize) -> bool {
    before(text, at).is_none_or(|i| matches!(text[i], b'\n' | b'\r' | b';' | b':'))
}

fn indent_at(text: &[u8], at: usize) -> usize {
    let line = line_start(text, at);
    text[line..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count()
}

fn type_block(text: &[u8], at: usize, end: usize) -> Option<TypeBlock> {
    let line = line_start(text, at);
    let condition = text[line..at].trim_ascii_start();
    let is_if = condition.starts_with(b"if ") && !condition.ends_with(b"not ");
    let colon = text[end..line_end_near(text, end)].trim_ascii().starts_with(b":");
    (is_if && colon).then(|| TypeBlock { indent: indent_at(text, at), until: line_end(text, end) })
}

/// True if all lines from the block's start to `at` are indented deeper than its condition.
fn is_in_block(text: &[u8], at: usize, types: &mut Option<TypeBlock>) -> bool {
    let Some(block) = types else { return false };
    let mut inside = true;
    while block.until < at && inside {
        let start = (block.until + 1).min(text.len());
        let end = line_end(text, start);
        let line = &text[start..end];
        let indent = line.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
        let is_blank = line.get(indent).is_none_or(|b| matches!(b, b'#' | b'\r' | b')'));
        inside = is_blank || indent > block.indent;
        block.until = end;
    }
    if !inside {
        *types = None;
    }
    inside
}

/// The end of a statement, and the index of its first import.
type Read = Option<(usize, usize)>;

fn import_statement<'a>(text: &'a [u8], at: usize, end: usize, out: &mut Collector<'a>) -> Read {
    let mut reader = Reader::new(text, end, Comments::Hash);
    let first = out.file.imports.len();
    let line = out.line_at(at);
    for _ in 0..MAX_NAMES {
        let mut import = Import::new(ImportKind::Static, dotted(&mut reader)?, line);
        reader.skip_spaces();
        if word_at(text, reader.at) == b"as" {
            reader.at += 2;
            import.alias = reader.ident().map(str::to_owned);
            reader.skip_spaces();
        }
        out.push(import);
        if reader.peek() != Some(b',') {
            break;
        }
        reader.at += 1;
    }
    Some((reader.at, first))
}

/// A module name on one line, since the next line may begin with a name as well.
fn dotted(reader: &mut Reader<'_>) -> Option<String> {
    let mut name = reader.ident()?.to_owned();
    loop {
        reader.skip_spaces();
        if reader.peek() != Some(b'.') || name.len() > crate::import::MAX_NAME {
            return Some(name);
        }
        reader.at += 1;
        name.push('.');
        name.push_str(reader.ident()?);
    }
}

fn from_statement<'a>(text: &'a [u8], at: usize, end: usize, out: &mut Collector<'a>) -> Read {
    let mut reader = Reader::new(text, end, Comments::Hash);
    let mut specifier = String::new();
    loop {
        reader.skip_spaces();
        match reader.peek()? {
            b'.' if specifier.len() < crate::import::MAX_NAME => {
                reader.at += 1;
                specifier.push('.');
            }
            b'\\' => reader.skip_blank(),
            _ => break,
        }
    }
    if word_at(text, reader.at) != b"import" {
        specifier.push_str(&dotted(&mut reader)?);
    }
    if specifier.is_empty() || !reader.eat_word(b"import") {
        return None;
    }
    let first = out.file.imports.len();
    let mut import = Import::new(ImportKind::Static, specifier, out.line_at(at));
    reader.skip_spaces();
    let in_brackets = reader.eat(b"(");
    while import.names.len() < MAX_NAMES {
        if in_brackets {
            reader.skip_blank();
        }
        if reader.eat(b"*") {
            import.names.push(ImportedName::new("*"));
            break;
        }
        let Some(name) = reader.ident() else { break };
        let mut name = ImportedName::new(name);
        if in_brackets {
            reader.skip_blank()
        } else {
            reader.skip_spaces()
        }
        if word_at(text, reader.at) == b"as" {
            reader.at += 2;
            name.alias = reader.ident().map(str::to_owned);
            if in_brackets { reader.skip_blank() } else { reader.skip_spaces() }
        }
        import.names.push(name);
        if reader.peek() != Some(b',') {
            break;
        }
        reader.at += 1;
    }
    out.push(import);
    Some((reader.at, first))
}

fn call<'a>(text: &'a [u8], at: usize, end: usize, out: &mut Collector<'a>) -> Read {
    let mut reader = Reader::new(text, end, Comments::Hash);
    reader.eat(b"(").then_some(())?;
    let specifier = reader.string(b"\"'")?;
    let is_module = |b: u8| super::read::is_ident(b) || b == b'.';
    if specifier.is_empty() || !specifier.bytes().all(is_module) {
        return None;
    }
    let first = out.file.imports.len();
    let line = out.line_at(at);
    out.push(Import::new(ImportKind::Dynamic, specifier, line));
    Some((reader.at, first))
}
