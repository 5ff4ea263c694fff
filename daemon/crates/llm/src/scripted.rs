//! A model that answers from a script, for trying and testing agents without any model.

mod script;

use std::{
    collections::VecDeque,
    fmt,
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use cairn_protocol::model::{FinishReason, ModelInfo};
use futures_util::stream;
use serde_json::Value;
use tokio::time::sleep;

pub use script::{Expect, Fault, FaultKind, Script, ScriptedAnswer, ScriptedCall, Step};

use crate::{
    Chunk, ChunkStream, LlmError, ModelRequest, Provider, Recording,
    decode::{Answer, Events},
};

/// Maximum number of requests stored for inspection.
const MAX_REQUESTS: usize = 1000;

/// Provider that returns the answers of a script in order.
pub struct Scripted {
    script: Script,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    answers_used: usize,
    requests: VecDeque<ModelRequest>,
}

impl Scripted {
    /// Creates a provider with these answers in order.
    pub fn new(answers: Vec<ScriptedAnswer>) -> Self {
        Self::of(Script { answers, ..Script::default() })
    }

    /// Creates a provider from a complete script.
    pub fn of(script: Script) -> Self {
        Self { script, state: Mutex::default() }
    }

    /// Reads a script: one JSON value (a script or a list of answers), or one answer per line.
    ///
    /// # Errors
    /// [`LlmError::Rejected`] when it is invalid, with the position.
    pub fn read(path: &Path) -> Result<Self, LlmError> {
        let refuse = |why: String| LlmError::Rejected(format!("script {}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        Ok(Self::of(Script::parse(&text).map_err(refuse)?))
    }

    /// Sets the name of the model.
    #[must_use]
    pub fn with_model(mut self, model: &str) -> Self {
        self.script.model = model.to_owned();
        self
    }

    /// Returns the last 1000 requests, oldest first.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).requests.iter().cloned().collect()
    }

    /// Returns the number of answers that remain.
    pub fn remaining(&self) -> usize {
        let answers_used = self.state.lock().unwrap_or_else(PoisonError::into_inner).answers_used;
        self.script.answers.len().saturating_sub(answers_used)
    }

    /// Returns the next answer and its number from 1. A requested answer is used up, regardless of
    /// the outcome.
    fn take(&self, request: &ModelRequest) -> Result<(usize, ScriptedAnswer), LlmError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.answers_used += 1;
        if state.requests.len() == MAX_REQUESTS {
            state.requests.pop_front();
        }
        state.requests.push_back(request.clone());
        let (number, all) = (state.answers_used, self.script.answers.len());
        let over = || {
            LlmError::Rejected(format!(
                "the script has {all} answers, and this is request {number}"
            ))
        };
        Ok((number, self.script.answers.get(number - 1).cloned().ok_or_else(over)?))
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted")
            .field("model", &self.script.model)
            .field("remaining", &self.remaining())
            .finish()
    }
}

#[async_trait::async_trait]
impl Provider for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn model(&self) -> &str {
        &self.script.model
    }

    fn external(&self) -> bool {
        false
    }

    fn context_tokens(&self) -> Option<u64> {
        self.script.context_tokens
    }

    async fn chat(&self, request: ModelRequest) -> Result<ChunkStream, LlmError> {
        let (number, answer) = self.take(&request)?;
        for expect in &answer.expect {
            expect
                .check(&request)
                .map_err(|why| LlmError::Rejected(format!("script's answer {number} {why}")))?;
        }
        let mut steps = VecDeque::from(answer.complete_steps());
        // An error before the first chunk fails the request itself, as with any provider.
        while let Some(Step::DelayMs(_) | Step::Fault(_)) = steps.front() {
            match steps.pop_front() {
                Some(Step::DelayMs(millis)) => sleep(Duration::from_millis(millis)).await,
                Some(Step::Fault(fault)) => return Err(fault.error()),
                _ => break,
            }
        }
        let gap = Duration::from_millis(answer.delay_ms);
        let play = Play { steps, calls: 0, gap, first: true, number, recording: request.recording };
        Ok(Box::pin(stream::unfold(Some(play), |play| async move {
            let mut play = play?;
            let item = play.next().await?;
            let next = item.is_ok().then_some(play);
            Some((item, next))
        })))
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        Ok(vec![ModelInfo {
            provider: "scripted".into(),
            model: self.script.model.clone(),
            context_tokens: self.script.context_tokens,
            ..ModelInfo::default()
        }])
    }
}

/// An answer that is being replayed.
struct Play {
    steps: VecDeque<Step>,
    calls: usize,
    gap: Duration,
    first: bool,
    number: usize,
    recording: Option<Recording>,
}

impl Play {
    async fn next(&mut self) -> Option<Result<Chunk, LlmError>> {
        loop {
            let step = self.steps.pop_front()?;
            match step {
                Step::DelayMs(millis) => sleep(Duration::from_millis(millis)).await,
                Step::Hang => std::future::pending().await,
                Step::Cut => {
                    return Some(Err(LlmError::Cut(format!(
                        "the script ends answer {} early",
                        self.number
                    ))));
                }
                Step::Fault(fault) => return Some(Err(fault.error())),
                _ => {
                    if !std::mem::take(&mut self.first) {
                        sleep(self.gap).await;
                    }
                    if let (Some(recording), Ok(mut line)) =
                        (&self.recording, serde_json::to_vec(&step))
                    {
                        line.push(b'\n');
                        recording.push(&line);
                    }
                    return self.show(step).map(Ok);
                }
            }
        }
    }

    /// Converts a step to a chunk. A call becomes two: its arguments are queued as a separate step.
    fn show(&mut self, step: Step) -> Option<Chunk> {
        Some(match step {
            Step::Text(text) => Chunk::Text(text),
            Step::Reasoning(text) => Chunk::Reasoning(text),
            Step::Call(call) => {
                let index = self.calls;
                self.calls += 1;
                self.steps.push_front(Step::Arguments(call.arguments_text()));
                let id = call.id.unwrap_or_else(|| format!("call_{}_{index}", self.number));
                Chunk::CallStart { index, id, name: call.name }
            }
            Step::Arguments(delta) => {
                Chunk::CallArguments { index: self.calls.saturating_sub(1), delta }
            }
            Step::Progress { processed, total } => Chunk::PromptProgress { processed, total },
            Step::Usage(usage) => Chunk::Usage(usage),
            Step::Finish(reason) => Chunk::Finish(reason),
            Step::DelayMs(_) | Step::Hang | Step::Cut | Step::Fault(_) => return None,
        })
    }
}

/// Reads recorded steps, one per line.
pub(crate) struct Reader;

impl Events for Reader {
    fn event(&mut self, _name: &str, data: Value, answer: &mut Answer) -> Result<(), LlmError> {
        let wrong = |error| {
            LlmError::Malformed(format!("{} sent an invalid script step: {error}", answer.who()))
        };
        match serde_json::from_value(data).map_err(wrong)? {
            Step::Text(text) => answer.text(&text),
            Step::Reasoning(text) => answer.reasoning(&text),
            Step::Call(call) => {
                let index = answer.begin_call("")?;
                answer.call_delta(index, call.id.as_deref().unwrap_or_default(), &call.name, "");
            }
            Step::Arguments(text) => {
                if let Some(index) = answer.calls().checked_sub(1) {
                    answer.call_delta(index, "", "", &text);
                }
            }
            Step::Progress { processed, total } => answer.progress(processed, total),
            Step::Usage(usage) => answer.usage(|known| *known = usage),
            Step::Finish(reason) => return answer.finish(reason),
            Step::DelayMs(_) | Step::Hang => {}
            Step::Cut => {
                return Err(LlmError::Cut(format!("{} ended its answer early", answer.who())));
            }
            Step::Fault(fault) => return Err(fault.error()),
        }
        Ok(())
    }

    fn end(&mut self, _answer: &mut Answer) -> Result<(), LlmError> {
        Ok(())
    }
}

impl From<&str> for ScriptedAnswer {
    /// Creates an answer of plain text.
    fn from(text: &str) -> Self {
        Self::new(vec![Step::Text(text.to_owned())])
    }
}

impl ScriptedAnswer {
    /// Creates an answer of these steps; an end is added.
    pub fn new(steps: Vec<Step>) -> Self {
        Self { steps, ..Self::default() }
    }

    /// Adds an expectation; a request that does not meet it is rejected.
    #[must_use]
    pub fn expecting(mut self, expect: Expect) -> Self {
        self.expect.push(expect);
        self
    }

    /// Returns the steps, with an end if they have none.
    fn complete_steps(&self) -> Vec<Step> {
        let mut steps = self.steps.clone();
        let ends =
            |step: &Step| matches!(step, Step::Finish(_) | Step::Hang | Step::Cut | Step::Fault(_));
        if !steps.last().is_some_and(ends) {
            let calls = steps.iter().any(|step| matches!(step, Step::Call(_)));
            steps.push(Step::Finish(if calls {
                FinishReason::ToolCalls
            } else {
                FinishReason::Stop
            }));
        }
        steps
    }
}
