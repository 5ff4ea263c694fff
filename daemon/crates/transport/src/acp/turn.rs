//! A prompt: a turn of the agent, from the editor's words to why it stopped.

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

/// Parameters of `session/prompt`.
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

/// What a prompt says, and what goes before it.
#[derive(Debug, Default, PartialEq)]
struct Words {
    parts: Vec<Part>,
    context: String,
}

impl Words {
    fn of(blocks: Vec<Block>, folder: &str) -> Result<Self, Failure> {
        let mut words = Self::default();
        for block in blocks {
            match block {
                Block::Text { text } => words.text(&text),
                Block::Image { data, mime_type } => words.parts.push(Part::Image { mime: mime_type, data }),
                Block::ResourceLink { uri, name } => words.text(&named(&uri, &name, folder)),
                Block::Resource { resource: Embedded { uri, text: Some(text) } } => {
                    let place = named(&uri, "", folder);
                    words.text(&place);
                    let quoted = format!("{place}:\n```\n{text}\n```\n");
                    words.context.push_str(&quoted);
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
        Ok(words)
    }

    fn text(&mut self, more: &str) {
        match self.parts.last_mut() {
            Some(Part::Text { text }) => text.push_str(more),
            _ => self.parts.push(Part::Text { text: more.to_owned() }),
        }
    }

    /// A command: the whole prompt is its name.
    fn command(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Text { text }] => text.trim().strip_prefix('/'),
            _ => None,
        }
    }
}

/// How a model reads the address of a resource.
fn named(uri: &str, name: &str, folder: &str) -> String {
    match uri.strip_prefix("file://") {
        Some(path) => update::relative(path, folder).to_owned(),
        None if name.is_empty() => uri.to_owned(),
        None => format!("{name} ({uri})"),
    }
}

impl Inner {
    /// `session/prompt`: answered when the turn has ended.
    pub async fn prompt(&self, request: &str, prompt: Prompt) -> Result<Value, Failure> {
        let session = prompt.session_id;
        let words = Words::of(prompt.prompt, &self.folder(&session)?)?;
        if words.parts.is_empty() {
            return Err(Failure::new(Reason::InvalidParams, "prompt: it says nothing"));
        }
        if let Some(command @ ("clear" | "compress")) = words.command() {
            return self.command(&session, command).await;
        }
        // Ids of the daemon's own making are unlike one another.
        let turn = RunId::new().to_string();
        let (ended, result) = oneshot::channel();
        let waiting = Turn { session: session.clone(), request: request.to_owned(), ended };
        {
            let mut state = self.state();
            state.cancelled.remove(&session);
            state.turns.insert(turn.clone(), waiting);
        }
        let context = Some(words.context).filter(|context| !context.is_empty());
        // Whoever asks here asks for the model that their own configuration names; that must allow it too.
        let policy = json!({"allowExternalLLMs": true, "dryRun": self.is_dry(&session)});
        let mut params =
            json!({"sessionId": session, "turnId": turn, "input": words.parts, "policy": policy});
        if let Some(context) = context {
            params["context"] = json!(context);
        }
        if let Err(failure) = self.queue.call("orchestrate.run.start", &params).await {
            self.state().turns.remove(&turn);
            return Err(failure);
        }
        let gone =
            || Failure::new(Reason::ShuttingDown, "the turn's end is not known: the session was closed");
        self.stopped(&session, result.await.map_err(|_closed| gone())??).await
    }

    /// Why a turn stopped, as an editor is told.
    async fn stopped(&self, session: &str, result: RunResult) -> Result<Value, Failure> {
        let usage = &result.usage;
        let meta = json!({"cairn": {"runId": result.run_id, "turnId": result.turn_id, "usage": usage}});
        let error = result.error;
        let reason = match (result.status, error.as_ref().map(|error| error.reason.as_str())) {
            (Outcome::Completed, _) => "end_turn",
            (Outcome::Cancelled, _) => "cancelled",
            (_, Some("budget_exceeded" | "context_overflow")) => "max_tokens",
            (_, Some("turn_limit" | "stuck")) | (Outcome::TimedOut, _) => "max_turn_requests",
            (Outcome::Denied, _) => "refusal",
            (Outcome::Failed, _) => {
                let (reason, message) = error.map_or_else(Default::default, |e| (e.reason, e.message));
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
            self.update(session, update::said(&format!("\n{text}\n"))).await;
        }
        Ok(json!({"stopReason": reason, "_meta": meta}))
    }

    async fn command(&self, session: &str, command: &str) -> Result<Value, Failure> {
        let params = json!({"sessionId": session});
        let said = if command == "clear" {
            self.queue.call("session.clear", &params).await?;
            "The conversation is empty; its log stays.".to_owned()
        } else {
            let done = self.queue.call("session.compress", &params).await?;
            format!(
                "A summary stands for the conversation: {} tokens to {}.",
                done["tokensBefore"], done["tokensAfter"]
            )
        };
        self.update(session, update::said(&said)).await;
        Ok(json!({"stopReason": "end_turn"}))
    }

    /// Stops a turn. Its prompt is answered when it has ended.
    pub async fn cancel(&self, session: &str, turn: &str) {
        let params = json!({"sessionId": session, "turnId": turn});
        // Refused when it has just ended: its last record is on the way.
        if let Err(failure) = self.queue.call("orchestrate.run.cancel", &params).await {
            tracing::debug!(%session, %failure, "nothing to cancel");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(blocks: Value) -> Result<Words, Failure> {
        Words::of(serde_json::from_value(blocks).unwrap(), "/home/me/repo")
    }

    #[test]
    fn blocks_become_words() {
        let said = words(json!([
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
        assert_eq!(said.parts, [text("look at src/a.rs and /etc/b"), image, text("x (https://x.example/)")]);
        assert_eq!(said.context, "/etc/b:\n```\nB\n```\n");
        for bad in [
            json!([{"type": "audio", "data": "", "mimeType": "audio/wav"}]),
            json!([{"type": "resource", "resource": {"uri": "file:///x", "blob": "AA=="}}]),
        ] {
            assert_eq!(words(bad).unwrap_err().reason, Reason::InvalidParams);
        }
    }

    #[test]
    fn a_command_is_the_whole_prompt() {
        let command = |text: &str| {
            let said = words(json!([{"type": "text", "text": text}])).unwrap();
            said.command().map(str::to_owned)
        };
        assert_eq!(command("/clear ").as_deref(), Some("clear"));
        assert_eq!(command("clear"), None);
    }
}
