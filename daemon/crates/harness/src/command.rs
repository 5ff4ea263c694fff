//! A shell command line as its parts: every command that it would run, wherever it stands.
//!
//! Two readings decide. The parser finds the parts in everything a shell knows; the strict lexer reads only what every
//! shell reads alike. What only the parser can read is still searched for what is denied, and never allowed by a rule.

mod lexer;
mod pattern;
mod programs;
mod tree;
mod wrappers;

use std::ops::Range;

pub use lexer::{Certainty, Word};
pub use pattern::Pattern;

/// Longest command line that is read, in bytes.
pub const MAX_COMMAND: usize = 4 * 1024;
/// How deep one command may stand in another, by nesting or by wrapping.
const MAX_DEPTH: usize = 8;
/// Most parts of a command line.
const MAX_PARTS: usize = 256;

/// What a redirection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Reads a file.
    Read,
    /// Writes a file.
    Write,
    /// Joins two descriptors of the command.
    Join,
    /// Feeds a text.
    Text,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// What it does.
    pub direction: Direction,
    /// The file, or the text.
    pub target: Word,
}

/// What a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A command whose words are read.
    Plain,
    /// Something that can only be asked about: a definition, a test, a wrapper that is not understood.
    Opaque,
    /// A wrapper that was understood: the command in it is a part of its own.
    Wrapper,
}

/// One command of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub kind: Kind,
    /// The program and its arguments; empty for a mere assignment or redirection.
    pub words: Vec<Word>,
    /// Variables set for it.
    pub assignments: Vec<(String, Word)>,
    /// Where its input and output go.
    pub redirections: Vec<Redirection>,
    /// As it is written.
    pub source: String,
    span: Range<usize>,
}

impl Part {
    /// The program, without its folder, as far as it is known.
    pub(crate) fn program(&self) -> &str {
        let text = self.words.first().map_or("", |w| w.text.as_str());
        text.rsplit('/').next().unwrap_or(text)
    }

    /// At most 200 characters of its source, in one line.
    pub fn shown(&self) -> String {
        let line = self.source.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut short: String = line.chars().take(200).collect();
        if short.len() < line.len() {
            short.push('…');
        }
        short
    }
}

/// A command line that has been read.
#[derive(Debug, Clone)]
pub struct CommandLine {
    /// As it is written.
    pub text: String,
    /// Its commands, in the order they stand in. What could not be read at all is one opaque part.
    pub parts: Vec<Part>,
    /// Why no rule about commands may allow it, if so.
    pub unsure: Option<String>,
    /// Where it runs, relative to the root.
    pub folder: String,
}

impl CommandLine {
    /// Reads a command line. What cannot be read is one opaque part, which must be asked about.
    pub fn parse(text: &str) -> Self {
        match tree::read(text, 0) {
            Ok((parts, unsure)) => {
                Self { text: text.into(), parts, unsure: unsure.map(Into::into), folder: String::new() }
            }
            Err(why) => Self::unread(text, why),
        }
    }

    /// The same, run in `folder` (relative to the root).
    pub fn within(mut self, folder: &str) -> Self {
        self.folder = folder.into();
        self
    }

    fn unread(text: &str, why: String) -> Self {
        let part = Part {
            kind: Kind::Opaque,
            words: vec![],
            assignments: vec![],
            redirections: vec![],
            source: text.into(),
            span: 0..text.len(),
        };
        Self { text: text.into(), parts: vec![part], unsure: Some(why), folder: String::new() }
    }

    /// Whether every word of every part is read.
    pub fn is_parsed(&self) -> bool {
        self.unsure.is_none()
    }

    /// Whether it changes its folder on the way, so that relative paths are not known.
    pub(crate) fn changes_directory(&self) -> bool {
        self.parts.iter().any(|p| matches!(p.program(), "cd" | "pushd" | "popd" | "chdir"))
    }
}
