//! Haskell: declarations start in the first column, and end before the next one.

use super::Outline;
use super::lexer::{Kind, Token};

/// Words that start declarations without a name of their own.
const NO_NAMES: [&str; 12] = [
    "import", "infix", "infixl", "infixr", "deriving", "foreign", "instance", "default", "pattern",
    "where", "let", "module",
];

pub fn read(outline: &mut Outline<'_>, tokens: &[Token]) {
    let starts: Vec<usize> =
        (0..tokens.len()).filter(|at| tokens[*at].is_first && tokens[*at].column == 0).collect();
    // The functions of the declaration before, which an equation continues.
    let mut before: Vec<(usize, String)> = Vec::new();
    for (n, start) in starts.iter().enumerate() {
        let end = starts.get(n + 1).copied().unwrap_or(tokens.len());
        let declaration = &tokens[*start..end];
        let Some(last) = declaration.last().map(|t| t.last_line) else { continue };
        let names = declared_names(outline, declaration);
        // The signature and the equations of a function are one definition.
        if let [name] = &names[..]
            && let Some((symbol, _)) = before.iter().find(|(_, of)| of == name)
        {
            outline.close(Some(*symbol), last);
            continue;
        }
        before.clear();
        if names.is_empty() {
            special(outline, declaration, last);
        }
        for name in names {
            let symbol = outline.define("function", &name, None, declaration[0].line);
            outline.close(symbol, last);
            before.extend(symbol.map(|symbol| (symbol, name)));
        }
    }
}

fn is_lower(name: &str) -> bool {
    name.starts_with(|c: char| c.is_lowercase() || c == '_')
}

/// The functions that a declaration defines: `a, b :: T`, `f x = y`, `(+) = z`, `x `op` y = z`.
fn declared_names(outline: &Outline<'_>, declaration: &[Token]) -> Vec<String> {
    let mut names = Vec::new();
    let first = outline.word(&declaration[0]);
    let is_keyword =
        NO_NAMES.contains(&first) || matches!(first, "data" | "newtype" | "type" | "class");
    if is_keyword || !ends_head(declaration) {
        return names;
    }
    if let Some(name) = operator(outline, declaration) {
        names.push(name);
        return names;
    }
    let infix = declaration.get(1).filter(|t| t.is(b'`')).and_then(|_| declaration.get(2));
    if let Some(name) = infix.filter(|t| t.is_word()) {
        names.push(outline.word(name).to_owned());
        return names;
    }
    let mut at = 0;
    while let Some(name) = declaration.get(at).filter(|t| t.is_word() && is_lower(outline.word(t)))
    {
        names.push(outline.word(name).to_owned());
        if !declaration.get(at + 1).is_some_and(|t| t.is(b',')) {
            break;
        }
        at += 2;
    }
    names
}

/// The operator that a declaration defines: `(+++) :: T`, `a +++ b = c`.
fn operator(outline: &Outline<'_>, declaration: &[Token]) -> Option<String> {
    let is_sign = |t: &&Token| matches!(t.kind, Kind::Punct(sign) if b"!#$%&*+./<=>?@\\^|-~:".contains(&sign));
    let first = declaration.get(1).filter(is_sign)?;
    let mut end = first.end;
    for sign in declaration[2..].iter().take_while(|t| is_sign(t)) {
        if sign.start != end {
            break;
        }
        end = sign.end;
    }
    let name = outline.word(&Token { end, ..*first });
    let is_bracketed = declaration[0].is(b'(');
    let closes = declaration.iter().find(|t| t.start >= end).is_some_and(|t| t.is(b')'));
    let is_reserved = matches!(name, "::" | "=" | "|" | "@" | "!" | "~");
    (if is_bracketed { closes } else { !is_reserved }).then(|| name.to_owned())
}

/// True if `::`, `=` or `|` follows the head of a declaration; otherwise it is an expression.
fn ends_head(declaration: &[Token]) -> bool {
    let mut depth = 0_i32;
    for (at, token) in declaration.iter().enumerate() {
        let next = declaration.get(at + 1).filter(|t| t.start == token.end);
        match token.kind {
            Kind::Punct(b'(' | b'[' | b'{') => depth += 1,
            Kind::Punct(b')' | b']' | b'}') => depth -= 1,
            Kind::Punct(b'=' | b'|') if depth == 0 => return true,
            Kind::Punct(b':') if depth == 0 && next.is_some_and(|t| t.is(b':')) => return true,
            _ => {}
        }
    }
    false
}

/// A type with its constructors, a class with its methods, or a module.
fn special(outline: &mut Outline<'_>, declaration: &[Token], last: u32) {
    let line = declaration[0].line;
    let keyword = outline.word(&declaration[0]).to_owned();
    let kind = match keyword.as_str() {
        "data" | "newtype" | "type" => "type",
        "class" => "class",
        "module" => "module",
        _ => return,
    };
    let head = head_name(outline, declaration, kind);
    let Some((name, body)) = head.filter(|(name, _)| !is_lower(name)) else { return };
    let symbol = outline.define(kind, &name, None, line);
    match keyword.as_str() {
        "module" => {}
        "class" => {
            outline.close(symbol, last);
            methods(outline, &declaration[body..], &name);
        }
        "type" => outline.close(symbol, last),
        _ => {
            outline.close(symbol, last);
            constructors(outline, &declaration[body..], &name);
        }
    }
}

/// The name that a head defines, after a context (`Eq a =>`), and the end of the head.
fn head_name(outline: &Outline<'_>, declaration: &[Token], kind: &str) -> Option<(String, usize)> {
    let is_end = |t: &Token| {
        t.is(b'=') || t.is(b'|') || (t.is_word() && matches!(outline.word(t), "where" | "deriving"))
    };
    let is_arrow =
        |at: usize| declaration[at].is(b'=') && declaration.get(at + 1).is_some_and(|t| t.is(b'>'));
    let mut from = 1;
    let mut end = declaration.len();
    for (at, token) in declaration.iter().enumerate().skip(1) {
        if is_arrow(at) {
            from = at + 2;
        } else if is_end(token) {
            end = at;
            break;
        }
    }
    let words = declaration.get(from..end)?.iter().filter(|t| t.is_word());
    let mut names = words.map(|t| outline.word(t));
    let name = names.find(|w| !matches!(*w, "family" | "instance") && !is_lower(w))?;
    // The name of a module has dots.
    let name = match (kind, declaration.get(1)) {
        ("module", Some(first)) => {
            let dotted = declaration[1..end].iter().take_while(|t| t.is_word() || t.is(b'.'));
            let last = dotted.last().map_or(first.end, |t| t.end);
            outline.word(&Token { end: last, ..*first }).to_owned()
        }
        _ => name.to_owned(),
    };
    Some((name, end))
}

/// The methods of a class: names before `::` in the first column of its body.
fn methods(outline: &mut Outline<'_>, body: &[Token], class: &str) {
    let Some(column) = body.iter().skip(1).find(|t| t.is_first).map(|t| t.column) else { return };
    let starts: Vec<usize> =
        (1..body.len()).filter(|at| body[*at].is_first && body[*at].column == column).collect();
    for (n, start) in starts.iter().enumerate() {
        let end = starts.get(n + 1).copied().unwrap_or(body.len());
        let mut at = *start;
        let mut names = Vec::new();
        while let Some(name) = body[..end].get(at).filter(|t| t.is_word()) {
            names.push(outline.word(name).to_owned());
            at += 1;
            if !body[..end].get(at).is_some_and(|t| t.is(b',')) {
                break;
            }
            at += 1;
        }
        let is_signature = body[..end].get(at).is_some_and(|t| t.is(b':'))
            && body[..end].get(at + 1).is_some_and(|t| t.is(b':'));
        for name in names.iter().filter(|name| is_signature && is_lower(name)) {
            let symbol = outline.define("method", name, Some(class), body[*start].line);
            outline.close(symbol, body[end - 1].last_line);
        }
    }
}

/// The constructors of a type: names after `=` and `|`, or before `::` in its body.
fn constructors(outline: &mut Outline<'_>, body: &[Token], of: &str) {
    let mut depth = 0_i32;
    for at in 0..body.len() {
        let token = &body[at];
        match token.kind {
            Kind::Punct(b'(' | b'[' | b'{') => depth += 1,
            Kind::Punct(b')' | b']' | b'}') => depth -= 1,
            _ => {}
        }
        let before = at.checked_sub(1).map(|before| &body[before]);
        let is_after_sign = before.is_some_and(|t| t.is(b'=') || t.is(b'|'));
        let is_typed = token.is_first
            && body.get(at + 1).is_some_and(|t| t.is(b':'))
            && body.get(at + 2).is_some_and(|t| t.is(b':'));
        if depth != 0 || !token.is_word() || !(is_after_sign || is_typed) {
            continue;
        }
        let name = outline.word(token).to_owned();
        if !is_lower(&name) {
            outline.define("constructor", &name, Some(of), token.line);
        }
    }
}
