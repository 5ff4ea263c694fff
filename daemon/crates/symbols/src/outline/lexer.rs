//! Tokens of code, without comments and with each string as one token.

use rustc_hash::FxHashSet;

use super::syntax::{Dialect, Quotes, Syntax};
use crate::extract::{MAX_NAME, ident_hash};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Word,
    Punct(u8),
    /// A string, a character or a number.
    Literal,
}

/// A token with its byte range; lines are counted from 1, columns in bytes from 0.
#[derive(Debug, Clone, Copy)]
pub struct Token {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
    pub line: u32,
    pub last_line: u32,
    pub column: u32,
    /// True for the first token of its line.
    pub is_first: bool,
}

impl Token {
    pub fn is_word(&self) -> bool {
        self.kind == Kind::Word
    }

    pub fn is(&self, punct: u8) -> bool {
        self.kind == Kind::Punct(punct)
    }
}

/// Splits a text into tokens and adds the hashes of its words to `idents`, those of code inside of
/// strings included, which is no token.
pub fn tokens(text: &[u8], syntax: &Syntax, idents: &mut FxHashSet<u32>) -> Vec<Token> {
    let mut lexer = Lexer {
        text,
        syntax,
        idents,
        tokens: Vec::with_capacity(text.len() / 8),
        open: Vec::new(),
        braces: 0,
        at: 0,
        line: 1,
        line_start: 0,
        is_first: true,
        has_tags: !["DELIMITER $$", "delimiter $$"]
            .iter()
            .any(|tags| memchr::memmem::find(text, tags.as_bytes()).is_some()),
    };
    lexer.run();
    lexer.tokens
}

/// A string that is interrupted by code.
struct OpenString {
    quotes: Quotes,
    /// Braces that were open in the code around the string.
    braces: u32,
}

struct Lexer<'a> {
    text: &'a [u8],
    syntax: &'a Syntax,
    idents: &'a mut FxHashSet<u32>,
    tokens: Vec<Token>,
    open: Vec<OpenString>,
    braces: u32,
    at: usize,
    line: u32,
    line_start: usize,
    is_first: bool,
    /// True if two equal tags enclose a string; false where they end statements instead.
    has_tags: bool,
}

/// Maximum tokens of a text, which bounds the memory of a text of brackets; more are not read.
const MAX_TOKENS: usize = 1_500_000;
/// Nested strings with code; text nested deeper is read as code.
const MAX_NESTED: usize = 64;

impl Lexer<'_> {
    fn run(&mut self) {
        while let Some(byte) = self.text.get(self.at).copied() {
            if self.tokens.len() >= MAX_TOKENS {
                break;
            }
            if byte == b'\n' {
                self.new_line(self.at);
                self.at += 1;
            } else if byte.is_ascii_whitespace() {
                self.at += 1;
            } else if !self.comment() && !self.literal(byte) {
                self.code(byte);
            }
        }
    }

    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    fn new_line(&mut self, at: usize) {
        self.line += 1;
        self.line_start = at + 1;
        self.is_first = true;
    }

    /// Moves to `end` and counts the lines up to it; a token follows on its last line.
    fn skip_to(&mut self, end: usize) {
        let end = end.min(self.text.len());
        let from = self.at;
        for offset in memchr::memchr_iter(b'\n', &self.text[from..end]) {
            self.new_line(from + offset);
        }
        self.at = end;
    }

    fn comment(&mut self) -> bool {
        let rest = self.rest();
        let is_directive = self.syntax.dialect == Dialect::Haskell
            && self.at == self.line_start
            && rest[0] == b'#';
        if is_directive || (rest.starts_with(self.syntax.line_comment) && self.is_line_comment()) {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            self.at += end;
            return true;
        }
        if self.syntax.dialect == Dialect::Haskell && rest.starts_with(b"--") {
            // An operator is read at once: each of its dashes could start a comment.
            let end = self.at + rest.iter().take_while(|b| **b == b'-').count();
            self.push(Kind::Punct(b'-'), end);
            self.at = end;
            return true;
        }
        let (open, close) = self.syntax.block_comment;
        if open.is_empty() || !rest.starts_with(open) {
            return false;
        }
        let mut depth = 0;
        let mut at = self.at;
        while let Some(rest) = self.text.get(at..).filter(|rest| !rest.is_empty()) {
            if rest.starts_with(close) {
                depth -= 1;
                at += close.len();
                if depth == 0 {
                    break;
                }
            } else if rest.starts_with(open) && (depth == 0 || self.syntax.has_nested_comments) {
                depth += 1;
                at += open.len();
            } else {
                at += 1;
            }
        }
        self.skip_to(at);
        true
    }

    /// False for an operator of Haskell such as `-->`.
    fn is_line_comment(&self) -> bool {
        let after = self.rest().iter().find(|b| **b != b'-');
        self.syntax.dialect != Dialect::Haskell
            || !after.is_some_and(|b| b"!#$%&*+./<=>?@\\^|~:".contains(b))
    }

    fn literal(&mut self, byte: u8) -> bool {
        let strings = self.syntax.strings;
        if let Some(quotes) = strings.iter().find(|q| self.rest().starts_with(q.open)) {
            self.push(Kind::Literal, self.at + quotes.open.len());
            self.at += quotes.open.len();
            self.string(*quotes);
            return true;
        }
        let end = match (self.syntax.dialect, byte) {
            (_, b'\'') if self.syntax.has_characters => self.character(),
            (Dialect::Elixir, b'~') => self.sigil(),
            (Dialect::Elixir, b'?') => self.elixir_character(),
            (Dialect::Sql, b'$') => self.tagged(),
            (_, b'0'..=b'9') => Some(self.end_of_word(self.at)),
            _ => None,
        };
        let Some(end) = end else { return false };
        self.push(Kind::Literal, end);
        self.skip_to(end);
        self.set_last_line();
        true
    }

    /// Reads a string from the present position up to its end, or to code inside of it.
    fn string(&mut self, quotes: Quotes) {
        let mut at = self.at;
        while let Some(rest) = self.text.get(at..).filter(|rest| !rest.is_empty()) {
            if rest.starts_with(quotes.close) {
                at += quotes.close.len();
                break;
            }
            let has_code = !quotes.interpolation.is_empty() && self.open.len() < MAX_NESTED;
            if has_code && rest.starts_with(quotes.interpolation) {
                self.skip_to(at + quotes.interpolation.len());
                self.open.push(OpenString { quotes, braces: self.braces });
                self.braces = 0;
                return;
            }
            match rest[0] {
                b'\\' if quotes.has_escapes => at += 2,
                // The string was not finished, or its quote was none.
                b'\n' if !quotes.is_multiline => break,
                _ => at += 1,
            }
        }
        self.skip_to(at);
        self.set_last_line();
    }

    /// The last token ends on the present line, on which no token is the first any more.
    fn set_last_line(&mut self) {
        if self.open.is_empty() {
            if let Some(token) = self.tokens.last_mut() {
                token.last_line = self.line;
            }
            self.is_first = false;
        }
    }

    fn character(&self) -> Option<usize> {
        let rest = &self.rest()[1..];
        let length = match rest.first()? {
            b'\\' => 2 + rest.get(2..)?.iter().take(8).position(|b| *b == b'\'')?,
            b'\'' | b'\n' => return None,
            _ => str::from_utf8(&rest[..rest.len().min(4)])
                .map_or_else(|e| str::from_utf8(&rest[..e.valid_up_to()]), Ok)
                .ok()?
                .chars()
                .next()?
                .len_utf8(),
        };
        (rest.get(length) == Some(&b'\'')).then(|| self.at + length + 2)
    }

    fn elixir_character(&self) -> Option<usize> {
        let is_name = self.at.checked_sub(1).is_some_and(|at| self.is_word_byte(self.text[at]));
        let length = match self.rest().get(1)? {
            b'\\' => 3,
            b if b.is_ascii_whitespace() => return None,
            _ => 2,
        };
        (!is_name).then_some(self.at + length)
    }

    /// The end of `~r/x/`, whose modifiers follow.
    fn sigil(&self) -> Option<usize> {
        let letters = self.rest()[1..].iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let from = self.at + 1 + letters;
        let rest = self.text.get(from..)?;
        let quote = *rest.first().filter(|b| b"/|\"'([{<".contains(b) && letters > 0)?;
        let is_long = rest.starts_with(&[quote; 3]) && matches!(quote, b'"' | b'\'');
        let close = match quote {
            b'(' => b')',
            b'[' => b']',
            b'{' => b'}',
            b'<' => b'>',
            _ => quote,
        };
        let mut at = from + if is_long { 3 } else { 1 };
        while let Some(byte) = self.text.get(at) {
            if *byte == b'\\' {
                at += 2;
            } else if *byte == close && (!is_long || self.text[at..].starts_with(&[quote; 3])) {
                return Some(at + if is_long { 3 } else { 1 });
            } else {
                at += 1;
            }
        }
        Some(self.text.len())
    }

    /// The end of a string between two tags (`$body$ … $body$`).
    fn tagged(&self) -> Option<usize> {
        let rest = self.rest();
        let length =
            rest[1..].iter().take_while(|b| b.is_ascii_alphabetic() || **b == b'_').count();
        let tag = rest.get(..length + 2).filter(|tag| self.has_tags && tag.ends_with(b"$"))?;
        // A tag without a second one ends with the text, so that no text is searched twice.
        let end = memchr::memmem::find(&rest[tag.len()..], tag);
        Some(end.map_or(self.text.len(), |end| self.at + end + 2 * tag.len()))
    }

    fn is_word_byte(&self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric()
            || byte == b'_'
            || !byte.is_ascii()
            || self.syntax.word_bytes.contains(&byte)
    }

    fn end_of_word(&self, from: usize) -> usize {
        let rest = &self.text[from..];
        let length = rest.iter().take_while(|b| self.is_word_byte(**b)).count();
        let after = rest.get(length).copied();
        let is_marked = self.syntax.dialect == Dialect::Elixir
            && matches!(after, Some(b'?' | b'!'))
            && rest.get(length + 1) != Some(&b'=');
        from + length + usize::from(is_marked)
    }

    fn code(&mut self, byte: u8) {
        if self.is_word_byte(byte) {
            let end = self.end_of_word(self.at);
            self.add_ident(self.at, end);
            self.push(Kind::Word, end);
            self.at = end;
            return;
        }
        if let Some(end) = self.quoted_name(byte) {
            self.add_ident(self.at + 1, end - 1);
            self.push(Kind::Word, end);
            self.at = end;
            return;
        }
        match byte {
            b'{' => self.braces += 1,
            b'}' if self.braces == 0 => {
                if let Some(open) = self.open.pop() {
                    self.at += 1;
                    self.braces = open.braces;
                    self.string(open.quotes);
                    return;
                }
            }
            b'}' => self.braces -= 1,
            _ => {}
        }
        self.push(Kind::Punct(byte), self.at + 1);
        self.at += 1;
    }

    fn quoted_name(&self, byte: u8) -> Option<usize> {
        let (_, close) = self.syntax.quoted_names.iter().find(|(open, _)| *open == byte)?;
        let before = self.at.checked_sub(1).map(|at| self.text[at]);
        // The index of an array.
        if byte == b'[' && before.is_some_and(|b| self.is_word_byte(b) || b == b')') {
            return None;
        }
        let rest = &self.rest()[1..];
        let limit = &rest[..rest.len().min(MAX_NAME)];
        let length = limit.iter().position(|b| b == close || *b == b'\n')?;
        (length > 0 && rest[length] == *close).then(|| self.at + length + 2)
    }

    fn add_ident(&mut self, from: usize, to: usize) {
        if (2..=MAX_NAME).contains(&(to - from)) && !self.text[from].is_ascii_digit() {
            self.idents.insert(ident_hash(&self.text[from..to]));
        }
    }

    /// Adds a token that starts at the present position, unless it is inside of a string.
    fn push(&mut self, kind: Kind, end: usize) {
        if !self.open.is_empty() {
            return;
        }
        let position = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        self.tokens.push(Token {
            kind,
            start: position(self.at),
            end: position(end.min(self.text.len())),
            line: self.line,
            last_line: self.line,
            column: position(self.at - self.line_start),
            is_first: self.is_first,
        });
        self.is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::super::syntax;
    use super::*;

    fn words(syntax: &Syntax, text: &str) -> String {
        let tokens = tokens(text.as_bytes(), syntax, &mut FxHashSet::default());
        let show = |t: &Token| match t.kind {
            Kind::Literal => "_".to_owned(),
            _ => text[t.start as usize..t.end as usize].to_owned(),
        };
        tokens.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn strings_and_comments_are_no_code() {
        for (syntax, text, expected) in [
            (
                &syntax::KOTLIN,
                "a(\"} ${b(\"{\")} {\", 'x', '\\'') // c\n/* /* d */ */ e",
                "a ( _ , _ , _ ) e",
            ),
            (
                &syntax::KOTLIN,
                "val `is it` = \"\"\"\n\" } \\\"\"\" + \"open\nx",
                "val `is it` = _ + _ x",
            ),
            (&syntax::SCALA, "s\"$a ${if (b) \"}\"}\" 'sym 'c' 12L", "s _ ' sym _ _"),
            (&syntax::DART, "r'\\' '${a['x']}' '''b' '''", "_ _ _"),
            (
                &syntax::ELIXIR,
                "x? ?\" ~r/\"#/i ~s(a) \"#{%{a: \"}\"}}\" # c\ny!=z",
                "x? _ _ i _ _ y ! = z",
            ),
            (&syntax::HASKELL, "foldl' 'a' -- c\n--> {- {- -} -} \"\\\"\" x", "foldl' _ -- > _ x"),
            (&syntax::HASKELL, "#if X\na", "a"),
            (&syntax::SQL, "'it''s' $a$ x; $a$ \"b c\" [d] e[1] -- f", "_ _ _ \"b c\" [d] e [ _ ]"),
        ] {
            assert_eq!(words(syntax, text), expected, "{text}");
        }
    }

    #[test]
    fn lines_and_columns_count_through_strings() {
        let text = "a \"\"\"\n\n\"\"\" b\n  c";
        let tokens = tokens(text.as_bytes(), &syntax::KOTLIN, &mut FxHashSet::default());
        let of = |t: &Token| (t.line, t.last_line, t.column, t.is_first);
        assert_eq!(
            tokens.iter().map(of).collect::<Vec<_>>(),
            [(1, 1, 0, true), (1, 3, 2, false), (3, 3, 4, false), (4, 4, 2, true),]
        );
    }

    #[test]
    fn words_inside_of_strings_are_identifiers_only_in_code() {
        let mut idents = FxHashSet::default();
        tokens(b"\"plain ${coded}\"", &syntax::KOTLIN, &mut idents);
        assert!(idents.contains(&ident_hash(b"coded")) && !idents.contains(&ident_hash(b"plain")));
    }
}
