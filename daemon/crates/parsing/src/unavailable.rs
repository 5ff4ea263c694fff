//! The error of a parse that was not started.

/// Reason why a text was not parsed, which is the machine's and not the text's: it can be parsed
/// later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    /// No thread could be started.
    NoThread,
    /// Too many parsers had to be abandoned in this process.
    Disabled,
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoThread => {
                "no thread for a parser can be started: a limit of processes or memory is reached"
            }
            Self::Disabled => {
                "too many parsers exceeded their limits: none is started until the daemon restarts"
            }
        })
    }
}

impl std::error::Error for Unavailable {}
