//! Comments, strings and words of the languages that are read from tokens.

/// A kind of string.
#[derive(Debug, Clone, Copy)]
pub struct Quotes {
    pub open: &'static [u8],
    pub close: &'static [u8],
    /// True if a backslash escapes the next byte.
    pub has_escapes: bool,
    /// True if the string may contain line breaks.
    pub is_multiline: bool,
    /// The start of code inside of the string, which `}` ends; empty if there is none.
    pub interpolation: &'static [u8],
}

/// The lexical rules of a language.
#[derive(Debug)]
pub struct Syntax {
    /// The start of comments that extend to the end of the line.
    pub line_comment: &'static [u8],
    /// The ends of block comments; empty if there are none.
    pub block_comment: (&'static [u8], &'static [u8]),
    pub has_nested_comments: bool,
    /// Kinds of strings, those with a longer start first.
    pub strings: &'static [Quotes],
    /// Bytes of words beside ASCII letters, digits, `_` and other scripts.
    pub word_bytes: &'static [u8],
    /// Pairs of quotes around a name.
    pub quoted_names: &'static [(u8, u8)],
    /// Single characters in apostrophes (`'x'`, `'\n'`).
    pub has_characters: bool,
    pub dialect: Dialect,
}

/// Rules that a single language has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    None,
    /// Sigils (`~r/x/`), characters (`?x`), words that end with `?` or `!`.
    Elixir,
    /// Operators may start with `--`; lines that start with `#` are of a preprocessor.
    Haskell,
    /// Strings between two equal tags (`$body$`).
    Sql,
}

const fn quotes(open: &'static [u8], interpolation: &'static [u8], is_multiline: bool) -> Quotes {
    Quotes { open, close: open, has_escapes: true, is_multiline, interpolation }
}

const fn raw(open: &'static [u8], close: &'static [u8], interpolation: &'static [u8]) -> Quotes {
    Quotes { open, close, has_escapes: false, is_multiline: true, interpolation }
}

pub static KOTLIN: Syntax = Syntax {
    line_comment: b"//",
    block_comment: (b"/*", b"*/"),
    has_nested_comments: true,
    strings: &[
        raw(b"$$\"\"\"", b"\"\"\"", b"$${"),
        Quotes { close: b"\"", ..quotes(b"$$\"", b"$${", false) },
        raw(b"\"\"\"", b"\"\"\"", b"${"),
        quotes(b"\"", b"${", false),
    ],
    word_bytes: b"",
    quoted_names: &[(b'`', b'`')],
    has_characters: true,
    dialect: Dialect::None,
};

pub static SCALA: Syntax = Syntax { word_bytes: b"$", ..copy_of(&KOTLIN) };

pub static DART: Syntax = Syntax {
    strings: &[
        raw(b"r'''", b"'''", b""),
        raw(b"r\"\"\"", b"\"\"\"", b""),
        raw(b"r'", b"'", b""),
        raw(b"r\"", b"\"", b""),
        quotes(b"'''", b"${", true),
        quotes(b"\"\"\"", b"${", true),
        quotes(b"'", b"${", false),
        quotes(b"\"", b"${", false),
    ],
    word_bytes: b"$",
    quoted_names: &[],
    has_characters: false,
    ..copy_of(&KOTLIN)
};

pub static ELIXIR: Syntax = Syntax {
    line_comment: b"#",
    block_comment: (b"", b""),
    has_nested_comments: false,
    strings: &[
        quotes(b"\"\"\"", b"#{", true),
        quotes(b"'''", b"#{", true),
        quotes(b"\"", b"#{", true),
        quotes(b"'", b"#{", true),
    ],
    word_bytes: b"",
    quoted_names: &[],
    has_characters: false,
    dialect: Dialect::Elixir,
};

pub static HASKELL: Syntax = Syntax {
    line_comment: b"--",
    block_comment: (b"{-", b"-}"),
    has_nested_comments: true,
    strings: &[quotes(b"\"", b"", false)],
    word_bytes: b"'",
    quoted_names: &[],
    has_characters: true,
    dialect: Dialect::Haskell,
};

pub static SQL: Syntax = Syntax {
    line_comment: b"--",
    block_comment: (b"/*", b"*/"),
    has_nested_comments: false,
    strings: &[raw(b"'", b"'", b"")],
    word_bytes: b"",
    quoted_names: &[(b'"', b'"'), (b'`', b'`'), (b'[', b']')],
    has_characters: false,
    dialect: Dialect::Sql,
};

/// A copy for the rules that two languages share.
const fn copy_of(syntax: &Syntax) -> Syntax {
    Syntax { ..*syntax }
}
