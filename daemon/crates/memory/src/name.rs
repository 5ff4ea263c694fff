//! An entry's name: its keywords, sorted and joined by `_`.

use std::fmt;

use crate::NameError;

/// Maximum keywords per entry.
const MAX_KEYWORDS: usize = 8;
/// Maximum characters of a keyword.
const MAX_KEYWORD: usize = 40;
/// Maximum bytes of a name: file systems allow 255, and `.md` and a temporary suffix must fit.
const MAX_NAME: usize = 200;
/// Entries whose names start with this prefix can only be changed by hand.
const FIXED_PREFIX: &str = "fix-";

/// The name of an entry; it does not depend on the order of the keywords.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// Parses keywords separated by spaces, commas or `_`. A trailing `.md` is ignored, so that a
    /// file name parses too.
    ///
    /// # Errors
    /// `invalid_params` when there is no word, there are too many, or one is too long.
    pub fn of(keywords: &str) -> Result<Self, NameError> {
        let text = keywords.trim().to_lowercase();
        let text = text.strip_suffix(".md").unwrap_or(&text);
        let is_keyword_char = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '+' | '#');
        let mut words: Vec<&str> = text
            .split(|c| !is_keyword_char(c))
            .map(|word| word.trim_matches(['-', '.']))
            .filter(|word| word.contains(char::is_alphanumeric))
            .collect();
        words.sort_unstable();
        words.dedup();
        match words.len() {
            0 => return Err(NameError::Empty),
            n if n > MAX_KEYWORDS => {
                return Err(NameError::TooMany { limit: MAX_KEYWORDS, found: n });
            }
            _ => {}
        }
        if let Some(long) = words.iter().find(|word| word.chars().count() > MAX_KEYWORD) {
            let start: String = long.chars().take(20).collect();
            return Err(NameError::KeywordTooLong { start, limit: MAX_KEYWORD });
        }
        let name = words.join("_");
        if name.len() > MAX_NAME {
            return Err(NameError::TooLong { bytes: name.len(), limit: MAX_NAME });
        }
        Ok(Self(name))
    }

    /// Returns the name that has exactly this file name, if there is one.
    pub fn of_file(file: &str) -> Option<Self> {
        let stem = file.strip_suffix(".md")?;
        Self::of(stem).ok().filter(|name| name.0 == stem)
    }

    pub fn keywords(&self) -> impl Iterator<Item = &str> {
        self.0.split('_')
    }

    /// Returns true if the entry may not be changed through the store.
    pub fn is_fixed(&self) -> bool {
        self.0.starts_with(FIXED_PREFIX)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn file(&self) -> String {
        format!("{}.md", self.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keywords_are_normalised_to_a_name() {
        for (given, expected) in [
            ("python async sockets", "async_python_sockets"),
            ("Sockets, PYTHON async python", "async_python_sockets"),
            ("async_python_sockets.md", "async_python_sockets"),
            ("fix-licence headers", "fix-licence_headers"),
            ("c++ node.js c#", "c#_c++_node.js"),
            ("../../etc/passwd", "etc_passwd"),
            ("größe", "größe"),
            (" -- a -- ", "a"),
        ] {
            assert_eq!(Name::of(given).unwrap().as_str(), expected, "{given}");
        }
        for wrong in
            ["", " ", "..", "---", "++", "a b c d e f g h i", &"x".repeat(41), &"日".repeat(300)]
        {
            assert!(Name::of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn fix_prefix_marks_fixed_entries() {
        for (keywords, fixed) in [
            ("fix-build", true),
            ("headers fix-build", true),
            ("fix build", false),
            ("prefix-a", false),
            ("a fix-b", false),
        ] {
            assert_eq!(Name::of(keywords).unwrap().is_fixed(), fixed, "{keywords}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_rejected_or_names_a_plain_file(text in "\\PC{0,60}") {
            if let Ok(name) = Name::of(&text) {
                let file = name.file();
                prop_assert!(!file.contains(['/', '\\', '\0']) && !file.starts_with('.'), "{file}");
                prop_assert_eq!(Name::of(name.as_str()).unwrap(), name.clone());
                prop_assert_eq!(Name::of_file(&file), Some(name));
            }
        }
    }
}
