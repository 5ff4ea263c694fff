//! All lines of a pattern, told while they are found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    id::RootId,
    search::{GrepItem, SearchFilters},
};

/// Parameters of `search.grepStream`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrepStreamParams {
    /// Name of the `search.partial` notifications that bring the lines.
    pub request_id: String,
    /// Text, or a regular expression with `isRegex`. At most 4 KiB.
    pub pattern: String,
    /// Only files under this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// Whether `pattern` is a regular expression.
    #[serde(default)]
    pub is_regex: bool,
    /// As those of `search.grep`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Lines wanted at most; all when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u64>,
    /// Whether `ranges` are told: each line is then looked at once more.
    #[serde(default)]
    pub with_ranges: bool,
    /// Where to go on, from a partial's `cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Further filters; `kinds` does not apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<SearchFilters>,
}

/// Answer of `search.grepStream`: it comes when all lines are told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrepStreamEnd {
    /// Lines told.
    pub total: u64,
    /// Files looked into.
    pub files_searched: u64,
    /// True when there are more lines than `k`.
    pub truncated: bool,
    /// Whether the file list covers its whole scope now.
    pub complete: bool,
    /// Files that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
    /// Microseconds spent.
    pub took_us: u64,
    /// Whether rules hide paths of what was asked for, which are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restricted: bool,
}

/// Live notification `search.partial` of a `search.grepStream`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinesPartial {
    /// The `requestId` of the search.
    pub request_id: String,
    /// Always `lines`.
    pub corpus: LinesCorpus,
    /// The lines that come after those of the partial before; the first file may be the last one of that.
    pub files: Vec<FileLines>,
    /// Where to go on after these lines, should the connection end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// True on the last one.
    pub done: bool,
}

/// What the partials of `search.grepStream` come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinesCorpus {
    /// The files themselves, line by line.
    Lines,
}

/// Matching lines of one file, at least one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileLines {
    /// Path relative to its root.
    pub path: String,
    /// The root.
    pub root: RootId,
    /// Their numbers, ascending.
    pub lines: Vec<u32>,
    /// The text of each without its end, at most 2 KiB, invalid UTF-8 replaced; with `\n` between one and the next.
    pub text: String,
    /// With `withRanges`: for each of them the byte ranges of the matches in its text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<Vec<[u32; 2]>>,
}

impl FileLines {
    /// Number, text and matches of each line.
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

    /// The lines as `search.grep` has them.
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
    fn lines_may_be_empty_and_have_no_ranges() {
        let file = |lines: &[u32], text: &str, ranges| FileLines {
            path: "a".into(),
            root: RootId("root_1".into()),
            lines: lines.to_vec(),
            text: text.into(),
            ranges,
        };
        let bare = file(&[1, 4, 5], "a\n\n", vec![]);
        assert_eq!(bare.iter().collect::<Vec<_>>(), [(1, "a", &[][..]), (4, "", &[]), (5, "", &[])]);
        let told = file(&[1, 4], "ab\nb", vec![vec![[1, 2]], vec![[0, 1]]]);
        let ranges: Vec<_> = told.items().map(|item| item.ranges).collect();
        assert_eq!(ranges, [[[1, 2]], [[0, 1]]]);
        let one = file(&[7], "", vec![]);
        assert_eq!(one.items().map(|item| (item.line, item.text)).collect::<Vec<_>>(), [(7, String::new())]);
    }
}
