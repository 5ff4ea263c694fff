//! Words of names and comments: what the house style bans, found in the sources.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};

use crate::tidy::sources;

/// Words that are no part of a name, with what stands for them; each form of a verb is listed by
/// itself.
const BANNED: &[(&[&str], &str)] = &[
    (&["told", "tell", "tells", "telling"], "emit, publish, notify, report"),
    (&["said", "say", "says"], "text, output, answer, report"),
    (&["hear", "hears", "heard"], "receive, listen"),
    (&["asked", "asker", "asks"], "request, prompt, caller"),
    (&["kept", "keeps"], "stored, cached, retained"),
    (&["held", "holds"], "locked, stored; a guard or a lock"),
    (&["due"], "pending"),
    (&["anew", "afresh"], "rebuild, refresh, retry"),
    (&["aside", "strange", "delicate"], "secondary, orphan, sensitive"),
    (&["whole"], "complete"),
    (&["somebody", "nobody", "whoever"], "client, approver, caller"),
    (&["begun", "ended"], "started, finished, exit"),
    (&["taken", "carried", "wanted", "shown", "made"], "a noun or a predicate"),
    (&["place", "places"], "location, position, slot, path"),
    (&["shelf"], "table"),
];

/// Names that have such a word for a reason: fields of the wire, and names of other projects.
const EXCEPTIONS: &[&str] = &[
    "heard_seq",
    "kept",
    "places",
    "shown_chars",
    "WantedBy",
    "block_in_place",
    "in_place_scope",
    "DoubleEndedIterator",
    "PromptShown",
];

/// First words of comments that describe by a question.
const QUESTIONS: &[&str] =
    &["What", "Who", "Whose", "Whether", "Which", "Those", "Here", "Where", "How"];

/// The identifiers of a file, each once.
fn identifiers(tokens: TokenStream, names: &mut BTreeMap<String, usize>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => *names.entry(ident.to_string()).or_default() += 1,
            TokenTree::Group(group) => identifiers(group.stream(), names),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// The words of an identifier, in lower case: `read_FooBar2` has `read`, `foo` and `bar`.
fn words(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut last = '_';
    for c in identifier.chars() {
        let starts_word = !c.is_alphabetic() || (c.is_uppercase() && last.is_lowercase());
        if starts_word {
            words.push(String::new());
        }
        if c.is_alphabetic()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        last = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn identifiers_are_split_into_words() {
    assert_eq!(words("read_FooBar2x"), ["read", "foo", "bar", "x"]);
    assert_eq!(words("HTTP_PORT"), ["http", "port"]);
    assert_eq!(words("_"), [""; 0]);
    let mut names = BTreeMap::new();
    identifiers("/// doc\nfn a(b: C) { d::e(\"f\") }".parse().unwrap(), &mut names);
    assert_eq!(names.into_keys().collect::<Vec<_>>(), ["C", "a", "b", "d", "doc", "e", "fn"]);
}

#[test]
fn names_use_the_words_of_the_field() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        if path.contains("/fixtures/") {
            continue;
        }
        let mut names = BTreeMap::new();
        identifiers(text.parse().unwrap(), &mut names);
        for name in names.keys().filter(|name| !EXCEPTIONS.contains(&name.as_str())) {
            let words = words(name);
            let hit = BANNED
                .iter()
                .find(|(banned, _)| words.iter().any(|word| banned.contains(&word.as_str())));
            if let Some((_, instead)) = hit {
                wrong.push(format!("{path}: {name}; write {instead}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The comments of a file: the first line's number, the text of adjoining lines, and true for
/// documentation.
fn comments(text: &str) -> Vec<(usize, String, bool)> {
    let mut all: Vec<(usize, String, bool)> = Vec::new();
    let mut last = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(comment) = line.strip_prefix("//") else {
            last = None;
            continue;
        };
        let is_doc = comment.starts_with(['/', '!']);
        let comment = comment.trim_start_matches(['/', '!']).trim();
        match all.last_mut() {
            Some((_, before, _)) if last == Some(is_doc) => {
                before.push('\n');
                before.push_str(comment);
            }
            _ => all.push((at + 1, comment.to_owned(), is_doc)),
        }
        last = Some(is_doc);
    }
    all
}

#[test]
fn comments_state_facts() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        if path.contains("/fixtures/") {
            continue;
        }
        for (line, comment, _) in comments(&text) {
            let mut sections = comment.split("\n\n");
            let question = sections.find(|section| {
                let first = section.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
                QUESTIONS.contains(&first)
            });
            if let Some(section) = question {
                wrong.push(format!("{path}:{line}: {section}"));
            }
        }
    }
    assert!(wrong.is_empty(), "state it, subject first: {}", wrong.join("\n"));
}

/// Fewest words of a doc comment: fewer only repeat the name.
const FEWEST_WORDS: usize = 4;

/// Doc comments there are texts for people: help of the command line, descriptions of settings.
const TEXTS: &[&str] = &["client-sdk/cli/src/", "daemon/crates/config/src/"];

#[test]
fn doc_comments_add_to_the_name() {
    let mut short = Vec::new();
    for (path, text) in sources() {
        if path.contains("/fixtures/")
            || path.contains("tests/symbols/")
            || TEXTS.iter().any(|folder| path.starts_with(folder))
        {
            continue;
        }
        for (line, comment, is_doc) in comments(&text) {
            // The first line names the subject of a file.
            if is_doc && line > 1 && comment.split_whitespace().count() < FEWEST_WORDS {
                short.push(format!("{path}:{line}: {comment}"));
            }
        }
    }
    assert!(short.is_empty(), "delete them or state a fact: {}", short.join("\n"));
}
