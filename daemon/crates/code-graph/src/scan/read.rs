//! Reading of tokens at a position, and skipping of strings and comments.

use memchr::{memchr, memchr2, memmem};

/// The bytes at which a scanner stops.
pub struct Stops([bool; 256]);

impl Stops {
    pub const fn new(bytes: &[u8]) -> Self {
        let mut table = [false; 256];
        let mut at = 0;
        while at < bytes.len() {
            table[bytes[at] as usize] = true;
            at += 1;
        }
        Self(table)
    }

    /// The same with all ASCII capitals.
    pub const fn with_capitals(bytes: &[u8]) -> Self {
        let Self(mut table) = Self::new(bytes);
        let mut letter = b'A';
        while letter <= b'Z' {
            table[letter as usize] = true;
            letter += 1;
        }
        Self(table)
    }

    /// The first stop at or after `at`.
    pub fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        let rest = text.get(at..)?;
        Some(at + rest.iter().position(|b| self.0[*b as usize])?)
    }
}

/// True for bytes of an identifier; all bytes beyond ASCII are.
pub fn is_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// True if no identifier continues at `at`.
pub fn starts_word(text: &[u8], at: usize) -> bool {
    at == 0 || text.get(at - 1).is_none_or(|b| !is_ident(*b))
}

/// The identifier at `at`, which may be empty.
pub fn word_at(text: &[u8], at: usize) -> &[u8] {
    let rest = text.get(at..).unwrap_or_default();
    &rest[..rest.iter().position(|b| !is_ident(*b)).unwrap_or(rest.len())]
}

/// The position of the last byte before `at` that is not blank.
pub fn before(text: &[u8], at: usize) -> Option<usize> {
    text[..at.min(text.len())].iter().rposition(|b| !matches!(b, b' ' | b'\t'))
}

/// The end of the line that contains `at`: the position of its newline.
pub fn line_end(text: &[u8], at: usize) -> usize {
    text.get(at..).and_then(|rest| memchr(b'\n', rest)).map_or(text.len(), |i| at + i)
}

/// Maximum bytes that are read backwards or forwards on a line, since a line may be as long as its
/// file.
const MAX_LINE: usize = 1_000;

/// The start of the line that contains `at`, or a position near it on a long line.
pub fn line_start(text: &[u8], at: usize) -> usize {
    let from = at.saturating_sub(MAX_LINE);
    text[from..at].iter().rposition(|b| *b == b'\n').map_or(from, |i| from + i + 1)
}

/// The end of the line that contains `at`, or a position near it on a long line.
pub fn line_end_near(text: &[u8], at: usize) -> usize {
    line_end(&text[..text.len().min(at + MAX_LINE)], at)
}

/// The end of a string on one line that begins at `at` with its quote.
pub fn string_end(text: &[u8], at: usize) -> usize {
    quoted_end(text, at, false)
}

/// The end of a string that may have several lines.
pub fn long_string_end(text: &[u8], at: usize) -> usize {
    quoted_end(text, at, true)
}

fn quoted_end(text: &[u8], at: usize, has_lines: bool) -> usize {
    let Some(quote) = text.get(at) else { return text.len() };
    let mut at = at + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 1,
            b'\n' if !has_lines => return at,
            _ if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// The position after the next `needle`, or the end of the text.
pub fn after(text: &[u8], at: usize, needle: &[u8]) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    memmem::find(rest, needle).map_or(text.len(), |i| at + i + needle.len())
}

/// The end of a comment of C's family that begins at `at` with `/`, or `at + 1` if none does.
pub fn slash_comment_end(text: &[u8], at: usize) -> usize {
    match text.get(at + 1) {
        Some(b'/') => line_end(text, at),
        Some(b'*') => after(text, at + 2, b"*/"),
        _ => at + 1,
    }
}

/// The comments of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comments {
    Slashes,
    Hash,
    SlashesAndHash,
    Dashes,
}

/// A reader of the tokens of one statement.
pub struct Reader<'a> {
    pub text: &'a [u8],
    pub at: usize,
    pub comments: Comments,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a [u8], at: usize, comments: Comments) -> Self {
        Self { text, at, comments }
    }

    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Skips blanks on the line.
    pub fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Skips blanks, newlines, continued lines and comments.
    pub fn skip_blank(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'\\') if self.comments == Comments::Hash => self.at += 1,
                Some(b'/')
                    if matches!(self.comments, Comments::Slashes | Comments::SlashesAndHash) =>
                {
                    let end = slash_comment_end(self.text, self.at);
                    if end == self.at + 1 {
                        return;
                    }
                    self.at = end;
                }
                Some(b'#')
                    if matches!(self.comments, Comments::Hash | Comments::SlashesAndHash) =>
                {
                    self.at = line_end(self.text, self.at);
                }
                _ => return,
            }
        }
    }

    pub fn eat(&mut self, token: &[u8]) -> bool {
        self.skip_blank();
        let is_next = self.text[self.at.min(self.text.len())..].starts_with(token);
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    /// Reads the keyword `word`, and not a longer identifier.
    pub fn eat_word(&mut self, word: &[u8]) -> bool {
        self.skip_blank();
        let is_next = word_at(self.text, self.at) == word;
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    /// The identifier that follows, if one does.
    pub fn ident(&mut self) -> Option<&'a str> {
        self.skip_blank();
        let word = word_at(self.text, self.at);
        let name = std::str::from_utf8(word).ok().filter(|w| !w.is_empty())?;
        self.at += word.len();
        Some(name)
    }

    /// Identifiers joined by one of `separators`; blanks around them are dropped.
    pub fn path(&mut self, separators: &[u8]) -> Option<String> {
        let mut path = self.ident()?.to_owned();
        loop {
            let saved = self.at;
            self.skip_blank();
            match self.peek().filter(|b| separators.contains(b)) {
                Some(separator) => {
                    self.at += 1;
                    let Some(next) = self.ident() else {
                        self.at = saved;
                        return Some(path);
                    };
                    path.push(char::from(separator));
                    path.push_str(next);
                }
                None => {
                    self.at = saved;
                    return Some(path);
                }
            }
            if path.len() > crate::import::MAX_NAME {
                return None;
            }
        }
    }

    /// The content of a string literal without escapes, in one of the given quotes.
    pub fn string(&mut self, quotes: &[u8]) -> Option<&'a str> {
        self.skip_blank();
        let quote = self.peek().filter(|b| quotes.contains(b))?;
        let rest = self.text.get(self.at + 1..)?;
        let length = memchr2(quote, b'\n', &rest[..rest.len().min(crate::import::MAX_NAME + 1)])?;
        if rest[length] != quote {
            return None;
        }
        let content = std::str::from_utf8(&rest[..length]).ok()?;
        self.at += length + 2;
        (!content.contains('\\')).then_some(content)
    }
}
