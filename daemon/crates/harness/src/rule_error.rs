//! Errors of rules that cannot be read.

use cairn_workspace::PatternError;

/// A rule that cannot be parsed, or whose examples have another result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// It has none of the three forms.
    #[error("'{0}' is not a rule: write tool, tool(path) or run_shell(command)")]
    Form(String),
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

/// A command of a rule that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandPatternError {
    /// `=` without a command line.
    #[error("there is nothing after '='")]
    EmptyText,
    /// A pattern of `*` alone.
    #[error("name the tool alone for any command")]
    AnyCommand,
    /// A program that starts another.
    #[error("write the rule for the command that '{0}' runs, which is what is looked at")]
    Wrapper(String),
    /// Several commands, or none.
    #[error("'{0}' is not one command; each command needs a rule of its own")]
    NotOne(String),
    /// A command whose words are not known beforehand.
    #[error("'{0}' is not a plain command; write its words, and '*' as the last for further arguments")]
    NotPlain(String),
}
