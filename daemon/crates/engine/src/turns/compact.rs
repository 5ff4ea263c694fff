//! Compaction of a conversation that nears the end of the model's context.

use cairn_llm::{Provider, ToolOffer};
use cairn_protocol::{
    error::{Failure, Reason},
    event::AgentEvt,
    model::{Message, Part},
};

use super::{Ask, Conversation, TurnContext, tool_output};

/// Instructions for the model that writes the summary.
const INSTRUCTIONS: &str = "Condense the conversation below so that the work can continue without it. \
    Write plain text with these headings and nothing else: Goal (what the user wants, in their words \
    where they matter), Decisions (what was decided and why), Files (paths that were read, changed or \
    matter, with what is known of them), Done, Failures (commands and attempts that failed, with the \
    error), Next (what remains, in order). Keep names, paths, numbers and error texts exactly. Omit \
    everything else.";

/// Sizes before and after a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compaction {
    /// Tokens before, by the estimate of [`TurnContext::tokens`].
    pub before: u64,
    /// Tokens after, by the same estimate.
    pub after: u64,
}

/// Returns the text of a summary within the conversation.
pub(super) fn summary_text(summary: &str) -> String {
    format!("Summary of the conversation so far, which is no longer shown:\n\n{summary}")
}

/// Estimates the tokens of a request.
pub(super) fn tokens(provider: &dyn Provider, ask: &Ask) -> u64 {
    let tools: u64 = ask.tools.iter().map(|tool| offer_tokens(provider, tool)).sum();
    provider.count_tokens(&ask.system)
        + tools
        + ask.messages.iter().map(|m| weight(provider, m)).sum::<u64>()
}

/// Estimates the tokens of a tool in a request.
pub(super) fn offer_tokens(provider: &dyn Provider, tool: &ToolOffer) -> u64 {
    provider.count_tokens(tool.description())
        + provider.count_tokens(&tool.input_schema().to_string())
        + 8
}

/// Tokens of an image, whatever its size: the price that providers charge for a large one.
const IMAGE: u64 = 1600;

fn weight(provider: &dyn Provider, message: &Message) -> u64 {
    let count = |text: &str| provider.count_tokens(text);
    4 + match message {
        Message::User { parts } => parts
            .iter()
            .map(|p| match p {
                Part::Text { text } => count(text),
                Part::Image { .. } => IMAGE,
            })
            .sum(),
        Message::Assistant { text, calls, .. } => {
            count(text)
                + calls
                    .iter()
                    .map(|c| count(&c.name) + count(&c.arguments.to_string()) + 8)
                    .sum::<u64>()
        }
        Message::Tool { content, .. } => count(content) + 8,
    }
}

impl TurnContext {
    /// Returns true if the request, with room for the answer, exceeds the threshold of the model's
    /// context.
    ///
    /// # Errors
    /// The reason why there is no model.
    pub fn is_nearly_full(&self, ask: &Ask) -> Result<bool, Failure> {
        let provider = self.provider()?;
        let window = self.window(&*provider);
        let answer = u64::from(self.answer_tokens(&*provider));
        let limit =
            (window.saturating_sub(answer) as f64 * self.settings().compaction_threshold) as u64;
        Ok(tokens(&*provider, ask) > limit)
    }

    /// Estimates the tokens of a request.
    ///
    /// # Errors
    /// The reason why there is no model.
    pub fn tokens(&self, ask: &Ask) -> Result<u64, Failure> {
        Ok(tokens(&*self.provider()?, ask))
    }

    /// Replaces the conversation by a summary, except its last messages as far as they are small.
    /// The model writes the summary; if it fails, one is assembled from the conversation. Returns
    /// the conversation as it is sent from now on.
    ///
    /// # Errors
    /// `context_overflow` when there is nothing to condense; `cancelled`; errors of the log.
    pub async fn compact(&self, ask: &Ask) -> Result<(Conversation, Compaction), Failure> {
        self.notify_compact().await;
        let (evt, tokens) = self.condense(ask).await?;
        self.emit_all(vec![evt]).await?;
        Ok((self.conversation().await?, tokens))
    }

    /// Returns the record that replaces the conversation, before it is in the log.
    pub(crate) async fn condense(&self, ask: &Ask) -> Result<(AgentEvt, Compaction), Failure> {
        let provider = self.provider()?;
        let before = tokens(&*provider, ask);
        let window = self.window(&*provider);
        let retained = tail(&*provider, &ask.messages, window / 4);
        let old = &ask.messages[..ask.messages.len() - retained];
        if old.is_empty() {
            let text = format!(
                "the latest part of the conversation has {before} tokens, the context has {window}"
            );
            return Err(Failure::new(Reason::ContextOverflow, text));
        }
        let written = match self.feed().and_then(|feed| feed.parts().summaries.pop_front()) {
            Some(recorded) => Ok(recorded),
            None => self.summarise(&*provider, old, window).await,
        };
        let summary = match written {
            Ok(summary) => summary,
            Err(failure) if failure.reason == Reason::Cancelled => return Err(failure),
            Err(failure) => {
                let text = format!(
                    "the model did not write the summary ({failure}); a built-in summary is used"
                );
                self.warn("compact", text).await?;
                put_together(old)
            }
        };
        let shorter = Ask {
            messages: [
                &[Message::user(summary_text(&summary))],
                &ask.messages[ask.messages.len() - retained..],
            ]
            .concat(),
            ..ask.clone()
        };
        let after = tokens(&*provider, &shorter);
        if after >= before {
            let text = format!("{before} tokens could not be condensed; the context has {window}");
            return Err(Failure::new(Reason::ContextOverflow, text));
        }
        let kept = u32::try_from(retained).unwrap_or(u32::MAX);
        // The retained messages include the steering texts that an answer has received; the fold
        // finds them by this number.
        let heard_seq = self.heard_seq();
        let evt = AgentEvt::Compacted {
            summary,
            kept,
            tokens_before: before,
            tokens_after: after,
            heard_seq,
        };
        Ok((evt, Compaction { before, after }))
    }

    async fn summarise(
        &self,
        provider: &dyn Provider,
        old: &[Message],
        window: u64,
    ) -> Result<String, Failure> {
        // The input of this request must fit as well; about three bytes are a token.
        let chars =
            (window.saturating_sub(2 * u64::from(self.answer_tokens(provider))) * 2).max(2000);
        let transcript = tool_output::cut(transcript(old, 4000), chars);
        self.engine().inner.models.admit(provider, self.policy().allow_external_llms)?;
        let request = cairn_llm::ModelRequest {
            system: INSTRUCTIONS.to_owned(),
            messages: vec![Message::user(transcript)],
            max_tokens: self.answer_tokens(provider),
            session: Some(self.session().clone()),
            ..cairn_llm::ModelRequest::default()
        };
        let text = crate::llm_call::collect(provider, request, self.cancel()).await?;
        let (text, usage) = (text.text, text.usage);
        self.engine().inner.models.spend(usage);
        self.spend(usage);
        match text.trim() {
            "" => Err(Failure::new(Reason::ModelMalformed, "the summary is empty")),
            text => Ok(text.to_owned()),
        }
    }
}

/// Returns the number of messages to retain at the end: complete groups of calls and results, of at
/// most `limit` tokens.
fn tail(provider: &dyn Provider, messages: &[Message], limit: u64) -> usize {
    let (mut count, mut sum) = (0, 0);
    for (at, message) in messages.iter().enumerate().rev() {
        sum += weight(provider, message);
        if sum > limit {
            break;
        }
        // A group begins with a message that is no result.
        if !matches!(message, Message::Tool { .. }) {
            count = messages.len() - at;
        }
    }
    count
}

/// Returns a conversation as text, each message cut at `chars`.
fn transcript(messages: &[Message], chars: u64) -> String {
    let line = |m: &Message| match m {
        Message::User { parts } => {
            let texts = parts.iter().map(|p| match p {
                Part::Text { text } => text.as_str(),
                Part::Image { .. } => "[image]",
            });
            format!("User: {}", texts.collect::<Vec<_>>().join("\n"))
        }
        Message::Assistant { text, calls, .. } => {
            let calls = calls
                .iter()
                .map(|c| format!("\n[calls {} {}]", c.name, c.arguments))
                .collect::<String>();
            format!("Assistant: {text}{calls}")
        }
        Message::Tool { name, content, failed, .. } => {
            format!("Result of {name}{}: {content}", if *failed { " (failed)" } else { "" })
        }
    };
    messages.iter().map(|m| tool_output::cut(line(m), chars)).collect::<Vec<_>>().join("\n\n")
}

/// Assembles a summary without a model: inputs, calls, failures, and the last texts.
fn put_together(old: &[Message]) -> String {
    let mut text = String::new();
    for message in old {
        let part = match message {
            Message::User { .. } => transcript(std::slice::from_ref(message), 1500),
            Message::Assistant { calls, .. } if !calls.is_empty() => calls
                .iter()
                .map(|c| tool_output::cut(format!("Called {} {}", c.name, c.arguments), 200))
                .collect::<Vec<_>>()
                .join("\n"),
            Message::Tool { name, content, failed: true, .. } => {
                tool_output::cut(format!("{name} failed: {content}"), 300)
            }
            _ => continue,
        };
        text.push_str(&part);
        text.push('\n');
    }
    let last =
        old.iter().rev().find(|m| matches!(m, Message::Assistant { text, .. } if !text.is_empty()));
    text.extend(last.map(|m| transcript(std::slice::from_ref(m), 2000)));
    tool_output::cut(text, 8000)
}
