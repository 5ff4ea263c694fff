//! A shell command line as its parts: every command that it would run, at any nesting.
//!
//! Two readings decide. The parser finds the parts in all of the shell's syntax; the strict lexer
//! reads only what every shell reads alike. A line that only the parser can read is still searched
//! for denied commands, and never allowed by a rule.

mod error;
mod lexer;
mod pattern;
mod programs;
mod tree;
mod wrappers;

use std::ops::Range;

pub use error::CommandPatternError;
pub use lexer::{Certainty, Word};
pub use pattern::Pattern;

/// Longest command line that is parsed, in bytes.
pub const MAX_COMMAND: usize = 4 * 1024;
/// Deepest nesting of commands, by syntax or by wrappers.
const MAX_DEPTH: usize = 8;
/// Most parts of one command line.
const MAX_PARTS: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
    /// Duplicates a descriptor of the command.
    Join,
    /// Supplies a text as input.
    Text,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    pub direction: Direction,
    /// The file, or the text.
    pub target: Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A command whose words are parsed.
    Plain,
    /// A part that always needs an approval: a definition, a test, a wrapper that is not
    /// understood.
    Opaque,
    /// A wrapper that is understood; its command is a separate part.
    Wrapper,
}

/// One command of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub kind: Kind,
    /// The program and its arguments; empty for an assignment or redirection alone.
    pub words: Vec<Word>,
    /// Variables set for this command alone.
    pub assignments: Vec<(String, Word)>,
    /// Redirections of its input and output.
    pub redirections: Vec<Redirection>,
    /// Source text of the part.
    pub source: String,
    span: Range<usize>,
}

impl Part {
    /// Returns the program without its folder, as far as it is known.
    pub fn program(&self) -> &str {
        let text = self.words.first().map_or("", |w| w.text.as_str());
        text.rsplit('/').next().unwrap_or(text)
    }

    /// Returns at most 200 characters of its source, on one line.
    pub fn display(&self) -> String {
        let line = self.source.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut short: String = line.chars().take(200).collect();
        if short.len() < line.len() {
            short.push('…');
        }
        short
    }
}

/// A parsed command line.
#[derive(Debug, Clone)]
pub struct CommandLine {
    /// Source text of the line.
    pub text: String,
    /// Its commands in source order. A line that could not be parsed at all is one opaque part.
    pub parts: Vec<Part>,
    /// Reason why no rule about commands may allow it, if there is one.
    pub unsure: Option<String>,
    /// Working folder, relative to the root.
    pub folder: String,
}

impl CommandLine {
    /// Parses a command line. One that cannot be parsed is a single opaque part, which needs an
    /// approval.
    pub fn parse(text: &str) -> Self {
        match tree::read(text, 0) {
            Ok((parts, unsure)) => Self {
                text: text.into(),
                parts,
                unsure: unsure.map(Into::into),
                folder: String::new(),
            },
            Err(why) => Self::unread(text, why),
        }
    }

    /// Sets the working folder (relative to the root).
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

    /// Returns true if every word of every part is parsed.
    pub fn is_parsed(&self) -> bool {
        self.unsure.is_none()
    }

    /// Returns true if a part changes the working folder, so that relative paths are not known.
    pub fn changes_directory(&self) -> bool {
        self.parts.iter().any(|p| matches!(p.program(), "cd" | "pushd" | "popd" | "chdir"))
    }
}
