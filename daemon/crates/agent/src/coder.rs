//! The agent that works with a model: requests, calls, results, until the model is done.

use cairn_engine::{Ask, TurnAgent, TurnContext};
use cairn_protocol::{
    error::{Failure, Reason},
    model::{FinishReason, Message},
};

use crate::{
    loop_guard::{Guard, Seen},
    prompt::{self, instructions},
};

/// The built-in agent for turns.
#[derive(Debug, Clone, Default)]
pub struct Coder {
    sources: prompt::Sources,
}

impl Coder {
    /// Creates an agent with these texts.
    pub fn new(sources: prompt::Sources) -> Self {
        Self { sources }
    }
}

#[async_trait::async_trait]
impl TurnAgent for Coder {
    async fn system(&self, cx: &TurnContext) -> Result<String, Failure> {
        Ok(prompt::render(&prompt::layers(&self.sources, cx).await?))
    }

    async fn turn(&self, cx: &TurnContext) -> Result<String, Failure> {
        let mut talk = cx.conversation().await?;
        let mut system = self.system(cx).await?;
        notify_untrusted(cx, &talk.messages).await?;
        let mut guard = Guard::default();
        let mut continued = 0;
        // Calls that a stop of the daemon interrupted are made first.
        let interrupted = std::mem::take(&mut talk.open);
        talk.messages.extend(cx.call_all(interrupted).await?);
        for _ in 0..cx.max_iterations() {
            talk.messages.extend(cx.steering());
            let mut ask = Ask {
                system: system.clone(),
                messages: talk.messages,
                tools: cx.offers(),
                schema: None,
            };
            if cx.is_nearly_full(&ask)? {
                self.compact(cx, &mut ask).await?;
            }
            let answer = match cx.ask(ask.clone()).await {
                // The provider's count was stricter than our estimate.
                Err(failure) if failure.reason == Reason::ContextOverflow => {
                    self.compact(cx, &mut ask).await?;
                    cx.ask(ask.clone()).await?
                }
                other => other?,
            };
            (talk.messages, system) = (ask.messages, ask.system);
            talk.messages.push(answer.message());
            if answer.calls.is_empty() {
                let mut texts = cx.steering();
                if texts.is_empty() {
                    if cx.may_stop(&answer.text, continued).await? {
                        return finish_turn(cx, answer.text, answer.finish).await;
                    }
                    continued += 1;
                    texts = cx.steering();
                }
                talk.messages.extend(texts);
                continue;
            }
            let results = cx.call_all(answer.calls.clone()).await?;
            match guard.look(&answer.calls, &results) {
                Seen::Fresh => {}
                Seen::Repeated(what) => cx.note(&what).await?,
                Seen::Stuck(what) => return Err(Failure::new(Reason::Stuck, what)),
            }
            talk.messages.extend(results);
            instructions::give_nested(cx, &answer.calls, &talk.messages).await?;
        }
        let text = format!(
            "the turn made {} model requests, the limit of agent.maxIterations",
            cx.max_iterations()
        );
        Err(Failure::new(Reason::TurnLimit, text))
    }
}

impl Coder {
    /// Condenses the conversation of a request; the instruction files are read again.
    async fn compact(&self, cx: &TurnContext, ask: &mut Ask) -> Result<(), Failure> {
        ask.messages = cx.compact(ask).await?.0.messages;
        cx.remove_artifact(instructions::ARTIFACT).await?;
        ask.system = self.system(cx).await?;
        Ok(())
    }
}

/// Warns the user in the first turn of a session about instructions that are not used.
async fn notify_untrusted(cx: &TurnContext, messages: &[Message]) -> Result<(), Failure> {
    if messages.len() > 1 {
        return Ok(());
    }
    let Some(name) = instructions::ignored(cx).await else { return Ok(()) };
    let text = format!(
        "{name} and the skills of this folder are not used, because the folder is not trusted: \
        'cairn trust' in it shows and trusts them"
    );
    cx.warn("instructions", text).await
}

/// Returns the last text, and warns the user about an abnormal end.
async fn finish_turn(
    cx: &TurnContext,
    text: String,
    finish: FinishReason,
) -> Result<String, Failure> {
    match finish {
        FinishReason::Length => {
            let limit = cx.settings().max_answer_tokens;
            cx.warn(
                "model",
                format!("the answer was truncated at {limit} tokens, the limit of llm.maxTokens"),
            )
            .await?;
        }
        FinishReason::Filtered => {
            cx.warn("model", "the provider withheld the answer".into()).await?
        }
        FinishReason::Stop | FinishReason::ToolCalls if text.trim().is_empty() => {
            cx.warn("model", "the model returned an empty answer".into()).await?;
        }
        FinishReason::Stop | FinishReason::ToolCalls => {}
    }
    Ok(text)
}
