//! Rendering of a conversation with the chat template in the model's file.

use cairn_protocol::model::{Message, Part};
use llama_cpp_2::model::{LlamaChatMessage, LlamaChatTemplate, LlamaModel};

use super::calls;
use crate::{LlmError, ModelRequest, conversation};

/// Renders the complete prompt, up to the start of the model's answer.
pub(super) fn text(model: &LlamaModel, request: &ModelRequest) -> Result<String, LlmError> {
    let wrong = |error: &dyn std::fmt::Display| {
        LlmError::Rejected(format!("llamaCpp: the conversation: {error}"))
    };
    let mut system = request.system.clone();
    if !request.tools.is_empty() {
        system.push_str(&calls::offer(&request.tools));
    }
    let mut messages: Vec<(&str, String)> = Vec::new();
    if !system.trim().is_empty() {
        messages.push(("system", system));
    }
    for message in conversation::repair(&request.messages) {
        messages.push(match &*message {
            Message::User { parts } => ("user", plain(parts)?),
            Message::Assistant { text, calls } => (
                "assistant",
                calls.iter().fold(text.clone(), |content, call| content + &calls::written(call)),
            ),
            Message::Tool { content, .. } => ("user", calls::answered(content)),
        });
    }
    let messages = messages.into_iter().map(|(role, text)| {
        // A C string ends at the first zero.
        LlamaChatMessage::new(role.to_owned(), text.replace('\0', "\u{fffd}"))
            .map_err(|error| wrong(&error))
    });
    let messages: Vec<LlamaChatMessage> = messages.collect::<Result<_, _>>()?;
    let usual = || LlamaChatTemplate::new("chatml").map_err(|error| wrong(&error));
    let own = model.chat_template(None).or_else(|_| usual())?;
    model
        .apply_chat_template(&own, &messages, true)
        // llama.cpp does not support every template; the usual one replaces those.
        .or_else(|_| {
            model.apply_chat_template(&usual()?, &messages, true).map_err(|error| wrong(&error))
        })
}

fn plain(parts: &[Part]) -> Result<String, LlmError> {
    let texts = parts.iter().map(|part| match part {
        Part::Text { text } => Ok(text.as_str()),
        Part::Image { .. } => Err(LlmError::Rejected("llamaCpp does not support images".into())),
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}
