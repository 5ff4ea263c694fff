//! Parts of an answer that arrive before it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GrepItem, SearchItem};
use crate::id::RootId;

/// Payload of the live notification `search.partial`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchPartial {
    /// The `requestId` of the search.
    pub request_id: String,
    /// List that the items come from.
    pub corpus: Corpus,
    /// Root that the list is of; omitted on the last partial, which has the answer of all roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<RootId>,
    /// The items of the list, best first; empty on the last partial only.
    pub items: Vec<SearchItem>,
    /// True on the last partial.
    pub done: bool,
}

/// Live notification `search.partial` of a `search.grep`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrepPartial {
    /// The `requestId` of the search.
    pub request_id: String,
    /// Always the value `grep`.
    pub corpus: GrepCorpus,
    /// Lines that follow those of the previous partial.
    pub items: Vec<GrepItem>,
    /// True on the last partial.
    pub done: bool,
}

/// Source of the partials of `search.grep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrepCorpus {
    /// The files themselves, line by line.
    Grep,
}

/// List that a partial comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Corpus {
    /// Results of the lexical search.
    Lex,
    /// Results of the semantic search.
    Sem,
    /// Both lists after fusion.
    Fused,
}
