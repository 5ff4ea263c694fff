//! The repository map: the most relevant files and definitions, within a budget of tokens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::RootId;

/// Maximum tokens of a map.
pub const MAX_BUDGET: u32 = 16_384;
/// Maximum number of files that a map can focus on.
pub const MAX_FILES: usize = 200;

/// Parameters of the method `search.map`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MapParams {
    /// Root ids or absolute root paths; all declared roots when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// Maximum tokens of the text, 1 to 16,384, counted as one per four bytes.
    #[serde(default = "default_budget")]
    pub budget: u32,
    /// Files being edited, relative to their root or absolute, at most 200: files that they refer
    /// to rank first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Text or names that describe the task: files that a search for it finds rank first. At most
    /// 4 KiB.
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

/// Answer of the method `search.map`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MapAnswer {
    /// The map for a model: one line for each file, and under it one for each definition with line
    /// number and signature, or kind and name.
    pub text: String,
    /// Files of the map, best first.
    pub files: Vec<MapFile>,
    /// Tokens of `text`, counted as one per four bytes; at most the budget.
    pub tokens: u32,
    /// False while symbols are missing, and for trees with more definitions than a map can rank.
    pub complete: bool,
    /// Time spent, in microseconds.
    pub took_us: u64,
    /// True if rules hide some of the requested paths, which are omitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restricted: bool,
}

/// One file of a map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MapFile {
    /// Path relative to its root.
    pub path: String,
    /// Id of the root.
    pub root: RootId,
    /// Share of the total rank, 0 to 1.
    pub score: f64,
    /// Definitions that fit the budget, sorted by line.
    pub definitions: Vec<MapDefinition>,
}

/// One definition of a map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MapDefinition {
    /// Name of the definition.
    pub name: String,
    /// Kind of definition: `function`, `class`, …
    pub kind: String,
    /// First line of the definition.
    pub line: u32,
    /// Its first lines without the body and without the value of a constant, on one line of at most
    /// 100 characters. Absent if the budget was used up, if the file has changed since, and for
    /// modules and sections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}
