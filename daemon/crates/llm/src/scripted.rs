//! A model that answers from a script: for trying agents, and for their tests, without any model.

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

/// Requests that are kept to be looked at.
const MAX_KEPT: usize = 1000;

/// Answers from a script, one after the other.
pub struct Scripted {
    script: Script,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    asked: usize,
    requests: VecDeque<ModelRequest>,
}

impl Scripted {
    /// Answers in this order.
    pub fn new(answers: Vec<ScriptedAnswer>) -> Self {
        Self::of(Script { answers, ..Script::default() })
    }

    /// Plays a whole script.
    pub fn of(script: Script) -> Self {
        Self { script, state: Mutex::default() }
    }

    /// Reads a script: one JSON value (a script or a list of answers), or an answer a line.
    ///
    /// # Errors
    /// [`LlmError::Rejected`] when it cannot be read, naming the place.
    pub fn read(path: &Path) -> Result<Self, LlmError> {
        let refuse = |why: String| LlmError::Rejected(format!("script {}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        Ok(Self::of(Script::parse(&text).map_err(refuse)?))
    }

    /// The same under another model's name.
    #[must_use]
    pub fn with_model(mut self, model: &str) -> Self {
        self.script.model = model.to_owned();
        self
    }

    /// The last 1000 requests, oldest first.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).requests.iter().cloned().collect()
    }

    /// How many answers were not asked for yet.
    pub fn left(&self) -> usize {
        let asked = self.state.lock().unwrap_or_else(PoisonError::into_inner).asked;
        self.script.answers.len().saturating_sub(asked)
    }

    /// The next answer, and its number from 1. One that is asked for is used up, whatever comes of it.
    fn take(&self, request: &ModelRequest) -> Result<(usize, ScriptedAnswer), LlmError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.asked += 1;
        if state.requests.len() == MAX_KEPT {
            state.requests.pop_front();
        }
        state.requests.push_back(request.clone());
        let (number, all) = (state.asked, self.script.answers.len());
        let over =
            || LlmError::Rejected(format!("the script has {all} answers, and this is request {number}"));
        Ok((number, self.script.answers.get(number - 1).cloned().ok_or_else(over)?))
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").field("model", &self.script.model).field("left", &self.left()).finish()
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
        let mut steps = VecDeque::from(answer.whole());
        // What fails before anything is shown fails the request itself, as with any provider.
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
            size_bytes: None,
        }])
    }
}

/// An answer being played.
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
                    return Some(Err(LlmError::Cut(format!("the script cuts answer {}", self.number))));
                }
                Step::Fault(fault) => return Some(Err(fault.error())),
                _ => {
                    if !std::mem::take(&mut self.first) {
                        sleep(self.gap).await;
                    }
                    if let (Some(recording), Ok(mut line)) = (&self.recording, serde_json::to_vec(&step)) {
                        line.push(b'\n');
                        recording.push(&line);
                    }
                    return self.show(step).map(Ok);
                }
            }
        }
    }

    /// A step as a chunk. A call is two: its arguments wait as a step of their own.
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
            Step::Arguments(delta) => Chunk::CallArguments { index: self.calls.saturating_sub(1), delta },
            Step::Progress { processed, total } => Chunk::PromptProgress { processed, total },
            Step::Usage(usage) => Chunk::Usage(usage),
            Step::Finish(reason) => Chunk::Finish(reason),
            Step::DelayMs(_) | Step::Hang | Step::Cut | Step::Fault(_) => return None,
        })
    }
}

/// Reads recorded steps, one a line.
pub(crate) struct Reader;

impl Events for Reader {
    fn event(&mut self, _name: &str, data: Value, answer: &mut Answer) -> Result<(), LlmError> {
        let wrong =
            |error| LlmError::Malformed(format!("{} sent no step of a script: {error}", answer.who()));
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
            Step::Cut => return Err(LlmError::Cut(format!("{} cut its answer", answer.who()))),
            Step::Fault(fault) => return Err(fault.error()),
        }
        Ok(())
    }

    fn end(&mut self, _answer: &mut Answer) -> Result<(), LlmError> {
        Ok(())
    }
}

impl From<&str> for ScriptedAnswer {
    /// Plain text.
    fn from(text: &str) -> Self {
        Self::new(vec![Step::Text(text.to_owned())])
    }
}

impl ScriptedAnswer {
    /// These steps; the end is added.
    pub fn new(steps: Vec<Step>) -> Self {
        Self { steps, ..Self::default() }
    }

    /// The same, refused unless the request is like that.
    #[must_use]
    pub fn expecting(mut self, expect: Expect) -> Self {
        self.expect.push(expect);
        self
    }

    /// The steps with an end, where they have none.
    fn whole(&self) -> Vec<Step> {
        let mut steps = self.steps.clone();
        let ends = |step: &Step| matches!(step, Step::Finish(_) | Step::Hang | Step::Cut | Step::Fault(_));
        if !steps.last().is_some_and(ends) {
            let calls = steps.iter().any(|step| matches!(step, Step::Call(_)));
            steps.push(Step::Finish(if calls { FinishReason::ToolCalls } else { FinishReason::Stop }));
        }
        steps
    }
}
