//! A provider's key: its sources, and its removal from all output.

use std::{fmt, io::Read, os::unix::fs::PermissionsExt, path::Path};

use zeroize::Zeroizing;

use crate::{LlmError, catalog};

/// Maximum bytes of a key.
const MAX_KEY: u64 = 16 * 1024;

/// Length of a key's prefix that is redacted. A shorter prefix is the same for all keys of a
/// provider.
const REDACTED_PREFIX: usize = 8;

/// A key. It is never printed or serialised, and wiped from memory when dropped.
#[derive(Clone)]
pub struct Key(Zeroizing<String>);

impl Key {
    /// Creates a key without surrounding white space; `None` if the rest is empty.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = Zeroizing::new(text.into());
        let trimmed = text.trim();
        (!trimmed.is_empty()).then(|| Self(Zeroizing::new(trimmed.to_owned())))
    }

    /// Returns the text itself, for a request or a signature.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Removes this key from `text`, including truncated or partial copies of it: everything that
    /// starts like it, and words masked with asterisks.
    pub(crate) fn redact(&self, text: &str) -> String {
        let key = self.expose();
        let beginning = key
            .char_indices()
            .nth(REDACTED_PREFIX)
            .map_or(key, |(end, _)| key.get(..end).unwrap_or(key));
        let mut clean = String::with_capacity(text.len());
        let mut rest = text;
        // A very short key would also remove ordinary words, and it is not a secret.
        while let Some((before, from)) = split_at(rest, beginning).filter(|_| key.len() >= 4) {
            let same: usize = from
                .chars()
                .zip(key.chars())
                .take_while(|(a, b)| a == b)
                .map(|(a, _)| a.len_utf8())
                .sum();
            clean.push_str(before);
            clean.push_str("***");
            rest = from.get(same..).unwrap_or_default();
        }
        clean.push_str(rest);
        let words = clean.split_inclusive(char::is_whitespace).map(|word| {
            let bare = word.trim_end();
            let masked = bare.contains("***");
            if masked {
                format!("***{}", word.get(bare.len()..).unwrap_or_default())
            } else {
                word.to_owned()
            }
        });
        words.collect()
    }
}

/// Splits a text in front of `part`.
fn split_at<'a>(text: &'a str, part: &str) -> Option<(&'a str, &'a str)> {
    text.find(part).and_then(|at| text.split_at_checked(at))
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Returns the key of `provider`: from its variables by `lookup`, else from `file`; `None` if
/// neither has one.
///
/// # Errors
/// [`LlmError::Unauthorized`] when the file is unreadable or readable by others.
pub fn find_key(
    provider: &str,
    lookup: impl Fn(&str) -> Option<String>,
    file: Option<&Path>,
) -> Result<Option<Key>, LlmError> {
    let named =
        catalog::find_provider(provider).map(|known| known.key_variables).unwrap_or_default();
    if let Some(key) = named.iter().find_map(|name| lookup(name).and_then(Key::new)) {
        return Ok(Some(key));
    }
    file.map(read_key_file).transpose()
}

/// Reads the key from a file that only its owner may read.
///
/// # Errors
/// [`LlmError::Unauthorized`] when the file is missing, empty, larger than 16 KiB, not a regular
/// file, or accessible to others.
pub fn read_key_file(path: &Path) -> Result<Key, LlmError> {
    let refuse =
        |why: String| LlmError::Unauthorized(format!("key file {}: {why}", path.display()));
    // Opening a named pipe would block until a writer opens it.
    let kind = std::fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
    if !kind.is_file() {
        return Err(refuse("it is not a regular file".into()));
    }
    let file = std::fs::File::open(path).map_err(|error| refuse(error.to_string()))?;
    // The metadata is of the open file, so that the file cannot be replaced in between.
    let about = file.metadata().map_err(|error| refuse(error.to_string()))?;
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(refuse(format!(
            "other users can read it (mode {mode:04o}): run chmod 600 on it"
        )));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(MAX_KEY + 1).read_to_string(&mut text).map_err(|error| refuse(error.to_string()))?;
    if text.len() as u64 > MAX_KEY {
        return Err(refuse("it is larger than 16 KiB".into()));
    }
    Key::new(text.as_str()).ok_or_else(|| refuse("it is empty".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_copies_of_a_key_are_redacted() {
        let key = Key::new("sk-12345-abcdef").unwrap();
        for (text, clean) in [
            ("no key here", "no key here"),
            ("", ""),
            ("a sk-12345-abcdef b", "a *** b"),
            ("sk-12345-abcdefsk-12345-abcdef", "***"),
            ("key=sk-12345-abcdef, and", "*** and"),
            // Truncated, or printed in part.
            ("bad sk-12345-ab", "bad ***"),
            ("bad sk-12345", "bad ***"),
            ("bad sk-12****cdef.\nAsk", "bad ***\nAsk"),
            ("sk-1", "sk-1"),
            ("é sk-12345-abcdé ü", "é *** ü"),
        ] {
            assert_eq!(key.redact(text), clean, "{text}");
        }
        assert_eq!(Key::new("ab").unwrap().redact("about"), "about");
        assert_eq!(Key::new("abcd").unwrap().redact("x abcde"), "x ***");
    }
}
