//! Calls between definitions: the methods `search.callers` and `search.callees`, and the walk along
//! them that a flow is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::search::{ReferenceConfidence, SymbolItem};

/// Parameters of the methods `search.callers` and `search.callees`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallsParams {
    /// Root to search: its id or path; needed when several roots are declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Name of the definition, as `name` or `Type.name`; with `path` the one in that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// File with the definition, relative to the root or absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Line of the definition in `path`, starting at 1; the innermost definition around it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Steps of calls that are followed, 1 to 5.
    #[serde(default = "default_depth")]
    pub depth: u32,
    /// Maximum number of definitions, 1 to 2,000.
    #[serde(default = "default_k")]
    pub k: u32,
}

fn default_depth() -> u32 {
    1
}

fn default_k() -> u32 {
    200
}

/// Answer of the methods `search.callers` and `search.callees`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallsAnswer {
    /// Definition whose callers or callees these are.
    pub definition: SymbolItem,
    /// Other definitions of the name, which `path` and `line` can select.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<SymbolItem>,
    /// Definitions by their number of steps; callers then by path and line, callees in the order of
    /// their calls.
    pub items: Vec<CallItem>,
    /// Number of calls in the bodies that were read which lead to no definition of the root, or to
    /// more than two of the same name; 0 for callers.
    #[serde(default)]
    pub unresolved: u32,
    /// True if there are more than `k`, or more files or definitions than were read.
    pub truncated: bool,
    /// True if imports and symbols are currently indexed for the root.
    pub complete: bool,
    /// Time spent, in microseconds.
    pub took_us: u64,
}

/// Definition that calls another, or is called by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallItem {
    /// Name of the definition; that of the file for calls outside of any definition.
    pub name: String,
    /// Kind of the definition, as in `search.symbols`; `module` for a file.
    pub kind: String,
    /// Name of the enclosing definition, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Path relative to the root.
    pub path: String,
    /// First line of the definition, starting at 1.
    pub line: u32,
    /// Number of calls between it and the requested definition, 1 for a direct one.
    pub steps: u32,
    /// Index of the item that it calls, or is called by; none for the requested definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<u32>,
    /// Certainty that the calls mean the definition: the best of theirs.
    pub confidence: ReferenceConfidence,
    /// Lines of the first 20 calls, in the file of the caller.
    pub lines: Vec<u32>,
}
