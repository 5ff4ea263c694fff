//! The file of `--log-file`: metrics, calls, warnings and errors, one per line.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    path::Path,
};

use cairn_protocol::{event::AgentEvt, time::Timestamp};

use super::{Chat, calls, figures, local};
use crate::{exit::Failure, render::output::plain};

pub struct Log {
    file: File,
    verbose: bool,
}

impl Log {
    /// Opens the log for appending.
    pub fn open(path: &Path, verbose: bool) -> Result<Self, Failure> {
        let opened = local::private(OpenOptions::new().create(true).append(true)).open(path);
        Ok(Self { file: opened.map_err(|e| Failure::path(path, &e))?, verbose })
    }

    fn line(&mut self, text: &str) {
        // A failed write to the log must not end the chat.
        let _lost = writeln!(self.file, "{} {}", Timestamp::now(), plain(text));
    }
}

/// Renders an event for the log.
fn log_text(evt: &AgentEvt) -> Option<String> {
    match evt {
        AgentEvt::ModelAnswer(answer) => figures::prompt_eval_logged(answer),
        AgentEvt::ToolCall { name, arguments, .. } => {
            Some(format!("[tool] {name} {}", calls::about(arguments)))
        }
        AgentEvt::ToolResult(outcome) => {
            let reason = outcome.error.as_ref().map_or("ok", |e| e.reason.as_str());
            Some(format!("[result] {} {reason} · {} ms", outcome.name, outcome.millis))
        }
        AgentEvt::Warning { op, message } => Some(format!("[warning] {op}: {message}")),
        AgentEvt::RunCompleted { result } => {
            let error = result
                .error
                .as_ref()
                .map(|e| format!(": {} ({})", e.message, e.reason))
                .unwrap_or_default();
            Some(format!("[turn] {} {:?}{error}", result.turn_id, result.status))
        }
        _ => None,
    }
}

impl Chat<'_> {
    pub fn log_event(&mut self, evt: &AgentEvt) {
        if let (Some(log), Some(text)) = (&mut self.log, log_text(evt)) {
            log.line(&text);
        }
        if let (Some(log), AgentEvt::ModelAnswer(answer)) = (&mut self.log, evt)
            && let Some(text) = figures::summary(answer)
        {
            log.line(&text);
        }
    }

    /// Logs the progress of reading the prompt, in verbose mode.
    pub fn log_progress(&mut self, evt: &AgentEvt) {
        let Some(log) = self.log.as_mut().filter(|log| log.verbose) else { return };
        if let AgentEvt::PromptProgress { processed, total, context_tokens, .. } = evt
            && self.display.progress
        {
            log.line(&figures::reading(*processed, *total, *context_tokens));
        }
    }
}
