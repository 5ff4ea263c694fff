//! JavaScript and TypeScript: `import`, `export … from`, `import()`, `require()`, and the scripts
//! of Vue and Svelte.

use memchr::memmem;

use super::collect::Collector;
use super::read::{
    Comments, Reader, Stops, after, is_ident, line_start, slash_comment_end, string_end, word_at,
};
use crate::import::{Import, ImportKind, ImportedName, MAX_NAMES};

static STOPS: Stops = Stops::new(b"\"'`/ier");

/// Maximum bytes of a regular expression; a longer one is an operator.
const MAX_REGEX: usize = 2_000;
/// Maximum nesting of templates.
const MAX_DEPTH: usize = 64;

pub fn scan<'a>(text: &'a [u8], out: &mut Collector<'a>) {
    let mut at = 0;
    while let Some(stop) = STOPS.next(text, at) {
        at = match text[stop] {
            b'"' | b'\'' => string_end(text, stop),
            b'`' => template_end(text, stop),
            b'/' => slash_end(text, stop, out),
            _ if !starts_name(text, stop) => stop + 1,
            _ => keyword(text, stop, out),
        };
    }
}

/// Scans the `<script>` elements of a file of markup.
pub fn scan_markup<'a>(text: &'a [u8], out: &mut Collector<'a>) {
    let mut at = 0;
    while let Some(found) = memmem::find(&text[at..], b"<script") {
        let start = after(text, at + found, b">");
        let end = memmem::find(&text[start..], b"</script").map_or(text.len(), |i| start + i);
        // The prefix stays, so that lines count from the start of the file.
        let mut position = start;
        let script = &text[..end];
        while let Some(stop) = STOPS.next(script, position) {
            position = match script[stop] {
                b'"' | b'\'' => string_end(script, stop),
                b'`' => template_end(script, stop),
                b'/' => slash_end(script, stop, out),
                _ if !starts_name(script, stop) => stop + 1,
                _ => keyword(script, stop, out),
            };
        }
        at = end;
    }
}

/// True if neither an identifier nor a member access continues at `at`.
fn starts_name(text: &[u8], at: usize) -> bool {
    let Some(previous) = at.checked_sub(1).map(|i| text[i]) else { return true };
    if previous == b'.' {
        // A spread is no member access.
        return text[..at].ends_with(b"...");
    }
    !is_ident(previous) && !matches!(previous, b'$' | b'#' | b'@')
}

fn keyword<'a>(text: &'a [u8], at: usize, out: &mut Collector<'a>) -> usize {
    let word = word_at(text, at);
    let end = at + word.len();
    let next = match word {
        b"import" => import(text, at, end, out),
        b"export" => export(text, at, end, out),
        b"require" => call(ImportKind::Require, text, at, end, out),
        _ => return end.max(at + 1),
    };
    next.unwrap_or(end)
}

fn import<'a>(text: &'a [u8], at: usize, end: usize, out: &mut Collector<'a>) -> Option<usize> {
    let mut reader = Reader::new(text, end, Comments::Slashes);
    reader.skip_blank();
    match reader.peek()? {
        b'(' => return call(ImportKind::Dynamic, text, at, end, out),
        b'.' | b':' => return None,
        _ => {}
    }
    let line = out.line_at(at);
    let mut import = Import::new(ImportKind::Static, "", line);
    if let Some(specifier) = reader.string(b"\"'") {
        import.specifier = specifier.to_owned();
        out.push(import);
        return Some(reader.at);
    }
    let default = binding(&mut reader, &mut import)?;
    if let Some(default) = default {
        if reader.eat(b"=") {
            import.alias = Some(default.to_owned());
            return required(&mut reader, import, out);
        }
        import.names.push(ImportedName::renamed("default", default));
        reader.eat(b",");
    }
    clause(&mut reader, &mut import)?;
    from(&mut reader, import, out)
}

/// The default binding, after `type` or `typeof` if one of them is a modifier.
fn binding<'a>(reader: &mut Reader<'a>, import: &mut Import) -> Option<Option<&'a str>> {
    reader.skip_blank();
    if matches!(reader.peek()?, b'{' | b'*') {
        return Some(None);
    }
    let first = name(reader)?;
    if !matches!(first, "type" | "typeof" | "defer" | "source") {
        return Some(Some(first));
    }
    reader.skip_blank();
    let next = reader.peek()?;
    if matches!(next, b',' | b'=') || word_at(reader.text, reader.at) == b"from" {
        let saved = reader.at;
        let is_default = next == b',' || next == b'=' || !is_from_from(reader);
        reader.at = saved;
        if is_default {
            return Some(Some(first));
        }
    }
    import.is_type_only = matches!(first, "type" | "typeof");
    if matches!(next, b'{' | b'*') { Some(None) } else { name(reader).map(Some) }
}

/// True for `from from`, in which the first is a name.
fn is_from_from(reader: &mut Reader<'_>) -> bool {
    reader.eat_word(b"from") && reader.eat_word(b"from")
}

fn name<'a>(reader: &mut Reader<'a>) -> Option<&'a str> {
    reader.skip_blank();
    let rest = reader.text.get(reader.at..)?;
    let length = rest.iter().position(|b| !is_ident(*b) && *b != b'$').unwrap_or(rest.len());
    let name = std::str::from_utf8(&rest[..length]).ok().filter(|n| !n.is_empty())?;
    reader.at += length;
    Some(name)
}

/// `* as x` or `{ a, b as c }`, if one of them follows.
fn clause(reader: &mut Reader<'_>, import: &mut Import) -> Option<()> {
    if reader.eat(b"*") {
        if reader.eat_word(b"as") {
            import.alias = Some(name(reader)?.to_owned());
        } else {
            import.names.push(ImportedName::new("*"));
        }
        return Some(());
    }
    if !reader.eat(b"{") {
        return Some(());
    }
    let mut is_type_only = true;
    while import.names.len() < MAX_NAMES {
        if reader.eat(b"}") {
            import.is_type_only |= is_type_only && !import.names.is_empty();
            return Some(());
        }
        let mut first = match reader.string(b"\"'") {
            Some(text) => text,
            None => name(reader)?,
        };
        reader.skip_blank();
        let is_modifier = first == "type"
            && !matches!(reader.peek()?, b',' | b'}')
            && word_at(reader.text, reader.at) != b"as";
        if is_modifier {
            first = name(reader)?;
        }
        is_type_only &= is_modifier;
        let mut imported = ImportedName::new(first);
        if reader.eat_word(b"as") {
            let alias = match reader.string(b"\"'") {
                Some(text) => text,
                None => name(reader)?,
            };
            imported.alias = Some(alias.to_owned());
        }
        import.names.push(imported);
        reader.eat(b",");
    }
    None
}

fn from<'a>(reader: &mut Reader<'a>, mut import: Import, out: &mut Collector<'a>) -> Option<usize> {
    reader.eat_word(b"from").then_some(())?;
    import.specifier = reader.string(b"\"'")?.to_owned();
    out.push(import);
    Some(reader.at)
}

fn export<'a>(text: &'a [u8], at: usize, end: usize, out: &mut Collector<'a>) -> Option<usize> {
    let mut reader = Reader::new(text, end, Comments::Slashes);
    let is_type_only = reader.eat_word(b"type");
    reader.skip_blank();
    if !matches!(reader.peek()?, b'{' | b'*') {
        // `export import a = require("a")` continues with `import`.
        return None;
    }
    let line = out.line_at(at);
    let mut import = Import::new(ImportKind::ReExport, "", line);
    clause(&mut reader, &mut import)?;
    import.is_type_only |= is_type_only;
    if !reader.eat_word(b"from") {
        if import.names.is_empty() {
            return None;
        }
        // Names of this file, which may be imported by another statement.
        let end = reader.at;
        out.push(import);
        return Some(end);
    }
    import.specifier = reader.string(b"\"'")?.to_owned();
    out.push(import);
    Some(reader.at)
}

/// `require("x")` after `import x =`.
fn required<'a>(
    reader: &mut Reader<'a>,
    mut import: Import,
    out: &mut Collector<'a>,
) -> Option<usize> {
    (reader.eat_word(b"require") && reader.eat(b"(")).then_some(())?;
    import.kind = ImportKind::Require;
    import.specifier = reader.string(b"\"'")?.to_owned();
    out.push(import);
    Some(reader.at)
}

/// A call with one literal, such as `import("x")`; `require.resolve` counts as well.
fn call<'a>(
    kind: ImportKind,
    text: &'a [u8],
    at: usize,
    end: usize,
    out: &mut Collector<'a>,
) -> Option<usize> {
    let mut reader = Reader::new(text, end, Comments::Slashes);
    if kind == ImportKind::Require && text[end..].starts_with(b".resolve(") {
        reader.at += b".resolve".len();
    }
    reader.eat(b"(").then_some(())?;
    let specifier = reader.string(b"\"'`")?;
    // A template with parts has no fixed value, and a sum of texts neither.
    if specifier.contains("${") || !(reader.eat(b")") || reader.eat(b",")) {
        return None;
    }
    let mut import = Import::new(kind, specifier, out.line_at(at));
    if kind == ImportKind::Require {
        assigned(text, at, &mut import);
    }
    out.push(import);
    Some(reader.at)
}

/// The name that `x = require(…)` binds on the same line.
fn assigned(text: &[u8], at: usize, import: &mut Import) {
    let head = text[line_start(text, at)..at].trim_ascii_end();
    let Some(target) = head.strip_suffix(b"=") else {
        return;
    };
    let target = target.trim_ascii_end();
    if let Some(pattern) = target.strip_suffix(b"}") {
        destructured(pattern, import);
        return;
    }
    let length = target.iter().rev().take_while(|b| is_ident(**b) || **b == b'$').count();
    let name = std::str::from_utf8(&target[target.len() - length..]).unwrap_or_default();
    import.alias = (!name.is_empty()).then(|| name.to_owned());
}

/// The names of `{ a, b: c } = require(…)`, without the closing brace.
fn destructured(pattern: &[u8], import: &mut Import) {
    let Some(open) = pattern.iter().rposition(|b| *b == b'{') else { return };
    let text = std::str::from_utf8(&pattern[open + 1..]).unwrap_or_default();
    for part in text.split(',').take(MAX_NAMES) {
        let part = part.split('=').next().unwrap_or_default();
        let (name, alias) = part.split_once(':').unwrap_or((part, part));
        let (name, alias) = (name.trim(), alias.trim());
        let is_name = |n: &str| !n.is_empty() && n.bytes().all(|b| is_ident(b) || b == b'$');
        if is_name(name) && is_name(alias) {
            let renamed = ImportedName::renamed(name, alias);
            import.names.push(if name == alias { ImportedName::new(name) } else { renamed });
        }
    }
}

/// The end of a template, with the templates and braces inside its parts.
fn template_end(text: &[u8], at: usize) -> usize {
    // The depth of braces in each open part; a template is open above the last part.
    let mut parts: Vec<usize> = Vec::new();
    let mut in_template = true;
    let mut at = at + 1;
    while let Some(byte) = text.get(at) {
        at += 1;
        if in_template {
            match byte {
                b'\\' => at += 1,
                b'`' if parts.is_empty() => return at,
                b'`' => in_template = false,
                b'$' if text.get(at) == Some(&b'{') && parts.len() < MAX_DEPTH => {
                    at += 1;
                    parts.push(0);
                    in_template = false;
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'`' => in_template = true,
            b'"' | b'\'' => at = string_end(text, at - 1),
            b'/' if matches!(text.get(at), Some(b'/' | b'*')) => {
                at = slash_comment_end(text, at - 1)
            }
            b'{' => parts.iter_mut().last().into_iter().for_each(|depth| *depth += 1),
            b'}' => match parts.pop() {
                Some(0) | None => in_template = true,
                Some(depth) => parts.push(depth - 1),
            },
            _ => {}
        }
    }
    text.len()
}

/// The end of a comment, a regular expression or an operator.
fn slash_end<'a>(text: &'a [u8], at: usize, out: &mut Collector<'a>) -> usize {
    if text[at..].starts_with(b"/// <reference") {
        reference(text, at, out);
    }
    let end = slash_comment_end(text, at);
    if end > at + 1 || !may_begin_regex(text, at) {
        return end;
    }
    regex_end(text, at).unwrap_or(at + 1)
}

/// A file named by `/// <reference path="…" />`.
fn reference<'a>(text: &'a [u8], at: usize, out: &mut Collector<'a>) {
    let line = &text[at..super::read::line_end(text, at)];
    let Some(found) = memmem::find(line, b"path=") else { return };
    let mut reader = Reader::new(line, found + 5, Comments::Slashes);
    if let Some(path) = reader.string(b"\"'") {
        let is_relative = path.starts_with('.');
        let specifier = if is_relative { path.to_owned() } else { format!("./{path}") };
        let line = out.line_at(at);
        let mut import = Import::new(ImportKind::Static, specifier, line);
        import.is_type_only = true;
        out.push(import);
    }
}

/// True if an expression, not an operator, is expected at `at`.
fn may_begin_regex(text: &[u8], at: usize) -> bool {
    let head = &text[..at];
    let Some(last) = head.iter().rposition(|b| !b.is_ascii_whitespace()) else { return true };
    match head[last] {
        b')' | b']' | b'}' | b'<' | b'"' | b'\'' | b'`' | b'.' | b'$' => false,
        byte if is_ident(byte) => {
            let length = head[..=last].iter().rev().take(12).take_while(|b| is_ident(**b)).count();
            matches!(
                &head[last + 1 - length..=last],
                b"return"
                    | b"typeof"
                    | b"case"
                    | b"in"
                    | b"of"
                    | b"delete"
                    | b"void"
                    | b"throw"
                    | b"new"
                    | b"do"
                    | b"else"
                    | b"await"
                    | b"yield"
                    | b"instanceof"
            )
        }
        _ => true,
    }
}

fn regex_end(text: &[u8], at: usize) -> Option<usize> {
    let text = &text[..text.len().min(at + MAX_REGEX)];
    let mut in_class = false;
    let mut at = at + 1;
    loop {
        match text.get(at)? {
            b'\n' => return None,
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
}
