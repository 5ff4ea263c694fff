//! The purpose of a project in one or two sentences.

use super::{describe, facts::Facts, manifests::Manifest, paths, prose};

/// Most characters of a purpose.
const MAX: usize = 320;
/// Most characters of one of its sentences.
const MAX_SENTENCE: usize = 220;

/// Returns the description of the outermost manifest and the first statement of the readme, if
/// they say different things.
pub fn of(facts: &Facts, manifests: &[Manifest]) -> Option<String> {
    let outer = manifests
        .iter()
        .filter(|m| paths::depth(&m.path) == 0)
        .find_map(|m| m.description.as_deref())
        .map(|text| prose::shortened(&prose::plain(text), MAX_SENTENCE))
        .filter(|text| prose::word_count(text) >= 3);
    let readme = describe::readmes(facts)
        .into_iter()
        .find_map(|path| prose::first_sentence(facts.text(path)?))
        .map(|text| statement(&text));
    let inner = || {
        let named = manifests.iter().filter(|m| !paths::secondary(&m.path));
        let longest = named.filter_map(|m| m.description.as_deref()).max_by_key(|d| d.len())?;
        Some(prose::shortened(&prose::plain(longest), MAX_SENTENCE))
    };
    let text = match (outer, readme) {
        // The readme begins with the description and goes on.
        (Some(outer), Some(readme)) if readme.to_lowercase().contains(&outer.to_lowercase()) => {
            readme
        }
        // The readme says the same in more words.
        (Some(outer), Some(readme)) if has_words_of(&readme, &outer) => readme,
        (Some(outer), Some(readme)) if adds_facts(&readme, &outer) => {
            let both = format!("{outer}. {readme}");
            if both.chars().count() <= MAX { both } else { outer }
        }
        (Some(outer), _) => outer,
        (None, Some(readme)) => readme,
        (None, None) => inner()?,
    };
    let ends = text.ends_with(['.', '…', '!', '?']);
    Some(if ends { text } else { format!("{text}.") })
}

/// The first sentences of a paragraph, as many as fit.
fn statement(paragraph: &str) -> String {
    let mut out = prose::shortened(paragraph, MAX_SENTENCE);
    let rest = paragraph.strip_prefix(out.as_str()).map(|rest| rest.trim_start_matches(['.', ' ']));
    if let Some(rest) = rest.filter(|rest| rest.len() > 20) {
        let second = prose::shortened(rest, MAX_SENTENCE);
        if !second.ends_with('…') && out.len() + second.len() < MAX_SENTENCE {
            out = format!("{out}. {second}");
        }
    }
    out
}

/// True if `text` is longer and has nearly all words of `other`.
fn has_words_of(text: &str, other: &str) -> bool {
    let words = paths::words(text);
    let names = paths::words(other);
    let found = names.iter().filter(|word| words.contains(word)).count();
    names.len() >= 4 && text.len() > other.len() && found * 10 >= names.len() * 8
}

/// True if at least half of the words of `text` are not in `other`.
fn adds_facts(text: &str, other: &str) -> bool {
    let lower = other.to_lowercase();
    let words: Vec<String> =
        text.split_whitespace().filter(|w| w.len() > 3).map(str::to_lowercase).collect();
    let new = words.iter().filter(|word| !lower.contains(word.as_str())).count();
    new * 2 >= words.len() && new >= 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explorer::manifests;

    fn purpose(texts: &[(&str, &str)]) -> Option<String> {
        let mut facts = Facts::new("x".into());
        for (path, text) in texts {
            facts.texts.insert((*path).into(), (*text).into());
        }
        of(&facts, &manifests::read_all(&facts))
    }

    #[test]
    fn manifest_and_readme_state_the_purpose() {
        let cargo =
            ("Cargo.toml", "[package]\nname = \"x\"\ndescription = \"A fast tool for code\"\n");
        let inner = ("a/Cargo.toml", cargo.1);
        for (texts, want) in [
            (vec![], None),
            (vec![("README.md", "")], None),
            (vec![("README.md", "# X\n\nA fast tool for code.\n")], Some("A fast tool for code.")),
            (vec![cargo], Some("A fast tool for code.")),
            (
                vec![cargo, ("README.md", "A fast tool for the code.\n")],
                Some("A fast tool for the code."),
            ),
            (
                vec![cargo, ("README.md", "It indexes large folders quickly.\n")],
                Some("A fast tool for code. It indexes large folders quickly."),
            ),
            (
                vec![cargo, ("README.md", "X is a fast, small tool for code of all kinds.\n")],
                Some("X is a fast, small tool for code of all kinds."),
            ),
            (
                vec![("README.md", "A fast tool for code. It reads very many files! Then more.")],
                Some("A fast tool for code. It reads very many files!"),
            ),
            (vec![("README.md", "一个快速的代码搜索工具。")], Some("一个快速的代码搜索工具.")),
            // The manifest of a part, if there is nothing else.
            (vec![inner], Some("A fast tool for code.")),
        ] {
            assert_eq!(purpose(&texts).as_deref(), want, "{texts:?}");
        }
    }

    #[test]
    fn first_of_many_readmes_counts() {
        let names: Vec<String> = (0..9).map(|n| format!("README.l{n}.md")).collect();
        let mut texts: Vec<(&str, &str)> =
            names.iter().map(|name| (name.as_str(), "Another text in a language.")).collect();
        texts.push(("README.md", "A fast tool for code."));
        texts.push(("README", "Some old text of it all."));
        texts.push(("docs/README.md", "The documents of it all."));
        assert_eq!(purpose(&texts).as_deref(), Some("A fast tool for code."));
    }

    #[test]
    fn purpose_is_short() {
        let words = "word ".repeat(1_000_000);
        let purpose = purpose(&[("README.md", &words)]).unwrap();
        assert!(purpose.chars().count() <= MAX, "{purpose}");
    }
}
