//! Streaming grep: emits all matching lines while the search runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    id::RootId,
    search::{GrepItem, SearchFilters},
};

/// Parameters of the method `search.grepStream`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrepStreamParams {
    /// Name of the `search.partial` notifications that carry the lines.
    pub request_id: String,
    /// Text, or a regular expression with `isRegex`; at most 4 KiB.
    pub pattern: String,
    /// Restricts the search to files under this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// True if `pattern` is a regular expression.
    #[serde(default)]
    pub is_regex: bool,
    /// Same flags as in `search.grep`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Maximum number of lines; unlimited when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u64>,
    /// Returns `ranges`; each line is then matched a second time.
    #[serde(default)]
    pub with_ranges: bool,
    /// Cursor of a partial after which the search continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Further filters; `kinds` does not apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<SearchFilters>,
}

/// Answer of `search.grepStream`, returned after all lines were sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrepStreamEnd {
    /// Number of lines sent.
    pub total: u64,
    /// Number of files searched.
    pub files_searched: u64,
    /// True when there are more lines than `k`.
    pub truncated: bool,
    /// True if the file list currently covers the complete scope.
    pub complete: bool,
    /// Paths of files that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
    /// Time spent, in microseconds.
    pub took_us: u64,
    /// True if rules hide some of the requested paths, which are omitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restricted: bool,
}

/// Live notification `search.partial` of a `search.grepStream`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinesPartial {
    /// The `requestId` of the search.
    pub request_id: String,
    /// Always the value `lines`.
    pub corpus: LinesCorpus,
    /// Lines that follow those of the previous partial; the first file may be the last one of that
    /// partial.
    pub files: Vec<FileLines>,
    /// Cursor after these lines, to continue if the connection breaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// True on the last partial.
    pub done: bool,
}

/// Source of the partials of `search.grepStream`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinesCorpus {
    /// The files themselves, line by line.
    Lines,
}

/// Matching lines of one file; at least one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileLines {
    /// Path relative to its root.
    pub path: String,
    /// Id of the root.
    pub root: RootId,
    /// Line numbers in ascending order.
    pub lines: Vec<u32>,
    /// Text of each line without its terminator, at most 2 KiB, invalid UTF-8 replaced; lines are
    /// separated by `\n`.
    pub text: String,
    /// Byte ranges of the matches in the text of each line; only with `withRanges`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<Vec<[u32; 2]>>,
}

impl FileLines {
    /// Iterates over number, text and matches of each line.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str, &[[u32; 2]])> {
        let ends = memchr::memchr_iter(b'\n', self.text.as_bytes()).chain([self.text.len()]);
        let ranges = self.ranges.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
        let mut from = 0;
        self.lines.iter().zip(ends).zip(ranges).map(move |((line, end), ranges)| {
            let text = self.text.get(from..end).unwrap_or_default();
            from = end + 1;
            (*line, text, ranges)
        })
    }

    /// Iterates over the lines in the form that `search.grep` returns.
    pub fn items(&self) -> impl Iterator<Item = GrepItem> {
        self.iter().map(|(line, text, ranges)| GrepItem {
            path: self.path.clone(),
            root: self.root.clone(),
            line,
            text: text.to_owned(),
            ranges: ranges.to_vec(),
            before: Vec::new(),
            after: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_may_be_empty_and_without_ranges() {
        let file = |lines: &[u32], text: &str, ranges| FileLines {
            path: "a".into(),
            root: RootId("root_1".into()),
            lines: lines.to_vec(),
            text: text.into(),
            ranges,
        };
        let bare = file(&[1, 4, 5], "a\n\n", vec![]);
        assert_eq!(
            bare.iter().collect::<Vec<_>>(),
            [(1, "a", &[][..]), (4, "", &[]), (5, "", &[])]
        );
        let lines = file(&[1, 4], "ab\nb", vec![vec![[1, 2]], vec![[0, 1]]]);
        let ranges: Vec<_> = lines.items().map(|item| item.ranges).collect();
        assert_eq!(ranges, [[[1, 2]], [[0, 1]]]);
        let one = file(&[7], "", vec![]);
        assert_eq!(
            one.items().map(|item| (item.line, item.text)).collect::<Vec<_>>(),
            [(7, String::new())]
        );
    }
}
