//! An overview that a model writes from the findings of an explore.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Overview that a model wrote; lines of the tree bear out every statement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// Statements in reading order, at most 12.
    pub statements: Vec<Statement>,
    /// Number of citations that were dropped: no such line, or none of the statement's words near it.
    pub dropped_citations: u64,
    /// Number of statements that were dropped because none of their citations was valid.
    pub dropped_statements: u64,
}

/// Statement of an overview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    /// One or two sentences.
    pub text: String,
    /// Lines that bear it out, at least one.
    pub citations: Vec<Citation>,
}

/// Line that bears out a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Citation {
    /// Path relative to the root.
    pub path: String,
    /// Line, starting at 1.
    pub line: u32,
}
