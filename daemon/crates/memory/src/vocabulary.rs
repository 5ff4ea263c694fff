//! The keywords of the store, for the end of a system text.

use std::collections::BTreeMap;

use cairn_protocol::memory::MemoryKeyword;

use crate::store::Found;

/// The line as it was for a state of the folder: its time of change, which each entry that comes or goes moves, and its
/// number.
#[derive(Debug)]
pub struct Kept {
    pub stamp: (i64, i64, u64),
    pub text: String,
}

/// Keywords with their number of entries, the most used first.
pub fn counted(entries: &[Found]) -> Vec<MemoryKeyword> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for keyword in entries.iter().flat_map(|e| e.name.keywords()) {
        *counts.entry(keyword).or_default() += 1;
    }
    let one = |(keyword, entries): (&str, usize)| MemoryKeyword { keyword: keyword.to_owned(), entries };
    let mut all: Vec<_> = counts.into_iter().map(one).collect();
    // Equal ones stay in the order of the alphabet.
    all.sort_by_key(|k| std::cmp::Reverse(k.entries));
    all
}

/// At most `most` keywords in the order of the alphabet, with their number where it is not one.
pub fn line(counted: &[MemoryKeyword], most: usize) -> String {
    let mut shown: Vec<&MemoryKeyword> = counted.iter().take(most).collect();
    shown.sort_by(|a, b| a.keyword.cmp(&b.keyword));
    let one = |k: &&MemoryKeyword| match k.entries {
        1 => k.keyword.clone(),
        n => format!("{} ({n})", k.keyword),
    };
    let mut text = shown.iter().map(one).collect::<Vec<_>>().join(", ");
    let left = counted.len().saturating_sub(most);
    if left > 0 {
        text.push_str(&format!(" and {left} more"));
    }
    text
}
