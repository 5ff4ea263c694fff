//! Errors of rules that cannot be read.

use cairn_command::CommandPatternError;
use cairn_workspace::PatternError;

/// A rule that cannot be parsed, or whose examples have another result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// It has none of the three forms.
    #[error("'{0}' is not a rule: write tool, tool(path) or run_shell(command)")]
    Form(String),
    /// Its domain is invalid.
    #[error("rule '{0}': write a domain such as crates.io or *.crates.io, not an address")]
    Domain(String),
    /// Its path is invalid.
    #[error("rule '{rule}': {source}")]
    Path {
        /// Text of the rule, as written.
        rule: String,
        source: PatternError,
    },
    /// Its command is invalid.
    #[error("rule '{rule}': {source}")]
    Command {
        /// Text of the rule, as written.
        rule: String,
        source: CommandPatternError,
    },
    /// It does not match an example that it should match.
    #[error("rule '{rule}' does not match its example '{example}'")]
    Misses {
        /// Text of the rule, as written.
        rule: String,
        example: String,
    },
    /// It matches an example that it should not match.
    #[error("rule '{rule}' matches '{example}', which it should not")]
    Overreaches {
        /// Text of the rule, as written.
        rule: String,
        example: String,
    },
}
