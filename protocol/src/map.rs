//! The map of a repository: its most telling files and definitions, in a number of tokens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::RootId;

/// Most tokens of a map.
pub const MAX_BUDGET: u32 = 16_384;
/// Most files that a map can be drawn around.
pub const MAX_FILES: usize = 200;

/// Parameters of `search.map`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MapParams {
    /// Root ids or absolute root paths; all declared roots when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// Tokens that the text may take, 1 to 16,384; a token is taken for four bytes.
    #[serde(default = "default_budget")]
    pub budget: u32,
    /// Files being worked on, relative to their root or absolute, at most 200: what they refer to comes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// What is being worked on, in words or names: what a search for it finds comes first. At most 4 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

impl Default for MapParams {
    fn default() -> Self {
        Self { roots: Vec::new(), budget: default_budget(), files: Vec::new(), query: None }
    }
}

fn default_budget() -> u32 {
    1024
}

/// Answer of `search.map`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MapAnswer {
    /// The map as a model reads it: a line for each file, under it one for each definition: line number, kind, name.
    pub text: String,
    /// The same, best file first.
    pub files: Vec<MapFile>,
    /// Tokens of `text`, one for four bytes; at most the budget.
    pub tokens: u32,
    /// False while symbols are missing, and for trees with more definitions than a map can weigh.
    pub complete: bool,
    /// Microseconds spent.
    pub took_us: u64,
    /// Whether rules hide paths of what was asked for, which are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restricted: bool,
}

/// A file of a map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MapFile {
    /// Path relative to its root.
    pub path: String,
    /// The root.
    pub root: RootId,
    /// Its part of all attention, 0 to 1.
    pub score: f64,
    /// Its definitions that fit, by line.
    pub definitions: Vec<MapDefinition>,
}

/// A definition of a map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MapDefinition {
    /// Its name.
    pub name: String,
    /// `function`, `class`, …
    pub kind: String,
    /// Its first line.
    pub line: u32,
}
