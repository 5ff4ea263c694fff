//! Notices at the prompt: the model cannot answer, requests wait in other sessions, and the last
//! turn of a chat that is continued.

use std::time::Duration;

use cairn_client_sdk::Client;
use cairn_protocol::{
    approval::ApprovalListParams,
    error::Reason,
    event::AgentEvt,
    id::SessionId,
    session::Empty,
    trace::TraceGetParams,
    turn::{ModelListParams, ProviderCurrentParams},
};
use console::style;

use super::{Chat, markdown::Markdown, resume, screen::Out};
use crate::{exit::Failure, render::output::plain, session_name};

/// Records in which the last turn is looked for.
const RECENT: u64 = 200;
/// Maximum lines of the last turn.
const MAX_LINES: usize = 24;
/// Time limit of a local model server for listing its models.
const MODEL_TIMEOUT: Duration = Duration::from_secs(2);
/// Requests of other sessions that are named.
const MAX_NAMED: usize = 3;

impl Chat<'_> {
    /// Warns before the first request if the model cannot answer. A model on another machine is not
    /// contacted.
    pub async fn check_model(&mut self) -> Result<(), Failure> {
        let params = ProviderCurrentParams { session_id: Some(self.session.clone()) };
        let Ok(current) = self.client.provider_current(&params).await else { return Ok(()) };
        let known = self.client.provider_list(&Empty {}).await?.data;
        let Some(provider) = known.into_iter().find(|p| p.name == current.provider) else {
            return Ok(());
        };
        let mut reason = (!provider.available)
            .then_some(provider.reason)
            .map(|reason| reason.unwrap_or_else(|| format!("{} cannot be used", provider.name)));
        if reason.is_none() && !provider.external && provider.endpoint.is_some() {
            let params = ModelListParams { provider: Some(provider.name.clone()) };
            let listing = self.client.model_list(&params);
            match tokio::time::timeout(MODEL_TIMEOUT, listing).await {
                // A server may have no list of its models, and answer all the same.
                Ok(Err(error)) if error.reason() == Some(Reason::ModelUnavailable.as_str()) => {
                    reason = Some(error.to_string());
                }
                Ok(_) | Err(_) => {}
            }
        }
        if let Some(reason) = reason {
            let file = self.app.env.config_dir().map(|dir| dir.join("config.json"));
            let file = file.map(|file| format!(" in {}", file.display())).unwrap_or_default();
            self.app.info(&format!("warning: {}", plain(&reason)));
            self.app
                .info(&format!("'cairn setup' finds a model; the setting is llm.provider{file}"));
        }
        Ok(())
    }

    /// Names the requests that wait for an answer and were not named before.
    pub async fn report_waiting(&mut self) -> Result<(), Failure> {
        let Ok(page) = self.client.approval_list(&ApprovalListParams::default()).await else {
            return Ok(());
        };
        let mut waiting = page.data;
        waiting.retain(|approval| approval.resolution.is_none());
        let ids: Vec<_> = waiting.iter().map(|a| a.approval_id.clone()).collect();
        waiting.retain(|approval| !self.reported.contains(&approval.approval_id));
        self.reported = ids;
        if waiting.is_empty() {
            return Ok(());
        }
        for approval in waiting.iter().take(MAX_NAMED) {
            self.app.info(&format!(
                "session {} waits for you: {}",
                session_name::short(&approval.session_id),
                plain(&approval.preview.summary)
            ));
        }
        let more = waiting.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!("and {more} more; ") } else { String::new() };
        self.app.info(&format!("{more}'cairn approvals' in another terminal answers"));
        Ok(())
    }

    /// Prints the last request and its answer.
    pub async fn print_last_turn(&mut self) -> Result<(), Failure> {
        let LastTurn { question, answer } =
            last_turn(&self.client, &self.session, self.seq).await?;
        let mut out = String::new();
        if let Some(question) = question {
            for line in clipped(&question) {
                out.push_str(&format!("{}\n", style(format!("> {line}")).dim().for_stderr()));
            }
        }
        if let Some(answer) = answer {
            let capabilities = self.screen.capabilities();
            let mut markdown = Markdown::new(capabilities.width, capabilities.theme);
            let text = clipped(&answer).join("\n");
            out.push_str(&markdown.push(&format!("{text}\n")));
            out.push_str(&markdown.finish());
            if !out.ends_with('\n') {
                out.push('\n');
            }
        }
        Ok(self.screen.write(&[Out::Note(out)])?)
    }
}

/// The last request of a session, and its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastTurn {
    pub question: Option<String>,
    pub answer: Option<String>,
}

/// Reads the last turn of a session whose newest record is `head`.
pub async fn last_turn(
    client: &Client,
    session: &SessionId,
    head: u64,
) -> Result<LastTurn, Failure> {
    let params = TraceGetParams {
        trace_id: session.clone(),
        after: head.saturating_sub(RECENT),
        limit: Some(u32::try_from(RECENT).unwrap_or(u32::MAX)),
    };
    let page = client.trace_get(&params).await?;
    let mut last = LastTurn::default();
    for evt in page.data.iter().filter_map(|record| record.body.evt()) {
        match evt {
            AgentEvt::TurnAccepted { input, .. } => {
                last.question = resume::typed(input).map(str::to_owned);
                last.answer = None;
            }
            AgentEvt::RunCompleted { result } => last.answer = result.final_output.clone(),
            _ => {}
        }
    }
    Ok(last)
}

/// Returns the first lines of a text, safe to print, with a mark if there are more.
fn clipped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.trim().lines().take(MAX_LINES).map(plain).collect();
    if text.trim().lines().count() > MAX_LINES {
        lines.push("…".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_clipped_and_escaped() {
        assert_eq!(clipped("\na\u{1b}[2J\nb\n"), ["a\\u{1b}[2J", "b"]);
        let long = "x\n".repeat(100);
        let lines = clipped(&long);
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (MAX_LINES + 1, Some("…")));
    }
}
