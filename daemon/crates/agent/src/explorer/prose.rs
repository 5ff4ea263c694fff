//! Sentences and descriptions in documents, as words without markup.

/// Most bytes of a paragraph that are considered.
const MAX_PARAGRAPH: usize = 4_000;
/// Most sentences of a paragraph that are considered.
const MAX_SENTENCES: usize = 20;

/// Most bytes from a mark to its end: marks without an end then cost no more than their
/// surroundings, however long the text is.
const MAX_MARKED: usize = 400;

/// Returns the text without markup and control characters: links become their words, code its
/// text, and pictures nothing.
pub fn plain(text: &str) -> String {
    let mut out = String::new();
    add_plain(text, &mut out);
    let mut joined = String::with_capacity(out.len());
    for word in out.split_whitespace() {
        let is_mark = word.chars().all(|c| ".,".contains(c));
        if !joined.is_empty() && !is_mark {
            joined.push(' ');
        }
        joined.extend(word.chars().filter(|c| !is_invisible(*c)));
    }
    joined
}

fn add_plain(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(['[', '`', '*', '<', '\\', '_', '{', ':']) {
        let (before, marked) = rest.split_at(at);
        out.push_str(before);
        rest = unmarked(marked, out);
    }
    out.push_str(rest);
}

/// True for control characters and those that change the direction of text.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c)
}

/// Splits at the first `close` if it is near.
fn split_near(text: &str, close: char) -> Option<(&str, &str)> {
    let mut end = text.len().min(MAX_MARKED);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let at = text[..end].find(close)?;
    Some((&text[..at], &text[at + close.len_utf8()..]))
}

/// Returns the text after the target of a link, `(…)` or `[…]`.
fn after_target(text: &str) -> Option<&str> {
    if let Some(reference) = text.strip_prefix('[') {
        return split_near(reference, ']').map(|(_, after)| after);
    }
    let mut depth = 0_usize;
    for (at, c) in text.char_indices().take(MAX_MARKED) {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return (at > 0).then(|| &text[at + 1..]);
        }
    }
    None
}

/// Adds the first marked part of `text` as words, and returns the text after it.
fn unmarked<'a>(text: &'a str, out: &mut String) -> &'a str {
    let first = text.chars().next().unwrap_or_default();
    let rest = &text[first.len_utf8()..];
    let after = match first {
        '[' => after_link(rest, out),
        '`' => Some(after_code(text, out)),
        '<' if named_by_tag(rest).is_some() => split_near(rest, '>').map(|(tag, after)| {
            out.push_str(named_by_tag(tag).unwrap_or_default());
            after
        }),
        '<' => split_near(rest, '>').and_then(|(tag, after)| is_tag(tag, out).then_some(after)),
        ':' => after_role(rest, out),
        '{' => split_near(rest, '}').and_then(|(inner, after)| {
            let word = inner.strip_prefix('@')?;
            out.push_str(word.split_once(' ').map_or("", |(_, name)| name));
            Some(after)
        }),
        _ => None,
    };
    if let Some(after) = after {
        return after;
    }
    match first {
        '[' | '\\' => rest,
        '*' => {
            // A product stays.
            if out.ends_with(' ') && rest.starts_with(' ') && !out.trim().is_empty() {
                out.push('*');
            }
            rest
        }
        '_' => {
            // Only as a mark at the edge of a word.
            let after = rest.trim_start_matches('_');
            let is_inner =
                out.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric);
            if is_inner {
                out.push_str(&text[..text.len() - after.len()]);
            }
            after
        }
        _ => {
            out.push(first);
            rest
        }
    }
}

/// Adds the words of a link, and returns the text after it; a picture has none.
fn after_link<'a>(rest: &'a str, out: &mut String) -> Option<&'a str> {
    if let Some(picture) = rest.strip_prefix("![") {
        let after = after_target(split_near(picture, ']')?.1)?;
        let after = after.strip_prefix(']').unwrap_or(after);
        return Some(after_target(after).unwrap_or(after));
    }
    let (label, after) = split_near(rest, ']')?;
    let target = after_target(after);
    if target.is_some() && out.ends_with('!') {
        out.pop();
    } else if !label.starts_with('^') {
        add_plain(label, out);
    }
    Some(target.unwrap_or(after))
}

/// Adds the text of code, or of a link or role in reStructuredText, and returns the text after it.
fn after_code<'a>(text: &'a str, out: &mut String) -> &'a str {
    let inner = text.trim_start_matches('`');
    let Some((code, after)) = split_near(inner, '`') else { return inner };
    let label = code.strip_suffix('>').and_then(|code| code.rsplit_once(" <"));
    let code = label.map_or(code, |(label, _)| label).trim();
    let is_home = code.starts_with("~/");
    out.push_str(if is_home { code } else { code.trim_start_matches('~') });
    let after = after.trim_start_matches('`');
    let is_word = |rest: &str| rest.starts_with(char::is_alphanumeric);
    match after.strip_prefix("__").or_else(|| after.strip_prefix('_')) {
        Some(rest) if !is_word(rest) => rest,
        _ => after,
    }
}

/// True for a tag or an address; a comparison and the parameter of a type stay.
fn is_tag(tag: &str, before: &str) -> bool {
    let is_parameter =
        before.ends_with(char::is_alphanumeric) && tag.starts_with(char::is_uppercase);
    let is_word = !tag.is_empty() && !tag.contains([' ', '<']);
    !is_parameter && (is_word || tag.contains('=') || tag.starts_with('/'))
}

/// The name in a tag of C#'s documentation: `<see cref="N.Name"/>`.
fn named_by_tag(tag: &str) -> Option<&str> {
    let kinds = ["see cref=\"", "paramref name=\"", "typeparamref name=\"", "see langword=\""];
    let rest = kinds.iter().find_map(|kind| tag.strip_prefix(kind))?;
    let (name, _) = split_near(rest, '"')?;
    let name = name.split(['(', '{']).next().unwrap_or(name);
    name.rsplit(['.', ':']).next()
}

/// Returns the text after a role of reStructuredText (`:class:` before code) or an emoji's name.
fn after_role<'a>(rest: &'a str, before: &str) -> Option<&'a str> {
    let (role, after) = split_near(rest, ':')?;
    let is_name = !role.is_empty()
        && role.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_+".contains(c));
    let is_alone = (before.is_empty() || before.ends_with(char::is_whitespace))
        && (after.is_empty() || after.starts_with(char::is_whitespace));
    (is_name && (after.starts_with('`') || is_alone)).then_some(after)
}

/// Number of words; in a script without spaces, two characters count as one.
pub fn word_count(text: &str) -> usize {
    let is_wide = |c: &char| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}');
    text.split_whitespace().map(|word| (word.chars().filter(is_wide).count() / 2).max(1)).sum()
}

/// Shortens to whole sentences, else to whole words, within `limit` characters.
pub fn shortened(text: &str, limit: usize) -> String {
    const ENDS: &[char] = &['.', '。'];
    let text = text.trim().trim_end_matches([':', '—', '-']).trim();
    let window = text.char_indices().nth(limit).map(|(at, _)| at);
    if let Some(end) = sentence_end(text, window.unwrap_or(text.len())) {
        return text[..end].trim_end_matches(ENDS).to_owned();
    }
    let Some(window) = window else { return text.trim_end_matches(ENDS).to_owned() };
    let cut = &text[..window];
    // A text without spaces is cut within.
    let words = cut.rsplit_once(' ').map(|(head, _)| head).filter(|h| h.len() * 2 > cut.len());
    format!("{}…", words.unwrap_or(cut).trim_end_matches([',', ';', ':']))
}

/// Byte position after the first sentence that ends within `window` bytes.
fn sentence_end(text: &str, window: usize) -> Option<usize> {
    let is_end = |(at, mark): &(usize, &str)| {
        let after = text[at + mark.len()..].chars().next();
        let last = text[..*at].rsplit([' ', '(']).next().unwrap_or("");
        let is_short = ["e.g", "i.e", "etc", "vs", "cf", "Dr", "St", "approx"].contains(&last);
        let is_closed = mark.len() > 1 || after.is_none_or(char::is_whitespace);
        is_closed && !is_short && word_count(&text[..*at]) >= 3
    };
    let mut ends = text[..window].match_indices(['.', '!', '?', '。', '！', '？']);
    ends.find(is_end).map(|(at, mark)| at + mark.len())
}

/// Returns the rest of a line that starts with `word` (as a list item, table cell or heading) and
/// goes on with a description.
pub fn described<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    const MARKS: &[char] =
        &[' ', '\t', '-', '*', '|', '`', '+', '#', '[', '│', '├', '└', '─', '>', '/', '"'];
    let start = line.trim_start_matches(MARKS).trim_start_matches("./");
    let rest = start.strip_prefix(word)?;
    // The only file of a folder stands for it: `app/app.go   Wiring`.
    let rest = match rest.strip_prefix('/').and_then(|file| file.split_once("  ")) {
        Some((file, _)) if !file.is_empty() && !file.contains(' ') => &rest[1 + file.len()..],
        _ => rest,
    };
    let after = rest.trim_start_matches(['/', '`', ']', '*', '"']);
    // The target of a link.
    let after = match after.strip_prefix('(') {
        Some(target) => target.split_once(')').map(|(_, after)| after)?,
        None => after,
    };
    // A listing of files: the name, spaces, and a comment.
    let is_listed = after.trim_start_matches(['`', '*', '/']).starts_with("  ");
    let after = after.trim_start_matches(['`', '*', '/', ' ']);
    let mark = after.chars().next()?;
    let is_separated = is_listed
        || [':', '|', '-', '–', '—', '#', '→', '='].contains(&mark)
        || ["is ", "are ", "contains ", "provides ", "has "].iter().any(|v| after.starts_with(v));
    // A path of a language: `Name::call()`.
    if after.starts_with("::")
        || !is_separated
        || (rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-'))
    {
        return None;
    }
    let text = after.trim_start_matches([':', '|', '-', '–', '—', '#', '→', '=', ' ', '`']);
    let text = text.split(" | ").next().unwrap_or(text).trim_end_matches(['|', ' ']);
    (text.split_whitespace().count() >= 2).then_some(text)
}

/// Returns the description of the first file in a folder that a listing names without words of its
/// own.
pub fn nested<'a>(line: &str, word: &str, next: &'a str) -> Option<&'a str> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let name = line.trim().trim_end_matches('/');
    if name != word || !line.trim().ends_with('/') || indent(next) <= indent(line) {
        return None;
    }
    let (file, text) = next.trim().split_once("  ")?;
    let text = text.trim();
    (file.contains('.') && text.split_whitespace().count() >= 2).then_some(text)
}

/// Returns the first sentences of prose in a document.
pub fn first_sentence(text: &str) -> Option<String> {
    statements(text).next()
}

/// The paragraphs that say something about their subject, without sentences that do not.
fn statements(text: &str) -> impl Iterator<Item = String> {
    paragraphs(text)
        .filter_map(without_lead)
        .map(|paragraph| without_pointers(&paragraph))
        .filter(|paragraph| is_statement(paragraph))
}

/// A paragraph without its sentences that only point elsewhere: "For more information, see …".
fn without_pointers(paragraph: &str) -> String {
    let mut retained: Vec<&str> = Vec::new();
    let mut end = paragraph.len().min(MAX_PARAGRAPH);
    while !paragraph.is_char_boundary(end) {
        end -= 1;
    }
    let mut rest = paragraph[..end].trim();
    while !rest.is_empty() && retained.len() < MAX_SENTENCES {
        let end = sentence_end(rest, rest.len()).unwrap_or(rest.len());
        let (sentence, after) = rest.split_at(end);
        let lower = sentence.to_lowercase();
        let is_pointer = EMPTY_PHRASES.iter().any(|phrase| lower.contains(phrase));
        // A paragraph that begins with a pointer goes on with one.
        if is_pointer && retained.is_empty() {
            break;
        }
        retained.extend((!is_pointer).then_some(sentence));
        rest = after.trim_start();
    }
    retained.join(" ")
}

/// Returns the first sentences in which a document speaks of its subject itself ("This package
/// provides …"), if they come early; else its first ones.
pub fn own_sentence(text: &str) -> Option<String> {
    let speaks = |sentence: &str| {
        let lower: String = sentence.chars().take(60).flat_map(char::to_lowercase).collect();
        let words: Vec<&str> = lower.split_whitespace().take(3).collect();
        const SUBJECTS: &[&str] = &[
            "package",
            "module",
            "plugin",
            "library",
            "crate",
            "directory",
            "folder",
            "project",
            "component",
            "tool",
            "app",
        ];
        matches!(words[..], ["this" | "the", subject, ..] if SUBJECTS.contains(&subject))
    };
    let first: Vec<String> = statements(text).take(3).collect();
    let own = first.iter().find_map(|paragraph| {
        let mut rest = paragraph.as_str();
        for _ in 0..MAX_SENTENCES {
            if speaks(rest) {
                return Some(rest.to_owned());
            }
            let end = sentence_end(rest, rest.len())?;
            rest = rest[end..].trim_start();
        }
        None
    });
    own.or_else(|| first.into_iter().next())
}

/// A paragraph without the words that lead to a list; `None` if it consists of them.
fn without_lead(paragraph: String) -> Option<String> {
    let Some(lead) = paragraph.trim_end().strip_suffix(':') else { return Some(paragraph) };
    let last = lead
        .rmatch_indices(['.', '!', '?'])
        .find_map(|(at, _)| lead[at + 1..].starts_with(' ').then(|| lead[..=at].to_owned()));
    // "…, with a focus on being:" leads to a list.
    let head = || lead.rsplit_once(',').map(|(head, _)| head.to_owned());
    let states = || {
        let is_present = [" is a ", " is an ", " is the "].iter().any(|verb| lead.contains(verb));
        is_present.then(|| lead.to_owned())
    };
    last.filter(|sentences| is_statement(sentences)).or_else(head).or_else(states)
}

/// Phrases of text that says nothing about the project itself.
const EMPTY_PHRASES: &[&str] = &[
    "this readme",
    "this document",
    "badge",
    "sponsor",
    "donat",
    "newsletter",
    "click here",
    "star this",
    "for more information",
    "documentation is",
    "documentation can",
    "see the ",
    "build status",
    "follow us",
    "is maintained",
    "no longer maintained",
    "table of contents",
    "looking for",
    "please ",
    "note that",
    "are you ",
    "welcome to",
    "copyright",
    "licensed under",
    "all rights reserved",
    "note:",
    "warning:",
    "available via",
    "available at",
    "learn how",
    "find out",
    "read the",
    "this repository is",
    "has moved",
    "go to ",
    "check out",
    "visit ",
    "join ",
    "ecmascript",
    "translations",
    "read this in",
    "if you ",
];

/// True if a paragraph says something about its subject.
fn is_statement(paragraph: &str) -> bool {
    let lower = paragraph.to_lowercase();
    let words = word_count(paragraph);
    let ends_well = !paragraph.trim_end().ends_with(':');
    let head: String = lower.chars().take(120).collect();
    words >= 5
        && ends_well
        && !EMPTY_PHRASES.iter().any(|phrase| head.contains(phrase))
        && !lower.contains("http://")
        && !lower.contains("https://")
        && paragraph.chars().filter(|c| *c == '|' || *c == '•' || *c == '·').count() < 2
}

/// Parts of a document that are open at a line.
#[derive(Default)]
struct Open {
    is_fenced: bool,
    is_comment: bool,
    is_tag: bool,
    is_directive: bool,
}

impl Open {
    /// The text of a line that may be prose, without its tags; empty if it is hidden.
    fn visible(&mut self, line: &str) -> String {
        let trimmed = line.trim();
        let fence = ["```", "~~~"].iter().find(|fence| trimmed.starts_with(**fence));
        if fence.is_some_and(|fence| !trimmed[3..].contains(fence)) {
            self.is_fenced = !self.is_fenced;
        }
        if self.is_fenced || fence.is_some() {
            return String::new();
        }
        self.is_comment |= trimmed.starts_with("<!--");
        if self.is_comment {
            self.is_comment = !trimmed.contains("-->");
            return String::new();
        }
        // The content of a directive of reStructuredText is indented.
        self.is_directive &= trimmed.is_empty() || line.starts_with([' ', '\t']);
        self.is_directive |= trimmed.starts_with(".. ") && trimmed.contains("::");
        self.is_tag &= !trimmed.is_empty();
        if self.is_directive { String::new() } else { without_tags(trimmed, &mut self.is_tag) }
    }
}

/// The paragraphs of a Markdown or reStructuredText document that are prose, without markup.
pub fn paragraphs(text: &str) -> impl Iterator<Item = String> {
    let mut out: Vec<String> = Vec::new();
    let mut current: Vec<String> = Vec::new();
    let mut open = Open::default();
    for line in text.lines().chain([""]) {
        let trimmed = line.trim();
        let is_underline = trimmed.len() > 2 && trimmed.chars().all(|c| "=-~^*#_.+\"'".contains(c));
        // A fence stands alone, an underline below its text.
        if is_underline && !(trimmed.starts_with("~~~") && current.is_empty()) {
            // The text above it was a heading.
            current.clear();
            continue;
        }
        let line = open.visible(line);
        let line = line.trim_start_matches(['>', ' ']);
        let is_item = line.starts_with(['-', '*']) && line.get(1..2) == Some(" ");
        let is_links = line.starts_with('[')
            && (line.contains("]:") || (line.ends_with(')') && current.is_empty()))
            && !line.contains("). ");
        let is_prose = !line.is_empty()
            && !line.starts_with(['#', '!', '|', '=', ':', '+', '@', '%'])
            && !["..", "[!", "[!["].iter().any(|start| line.starts_with(start))
            && !is_item
            && !is_links;
        if is_prose {
            current.push(line.to_owned());
        } else if !current.is_empty() {
            out.push(plain(&current.join(" ")));
            current.clear();
        }
    }
    out.into_iter()
}

/// The line without HTML tags; a line of tags alone is empty. `is_tag` is true if a tag of a line
/// before is open.
fn without_tags(line: &str, is_tag: &mut bool) -> String {
    let mut out = String::new();
    let mut is_code = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let starts = |next: &char| next.is_ascii_alphabetic() || "/!".contains(*next);
        match c {
            '>' if *is_tag => {
                *is_tag = false;
                out.push(' ');
            }
            _ if *is_tag => {}
            '<' if !is_code && chars.peek().is_some_and(starts) => *is_tag = true,
            _ => {
                is_code ^= c == '`';
                out.push(c);
            }
        }
    }
    out.trim().to_owned()
}

/// A name in lower case without separators.
pub fn normalised(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric() || *c == ' ').flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
#[path = "prose_tests.rs"]
mod tests;
