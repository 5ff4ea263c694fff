//! A strict second reading of a command line, and the value of a word.
//!
//! The lexer knows words, quotes, operators and comments, nothing else. It gives up at anything
//! that two shells could read in two ways; a command line that it gives up on, or splits otherwise
//! than the parser, is never allowed by a rule.

use std::ops::Range;

/// A token of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A word, with its quotes.
    Word(Range<usize>),
    /// An operator, or the number of a descriptor before one.
    Operator(Range<usize>),
    Newline(usize),
}

/// Operators, the longer ones first.
const OPERATORS: &[&str] = &[
    "&>>", "<<<", "&&", "||", ";;", "|&", ">>", ">|", ">&", "<&", "<>", "&>", "<", ">", "|", "&",
    ";", "(", ")",
];

/// Knowledge of a word before the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// The word is exactly its text.
    Known,
    /// The shell expands it to names of files.
    Pattern,
    /// The shell computes it.
    Unknown,
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Its text without quotes; parts that the shell would compute are left out.
    pub text: String,
    pub certainty: Certainty,
}

impl Word {
    /// Creates a word that is exactly `text`.
    pub(super) fn known(text: impl Into<String>) -> Self {
        Self { text: text.into(), certainty: Certainty::Known }
    }

    /// Creates a word that the shell computes.
    pub(super) fn unknown(text: impl Into<String>) -> Self {
        Self { text: text.into(), certainty: Certainty::Unknown }
    }

    /// Returns true if the shell changes the text of the word.
    pub fn value_hidden(&self) -> bool {
        self.certainty != Certainty::Known
    }

    /// Returns the text if it is known.
    pub(super) fn value(&self) -> Option<&str> {
        (self.certainty == Certainty::Known).then_some(self.text.as_str())
    }
}

/// Returns true if the character may occur in a command line that a rule may allow.
fn plain(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        // Spaces that the shell does not split at, joiners, direction marks, tags: with these, the
        // displayed line differs from the line that runs.
        '\u{a0}'
        | '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{2000}'..='\u{200f}'
        | '\u{2028}'..='\u{202f}' => false,
        '\u{205f}'..='\u{206f}'
        | '\u{3000}'
        | '\u{3164}'
        | '\u{ffa0}'
        | '\u{fe00}'..='\u{fe0f}' => false,
        // Private-use characters can look like any other.
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'.. => false,
        '\u{feff}' | '\u{fff0}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}' => false,
        c => !c.is_control(),
    }
}

/// Splits a command line into its tokens.
///
/// # Errors
/// The reason why this reading gives up.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, &'static str> {
    if let Some(_odd) = text.chars().find(|c| !plain(*c)) {
        return Err("it contains a character that is not displayed as it is parsed");
    }
    let bytes = text.as_bytes();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' => at += 1,
            b'\n' => {
                tokens.push(Token::Newline(at));
                at += 1;
            }
            b'#' => at += text[at..].find('\n').unwrap_or(text.len() - at),
            _ => match OPERATORS.iter().find(|o| text[at..].starts_with(**o)) {
                Some(operator) => {
                    operator_is_plain(&text[at..], operator)?;
                    tokens.push(Token::Operator(at..at + operator.len()));
                    at += operator.len();
                }
                None => {
                    let end = word_end(text, at)?;
                    let word = &text[at..end];
                    let number = word.bytes().all(|b| b.is_ascii_digit())
                        && matches!(bytes.get(end), Some(b'<' | b'>'));
                    tokens.push(if number {
                        Token::Operator(at..end)
                    } else {
                        Token::Word(at..end)
                    });
                    at = end;
                }
            },
        }
    }
    Ok(tokens)
}

fn operator_is_plain(rest: &str, operator: &str) -> Result<(), &'static str> {
    match operator {
        "<" if rest.starts_with("<<") => Err("it contains a here-document"),
        "<" | ">" if rest[1..].starts_with('(') => Err("it contains a process substitution"),
        "(" if rest.starts_with("((") => Err("it contains an arithmetic expression"),
        _ => Ok(()),
    }
}

/// Returns the end of the word that begins at `start`.
fn word_end(text: &str, start: usize) -> Result<usize, &'static str> {
    let bytes = text.as_bytes();
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b'<' | b'>' | b')' => break,
            b'(' if at == start => break,
            b'(' => return Err("a word contains a parenthesis"),
            b'`' => return Err("it contains a command substitution"),
            b'\\' => match bytes.get(at + 1) {
                None | Some(b'\n') => return Err("a line ends with a backslash"),
                Some(_) => at += 2,
            },
            b'\'' => {
                let close = text[at + 1..].find('\'').ok_or("a quote is not closed")?;
                at += close + 2;
            }
            b'"' => at = quoted_end(text, at)?,
            b'$' => {
                if matches!(bytes.get(at + 1), Some(b'(' | b'{' | b'[' | b'\'' | b'"')) {
                    return Err("it contains an expansion");
                }
                at += 1;
            }
            _ => at += 1,
        }
    }
    while !text.is_char_boundary(at) {
        at += 1;
    }
    Ok(at)
}

/// Returns the end of the double-quoted piece that begins at `at`.
fn quoted_end(text: &str, at: usize) -> Result<usize, &'static str> {
    let bytes = text.as_bytes();
    let mut at = at + 1;
    loop {
        match bytes.get(at) {
            None => return Err("a quote is not closed"),
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') if bytes.get(at + 1) == Some(&b'\n') => {
                return Err("a line ends with a backslash");
            }
            Some(b'\\') => at += 2,
            Some(b'`') => return Err("it contains a command substitution"),
            Some(b'$') if matches!(bytes.get(at + 1), Some(b'(' | b'{' | b'[')) => {
                return Err("it contains an expansion");
            }
            Some(_) => at += 1,
        }
    }
}

/// Reads the value of a word, in any syntax.
pub(super) fn decode(source: &str) -> Word {
    let mut reading = Decoding { chars: source.chars().collect(), at: 0, word: Word::known("") };
    reading.unquoted();
    let mut word = reading.word;
    if braces_expand(source) {
        word.certainty = Certainty::Unknown;
    }
    word
}

/// Returns true if unquoted braces expand to several words.
fn braces_expand(source: &str) -> bool {
    source != "{}" && source != "{" && source != "}" && {
        let bare = without_quoted(source);
        bare.contains('{') && bare.contains('}') && (bare.contains(',') || bare.contains(".."))
    }
}

/// Returns the text outside quotes.
fn without_quoted(source: &str) -> String {
    let (mut out, mut chars) = (String::new(), source.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '\'' => drop(chars.by_ref().find(|c| *c == '\'')),
            '"' => {
                while let Some(c) = chars.next() {
                    match c {
                        '\\' => drop(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            c => out.push(c),
        }
    }
    out
}

struct Decoding {
    chars: Vec<char>,
    at: usize,
    word: Word,
}

impl Decoding {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn least(&mut self, certainty: Certainty) {
        self.word.certainty = self.word.certainty.max(certainty);
    }

    fn unquoted(&mut self) {
        let mut before = None;
        while let Some(c) = self.next() {
            match c {
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(c) => self.word.text.push(c),
                },
                '\'' => {
                    while let Some(c) = self.next().filter(|c| *c != '\'') {
                        self.word.text.push(c);
                    }
                }
                '"' => self.double_quoted(),
                '$' => self.dollar(true),
                '`' => self.skip_backticks(),
                '~' if matches!(before, None | Some('=' | ':')) => {
                    self.word.text.push('~');
                    self.least(Certainty::Unknown);
                }
                '*' | '?' | '[' => {
                    self.word.text.push(c);
                    self.least(Certainty::Pattern);
                }
                '(' | ')' | '<' | '>' => {
                    self.word.text.push(c);
                    self.least(Certainty::Unknown);
                }
                c => self.word.text.push(c),
            }
            before = Some(c);
        }
    }

    fn double_quoted(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '"' => return,
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => self.word.text.push(c),
                    Some(c) => self.word.text.extend(['\\', c]),
                },
                '$' => self.dollar(false),
                '`' => self.skip_backticks(),
                c => self.word.text.push(c),
            }
        }
    }

    /// Reads what follows a dollar sign: most of it is computed by the shell and left out.
    fn dollar(&mut self, bare: bool) {
        match self.peek() {
            Some('\'') if bare => {
                // Only some shells know this form, so its meaning is not certain.
                self.at += 1;
                self.escapes();
                self.least(Certainty::Unknown);
            }
            Some('"') if bare => self.least(Certainty::Unknown),
            Some('(') => self.skip_balanced('(', ')'),
            Some('{') => self.skip_balanced('{', '}'),
            Some('[') => self.skip_balanced('[', ']'),
            Some(c) if c.is_alphanumeric() || "_@*#?-$!".contains(c) => {
                self.at += 1;
                if c.is_alphabetic() || c == '_' {
                    while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
                        self.at += 1;
                    }
                }
                self.least(Certainty::Unknown);
            }
            _ => self.word.text.push('$'),
        }
    }

    /// Reads the usual escapes of `$'…'`, for the search for denied commands.
    fn escapes(&mut self) {
        while let Some(c) = self.next().filter(|c| *c != '\'') {
            if c != '\\' {
                self.word.text.push(c);
                continue;
            }
            let (radix, most) = match self.next() {
                Some('x') => (16, 2),
                Some('u') => (16, 4),
                Some('U') => (16, 8),
                Some('0'..='7') => {
                    self.at -= 1;
                    (8, 3)
                }
                Some('n') => {
                    self.word.text.push('\n');
                    continue;
                }
                Some('t') => {
                    self.word.text.push('\t');
                    continue;
                }
                Some(c) => {
                    self.word.text.push(c);
                    continue;
                }
                None => return,
            };
            let mut value = 0;
            for _ in 0..most {
                let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else { break };
                value = value * radix + digit;
                self.at += 1;
            }
            self.word.text.extend(char::from_u32(value));
        }
    }

    fn skip_balanced(&mut self, open: char, close: char) {
        let mut depth = 0_u32;
        while let Some(c) = self.next() {
            if c == '\\' {
                self.at += 1;
            } else if c == open {
                depth += 1;
            } else if c == close {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
        }
        self.least(Certainty::Unknown);
    }

    fn skip_backticks(&mut self) {
        while let Some(c) = self.next().filter(|c| *c != '`') {
            if c == '\\' {
                self.at += 1;
            }
        }
        self.least(Certainty::Unknown);
    }
}
