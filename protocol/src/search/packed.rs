//! Answers of bounded size.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An answer as text of bounded size: for each result its location and its most relevant lines,
/// with `…` and the number of lines where some are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackedText {
    /// Complete text, best result first. Locations are relative to the root if one root was
    /// searched, absolute otherwise.
    pub text: String,
    /// Upper estimate of the tokens of `text`, at most `maxTokens`.
    pub tokens: u32,
    /// Ranges of lines that `text` contains.
    pub lines: Vec<PackedLines>,
}

/// A range of lines in a packed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackedLines {
    /// Index in `items` of the result in whose file the lines are.
    pub item: u32,
    /// First line of the range, starting at 1.
    pub start_line: u32,
    /// Last line of the range, inclusive.
    pub end_line: u32,
}

/// The part of an answer that `maxTokens` left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Omitted {
    /// Number of results that are neither in `items` nor in the text.
    pub items: u32,
    /// Number of lines of the named results that the text leaves out.
    pub lines: u32,
    /// Value of `offset` that continues the answer, if results were left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u32>,
    /// Description of a request that returns the omitted part.
    pub hint: String,
}
