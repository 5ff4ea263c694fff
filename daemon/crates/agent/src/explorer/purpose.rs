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
        .filter(|text| text.split_whitespace().count() >= 3);
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

/// True if at least half of the words of `text` are not in `other`.
fn adds_facts(text: &str, other: &str) -> bool {
    let lower = other.to_lowercase();
    let words: Vec<String> =
        text.split_whitespace().filter(|w| w.len() > 3).map(str::to_lowercase).collect();
    let new = words.iter().filter(|word| !lower.contains(word.as_str())).count();
    new * 2 >= words.len() && new >= 3
}
