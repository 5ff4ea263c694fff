//! Removes apparent secrets from text that is stored.

use std::sync::LazyLock;

use regex::Regex;

/// Replacement for a secret.
const MASK: &str = "[secret]";

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        // Headers.
        r#"(?i)((?:authorization|x-api-key|cookie)\s*:\s*)(?:(?:bearer|basic)\s+)?([^\s"']+)"#,
        // Values of variables and options with a name like that of a secret.
        r#"(?i)((?:[a-z0-9_-]*(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key|credential|auth)[a-z0-9_-]*)\s*[=:]\s*|--?(?:token|password|secret|api-key|auth)\s+)("[^"]*"|'[^']*'|[^\s"'&;|]+)"#,
        // User information of URLs.
        r"(?i)([a-z][a-z0-9+.-]*://[^\s/@:]*:)([^\s/@]+)(?:@)",
        // Keys with a known format.
        r"()\b(sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|xox[abpr]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,})",
    ]
    .iter()
    .filter_map(|p| Regex::new(p).ok())
    .collect()
});

/// A word or sign that every secret of the patterns has, in plain text and in JSON.
static HINT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r"(?i)token|secret|passw|api[_-]?key|access[_-]?key|credential|auth|cookie|sk-|gh[pousr]_|xox|AKIA|AIza|eyJ|://[^\s/@]*:[^\s/@]*@";
    Regex::new(words).ok()
});

/// False for a text, or its JSON, in which [`secrets`] finds none. Much faster than a search for
/// them.
pub fn may_have_secrets(text: &str) -> bool {
    HINT.as_ref().is_none_or(|hint| hint.is_match(text))
}

/// Returns `text` with `[secret]` in place of apparent secrets.
pub fn secrets(text: &str) -> String {
    let mut text = text.to_owned();
    if !may_have_secrets(&text) {
        return text;
    }
    for (at, pattern) in PATTERNS.iter().enumerate() {
        let with = if at == 2 { format!("${{1}}{MASK}@") } else { format!("${{1}}{MASK}") };
        text = pattern.replace_all(&text, with.as_str()).into_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_redacted_and_other_text_is_preserved() {
        assert_eq!(PATTERNS.len(), 4);
        for (text, want) in [
            ("GITHUB_TOKEN=abc123 make", "GITHUB_TOKEN=[secret] make"),
            ("curl -H 'Authorization: Bearer abc.def' x", "curl -H 'Authorization: [secret]' x"),
            ("mysql --password hunter2 -u me", "mysql --password [secret] -u me"),
            ("git clone https://me:pw@host/x", "git clone https://me:[secret]@host/x"),
            ("echo sk-abcdefghijklmnopqrstuv", "echo [secret]"),
            ("Cookie: session=1", "Cookie: [secret]"),
            ("AUTH=xyz", "AUTH=[secret]"),
            ("access-key: 5", "access-key: [secret]"),
            ("credentials: 'a b'", "credentials: [secret]"),
            ("ghp_abcdefghijklmnopqrstuv", "[secret]"),
            ("xoxb-abcdefghij", "[secret]"),
            ("AKIAABCDEFGHIJKLMNOP", "[secret]"),
            ("AIzaabcdefghijklmnopqrstuvwxyz01234", "[secret]"),
            ("eyJabcdefghij.abcdefghij.abcde", "[secret]"),
            ("grep -rn token src", "grep -rn token src"),
            ("cargo test --lib", "cargo test --lib"),
        ] {
            assert_eq!(secrets(text), want);
        }
    }
}
