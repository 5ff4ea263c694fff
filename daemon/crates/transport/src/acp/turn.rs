//! Prompts: a turn of the agent from the prompt to its stop reason.

use cairn_protocol::{
    error::{Failure, Reason},
    id::RunId,
    model::Part,
    turn::{Outcome, RunResult},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{Inner, Turn, update};

/// Params of the method `session/prompt`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    session_id: String,
    prompt: Vec<Block>,
}

/// A part of a prompt.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        mime_type: String,
    },
    ResourceLink {
        uri: String,
        #[serde(default)]
        name: String,
    },
    Resource {
        resource: Embedded,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Embedded {
    uri: String,
    #[serde(default)]
    text: Option<String>,
}

/// The text of a prompt and the context that precedes it.
#[derive(Debug, Default, PartialEq)]
struct PromptText {
    parts: Vec<Part>,
    context: String,
}

impl PromptText {
    fn of(blocks: Vec<Block>, folder: &str) -> Result<Self, Failure> {
        let mut prompt_text = Self::default();
        for block in blocks {
            match block {
                Block::Text { text } => prompt_text.text(&text),
                Block::Image { data, mime_type } => {
                    prompt_text.parts.push(Part::Image { mime: mime_type, data })
                }
                Block::ResourceLink { uri, name } => {
                    prompt_text.text(&resource_reference(&uri, &name, folder))
                }
                Block::Resource { resource: Embedded { uri, text: Some(text) } } => {
                    let reference = resource_reference(&uri, "", folder);
                    prompt_text.text(&reference);
                    let quoted = format!("{reference}:\n```\n{text}\n```\n");
                    prompt_text.context.push_str(&quoted);
                }
                Block::Resource { resource: Embedded { uri, text: None } } => {
                    let text = format!("prompt: resource '{}' is not text", uri.escape_default());
                    return Err(Failure::new(Reason::InvalidParams, text));
                }
                Block::Other => {
                    let text = "prompt: parts are text, image, resource_link and resource";
                    return Err(Failure::new(Reason::InvalidParams, text));
                }
            }
        }
        Ok(prompt_text)
    }

    fn text(&mut self, more: &str) {
        match self.parts.last_mut() {
            Some(Part::Text { text }) => text.push_str(more),
            _ => self.parts.push(Part::Text { text: more.to_owned() }),
        }
    }

    /// Returns the command if the prompt consists of nothing else.
    fn command(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Text { text }] => text.trim().strip_prefix('/'),
            _ => None,
        }
    }
}

/// Renders a reference to a resource for a model.
fn resource_reference(uri: &str, name: &str, folder: &str) -> String {
    match uri.strip_prefix("file://") {
        Some(path) => update::relative(path, folder).to_owned(),
        None if name.is_empty() => uri.to_owned(),
        None => format!("{name} ({uri})"),
    }
}

impl Inner {
    /// Handles `session/prompt`; the answer comes when the turn has ended.
    pub async fn prompt(&self, request: &str, prompt: Prompt) -> Result<Value, Failure> {
        let session = prompt.session_id;
        let prompt_text = PromptText::of(prompt.prompt, &self.folder(&session)?)?;
        if prompt_text.parts.is_empty() {
            return Err(Failure::new(Reason::InvalidParams, "prompt: the text is empty"));
        }
        if let Some(command @ ("clear" | "compress")) = prompt_text.command() {
            return self.command(&session, command).await;
        }
        // A fresh id, unlike those that the editor chooses.
        let turn = RunId::new().to_string();
        let (done, result) = oneshot::channel();
        let waiting = Turn { session: session.clone(), request: request.to_owned(), done };
        {
            let mut state = self.state();
            state.cancelled.remove(&session);
            state.turns.insert(turn.clone(), waiting);
        }
        let context = self.directories_text(&session) + &prompt_text.context;
        let context = Some(context).filter(|context| !context.is_empty());
        // The user chose the model in their own configuration, which must allow external models as
        // well.
        let policy = json!({"allowExternalLLMs": true, "dryRun": self.is_dry_run(&session)});
        let mut params = json!({"sessionId": session, "turnId": turn, "input": prompt_text.parts, "policy": policy});
        if let Some(context) = context {
            params["context"] = json!(context);
        }
        if let Err(failure) = self.client.call("orchestrate.run.start", &params).await {
            self.state().turns.remove(&turn);
            return Err(failure);
        }
        let closed = || {
            Failure::new(
                Reason::ShuttingDown,
                "the turn's outcome is unknown: the session was closed",
            )
        };
        self.stop_reason(&session, result.await.map_err(|_closed| closed())??).await
    }

    /// Converts the result of a turn to a stop reason.
    async fn stop_reason(&self, session: &str, result: RunResult) -> Result<Value, Failure> {
        let usage = &result.usage;
        let meta =
            json!({"cairn": {"runId": result.run_id, "turnId": result.turn_id, "usage": usage}});
        let error = result.error;
        let reason = match (result.status, error.as_ref().map(|error| error.reason.as_str())) {
            (Outcome::Completed, _) => "end_turn",
            (Outcome::Cancelled, _) => "cancelled",
            (_, Some("budget_exceeded" | "context_overflow")) => "max_tokens",
            (_, Some("turn_limit" | "stuck")) | (Outcome::TimedOut, _) => "max_turn_requests",
            (Outcome::Denied, _) => "refusal",
            (Outcome::Failed, _) => {
                let (reason, message) =
                    error.map_or_else(Default::default, |e| (e.reason, e.message));
                let reason = Reason::ALL.iter().copied().find(|r| r.as_str() == reason);
                return Err(Failure::new(reason.unwrap_or(Reason::Internal), message));
            }
        };
        if let Some(error) = error.filter(|_| reason != "end_turn" && reason != "cancelled") {
            let text = if error.hint.is_empty() {
                error.message
            } else {
                format!("{}: {}", error.message, error.hint)
            };
            self.update(session, update::message_chunk(&format!("\n{text}\n"))).await;
        }
        Ok(json!({"stopReason": reason, "_meta": meta}))
    }

    async fn command(&self, session: &str, command: &str) -> Result<Value, Failure> {
        let params = json!({"sessionId": session});
        let notice = if command == "clear" {
            self.client.call("session.clear", &params).await?;
            "The conversation was cleared; its log is retained.".to_owned()
        } else {
            let done = self.client.call("session.compress", &params).await?;
            format!(
                "The conversation was replaced with a summary: {} tokens to {}.",
                done["tokensBefore"], done["tokensAfter"]
            )
        };
        self.update(session, update::message_chunk(&notice)).await;
        Ok(json!({"stopReason": "end_turn"}))
    }

    /// Cancels a turn. Its prompt is answered when the turn has ended.
    pub async fn cancel(&self, session: &str, turn: &str) {
        let params = json!({"sessionId": session, "turnId": turn});
        // Fails if the turn has just ended; its last record will follow.
        if let Err(failure) = self.client.call("orchestrate.run.cancel", &params).await {
            tracing::debug!(%session, %failure, "nothing to cancel");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(blocks: Value) -> Result<PromptText, Failure> {
        PromptText::of(serde_json::from_value(blocks).unwrap(), "/home/me/repo")
    }

    #[test]
    fn blocks_are_rendered_as_text() {
        let prompt = parse(json!([
            {"type": "text", "text": "look at "},
            {"type": "resource_link", "uri": "file:///home/me/repo/src/a.rs", "name": "a.rs"},
            {"type": "text", "text": " and "},
            {"type": "resource", "resource": {"uri": "file:///etc/b", "text": "B"}},
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "https://x.example/", "name": "x"},
        ]))
        .unwrap();
        let text = |text: &str| Part::Text { text: text.into() };
        let image = Part::Image { mime: "image/png".into(), data: "AA==".into() };
        assert_eq!(
            prompt.parts,
            [text("look at src/a.rs and /etc/b"), image, text("x (https://x.example/)")]
        );
        assert_eq!(prompt.context, "/etc/b:\n```\nB\n```\n");
        for bad in [
            json!([{"type": "audio", "data": "", "mimeType": "audio/wav"}]),
            json!([{"type": "resource", "resource": {"uri": "file:///x", "blob": "AA=="}}]),
        ] {
            assert_eq!(parse(bad).unwrap_err().reason, Reason::InvalidParams);
        }
    }

    #[test]
    fn command_must_be_entire_prompt() {
        let command = |text: &str| {
            let prompt = parse(json!([{"type": "text", "text": text}])).unwrap();
            prompt.command().map(str::to_owned)
        };
        assert_eq!(command("/clear ").as_deref(), Some("clear"));
        assert_eq!(command("clear"), None);
    }
}
