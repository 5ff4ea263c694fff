//! Questions that are answered with yes or no.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::exit::Failure;

/// Prompts the user at the terminal; true for a yes.
///
/// # Errors
/// Wrong usage without a terminal, with `what` would be removed and the flag to use instead.
pub fn at_terminal(what: &str, question: impl FnOnce() -> String) -> Result<bool, Failure> {
    if !is_possible() {
        return Err(Failure::usage(format!(
            "this removes {what}, and there is no terminal to confirm it: add --yes"
        )));
    }
    prompt(&question())
}

/// True if a person can be prompted.
pub fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Prints a question and reads the answer; true for a yes.
///
/// # Errors
/// The terminal cannot be read.
pub fn prompt(question: &str) -> Result<bool, Failure> {
    let mut terminal = std::io::stderr();
    terminal.write_all(question.as_bytes())?;
    terminal.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
