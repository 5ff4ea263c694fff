//! Kinds of queries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of a query. Each kind has its own candidates and weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueryKind {
    /// One identifier, possibly qualified: `TypeAdapter`, `Foo::bar`, `parse_header()`. The
    /// definitions of exactly that name come first.
    Identifier,
    /// One path, possibly with a line: `src/main.rs:42`.
    Path,
    /// A question about use (`how do I run this with docker`), which documents answer.
    Use,
    /// Words, a sentence, or another question.
    Text,
    /// A text of several lines: an issue, a log, a stack trace. Its title, the names, paths and
    /// messages in it count more than the rest.
    Issue,
}
