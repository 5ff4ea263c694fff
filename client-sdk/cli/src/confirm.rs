//! Confirmation of a removal.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::exit::Failure;

/// Prompts the user at the terminal; true for a yes.
///
/// # Errors
/// Wrong usage without a terminal, with `what` would be removed and the flag to use instead.
pub fn at_terminal(what: &str, question: impl FnOnce() -> String) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(format!(
            "this removes {what}, and there is no terminal to confirm it: add --yes"
        )));
    }
    let mut terminal = std::io::stderr();
    terminal.write_all(question().as_bytes())?;
    terminal.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
