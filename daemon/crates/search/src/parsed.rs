//! The parts of a query: its kind, its words with weights, and the names, paths and quoted lines in
//! it. A query is a single name, a path, a question, some words, or the text of an issue.

mod issue;
mod tokens;

pub use cairn_protocol::search::QueryKind;
use cairn_tokenizer::words::{Stem, each_query_word, is_stop_word, query_stems};
use rustc_hash::FxHashMap;

use tokens::{identifiers, name_of, paths};

/// Maximum words of a query that are used, the heaviest ones.
pub const MAX_WORDS: usize = 48;
/// Maximum names, paths and quoted lines of a query that are looked up.
const MAX_NAMES: usize = 24;
const MAX_PATHS: usize = 12;
const MAX_QUOTES: usize = 6;
/// Bytes from which a query of several lines is the text of an issue.
const LONG: usize = 240;
/// Names, paths and quoted lines that are compared with each other before the heaviest are chosen,
/// and the bytes of a quoted line: a query of 64 KiB has thousands of each.
const MAX_READ: usize = 200;
const MAX_QUOTED: usize = 1000;
/// Minimum words of a quoted line.
const QUOTED_WORDS: usize = 3;

/// A name of the query that may be defined in the code.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryName {
    pub name: String,
    pub folded: String,
    /// The name before it: `Foo` of `Foo::bar`.
    pub container: Option<String>,
    /// 0 to 1: how much it tells.
    pub weight: f32,
}

/// A path of the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryPath {
    /// Its components, joined by `/`.
    pub path: String,
    pub line: Option<u32>,
}

/// A query in parts.
#[derive(Debug, Clone)]
pub struct ParsedQuery {
    pub kind: QueryKind,
    /// The query, or the first line of an issue.
    pub title: String,
    /// Distinct stems in order with weights from 0 to 1.
    pub words: Words,
    pub names: Vec<QueryName>,
    pub paths: Vec<QueryPath>,
    /// Stems of lines that the query quotes: messages, strings.
    pub quotes: Vec<Vec<Stem>>,
    /// The text that is embedded.
    pub embedded: String,
}

impl ParsedQuery {
    /// Parses a query by its form alone, without looking at any code.
    pub fn new(query: &str) -> Self {
        let text = query.trim();
        if let Some(name) = single_name(text) {
            return Self::of_name(text, name);
        }
        if text.len() >= LONG && text.lines().nth(1).is_some() {
            return issue::parse(text);
        }
        let found = paths(text);
        let kind = match text.split_whitespace().nth(1) {
            None if !found.is_empty() => QueryKind::Path,
            _ if is_about_use(text) => QueryKind::Use,
            _ => QueryKind::Text,
        };
        let mut parsed = Self {
            kind,
            title: text.to_owned(),
            words: Words::of(text),
            names: Vec::new(),
            paths: found,
            quotes: vec![selective_stems(text)],
            embedded: text.to_owned(),
        };
        identifiers(text, &mut |name| parsed.add_name(name, 1.0));
        quoted_parts(text, &mut |part| parsed.add_quote(part));
        parsed.limited()
    }

    fn of_name(text: &str, name: QueryName) -> Self {
        Self {
            kind: QueryKind::Identifier,
            title: text.to_owned(),
            words: Words::of(text),
            names: vec![name],
            paths: Vec::new(),
            quotes: vec![selective_stems(text)],
            embedded: text.to_owned(),
        }
    }

    fn add_name(&mut self, name: QueryName, weight: f32) {
        let has_space = self.names.len() < MAX_READ;
        match self.names.iter_mut().find(|n| n.name == name.name) {
            Some(known) => {
                known.weight = known.weight.max(weight);
                known.container = known.container.take().or(name.container);
            }
            None if has_space => self.names.push(QueryName { weight, ..name }),
            None => {}
        }
    }

    fn add_quote(&mut self, line: &str) {
        if line.len() > MAX_QUOTED || self.quotes.len() >= MAX_READ {
            return;
        }
        let stems = selective_stems(line);
        if stems.len() >= QUOTED_WORDS && !self.quotes.contains(&stems) {
            self.quotes.push(stems);
        }
    }

    /// Only the heaviest names, and the first paths and quotes.
    fn limited(mut self) -> Self {
        self.names.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        self.names.truncate(MAX_NAMES);
        self.paths.truncate(MAX_PATHS);
        self.quotes.truncate(MAX_QUOTES);
        self
    }
}

/// Distinct stems in order, each with its weight.
#[derive(Debug, Clone, Default)]
pub struct Words {
    list: Vec<(Stem, f32)>,
    positions: FxHashMap<Stem, usize>,
}

impl Words {
    fn of(text: &str) -> Self {
        let mut words = Self::default();
        words.add(text, 1.0);
        words
    }

    /// Adds the words of a text; a word of several texts has the greatest weight.
    fn add(&mut self, text: &str, weight: f32) {
        each_query_word(text, |stem| {
            let at = *self.positions.entry(stem).or_insert(self.list.len());
            match self.list.get_mut(at) {
                Some((_, known)) => *known = known.max(weight),
                None => self.list.push((stem, weight)),
            }
        });
    }

    pub fn iter(&self) -> impl Iterator<Item = &(Stem, f32)> {
        self.list.iter()
    }
}

/// The stems of a text without the most common words; all if none is selective.
fn selective_stems(text: &str) -> Vec<Stem> {
    let stems = query_stems(text);
    let selective: Vec<Stem> = stems.iter().copied().filter(|s| !is_stop_word(s)).collect();
    if selective.is_empty() { stems } else { selective }
}

/// Words beside a name that do not change what a query of one name looks for.
const BESIDE_NAMES: [&str; 28] = [
    "class",
    "struct",
    "enum",
    "trait",
    "interface",
    "protocol",
    "record",
    "union",
    "type",
    "module",
    "function",
    "func",
    "fn",
    "def",
    "method",
    "macro",
    "constant",
    "const",
    "definition",
    "defined",
    "implementation",
    "declaration",
    "of",
    "the",
    "where",
    "is",
    "find",
    "show",
];

/// The only name of a query: one token, or one that looks like an identifier beside words such as
/// `class`.
fn single_name(text: &str) -> Option<QueryName> {
    let mut tokens = text.split_whitespace();
    let first = tokens.next()?;
    if tokens.next().is_none() {
        return name_of(first).filter(|_| paths(first).is_empty());
    }
    let is_beside = |token: &str| {
        let word = token.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        BESIDE_NAMES.contains(&word.as_str())
    };
    let mut others = text.split_whitespace().filter(|token| !is_beside(token));
    let token = others.next().filter(|_| others.next().is_none())?;
    let mut names = Vec::new();
    identifiers(token, &mut |name| names.push(name));
    names.pop().filter(|_| names.is_empty())
}

/// First words of questions and requests about use.
const USE_STARTS: [&str; 22] = [
    "how do i ",
    "how do you ",
    "how do we ",
    "how can i ",
    "how can we ",
    "how can you ",
    "how to ",
    "how should i ",
    "how would i ",
    "what is the way to ",
    "what do i need to ",
    "where do i ",
    "what command ",
    "which command ",
    "steps to ",
    "instructions to ",
    "instructions for ",
    "guide to ",
    "guide for ",
    "can i ",
    "what are the steps to ",
    "is there a way to ",
];

/// True for a question about how something is used, which documents answer.
fn is_about_use(text: &str) -> bool {
    let lower = text.to_lowercase();
    USE_STARTS.iter().any(|start| lower.starts_with(start))
}

/// Calls `each` with the parts of a text in quotes or backticks.
fn quoted_parts(text: &str, each: &mut dyn FnMut(&str)) {
    for mark in ['"', '`', '\u{201c}'] {
        let end = if mark == '\u{201c}' { '\u{201d}' } else { mark };
        let mut rest = text;
        while let Some((_, after)) = rest.split_once(mark) {
            let Some((part, after)) = after.split_once(end) else { break };
            if !part.contains('\n') {
                each(part);
            }
            rest = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_follows_from_the_form_of_a_query() {
        use QueryKind::{Identifier, Issue, Path, Text, Use};
        let long = "It fails\n".repeat(40);
        for (query, kind) in [
            ("TypeAdapter", Identifier),
            ("Foo::bar", Identifier),
            ("parse_header()", Identifier),
            ("parse", Identifier),
            ("class TypeAdapter", Identifier),
            ("where is parse_header defined", Identifier),
            ("the definition of readFile", Identifier),
            ("src/main.rs", Path),
            ("src/main.rs:42", Path),
            ("main.rs", Path),
            ("how do I run this with docker", Use),
            ("how does the parser recover from errors", Text),
            ("where is the file read", Text),
            ("parse request headers", Text),
            (&long, Issue),
        ] {
            assert_eq!(ParsedQuery::new(query).kind, kind, "{query}");
        }
    }

    #[test]
    fn qualified_name_has_a_container() {
        for (query, name, container) in [
            ("Foo::bar", "bar", Some("Foo")),
            ("a.b.Client.send()", "send", Some("Client")),
            ("Queue#push", "push", Some("Queue")),
            ("read_line", "read_line", None),
            ("valid?", "valid?", None),
        ] {
            let parsed = ParsedQuery::new(query);
            let found = &parsed.names[0];
            assert_eq!((found.name.as_str(), found.container.as_deref()), (name, container));
        }
    }

    #[test]
    fn quoted_line_is_a_quote_of_its_own() {
        let parsed = ParsedQuery::new("where does \"cannot open the file\" come from");
        assert_eq!(parsed.quotes.len(), 2);
        assert_eq!(parsed.quotes[1].len(), 3, "{:?}", parsed.quotes);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_within_its_limits(text in "\\PC{0,400}(\n\\PC{0,80}){0,12}") {
            let parsed = ParsedQuery::new(&text);
            assert!(parsed.names.len() <= MAX_NAMES && parsed.paths.len() <= MAX_PATHS);
            assert!(parsed.words.iter().all(|(_, weight)| (0.0..=1.0).contains(weight)));
        }
    }
}
