//! Reading of manifests: TOML, and JSON with comments and trailing commas.

use serde_json::Value;

use super::SourceTree;

/// Maximum bytes of a manifest.
const MAX_BYTES: usize = 4 * 1024 * 1024;

pub fn toml(tree: &dyn SourceTree, path: &str) -> Option<toml::Table> {
    text(tree, path)?.parse().ok()
}

pub fn json(tree: &dyn SourceTree, path: &str) -> Option<Value> {
    let text = text(tree, path)?;
    serde_json::from_str(&text).or_else(|_| serde_json::from_str(&plain_json(&text))).ok()
}

pub fn text(tree: &dyn SourceTree, path: &str) -> Option<String> {
    tree.read(path).filter(|t| t.len() <= MAX_BYTES)
}

/// The text without comments and trailing commas.
fn plain_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.trim_start_matches('\u{feff}').chars().peekable();
    let mut in_string = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_string => {
                out.push(c);
                out.extend(chars.next());
                continue;
            }
            '"' => in_string = !in_string,
            '/' if !in_string && chars.peek() == Some(&'/') => {
                while chars.next_if(|c| *c != '\n').is_some() {}
                continue;
            }
            '/' if !in_string && chars.peek() == Some(&'*') => {
                chars.next();
                let mut last = ' ';
                for c in chars.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
                continue;
            }
            '}' | ']' if !in_string => {
                let length = out.trim_end().len();
                if out[..length].ends_with(',') {
                    out.truncate(length - 1);
                }
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_removed_outside_of_strings() {
        let text =
            "\u{feff}{ // c\n \"a\": \"x//y,}\", /* b, */ \"c\": [1, 2,\n], \"d\\\"//\": 1,\n}";
        assert_eq!(
            plain_json(text).split_whitespace().collect::<String>(),
            "{\"a\":\"x//y,}\",\"c\":[1,2],\"d\\\"//\":1}"
        );
    }
}
