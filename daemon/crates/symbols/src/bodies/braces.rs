//! Bodies in languages with braces: one pass over the tokens that decides for each `{` if it opens
//! a function body.

use rustc_hash::FxHashSet;

use super::roles::{self, Head, Prev, Role, Word};
use super::{Cut, lex};

/// The languages that this pass supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lang {
    Rust,
    Go,
    Java,
    Cpp,
    Script,
}

impl Lang {
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "rust" => Self::Rust,
            "go" => Self::Go,
            "java" => Self::Java,
            "cpp" => Self::Cpp,
            "javascript" | "typescript" | "tsx" => Self::Script,
            _ => return None,
        })
    }
}

pub struct Open {
    at: usize,
    pub bracket: u8,
    pub role: Role,
    /// Number of definitions before it; if it has increased at the end, the body must stay.
    defs: u32,
    /// Tokens before it at the same nesting.
    head: Head,
    /// The token before it.
    before: Prev,
    /// Number of open `#if`s.
    conditions: usize,
    /// True in the first part of a Java `enum`.
    pub constants: bool,
}

/// A count that no definitions reach, which marks a body that must stay.
const KEEP: u32 = u32::MAX;
/// Bytes up to which a body is not removed.
const MIN_CUT: usize = 8;

pub struct Scanner<'t, 's> {
    pub lang: Lang,
    pub text: &'t [u8],
    idents: &'s mut FxHashSet<u32>,
    pub stack: Vec<Open>,
    pub head: Head,
    pub prev: Prev,
    pub defs: u32,
    cuts: Vec<Cut>,
    /// Number of open brackets and preceding tokens of each open `#if`.
    conditions: Vec<(usize, Head)>,
    in_directive: bool,
    /// Open `${` of templates, by the number of enclosing brackets.
    templates: Vec<usize>,
}

/// The cuts of a text; `None` if brackets do not match or the text has JSX, which this pass cannot
/// read.
pub fn cuts(lang: Lang, text: &[u8], idents: &mut FxHashSet<u32>) -> Option<Vec<Cut>> {
    let markup = |m: &[u8]| memchr::memmem::find(text, m).is_some();
    if lang == Lang::Script && (markup(b"</") || markup(b"/>")) {
        return None;
    }
    let mut scanner = Scanner {
        lang,
        text,
        idents,
        stack: Vec::new(),
        head: Head::default(),
        prev: Prev::None,
        defs: 0,
        cuts: Vec::new(),
        conditions: Vec::new(),
        in_directive: false,
        templates: Vec::new(),
    };
    let mut at = 0;
    while at < text.len() {
        at += scanner.token(at)?;
    }
    (scanner.stack.is_empty() && scanner.templates.is_empty()).then_some(scanner.cuts)
}

impl Scanner<'_, '_> {
    /// Scans one token and returns its length.
    fn token(&mut self, at: usize) -> Option<usize> {
        let rest = &self.text[at..];
        let byte = rest[0];
        if lex::is_name(byte) || (byte == b'$' && self.lang == Lang::Script) {
            return Some(self.word(at));
        }
        Some(match byte {
            b' ' | b'\t' | b'\r' => 1,
            b'\n' => {
                self.in_directive &= at > 0 && self.text[at - 1] == b'\\';
                1
            }
            b'/' if matches!(rest.get(1), Some(b'/' | b'*')) => self.comment(at),
            b'/' if self.lang == Lang::Script && roles::expects_value(self.prev) => {
                self.regex(rest)
            }
            b'"' | b'\'' | b'`' => self.quoted(at)?,
            b'#' if self.lang == Lang::Cpp => self.directive(rest)?,
            _ if self.in_directive => 1,
            b'(' | b'[' | b'{' => {
                self.open(at, byte);
                1
            }
            b')' | b']' | b'}' => return self.close(at, byte),
            _ => self.mark(rest),
        })
    }

    fn word(&mut self, at: usize) -> usize {
        let rest = &self.text[at..];
        let end = if self.lang == Lang::Script {
            rest.iter().position(|b| !lex::is_name(*b) && *b != b'$').unwrap_or(rest.len())
        } else {
            lex::word(rest)
        };
        let word = &rest[..end];
        lex::add_identifier(word, self.idents);
        if self.in_directive {
            return end;
        }
        // In `r"…"`, `br#"…"#` and `R"x(…)x"`, the word is the prefix of a string.
        if let Some(length) = self.raw_string(word, rest) {
            self.prev = Prev::Text;
            return length;
        }
        let kind = roles::word(self, word, at);
        roles::apply_word(self, kind);
        self.prev = Prev::Word(kind);
        end
    }

    fn raw_string(&self, word: &[u8], rest: &[u8]) -> Option<usize> {
        let after = rest.get(word.len())?;
        match (self.lang, word) {
            (Lang::Rust, b"r" | b"br" | b"cr") if matches!(after, b'"' | b'#') => {
                let hashes = rest[word.len()..].iter().take_while(|b| **b == b'#').count();
                let from = word.len() + hashes + 1;
                if rest.get(from - 1) != Some(&b'"') {
                    return None;
                }
                let mut end = vec![b'"'];
                end.resize(1 + hashes, b'#');
                Some(lex::until(rest, from, &end))
            }
            (Lang::Cpp, b"R" | b"LR" | b"u8R" | b"uR" | b"UR") if *after == b'"' => {
                let from = word.len() + 1;
                let open = rest[from..].iter().take(17).position(|b| *b == b'(')?;
                let end = [b")", &rest[from..from + open], b"\""].concat();
                Some(lex::until(rest, from + open, &end))
            }
            _ => None,
        }
    }

    fn comment(&mut self, at: usize) -> usize {
        let rest = &self.text[at..];
        if rest[1] == b'/' {
            let end = lex::line(rest);
            if !self.in_directive && !rest[..end].ends_with(b"\\") {
                self.cuts.push(lex::comment(self.text, at, at + end));
            }
            return end;
        }
        let end =
            if self.lang == Lang::Rust { nested_comment(rest) } else { lex::until(rest, 2, b"*/") };
        // A comment over several lines ends a statement in Go and in scripts.
        if !self.in_directive && !matches!(self.lang, Lang::Go | Lang::Script) {
            self.cuts.push(lex::comment(self.text, at, at + end));
        }
        end
    }

    fn quoted(&mut self, at: usize) -> Option<usize> {
        let rest = &self.text[at..];
        let length = match (self.lang, rest[0]) {
            (Lang::Go, b'`') => lex::until(rest, 1, b"`"),
            (Lang::Script, b'`') => return self.template(rest, 1),
            (_, b'`') => 1,
            (Lang::Java, b'"') if rest.starts_with(b"\"\"\"") => lex::until(rest, 3, b"\"\"\""),
            (Lang::Rust, b'"') => multiline_string(rest),
            (Lang::Rust, b'\'') => char_or_lifetime(rest),
            (Lang::Cpp, b'\'')
                if at > 0 && self.text[at - 1].is_ascii_hexdigit() && self.prev_is_number() =>
            {
                1
            }
            _ => lex::string(rest),
        };
        if !self.in_directive {
            self.prev = Prev::Text;
        }
        Some(length)
    }

    /// True after a number: the quote in `1'000` is a digit separator in C++.
    fn prev_is_number(&self) -> bool {
        self.prev == Prev::Word(Word::Number)
    }

    /// Scans the text of a template from `from` on, up to its end or the next `${`.
    fn template(&mut self, rest: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        loop {
            at += memchr::memchr3(b'\\', b'`', b'$', rest.get(at..)?)?;
            match (rest[at], rest.get(at + 1)) {
                (b'\\', _) => at += 2,
                (b'`', _) => {
                    self.prev = Prev::Text;
                    return Some(at + 1);
                }
                (_, Some(b'{')) => {
                    self.templates.push(self.stack.len());
                    self.prev = Prev::Mark(b'(');
                    return Some(at + 2);
                }
                _ => at += 1,
            }
        }
    }

    fn regex(&mut self, rest: &[u8]) -> usize {
        let (mut at, mut in_class) = (1, false);
        while let Some(byte) = rest.get(at) {
            match byte {
                b'\\' => at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => break,
                b'\n' => return 1,
                _ => {}
            }
            at += 1;
        }
        self.prev = Prev::Text;
        (at + 1).min(rest.len())
    }

    fn directive(&mut self, rest: &[u8]) -> Option<usize> {
        self.in_directive = true;
        let inner = rest[1..].trim_ascii_start();
        match &inner[..lex::word(inner)] {
            b"define" => self.defs += 1,
            b"if" | b"ifdef" | b"ifndef" => self.conditions.push((self.stack.len(), self.head)),
            b"else" | b"elif" => {
                let (depth, head) = *self.conditions.last()?;
                if self.stack.len() < depth {
                    return None;
                }
                self.retain_bodies(self.conditions.len());
                self.stack.truncate(depth);
                self.head = head;
            }
            b"endif" => {
                self.retain_bodies(self.conditions.len());
                self.conditions.pop();
            }
            _ => {}
        }
        Some(1)
    }

    /// Marks bodies that were opened within this many `#if`s: they contain the end of one and
    /// cannot be removed alone.
    fn retain_bodies(&mut self, conditions: usize) {
        for open in self.stack.iter_mut().rev().take_while(|o| o.conditions >= conditions) {
            open.defs = KEEP;
        }
    }

    fn open(&mut self, at: usize, bracket: u8) {
        let constants = bracket == b'{' && self.head.has(Head::ENUM);
        let role = if bracket == b'{' { roles::role(self) } else { Role::Code };
        self.stack.push(Open {
            at,
            bracket,
            role,
            defs: self.defs,
            head: self.head,
            before: self.prev,
            conditions: self.conditions.len(),
            constants,
        });
        self.head = Head::default();
        self.prev = Prev::Mark(bracket);
    }

    fn close(&mut self, at: usize, bracket: u8) -> Option<usize> {
        if bracket == b'}' && self.templates.last() == Some(&self.stack.len()) {
            self.templates.pop();
            let rest = &self.text[at..];
            return self.template(rest, 1);
        }
        let open = self.stack.pop()?;
        let matching =
            matches!((open.bracket, bracket), (b'(', b')') | (b'[', b']') | (b'{', b'}'));
        if !matching {
            return None;
        }
        self.head = open.head;
        if bracket == b')' {
            self.head.add(Head::PARENTHESES);
            self.prev = Prev::Closed { control: open.before == Prev::Word(Word::Control) };
            return Some(1);
        }
        if bracket == b'}' {
            let alone = open.defs == self.defs && open.conditions == self.conditions.len();
            if open.role == Role::Body && alone && at - open.at > MIN_CUT {
                self.cuts.push(Cut { from: open.at + 1, to: at, replacement: b"" });
            }
            if open.role != Role::Data {
                self.head = Head::default();
            }
        }
        self.prev = Prev::Mark(bracket);
        Some(1)
    }

    /// Scans an operator or another mark.
    fn mark(&mut self, rest: &[u8]) -> usize {
        let length = match rest {
            [b'=', b'>', ..] | [b'-', b'>', ..] => {
                roles::apply_arrow(self);
                self.prev = Prev::Arrow;
                return 2;
            }
            [b'=' | b'!' | b'<' | b'>', b'=', ..] | [b':', b':', ..] => 2,
            _ => 1,
        };
        if length == 1 {
            roles::apply_mark(self, rest[0]);
        }
        self.prev = Prev::Mark(if length == 2 { b'~' } else { rest[0] });
        length
    }
}

/// Length of a string that may span lines.
fn multiline_string(rest: &[u8]) -> usize {
    let mut at = 1;
    while let Some(next) = rest.get(at..).and_then(|r| memchr::memchr2(b'\\', b'"', r)) {
        at += next;
        if rest[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    rest.len()
}

/// Length of a character literal such as `'a'` or `'\n'`, or of the quote of a lifetime.
fn char_or_lifetime(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        return lex::string(rest);
    }
    let close = rest.iter().take(6).skip(2).position(|b| *b == b'\'');
    let first = rest.get(1).copied().unwrap_or(0);
    match close {
        Some(n) if n == 0 || first >= 128 => n + 3,
        _ => 1,
    }
}

/// Length of a comment that may contain nested ones.
fn nested_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (2, 1u32);
    while let Some(next) = rest.get(at..).and_then(|r| memchr::memchr2(b'/', b'*', r)) {
        at += next;
        match (rest[at], rest.get(at + 1)) {
            (b'/', Some(b'*')) => {
                depth += 1;
                at += 2;
            }
            (b'*', Some(b'/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}
