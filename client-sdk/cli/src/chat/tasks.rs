//! `/tasks`: the background commands of the session.

use std::fmt::Write as _;

use cairn_client_sdk::Client;
use cairn_protocol::background::{
    BackgroundCommand, BackgroundOutputParams, BackgroundRef, BackgroundState,
};

use super::Chat;
use crate::{
    exit::Failure,
    render::output::{self, plain},
};

/// Lines of output that `/tasks ID` shows.
const LINES: usize = 40;

impl Chat<'_> {
    /// Lists the background commands, shows the output of one, or stops one.
    pub(super) async fn tasks(&self, argument: &str) -> Result<(), Failure> {
        let words: Vec<&str> = argument.split_whitespace().collect();
        match words[..] {
            [] => {
                let commands =
                    self.client.background_list(&Client::session(&self.session)).await?.data;
                Ok(output::print(&table(&commands))?)
            }
            ["stop", id] => {
                let params = BackgroundRef { session_id: self.session.clone(), id: id.to_owned() };
                let stopped = self.client.background_stop(&params).await?;
                Ok(output::print(&table(&[stopped]))?)
            }
            [id] => {
                let lines = self.task_output(id).await?;
                Ok(output::print(&lines)?)
            }
            _ => Err(Failure::usage("too many words").hint("/tasks [ID | stop ID]")),
        }
    }

    /// Returns the last lines of a command.
    async fn task_output(&self, id: &str) -> Result<String, Failure> {
        let mut params = BackgroundOutputParams {
            session_id: self.session.clone(),
            id: id.to_owned(),
            cursor: 0,
        };
        let mut text = String::new();
        loop {
            let piece = self.client.background_output(&params).await?;
            // Output that arrives meanwhile is left for the next call.
            let over = piece.command.bytes <= piece.cursor || piece.output.is_empty();
            text.push_str(&piece.output);
            params.cursor = piece.cursor;
            if over || !piece.more || text.len() > 1 << 20 {
                break;
            }
        }
        let all: Vec<String> = text.lines().map(plain).collect();
        let last = &all[all.len().saturating_sub(LINES)..];
        Ok(last.iter().map(|line| format!("{line}\n")).collect())
    }
}

/// Returns the state in words.
pub(super) fn state(state: BackgroundState, exit_code: Option<i32>) -> String {
    let word = match state {
        BackgroundState::Running => return "running".into(),
        BackgroundState::Exited => "exited",
        BackgroundState::Stopped => "stopped",
        BackgroundState::TimedOut => "stopped at its limit of time",
        BackgroundState::SessionClosed => "ended with the session",
        BackgroundState::DaemonStopped => "ended with the daemon",
    };
    exit_code.map_or_else(|| word.to_owned(), |code| format!("{word} ({code})"))
}

fn table(commands: &[BackgroundCommand]) -> String {
    if commands.is_empty() {
        return "there are no background commands\n".into();
    }
    let mut out = String::new();
    for command in commands {
        let line = command.command.lines().next().unwrap_or_default();
        let _infallible = writeln!(
            out,
            "{:<12} {:<12} {:>10}  {}",
            plain(&command.id),
            state(command.state, command.exit_code),
            output::bytes(command.bytes),
            plain(line)
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_shows_state_and_command() {
        assert_eq!(table(&[]), "there are no background commands\n");
        let command = BackgroundCommand {
            id: "bg_1".into(),
            command: "npm run dev\u{1b}[2J".into(),
            state: BackgroundState::Exited,
            exit_code: Some(1),
            started_at: cairn_protocol::time::Timestamp(0),
            finished_at: None,
            bytes: 10,
        };
        let text = table(&[command]);
        assert!(text.starts_with("bg_1         exited (1)"), "{text}");
        assert!(text.contains("npm run dev") && !text.contains('\u{1b}'), "{text}");
    }
}
