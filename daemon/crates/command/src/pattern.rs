//! Command patterns of rules: `git status`, `git status *`, or a complete text after `=`.

use std::fmt;

use super::{Certainty, CommandLine, Kind, Part, Word, programs};
use crate::CommandPatternError;

/// The commands that a rule matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// Commands with these words, and further ones if `open`.
    Words {
        /// The words, the program first.
        words: Vec<String>,
        /// True if further arguments are accepted.
        open: bool,
    },
    /// A command line that is exactly this text.
    Text(String),
}

impl Pattern {
    /// Parses a pattern: one plain command, whose last word may be `*`; or `=` and a complete
    /// command line.
    ///
    /// # Errors
    /// The reason why the text is no pattern.
    pub fn read(text: &str) -> Result<Self, CommandPatternError> {
        let text = text.strip_prefix("command:").unwrap_or(text).trim();
        if let Some(exact) = text.strip_prefix('=') {
            let exact = exact.trim();
            return if exact.is_empty() {
                Err(CommandPatternError::EmptyText)
            } else {
                Ok(Self::Text(exact.into()))
            };
        }
        let (body, open) = match text.strip_suffix('*') {
            Some(body) if body.ends_with(char::is_whitespace) => (body.trim_end(), true),
            Some("") => return Err(CommandPatternError::AnyCommand),
            _ => (text, false),
        };
        let line = CommandLine::parse(body);
        if line.parts.iter().any(|p| p.kind == Kind::Wrapper) {
            return Err(CommandPatternError::Wrapper(body.to_owned()));
        }
        // A wrapper that is a part of its own comes last.
        let Some(part) =
            line.parts.last().filter(|p| line.parts.iter().all(|o| o.source == p.source))
        else {
            return Err(CommandPatternError::NotOne(body.to_owned()));
        };
        let words: Option<Vec<String>> =
            part.words.iter().map(|w| w.value().map(Into::into)).collect();
        let bare =
            part.assignments.is_empty() && part.redirections.is_empty() && part.kind == Kind::Plain;
        match words.filter(|w| !w.is_empty() && bare && line.unsure.is_none()) {
            Some(words) => Ok(Self::Words { words, open }),
            None => Err(CommandPatternError::NotPlain(body.to_owned())),
        }
    }

    /// Returns patterns that together allow this same command line again.
    pub fn of(line: &CommandLine) -> Vec<Self> {
        let one = |part: &Part| {
            let words: Option<Vec<String>> =
                part.words.iter().map(|w| w.value().map(Into::into)).collect();
            let bare = part.assignments.is_empty()
                && part.redirections.is_empty()
                && part.kind == Kind::Plain;
            words.filter(|w| !w.is_empty() && bare).map(|words| Self::Words { words, open: false })
        };
        let plain = |p: &&Part| p.kind != Kind::Wrapper;
        let each: Option<Vec<Self>> = line.parts.iter().filter(plain).map(one).collect();
        each.filter(|_| line.unsure.is_none())
            .unwrap_or_else(|| vec![Self::Text(line.text.trim().into())])
    }

    /// Returns true if its `*` accepts no argument: such a rule allows only the command without
    /// arguments.
    pub fn takes_none(&self) -> bool {
        matches!(self, Self::Words { words, open: true } if programs::takes_none(words))
    }

    /// Returns the subcommands that its `*` covers, if it covers no others; empty if it accepts no
    /// argument at all.
    pub fn covers_only(&self) -> Option<Vec<&'static str>> {
        match self {
            Self::Words { words, open: true } => programs::covers_only(words),
            _ => None,
        }
    }

    /// Returns the argument of `part` that the `*` of this rule does not accept, if this is a rule
    /// for its command.
    pub fn uncovered_argument(&self, part: &Part) -> Option<String> {
        let Self::Words { words, open: true } = self else { return None };
        if part.words.len() <= words.len() {
            return None;
        }
        let (head, more) = part.words.split_at(words.len());
        let is_same = head.iter().zip(words).all(|(have, want)| have.value() == Some(want));
        if !is_same || programs::takes(words, more) {
            return None;
        }
        // The argument after the longest part that would be accepted.
        let accepted = (0..more.len()).rev().find(|n| programs::takes(words, &more[..*n]));
        more.get(accepted.unwrap_or(0)).map(|word| word.text.clone())
    }

    /// Returns true if this allows `part` of `line`, apart from its redirections and variables.
    pub fn allows(&self, line: &CommandLine, part: &Part) -> bool {
        let (words, open) = match self {
            Self::Text(text) => return line.text.trim() == text,
            Self::Words { words, open } => (words, *open),
        };
        if part.kind == Kind::Opaque || line.unsure.is_some() || part.words.len() < words.len() {
            return false;
        }
        let (head, more) = part.words.split_at(words.len());
        let same = head.iter().zip(words).all(|(have, want)| have.value() == Some(want));
        same && if open { programs::takes(words, more) } else { more.is_empty() }
    }

    /// Returns true if this denies `part` of `line`, in any spelling, and at any position in text
    /// that cannot be parsed.
    pub fn denies(&self, line: &CommandLine, part: &Part) -> bool {
        let words = match self {
            Self::Text(text) => return line.text.trim() == text,
            Self::Words { words, .. } => words,
        };
        let Some((program, arguments)) = words.split_first() else { return false };
        if !part.words.is_empty()
            && named(part.program(), program)
            && has_arguments(program, arguments, &part.words[1..])
        {
            return true;
        }
        let texts = || [part.source.clone(), super::lexer::decode(&part.source).text];
        part.kind == Kind::Opaque && texts().iter().any(|t| mentions(t, program, arguments))
    }
}

impl CommandLine {
    /// Returns true if the redirections and variables of a part need no approval; `writes` says if
    /// a file may be written.
    pub fn extras_allowed(&self, part: &Part, writes: impl Fn(&str) -> bool) -> bool {
        use super::Direction::{Join, Read, Text, Write};
        let target_fits = |r: &super::Redirection| match (r.direction, r.target.value()) {
            (_, None) => false,
            (Join | Text, _) => true,
            (Read | Write, Some("/dev/null")) => true,
            (Read, Some(path)) => !path.starts_with("/dev/") && !path.starts_with("/proc/"),
            (Write, Some(path)) => !self.changes_directory() && writes(path),
        };
        part.redirections.iter().all(target_fits)
            && part.assignments.iter().all(|(name, value)| programs::harmless_variable(name, value))
    }

    /// Returns the paths that the command line names in any of its words.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().flat_map(|part| {
            let targets = part.redirections.iter().map(|r| r.target.text.as_str());
            let words = part.words.iter().map(|w| w.text.as_str());
            words
                .chain(targets)
                .flat_map(|w| [w, w.split_once('=').map_or("", |(_, v)| v)])
                .filter(|w| !w.is_empty())
        })
    }
}

/// Returns true if a program is the one that a rule names.
fn named(program: &str, rule: &str) -> bool {
    program == rule.rsplit('/').next().unwrap_or(rule)
}

/// Splits `words` into the letters of short options, the long options and the plain arguments.
fn sorted<'a>(program: &str, words: impl Iterator<Item = &'a str>) -> (Vec<String>, Vec<String>) {
    let (mut options, mut operands, mut open) = (Vec::new(), Vec::new(), true);
    for word in words {
        if !open || !word.starts_with('-') || word == "-" {
            operands.push(operand(word));
        } else if word == "--" {
            open = false;
        } else if let Some(long) = word.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or(long);
            match LONG
                .iter()
                .find(|(p, l, _)| *p == program && name.len() > 1 && l.starts_with(name))
            {
                Some((_, _, short)) => options.push((*short).to_owned()),
                None => options.push(format!("--{long}")),
            }
        } else {
            let same = |c: char| if program == "rm" && c == 'R' { 'r' } else { c };
            options.extend(word[1..].chars().map(|c| same(c).to_string()));
        }
    }
    (options, operands)
}

/// Long options of a program and the short option with the same meaning.
const LONG: &[(&str, &str, &str)] = &[
    ("rm", "recursive", "r"),
    ("rm", "force", "f"),
    ("rm", "verbose", "v"),
    ("chmod", "recursive", "R"),
    ("chown", "recursive", "R"),
    ("git", "force", "f"),
    ("cp", "recursive", "r"),
    ("cp", "force", "f"),
];

/// Returns an argument in normal form: a path without detours, a number without leading zeros.
fn operand(word: &str) -> String {
    if !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) {
        let bare = word.trim_start_matches('0');
        return if bare.is_empty() { "0".into() } else { bare.into() };
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in word.split('/').filter(|p| !p.is_empty() && *p != ".") {
        if part == ".." && parts.last().is_some_and(|p| *p != "..") {
            parts.pop();
        } else if part != ".." || !word.starts_with('/') {
            parts.push(part);
        }
    }
    let joined = parts.join("/");
    if word.starts_with('/') { format!("/{joined}") } else { joined }
}

fn has_arguments(program: &str, required: &[String], words: &[Word]) -> bool {
    let (options, operands) = sorted(program, required.iter().map(String::as_str));
    // All entries of a folder stand for the folder.
    let text = |w: &Word| match w.certainty {
        Certainty::Pattern => w.text.trim_end_matches(['*', '?', '.', '[', ']', '!']).to_owned(),
        _ => w.text.clone(),
    };
    let have: Vec<String> = words.iter().map(text).collect();
    let (have_options, have_operands) = sorted(program, have.iter().map(String::as_str));
    options.iter().all(|o| have_options.contains(o))
        && operands.iter().all(|o| have_operands.contains(o))
}

/// Returns true if a text that cannot be parsed names a program and its plain arguments, with any
/// quotes between them.
fn mentions(text: &str, program: &str, arguments: &[String]) -> bool {
    let bare: String = text.chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).collect();
    let breaks = |c: char| c.is_whitespace() || "|&;<>(){}$`=,:[]".contains(c);
    let tokens: Vec<&str> = bare.split(breaks).filter(|t| !t.is_empty()).collect();
    let plain = arguments.iter().filter(|a| !a.starts_with('-') && *a != "*");
    tokens.iter().any(|t| named(t.rsplit('/').next().unwrap_or(t), program))
        && plain.into_iter().all(|a| tokens.iter().any(|t| operand(t) == operand(a)))
}

/// Joins words with the quotes that a shell needs.
fn quoted(words: &[String]) -> String {
    let plain = |w: &String| {
        !w.is_empty() && w.chars().all(|c| c.is_alphanumeric() || "._-/:=@%+,".contains(c))
    };
    let one =
        |w: &String| if plain(w) { w.clone() } else { format!("'{}'", w.replace('\'', r"'\''")) };
    words.iter().map(one).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "= {text}"),
            Self::Words { words, open } => {
                write!(f, "{}{}", quoted(words), if *open { " *" } else { "" })
            }
        }
    }
}
