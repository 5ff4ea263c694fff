//! Bodies in Python: the statements that are indented further than their `def`.

use rustc_hash::FxHashSet;

use super::{Cut, lex};

/// An open `def` or `class`.
struct Open {
    indent: usize,
    /// Number of definitions up to its body.
    defs: u32,
    /// Start of its first statement.
    body: Option<usize>,
    is_function: bool,
}

struct Scanner<'t, 's> {
    text: &'t [u8],
    idents: &'s mut FxHashSet<u32>,
    open: Vec<Open>,
    cuts: Vec<Cut>,
    defs: u32,
    depth: u32,
    /// End of the last token.
    end: usize,
    /// True if the next token starts a statement.
    at_line_start: bool,
    last: u8,
}

/// The cuts of a Python text; `None` if its brackets do not match.
pub fn cuts(text: &[u8], idents: &mut FxHashSet<u32>) -> Option<Vec<Cut>> {
    let mut scanner = Scanner {
        text,
        idents,
        open: Vec::new(),
        cuts: Vec::new(),
        defs: 0,
        depth: 0,
        end: 0,
        at_line_start: true,
        last: 0,
    };
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += match byte {
            b' ' | b'\t' | b'\r' | 0x0c => 1,
            b'\n' => {
                scanner.at_line_start |= scanner.depth == 0;
                1
            }
            b'\\' => 1 + usize::from(text.get(at + 1).is_some()),
            b'#' => lex::line(&text[at..]),
            _ => scanner.token(at)?,
        };
    }
    scanner.close_from(0);
    (scanner.depth == 0).then_some(scanner.cuts)
}

impl Scanner<'_, '_> {
    /// Scans one token and returns its length.
    fn token(&mut self, at: usize) -> Option<usize> {
        let rest = &self.text[at..];
        if std::mem::take(&mut self.at_line_start) {
            self.statement(at);
        }
        let length = match rest[0] {
            b'(' | b'[' | b'{' => {
                self.depth += 1;
                1
            }
            b')' | b']' | b'}' => {
                self.depth = self.depth.checked_sub(1)?;
                1
            }
            b'"' | b'\'' => self.string(rest, at),
            b if lex::is_name(b) => {
                let end = lex::word(rest);
                lex::add_identifier(&rest[..end], self.idents);
                end
            }
            _ => 1,
        };
        self.end = at + length;
        self.last = rest[length - 1];
        Some(length)
    }

    /// Starts a statement at `at`, which closes the bodies with the same or more indentation.
    fn statement(&mut self, at: usize) {
        let begin = memchr::memrchr(b'\n', &self.text[..at]).map_or(0, |n| n + 1);
        let indent = at - begin;
        self.close_from(indent);
        if let Some(open) = self.open.last_mut()
            && open.body.is_none()
        {
            open.body = Some(at);
        }
        let rest = &self.text[at..];
        let mut word = &rest[..lex::word(rest)];
        if word == b"async" {
            let after = rest[5..].trim_ascii_start();
            word = &after[..lex::word(after)];
        }
        if matches!(word, b"def" | b"class") {
            self.defs += 1;
            self.open.push(Open {
                indent,
                defs: self.defs,
                body: None,
                is_function: word == b"def",
            });
        }
    }

    /// Closes all definitions with this indentation or more.
    fn close_from(&mut self, indent: usize) {
        while let Some(open) = self.open.pop_if(|o| o.indent >= indent) {
            if let Some(body) = open.body
                && open.is_function
                && open.defs == self.defs
                && self.end > body
            {
                self.cuts.push(Cut { from: body, to: self.end, replacement: b"pass" });
            }
        }
    }

    fn string(&mut self, rest: &[u8], at: usize) -> usize {
        let quote = rest[0];
        let triple = rest.starts_with(&[quote; 3]);
        let length = if triple { self.triple(rest) } else { lex::string(rest) };
        let prefix = self.text[..at].iter().rev().take(2).take_while(|b| b.is_ascii_alphabetic());
        if prefix.into_iter().any(|b| matches!(b, b'f' | b'F')) {
            self.interpolated(&rest[..length]);
        }
        length
    }

    /// Length of a triple-quoted string.
    fn triple(&self, rest: &[u8]) -> usize {
        let end = [rest[0]; 3];
        let mut at = 3;
        while at < rest.len() {
            let Some(next) = memchr::memchr2(b'\\', rest[0], &rest[at..]) else { break };
            at += next;
            if rest[at] == b'\\' {
                at += 2;
            } else if rest[at..].starts_with(&end) {
                return at + 3;
            } else {
                at += 1;
            }
        }
        rest.len()
    }

    /// Adds the identifiers between the braces of an f-string.
    fn interpolated(&mut self, string: &[u8]) {
        let (mut at, mut depth) = (0, 0u32);
        while let Some(byte) = string.get(at) {
            at += match byte {
                b'{' => {
                    depth += 1;
                    1
                }
                b'}' => {
                    depth = depth.saturating_sub(1);
                    1
                }
                b if depth > 0 && lex::is_name(*b) => {
                    let end = lex::word(&string[at..]);
                    lex::add_identifier(&string[at..at + end], self.idents);
                    end
                }
                _ => 1,
            };
        }
    }
}
