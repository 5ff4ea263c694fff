//! Names and paths in a text.

use cairn_workspace::language_of;

use super::{MAX_READ, QueryName, QueryPath};

/// Minimum letters of a name in prose.
const MIN_NAME: usize = 3;

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The name that a token consists of, possibly qualified and called: `Foo::bar()`.
pub fn name_of(token: &str) -> Option<QueryName> {
    let token = token.trim_matches(|c| matches!(c, '`' | '"' | '\'' | ',' | ';'));
    let bare = token.split(['(', '<', '[']).next().unwrap_or(token).trim_end_matches(['.', ':']);
    let is_name =
        |c: char| is_part(c) || matches!(c, '.' | ':' | '#' | '-' | '>' | '?' | '!' | '@' | '\\');
    if bare.is_empty() || !bare.chars().all(is_name) {
        return None;
    }
    let mut parts = bare.split(['.', ':', '#', '>', '-', '\\', '@']).filter(|p| !p.is_empty());
    let name = parts.next_back()?;
    if !name.starts_with(|c: char| is_part(c)) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    // A hyphen alone joins words of prose or of a command, not a name to its container.
    if bare.contains('-') && !bare.contains("->") {
        return None;
    }
    Some(QueryName {
        name: name.to_owned(),
        folded: name.to_lowercase(),
        container: parts.next_back().map(str::to_owned),
        weight: 1.0,
    })
}

/// True if a word looks like an identifier in prose: `_` or an inner capital, called or qualified.
fn is_marked(token: &str, name: &str) -> bool {
    let called = token.contains("(") && !token.starts_with('(');
    let qualified = ["::", "->", "#"].iter().any(|mark| token.contains(mark))
        || token.split_once('.').is_some_and(|(before, after)| {
            before.starts_with(is_part) && after.starts_with(is_part)
        });
    let inner = name.trim_start_matches('_').chars().skip(1);
    called || qualified || name.trim_matches('_').contains('_') || has_inner_capital(inner)
}

/// True for a capital after or before a small letter: `readFile`, but not `HTTP`.
fn has_inner_capital(inner: impl Iterator<Item = char>) -> bool {
    let (mut upper, mut lower) = (false, false);
    for c in inner {
        upper |= c.is_uppercase();
        lower |= c.is_lowercase();
    }
    upper && lower
}

/// Calls `each` with the words of a text that look like identifiers.
pub fn identifiers(text: &str, each: &mut dyn FnMut(QueryName)) {
    for token in text.split(|c: char| {
        c.is_whitespace() || matches!(c, ',' | ';' | '"' | '\'' | '`' | '=' | '{' | '}')
    }) {
        let token = token.trim_matches(|c| matches!(c, '*' | '.' | ':' | '?' | '!'));
        if token.is_empty() || token.contains("://") || !paths(token).is_empty() {
            continue;
        }
        let start = token.trim_start_matches(['(', '[', '&', '<']);
        let start = if start.contains('(') { start } else { start.trim_end_matches([')', ']']) };
        let Some(name) = name_of(start) else { continue };
        if name.name.chars().count() >= MIN_NAME && is_marked(start, &name.name) {
            each(name);
        }
    }
}

/// The paths of a text with their lines: `src/main.rs:42`, `File "a/b.py", line 3`, `pkg\a.cs`.
pub fn paths(text: &str) -> Vec<QueryPath> {
    let mut all: Vec<QueryPath> = Vec::new();
    for line in text.lines() {
        let is_end = |c: char| {
            c.is_whitespace()
                || matches!(c, '"' | '\'' | '`' | '(' | ')' | '[' | ']' | ',' | '<' | '>' | '|')
        };
        for token in line.split(is_end) {
            let Some(mut found) = path_of(token) else { continue };
            if found.line.is_none() {
                found.line = number_after(line, token);
            }
            match all.iter_mut().find(|p| p.path == found.path) {
                Some(known) => known.line = known.line.or(found.line),
                None => all.push(found),
            }
            if all.len() >= MAX_READ {
                return all;
            }
        }
    }
    all
}

/// The number in `PATH", line 42` after a path.
fn number_after(line: &str, path: &str) -> Option<u32> {
    let (_, after) = line.split_once(path)?;
    let (_, number) = after.split_once("line ")?;
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The path of a token: it has a separator or the extension of a language, and a file name with an
/// extension.
fn path_of(token: &str) -> Option<QueryPath> {
    let token = token.trim_end_matches(['.', ':', ';']).trim_start_matches("./");
    let token = match token.split_once("://") {
        // Links to a file on a forge: owner, repository, `blob` and revision precede the path.
        Some((_, link)) => link.split_once("/blob/")?.1.split_once('/')?.1,
        None => token,
    };
    let (token, anchor) = token.split_once("#L").map_or((token, None), |(t, a)| (t, Some(a)));
    let mut parts = token.split(':');
    let mut path = parts.next()?;
    // The letter of a drive.
    if path.len() == 1 {
        path = parts.next()?;
    }
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    };
    let line = anchor.and_then(number).or_else(|| parts.next().and_then(number));
    let path = path.replace('\\', "/");
    let name = path.rsplit('/').next()?;
    let (stem, extension) = name.rsplit_once('.')?;
    let is_extension = (1..=6).contains(&extension.len())
        && extension.chars().all(|c| c.is_ascii_alphanumeric())
        && !extension.starts_with(|c: char| c.is_ascii_digit());
    let is_file = !stem.is_empty()
        && is_extension
        && path.chars().all(|c| c.is_alphanumeric() || "/._-+@~$%".contains(c))
        && path.split('/').all(|part| part.len() < 100);
    let has_folder = path.contains('/');
    // Without a folder, `a.b` is rather a member than a file.
    let is_source = has_folder || line.is_some() || is_known(name);
    (is_file && is_source && (language_of(name).is_some() || has_folder))
        .then_some(QueryPath { path: path.trim_start_matches('/').to_owned(), line })
}

/// True for a file name whose extension is not also the name of a member (`app.go`, `x.rs`).
fn is_known(name: &str) -> bool {
    const EXTENSIONS: [&str; 42] = [
        "py", "rs", "go", "js", "jsx", "ts", "tsx", "mjs", "cjs", "java", "kt", "c", "cc", "cpp",
        "cxx", "h", "hpp", "cs", "rb", "php", "swift", "scala", "sh", "bash", "md", "rst", "txt",
        "toml", "yaml", "yml", "json", "html", "css", "scss", "vue", "svelte", "lua", "zig", "sql",
        "proto", "cmake", "cu",
    ];
    name.rsplit_once('.').is_some_and(|(_, extension)| EXTENSIONS.contains(&extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_distinguished_from_words() {
        for (text, names) in [
            ("the name of a file", vec![]),
            ("where is parse_header used", vec!["parse_header"]),
            ("how does Server::accept work", vec!["accept"]),
            ("call getName() first", vec!["getName"]),
            ("reads the file.", vec![]),
            ("HTTP and TLS", vec![]),
            ("use torch.nn.Linear, not conv2d", vec!["Linear"]),
            ("see https://example.com/a_b.html and (std::vec)", vec!["vec"]),
            ("e.g. a well-known name", vec![]),
        ] {
            let mut found = Vec::new();
            identifiers(text, &mut |name| found.push(name.name));
            assert_eq!(found, names, "{text}");
        }
    }

    #[test]
    fn paths_have_lines_in_all_forms() {
        for (text, path, line) in [
            ("at src/main.rs:42:7", "src/main.rs", Some(42)),
            (
                "  File \"/usr/lib/app/core/run.py\", line 3, in go",
                "usr/lib/app/core/run.py",
                Some(3),
            ),
            ("    at Object.run (lib/app.js:10:5)", "lib/app.js", Some(10)),
            ("at com.x.Server.run(Server.java:9)", "Server.java", Some(9)),
            ("C:\\code\\app\\Main.cs:line 5", "code/app/Main.cs", None),
            ("see https://github.com/a/b/blob/main/pkg/x.go#L12-L20", "pkg/x.go", Some(12)),
            ("open setup.py", "setup.py", None),
        ] {
            let found = paths(text);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert_eq!(found[0].path, path, "{text}");
            assert!(line.is_none() || found[0].line == line, "{text}: {found:?}");
        }
        for text in ["self.name", "1.2.3", "e.g.", "and/or", "https://example.com/a", "v0.3.x"] {
            assert_eq!(paths(text), [], "{text}");
        }
    }
}
