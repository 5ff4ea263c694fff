//! The mode of a chat: `/mode`, Shift+Tab, and the offer to carry out a plan.

use cairn_protocol::turn::{ExecutionMode, Outcome};

use super::{Chat, message::Message, picker, turn::End};
use crate::{
    exit::Failure,
    render::output::{self, plain},
};

/// Message that makes the model carry out its plan.
const CARRY_OUT: &str = "The plan is approved. Carry it out.";

/// Answers to a complete plan, with the mode that follows.
const ANSWERS: [(&str, ExecutionMode); 4] = [
    ("carry it out, and ask before each change", ExecutionMode::Ask),
    ("carry it out, and edit files without asking", ExecutionMode::AcceptEdits),
    ("carry it out, and also run commands in the sandbox without asking", ExecutionMode::Auto),
    ("continue planning", ExecutionMode::Plan),
];

/// Returns the mode that Shift+Tab switches to.
fn next(mode: ExecutionMode) -> ExecutionMode {
    match mode {
        ExecutionMode::Plan => ExecutionMode::Ask,
        ExecutionMode::Ask => ExecutionMode::AcceptEdits,
        ExecutionMode::AcceptEdits => ExecutionMode::Auto,
        ExecutionMode::Auto => ExecutionMode::Plan,
    }
}

fn describe(mode: ExecutionMode) -> &'static str {
    match mode {
        ExecutionMode::Plan => "nothing is changed",
        ExecutionMode::Ask => "changes and commands need your answer",
        ExecutionMode::AcceptEdits => "files are edited without asking; commands need your answer",
        ExecutionMode::Auto => "files are edited and commands run in the sandbox without asking",
    }
}

impl Chat<'_> {
    pub fn mode(&self) -> ExecutionMode {
        self.policy.mode.unwrap_or_default()
    }

    /// Switches to the next mode; the status line names it.
    pub fn switch_mode(&mut self) {
        self.policy.mode = Some(next(self.mode()));
    }

    /// Shows the mode, or switches to the named one.
    pub fn set_mode(&mut self, name: &str) -> Result<(), Failure> {
        if !name.is_empty() {
            let mode = ExecutionMode::from_name(name).ok_or_else(|| {
                let names = ExecutionMode::ALL.map(ExecutionMode::as_str).join(", ");
                Failure::usage(format!("there is no mode '{}'", plain(name)))
                    .hint(format!("the modes are {names}"))
            })?;
            self.policy.mode = Some(mode);
        }
        let mode = self.mode();
        Ok(output::line(&format!("{}: {}", mode.as_str(), describe(mode)))?)
    }

    /// Offers to carry out the plan that a turn ended with; returns the message that starts it.
    pub async fn offer_plan(&mut self, end: &End) -> Result<Option<Message>, Failure> {
        let End::Finished(result) = end else { return Ok(None) };
        let is_complete = result.status == Outcome::Completed;
        if self.mode() != ExecutionMode::Plan || !is_complete || !self.interactive || self.quit {
            return Ok(None);
        }
        self.screen.measure();
        let rows = ANSWERS.iter().map(|(text, _)| (*text).to_owned()).collect();
        let chosen = picker::choose("plan", rows, self.screen.capabilities()).await?;
        let mode = chosen.and_then(|at| ANSWERS.get(at)).map(|(_, mode)| *mode);
        let Some(mode) = mode.filter(|mode| *mode != ExecutionMode::Plan) else { return Ok(None) };
        self.policy.mode = Some(mode);
        Ok(Some(Message::plain(CARRY_OUT.into(), None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_passes_through_every_mode() {
        let mut mode = ExecutionMode::default();
        let mut names = Vec::new();
        for _ in ExecutionMode::ALL {
            mode = next(mode);
            names.push(mode.as_str());
        }
        assert_eq!(names, ["accept-edits", "auto", "plan", "ask"]);
    }
}
