//! The keywords of the store, as the end of a system text.

use std::collections::BTreeMap;

use cairn_protocol::memory::MemoryKeyword;

use crate::Name;

/// Counts the entries of each keyword, most used first.
pub fn count_keywords<'a>(entries: impl Iterator<Item = &'a Name>) -> Vec<MemoryKeyword> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for keyword in entries.flat_map(Name::keywords) {
        *counts.entry(keyword).or_default() += 1;
    }
    let one =
        |(keyword, entries): (&str, usize)| MemoryKeyword { keyword: keyword.to_owned(), entries };
    let mut all: Vec<_> = counts.into_iter().map(one).collect();
    // The sort is stable: ties stay in alphabetical order.
    all.sort_by_key(|k| std::cmp::Reverse(k.entries));
    all
}

/// Renders at most `max` keywords in alphabetical order, with their counts where these exceed 1.
pub fn render_line(keywords: &[MemoryKeyword], max: usize) -> String {
    let mut listed: Vec<&MemoryKeyword> = keywords.iter().take(max).collect();
    listed.sort_by(|a, b| a.keyword.cmp(&b.keyword));
    let one = |k: &&MemoryKeyword| match k.entries {
        1 => k.keyword.clone(),
        n => format!("{} ({n})", k.keyword),
    };
    let mut text = listed.iter().map(one).collect::<Vec<_>>().join(", ");
    let omitted = keywords.len().saturating_sub(max);
    if omitted > 0 {
        text.push_str(&format!(" and {omitted} more"));
    }
    text
}
