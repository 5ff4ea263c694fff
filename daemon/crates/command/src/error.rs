//! Errors of command patterns in rules.

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
