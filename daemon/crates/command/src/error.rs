//! Errors of command patterns in rules.

/// A command of a rule that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandPatternError {
    /// `=` without a command line.
    #[error("there is nothing after '='")]
    EmptyText,
    /// A pattern of `*` alone.
    #[error("to match any command, write the tool's name without parentheses")]
    AnyCommand,
    /// A program that starts another.
    #[error(
        "write the rule for the command that '{0}' runs: that command is the one that is checked"
    )]
    Wrapper(String),
    /// Several commands, or none.
    #[error("'{0}' is not a single command; each command needs its own rule")]
    NotOne(String),
    /// A command whose words are not known beforehand.
    #[error("'{0}' is not a plain command; write its words, and a final '*' for further arguments")]
    NotPlain(String),
}
