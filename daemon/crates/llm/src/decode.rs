//! Decoding the bytes of an answer to chunks, for every wire format. It uses no network, because
//! replay depends on it too.

use std::collections::{HashSet, VecDeque};

use cairn_protocol::model::{FinishReason, Message, ReasoningItem, TokenUsage};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    Chunk, LlmError, ModelRequest, anthropic,
    framing::{Excess, Framer, Limits, Style},
    gemini, ollama, openai,
    program::read::{ClaudeCode, Codex},
    scripted,
};

/// Maximum number of calls in one answer.
const MAX_CALLS: usize = 128;

/// OpenAI's end marker: the only event that is not JSON.
const DONE: &str = "[DONE]";

/// Wire format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines of JSON from Ollama.
    Ollama,
    /// OpenAI's chat completions as server-sent events, which `openai-compatible` servers use too.
    OpenAi,
    /// Anthropic's messages as server-sent events.
    Anthropic,
    /// Gemini's contents as server-sent events.
    Gemini,
    /// Lines of Claude Code in headless mode.
    ClaudeCode,
    /// Lines of Codex in headless mode.
    Codex,
    /// Steps of a script, one per line.
    Scripted,
}

impl Format {
    /// Returns the answer format of the provider of that name.
    pub fn of(provider: &str) -> Option<Self> {
        match provider {
            "ollama" => Some(Self::Ollama),
            "openai" | "openai-compatible" | "openrouter" => Some(Self::OpenAi),
            "anthropic" => Some(Self::Anthropic),
            "gemini" => Some(Self::Gemini),
            "claudeCode" => Some(Self::ClaudeCode),
            "codex" => Some(Self::Codex),
            // A model in this process records its answers as steps.
            "scripted" | "llamaCpp" => Some(Self::Scripted),
            _ => None,
        }
    }
}

/// Decodes chunks from bytes, regardless of how these are split.
pub struct Decoder {
    framer: Framer,
    events: Box<dyn Events>,
    answer: Answer,
    who: String,
}

/// Decoder for the events of one provider.
pub(crate) trait Events: Send {
    /// Handles one event of the stream.
    fn event(&mut self, name: &str, data: Value, answer: &mut Answer) -> Result<(), LlmError>;

    /// Handles the end of the bytes: the last chance to finish the answer.
    fn end(&mut self, answer: &mut Answer) -> Result<(), LlmError>;
}

impl Decoder {
    /// Creates a decoder for the answer to `request` by `who`, which errors name.
    pub fn new(format: Format, who: &str, request: &ModelRequest, limits: Limits) -> Self {
        let (style, events): (_, Box<dyn Events>) = match format {
            Format::Ollama => (Style::Lines, Box::new(ollama::Reader)),
            Format::OpenAi => (Style::Sse, Box::new(openai::Reader::default())),
            Format::Anthropic => (Style::Sse, Box::new(anthropic::Reader::new(request))),
            Format::Gemini => (Style::Sse, Box::new(gemini::Reader::default())),
            Format::ClaudeCode => (Style::Lines, Box::new(ClaudeCode::default())),
            Format::Codex => (Style::Lines, Box::new(Codex::default())),
            Format::Scripted => (Style::Lines, Box::new(scripted::Reader)),
        };
        let answer = Answer {
            who: who.to_owned(),
            seed: seed(request),
            used: used(request),
            ..Answer::default()
        };
        Self { framer: Framer::new(style, limits), events, answer, who: who.to_owned() }
    }

    /// Decodes further bytes. Chunks decoded before an error are still returned by
    /// [`Decoder::next`].
    ///
    /// # Errors
    /// Errors that the provider reports in its answer, [`LlmError::Malformed`], and
    /// [`LlmError::TooLarge`].
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), LlmError> {
        let Self { framer, events, answer, who } = self;
        if answer.finished {
            return Ok(());
        }
        let mut take = |name: &str, data: &str| take(&mut **events, answer, who, name, data);
        framer.feed(bytes, &mut take).map_err(|stop: Stop| stop.named(who))
    }

    /// Handles the end of the bytes.
    ///
    /// # Errors
    /// [`LlmError::Cut`] when the answer was incomplete; else as [`Decoder::feed`].
    pub fn end(&mut self) -> Result<(), LlmError> {
        let Self { framer, events, answer, who } = self;
        if answer.finished {
            return Ok(());
        }
        let mut take = |name: &str, data: &str| match serde_json::from_str::<Value>(data) {
            // A partial event is ignored; the other events decide if the answer is complete without
            // it.
            Err(_) if data.trim() != DONE => Ok(()),
            _ => take(&mut **events, answer, who, name, data),
        };
        framer.end(&mut take).map_err(|stop: Stop| stop.named(who))?;
        if !answer.finished {
            events.end(answer)?;
        }
        match (answer.finished, answer.events, framer.has_stray_lines()) {
            (true, ..) => Ok(()),
            (_, 0, true) => {
                Err(LlmError::Malformed(format!("{who} did not answer with an event stream")))
            }
            _ => Err(LlmError::Cut(format!("{who} ended its answer before it was complete"))),
        }
    }

    /// Returns the next chunk that is ready.
    #[expect(clippy::should_implement_trait, reason = "none now does not mean none later")]
    pub fn next(&mut self) -> Option<Chunk> {
        self.answer.ready.pop_front()
    }

    /// True if the answer is complete; further bytes are ignored.
    pub fn finished(&self) -> bool {
        self.answer.finished
    }

    /// True if the server has sent an event of easyai.
    pub(crate) fn is_easyai(&self) -> bool {
        self.answer.is_easyai
    }

    /// True if a chunk visible to the user is ready, so that the request must not be retried.
    pub(crate) fn has_started(&self) -> bool {
        let invisible = |chunk: &Chunk| matches!(chunk, Chunk::Usage(_) | Chunk::ReasoningItem(_));
        !self.answer.ready.iter().all(invisible)
    }
}

enum Stop {
    Excess(Excess),
    Error(LlmError),
}

impl From<Excess> for Stop {
    fn from(excess: Excess) -> Self {
        Self::Excess(excess)
    }
}

impl Stop {
    fn named(self, who: &str) -> LlmError {
        match self {
            Self::Error(error) => error,
            Self::Excess(Excess::Line(bytes)) => {
                LlmError::TooLarge(format!("{who} sent a line of more than {bytes} bytes"))
            }
            Self::Excess(Excess::Answer(bytes)) => {
                LlmError::TooLarge(format!("{who} sent an answer of more than {bytes} bytes"))
            }
        }
    }
}

fn take(
    events: &mut dyn Events,
    answer: &mut Answer,
    who: &str,
    name: &str,
    data: &str,
) -> Result<(), Stop> {
    if answer.finished {
        return Ok(());
    }
    let value =
        if data.trim() == DONE { Value::Null } else { parse(who, data).map_err(Stop::Error)? };
    answer.events += 1;
    events.event(name, value, answer).map_err(Stop::Error)
}

fn parse(who: &str, data: &str) -> Result<Value, LlmError> {
    serde_json::from_str(data).or_else(|error| {
        // Some servers split a character between two events, and write each half as a separate
        // escape.
        let repaired = data
            .contains("\\u")
            .then(|| serde_json::from_str(&replace_lone_surrogates(data)).ok())
            .flatten();
        repaired.ok_or_else(|| {
            let excerpt: String = data.chars().take(100).collect();
            LlmError::Malformed(format!(
                "{who} sent an event that is not JSON ({error}): {excerpt}"
            ))
        })
    })
}

/// Replaces every escape of an unpaired surrogate in JSON text with `\ufffd`.
fn replace_lone_surrogates(data: &str) -> String {
    let unit = |at: &str| {
        at.strip_prefix("\\u")?.get(..4).and_then(|hex| u32::from_str_radix(hex, 16).ok())
    };
    let (mut output, mut rest) = (String::with_capacity(data.len()), data);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        output.push_str(before);
        let high = unit(escape).is_some_and(|unit| (0xd800..0xdc00).contains(&unit));
        let low = |at: &str| unit(at).is_some_and(|unit| (0xdc00..0xe000).contains(&unit));
        // A backslash escape has two characters, a `\u` escape six, and a surrogate pair twelve.
        let length = match unit(escape) {
            Some(_) if high && low(escape.get(6..).unwrap_or_default()) => 12,
            Some(_) if high || low(escape) => {
                output.push_str("\\ufffd");
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            _ => escape.chars().take(2).map(char::len_utf8).sum(),
        };
        output.push_str(escape.get(..length).unwrap_or(escape));
        rest = escape.get(length..).unwrap_or_default();
    }
    output + rest
}

/// Seed for ids of calls without an id from the provider: equal for equal requests, so that a
/// replay agrees, and different for all other requests of the session.
fn seed(request: &ModelRequest) -> String {
    let mut hash = Sha256::new();
    hash.update(&request.system);
    hash.update(serde_json::to_vec(&request.messages).unwrap_or_default());
    hex::encode(hash.finalize().get(..8).unwrap_or_default())
}

/// Returns the ids of earlier calls, because some servers number the calls of each answer from the
/// start again.
fn used(request: &ModelRequest) -> HashSet<String> {
    let calls = request.messages.iter().filter_map(|message| match message {
        Message::Assistant { calls, .. } => Some(calls),
        _ => None,
    });
    calls.flatten().map(|call| call.id.clone()).collect()
}

/// State of the answer decoded so far.
#[derive(Default)]
pub(crate) struct Answer {
    ready: VecDeque<Chunk>,
    calls: Vec<Call>,
    usage: TokenUsage,
    finished: bool,
    events: u64,
    /// True if an event of easyai was among them.
    is_easyai: bool,
    who: String,
    seed: String,
    used: HashSet<String>,
}

/// A call that has started.
struct Call {
    /// The provider's own number or id of the call.
    key: String,
    /// Id from the provider; may be empty.
    id: String,
    name: String,
    /// Arguments received before the name.
    early: String,
    started: bool,
}

impl Answer {
    /// Returns the provider's name, for errors.
    pub(crate) fn who(&self) -> &str {
        &self.who
    }

    pub(crate) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.ready.push_back(Chunk::Text(text.to_owned()));
        }
    }

    pub(crate) fn reasoning(&mut self, text: &str) {
        if !text.is_empty() {
            self.ready.push_back(Chunk::Reasoning(text.to_owned()));
        }
    }

    /// Adds an item that the provider requires back with the conversation.
    pub(crate) fn reasoning_item(&mut self, item: Value) {
        let before_call = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        self.ready.push_back(Chunk::ReasoningItem(ReasoningItem { before_call, item }));
    }

    /// Takes note of an event of easyai.
    pub(crate) fn set_easyai(&mut self) {
        self.is_easyai = true;
    }

    pub(crate) fn progress(&mut self, processed: u64, total: u64) {
        self.ready.push_back(Chunk::PromptProgress { processed: processed.min(total), total });
    }

    /// Updates the usage and emits a chunk if it changed.
    pub(crate) fn usage(&mut self, change: impl FnOnce(&mut TokenUsage)) {
        let before = self.usage;
        change(&mut self.usage);
        if self.usage != before {
            self.ready.push_back(Chunk::Usage(self.usage));
        }
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Returns the provider's id of a call; empty if it has sent none yet.
    pub(crate) fn id_of(&self, index: usize) -> &str {
        self.calls.get(index).map_or("", |call| &call.id)
    }

    /// Finds the call with the provider's `key`; the newest one if keys repeat.
    pub(crate) fn known_call(&self, key: &str) -> Option<usize> {
        self.calls.iter().rposition(|call| call.key == key)
    }

    /// Finds the call with the provider's `key`, or creates it.
    pub(crate) fn call(&mut self, key: &str) -> Result<usize, LlmError> {
        self.known_call(key).map_or_else(|| self.begin_call(key), Ok)
    }

    /// Creates a call, even if the provider's key is already in use.
    pub(crate) fn begin_call(&mut self, key: &str) -> Result<usize, LlmError> {
        if self.calls.len() >= MAX_CALLS {
            return Err(LlmError::Malformed(format!(
                "{} requested more than {MAX_CALLS} tool calls at once",
                self.who
            )));
        }
        let (id, name, early) = Default::default();
        self.calls.push(Call { key: key.to_owned(), id, name, early, started: false });
        Ok(self.calls.len() - 1)
    }

    /// Adds a delta to a call, which is emitted once its name is known.
    pub(crate) fn call_delta(&mut self, index: usize, id: &str, name: &str, arguments: &str) {
        let Some(call) = self.calls.get_mut(index) else { return };
        if !call.started {
            if call.id.is_empty() {
                call.id.push_str(id);
            }
            call.name.push_str(name);
            if call.name.is_empty() {
                call.early.push_str(arguments);
                return;
            }
            call.started = true;
            let fresh = !call.id.is_empty() && !self.used.contains(&call.id);
            let id = if fresh { call.id.clone() } else { format!("call_{}_{index}", self.seed) };
            self.used.insert(id.clone());
            let name = call.name.clone();
            self.ready.push_back(Chunk::CallStart { index, id, name });
            let early = std::mem::take(&mut call.early);
            if !early.is_empty() {
                self.ready.push_back(Chunk::CallArguments { index, delta: early });
            }
        }
        if !arguments.is_empty() {
            self.ready.push_back(Chunk::CallArguments { index, delta: arguments.to_owned() });
        }
    }

    /// Finishes the answer. A provider that stops "normally" with calls waits for their results.
    pub(crate) fn finish(&mut self, reason: FinishReason) -> Result<(), LlmError> {
        if self.calls.iter().any(|call| !call.started) {
            return Err(LlmError::Malformed(format!(
                "{} requested a tool call without a name",
                self.who
            )));
        }
        let reason = if reason == FinishReason::Stop && !self.calls.is_empty() {
            FinishReason::ToolCalls
        } else {
            reason
        };
        self.ready.push_back(Chunk::Finish(reason));
        self.finished = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_surrogate_pair_does_not_fail_the_answer() {
        for (data, text) in [
            (r#""plain""#, "plain"),
            (r#""\ud83c\udf0d""#, "\u{1F30D}"),
            (r#""a\ud83c""#, "a\u{fffd}"),
            (r#""\udf0d b""#, "\u{fffd} b"),
            (r#""\ud83c\ud83c\udf0d\n\u00e9""#, "\u{fffd}\u{1F30D}\n\u{e9}"),
            // An escaped backslash does not start another escape.
            (r#""\\ud83c \ud83c""#, "\\ud83c \u{fffd}"),
        ] {
            assert_eq!(parse("it", data), Ok(Value::from(text)), "{data}");
        }
        assert!(parse("it", r#""\ud83c"#).is_err());
        assert!(parse("it", r#"{"a": \u"#).is_err());
    }
}
