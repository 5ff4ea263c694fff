//! Long queries: the text of an issue, a log or a stack trace, reduced to what tells. The title
//! counts most, then quoted errors, prose and names in backticks, then code; headings of templates,
//! descriptions of the environment and checklists are dropped.

use super::tokens::{identifiers, name_of, paths};
use super::{MAX_READ, ParsedQuery, QueryKind, QueryName, Words};

/// Weights of words by the part that they are in.
const TITLE: f32 = 1.0;
const ERROR: f32 = 0.6;
const PROSE: f32 = 0.4;
const CODE: f32 = 0.2;
/// Weights of names by the part that they are in.
const TITLE_NAME: f32 = 1.0;
const MARKED_NAME: f32 = 0.8;
const FRAME_NAME: f32 = 0.7;
const PROSE_NAME: f32 = 0.6;
const CODE_NAME: f32 = 0.35;
/// Bytes of prose that are embedded after the title.
const EMBEDDED: usize = 600;
/// Lines of code and logs that are read.
const MAX_CODE_LINES: usize = 200;

/// Words of headings whose section describes the environment or is a checklist.
const ENVIRONMENT: [&str; 17] = [
    "environment",
    "version",
    "versions",
    "system",
    "platform",
    "setup",
    "checklist",
    "screenshots",
    "screenshot",
    "info",
    "os",
    "specs",
    "configuration",
    "hardware",
    "software",
    "desktop",
    "smartphone",
];
/// Words of which headings of templates consist.
const TEMPLATE: [&str; 52] = [
    "describe",
    "description",
    "the",
    "bug",
    "to",
    "reproduce",
    "expected",
    "behavior",
    "behaviour",
    "actual",
    "current",
    "steps",
    "additional",
    "context",
    "summary",
    "issue",
    "problem",
    "what",
    "happened",
    "happens",
    "you",
    "expect",
    "did",
    "do",
    "how",
    "it",
    "code",
    "sample",
    "example",
    "minimal",
    "reproduction",
    "logs",
    "log",
    "output",
    "error",
    "message",
    "stack",
    "trace",
    "traceback",
    "possible",
    "solution",
    "motivation",
    "feature",
    "request",
    "a",
    "is",
    "your",
    "or",
    "and",
    "of",
    "proposal",
    "background",
];

/// Parses a text of several lines.
pub fn parse(text: &str) -> ParsedQuery {
    let mut parts = Parts {
        parsed: ParsedQuery {
            kind: QueryKind::Issue,
            title: text.lines().next().unwrap_or_default().to_owned(),
            words: Words::default(),
            names: Vec::new(),
            paths: Vec::new(),
            quotes: Vec::new(),
            embedded: String::new(),
        },
        prose: String::new(),
        code_lines: 0,
    };
    let mut lines = text.lines();
    let title = lines.next().unwrap_or_default();
    parts.title(title);
    let (mut fence, mut dropped, mut comment) = (false, false, false);
    for line in lines {
        let bare = line.trim();
        if bare.starts_with("```") || bare.starts_with("~~~") {
            fence = !fence;
            continue;
        }
        if !fence {
            comment |= bare.starts_with("<!--");
            if comment {
                comment = !bare.contains("-->");
                continue;
            }
            if let Some(heading) = heading(bare) {
                dropped = is_of(heading, &ENVIRONMENT, 1) && !is_of(heading, &["bug", "error"], 1);
                if is_template(heading) || dropped {
                    continue;
                }
            }
        }
        if dropped || bare.is_empty() || is_boilerplate(bare) {
            continue;
        }
        if fence || is_code(line) {
            parts.code(line);
        } else {
            parts.prose(bare);
        }
    }
    parts.finish(title)
}

/// The parts of an issue while its lines are read.
struct Parts {
    parsed: ParsedQuery,
    prose: String,
    code_lines: usize,
}

impl Parts {
    fn title(&mut self, title: &str) {
        self.parsed.words.add(title, TITLE);
        let parsed = &mut self.parsed;
        identifiers(title, &mut |name| parsed.add_name(name, TITLE_NAME));
        self.marked(title, TITLE_NAME);
        self.parsed.add_quote(title);
        self.add_paths(title);
    }

    fn prose(&mut self, line: &str) {
        if let Some(message) = error_message(line) {
            self.parsed.add_quote(message);
            self.parsed.words.add(message, ERROR);
        }
        self.add_paths(line);
        let line = without_links(line);
        self.parsed.words.add(&line, PROSE);
        let parsed = &mut self.parsed;
        identifiers(&line, &mut |name| parsed.add_name(name, PROSE_NAME));
        self.marked(&line, MARKED_NAME);
        if self.prose.len() < EMBEDDED {
            self.prose.push('\n');
            self.prose.push_str(&line);
        }
    }

    /// Names and lines in backticks.
    fn marked(&mut self, line: &str, weight: f32) {
        for part in line.split('`').skip(1).step_by(2) {
            match name_of(part) {
                Some(name) if name.name.len() > 2 => self.parsed.add_name(name, weight),
                _ => self.parsed.add_quote(part),
            }
        }
    }

    fn code(&mut self, line: &str) {
        self.code_lines += 1;
        if self.code_lines > MAX_CODE_LINES {
            return;
        }
        let (is_frame, bare) = (self.add_paths(line), line.trim());
        let output = || output_line(bare).filter(|_| !is_frame);
        let weight = match error_message(bare).or_else(output) {
            Some(message) => {
                self.parsed.add_quote(message);
                ERROR
            }
            None => CODE,
        };
        self.parsed.words.add(line, weight);
        let parsed = &mut self.parsed;
        match frame_name(line).filter(|_| is_frame) {
            Some(name) => parsed.add_name(name, FRAME_NAME),
            None => identifiers(line, &mut |name| parsed.add_name(name, CODE_NAME)),
        }
    }

    /// Adds the paths of a line; true if there are any.
    fn add_paths(&mut self, line: &str) -> bool {
        let found = paths(line);
        let is_any = !found.is_empty();
        for path in found {
            match self.parsed.paths.iter_mut().find(|p| p.path == path.path) {
                Some(known) => known.line = path.line.or(known.line),
                None => {
                    // The innermost frames of most traces are the last ones.
                    if self.parsed.paths.len() >= MAX_READ {
                        self.parsed.paths.remove(0);
                    }
                    self.parsed.paths.push(path);
                }
            }
        }
        is_any
    }

    fn finish(mut self, title: &str) -> ParsedQuery {
        // The innermost frames of most traces are the last ones.
        self.parsed.paths.reverse();
        self.parsed.embedded = format!("{title}{}", self.prose);
        self.parsed.limited()
    }
}

/// The text of a heading: `## Steps`, `**Steps:**`, or a short line that ends with a colon.
fn heading(line: &str) -> Option<&str> {
    let bold =
        line.strip_prefix("**").and_then(|rest| rest.trim_end_matches(':').strip_suffix("**"));
    let short = line.strip_suffix(':').filter(|l| l.split_whitespace().count() <= 4);
    line.strip_prefix('#').map(|rest| rest.trim_matches(['#', ' ', ':'])).or(bold).or(short)
}

/// True if at least `least` words of a text are in the list.
fn is_of(text: &str, list: &[&str], least: usize) -> bool {
    let lower = text.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|w| list.contains(w)).count() >= least
}

/// True for a heading that consists of words of templates.
fn is_template(heading: &str) -> bool {
    let lower = heading.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
    words.all(|w| TEMPLATE.contains(&w))
}

/// True for entries of checklists and descriptions of the environment.
fn is_boilerplate(line: &str) -> bool {
    let entry = line.trim_start_matches(['-', '*', ' ', '>']);
    if entry.starts_with("[ ]") || entry.starts_with("[x]") || entry.starts_with("[X]") {
        return true;
    }
    let Some((key, value)) = entry.split_once([':', '=']) else { return false };
    let is_version =
        value.chars().any(|c| c.is_ascii_digit()) || value.split_whitespace().count() <= 3;
    const KEYS: [&str; 14] = [
        "os",
        "version",
        "python",
        "platform",
        "cuda",
        "pytorch",
        "tensorflow",
        "browser",
        "node",
        "rustc",
        "cpu",
        "gpu",
        "gcc",
        "distribution",
    ];
    let key = key.to_lowercase();
    is_version && key.split_whitespace().count() <= 4 && is_of(&key, &KEYS, 1)
}

/// True for an indented line or one of a trace outside of a fence.
fn is_code(line: &str) -> bool {
    let bare = line.trim_start();
    line.starts_with("    ")
        || line.starts_with('\t')
        || [">>>", "File \"", "at ", "$ "].iter().any(|start| bare.starts_with(start))
}

/// The message of an error in a line: `ValueError: …`, `error[E0308]: …`, `panicked at '…'`.
fn error_message(line: &str) -> Option<&str> {
    if let Some((_, message)) = line.split_once("panicked at ") {
        return Some(message.trim_matches(['\'', ' ']));
    }
    let (kind, message) = line.split_once(": ")?;
    let kind = kind.rsplit(char::is_whitespace).next()?;
    let name = kind.split('[').next()?.to_lowercase();
    let is_error = ["error", "exception", "warning", "fatal", "panic", "failure"]
        .iter()
        .any(|ending| name.ends_with(ending));
    (is_error && !message.trim().is_empty()).then_some(message.trim())
}

/// A line of output: at least four words, most of it letters, without the marks of code.
fn output_line(line: &str) -> Option<&str> {
    let is_letter = |c: &char| c.is_alphabetic() || *c == ' ';
    let letters = line.chars().filter(is_letter).count();
    let is_code = line.contains([';', '{', '}', '=', '(', '<', '|']);
    let is_output = line.split_whitespace().nth(3).is_some() && 5 * letters >= 4 * line.len();
    (is_output && !is_code).then_some(line)
}

/// The function of a frame: `in NAME`, `at NAME (`, `NAME(FILE:1)`.
fn frame_name(line: &str) -> Option<QueryName> {
    let line = line.trim();
    if let Some((_, name)) = line.rsplit_once(", in ") {
        return name_of(name.trim());
    }
    let after =
        line.strip_prefix("at ").or_else(|| line.split_once(" at ").map(|(_, rest)| rest))?;
    let token = after.split([' ', '(']).next()?;
    name_of(token).filter(|_| paths(token).is_empty())
}

/// A line without addresses.
fn without_links(line: &str) -> String {
    let words = line.split(' ').filter(|word| !word.contains("://"));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUE: &str = "\
Session cookie is lost after a redirect

## Describe the bug
When `SessionStore.save` is called before redirect_to, the cookie is gone.
See also [the docs](https://example.com/sessions_page).

## Environment
- Ubuntu 22.04 with zebra kernel

## To Reproduce
```python
Traceback (most recent call last):
  File \"/home/me/venv/lib/site-packages/web/sessions.py\", line 61, in open_session
    raise ValueError(\"x\")
ValueError: signature of the cookie does not match
```
- [x] I searched the tracker
- Python version: 3.11
";

    #[test]
    fn issue_is_reduced_to_its_parts() {
        let parsed = parse(ISSUE);
        let weight = |word: &str| {
            let stem = cairn_tokenizer::words::stemmed(word.as_bytes());
            parsed.words.iter().find(|(s, _)| *s == stem).map(|(_, weight)| *weight)
        };
        assert_eq!(weight("redirect"), Some(TITLE));
        assert_eq!(weight("gone"), Some(PROSE));
        assert_eq!(weight("signature"), Some(ERROR));
        assert_eq!([weight("zebra"), weight("tracker"), weight("reproduce")], [None; 3]);
        let names: Vec<(&str, f32)> =
            parsed.names.iter().map(|n| (n.name.as_str(), n.weight)).collect();
        assert!(names.contains(&("save", MARKED_NAME)), "{names:?}");
        assert!(names.contains(&("redirect_to", PROSE_NAME)), "{names:?}");
        assert!(names.contains(&("open_session", FRAME_NAME)), "{names:?}");
        assert!(parsed.paths[0].path.ends_with("web/sessions.py"), "{:?}", parsed.paths);
        assert_eq!(parsed.paths[0].line, Some(61));
        assert_eq!(parsed.quotes.len(), 2, "the title and the message: {:?}", parsed.quotes);
        assert!(parsed.embedded.starts_with("Session cookie"));
    }

    #[test]
    fn long_log_is_parsed_within_its_limits() {
        let line = "2026-01-01 ERROR worker: error: cannot reach node17 at net/pool.go:88\n";
        let parsed = parse(&format!("Worker stops\n{}", line.repeat(900)));
        assert!(parsed.quotes.len() <= 6 && parsed.words.iter().count() < 60);
        assert_eq!(parsed.paths[0].path, "net/pool.go");
    }
}
