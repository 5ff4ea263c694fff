//! Generation of an answer token by token: the prompt is read in batches, and new text is sent as
//! it is generated.

use std::{num::NonZeroU32, time::Instant};

use cairn_protocol::model::{FinishReason, TokenUsage};
use llama_cpp_2::{
    context::{LlamaContext, params::LlamaContextParams},
    json_schema_to_grammar,
    llama_batch::LlamaBatch,
    model::LlamaModel,
    sampling::LlamaSampler,
    token::LlamaToken,
};
use tokio::sync::mpsc;

use super::{
    backend,
    calls::{Piece, Reader},
    prompt,
};
use crate::{Chunk, LlmError, ModelRequest, Recording, ScriptedCall, Step};

/// Tokens per batch. The answer can be cancelled between two batches.
const BATCH: usize = 256;
const TEMPERATURE: f32 = 0.8;

/// Reason why the answer stopped.
pub(super) enum Stop {
    /// The receiver was dropped.
    Disconnected,
    Failed(LlmError),
}

impl From<LlmError> for Stop {
    fn from(error: LlmError) -> Self {
        Self::Failed(error)
    }
}

/// Receiver and deadline of an answer.
pub(super) struct Writing<'a> {
    pub sender: &'a mpsc::Sender<Result<Chunk, LlmError>>,
    pub until: Instant,
    /// Error to return after the deadline.
    pub late: LlmError,
    pub recording: Option<Recording>,
}

impl Writing<'_> {
    fn chunk(&self, chunk: Chunk) -> Result<(), Stop> {
        self.sender.blocking_send(Ok(chunk)).map_err(|_| Stop::Disconnected)
    }

    /// Checks that the receiver still exists and that the deadline has not passed.
    fn go_on(&self) -> Result<(), Stop> {
        if self.sender.is_closed() {
            return Err(Stop::Disconnected);
        }
        if Instant::now() >= self.until { Err(self.late.clone().into()) } else { Ok(()) }
    }

    fn record(&self, step: &Step) {
        if let (Some(recording), Ok(mut line)) = (&self.recording, serde_json::to_vec(step)) {
            line.push(b'\n');
            recording.push(&line);
        }
    }

    fn piece(&self, piece: Piece, calls: &mut usize) -> Result<(), Stop> {
        match piece {
            Piece::Text(text) => {
                self.record(&Step::Text(text.clone()));
                self.chunk(Chunk::Text(text))
            }
            Piece::Call { name, arguments } => {
                let mut letters = [0_u8; 8];
                let failed =
                    |e| LlmError::Unavailable(format!("llamaCpp: cannot get random bytes: {e}"));
                getrandom::fill(&mut letters).map_err(failed)?;
                let (id, index) = (format!("call_{}", hex::encode(letters)), *calls);
                *calls += 1;
                let delta = arguments.to_string();
                self.record(&Step::Call(ScriptedCall {
                    id: Some(id.clone()),
                    name: name.clone(),
                    arguments,
                }));
                self.chunk(Chunk::CallStart { index, id, name })?;
                self.chunk(Chunk::CallArguments { index, delta })
            }
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Stop {
    LlmError::Unavailable(format!("llamaCpp failed: {error}")).into()
}

pub(super) fn answer(
    model: &LlamaModel,
    context_tokens: u64,
    request: &ModelRequest,
    writing: &mut Writing<'_>,
) -> Result<(), Stop> {
    let text = prompt::text(model, request)?;
    let vocab = model.vocab();
    // The template writes the begin-of-sequence token itself if it has one.
    let begins = vocab.should_add_bos() && !text.starts_with('<');
    let read = vocab.tokenize(text.as_bytes(), begins, true);
    let room = usize::try_from(context_tokens).unwrap_or(usize::MAX);
    if read.len() >= room {
        let text =
            format!("llamaCpp: the prompt has {} tokens, the context has {room}", read.len());
        return Err(LlmError::ContextOverflow(text).into());
    }
    let most = (request.max_tokens.max(1) as usize).min(room - read.len());
    let mut sampler = sampler(model, request)?;
    let threads =
        std::thread::available_parallelism().map_or(1, |n| i32::try_from(n.get()).unwrap_or(1));
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(u32::try_from(read.len() + most).unwrap_or(u32::MAX)))
        .with_n_batch(BATCH as u32)
        .with_n_threads(threads)
        .with_n_threads_batch(threads);
    let mut context = model.new_context(backend()?, params).map_err(failed)?;
    read_prompt(&mut context, &read, request, writing)?;
    let mut usage = TokenUsage { input_tokens: read.len() as u64, ..TokenUsage::default() };
    let mut reader = Reader::new(!request.tools.is_empty());
    let (mut bytes, mut calls, mut batch) = (Vec::new(), 0, LlamaBatch::new(1, 1));
    let mut reason = FinishReason::Length;
    for at in read.len()..read.len() + most {
        writing.go_on()?;
        let token = sampler.sample(&context, -1);
        usage.output_tokens += 1;
        if vocab.is_eog(token) {
            reason = FinishReason::Stop;
            break;
        }
        bytes.extend(vocab.token_to_piece(token, false, None));
        let text = take_complete_characters(&mut bytes);
        for piece in
            reader.push(&text).into_iter().filter(|piece| *piece != Piece::Text(String::new()))
        {
            writing.piece(piece, &mut calls)?;
        }
        feed(&mut context, &mut batch, &[token], at, true)?;
    }
    if let Some(piece) = reader.end() {
        writing.piece(piece, &mut calls)?;
    }
    if calls > 0 {
        reason = FinishReason::ToolCalls;
    }
    writing.record(&Step::Usage(usage));
    writing.chunk(Chunk::Usage(usage))?;
    writing.record(&Step::Finish(reason));
    writing.chunk(Chunk::Finish(reason))
}

fn read_prompt(
    context: &mut LlamaContext<'_>,
    read: &[LlamaToken],
    request: &ModelRequest,
    writing: &Writing<'_>,
) -> Result<(), Stop> {
    let mut batch = LlamaBatch::new(BATCH, 1);
    let mut done = 0;
    for part in read.chunks(BATCH) {
        writing.go_on()?;
        feed(context, &mut batch, part, done, done + part.len() == read.len())?;
        done += part.len();
        if request.prompt_progress {
            writing.chunk(Chunk::PromptProgress {
                processed: done as u64,
                total: read.len() as u64,
            })?;
        }
    }
    Ok(())
}

/// Evaluates these tokens, starting at position `at`.
fn feed(
    context: &mut LlamaContext<'_>,
    batch: &mut LlamaBatch<'_>,
    tokens: &[LlamaToken],
    at: usize,
    goes_on: bool,
) -> Result<(), Stop> {
    batch.clear();
    for (n, token) in tokens.iter().enumerate() {
        let position = i32::try_from(at + n).map_err(failed)?;
        batch.add(*token, position, &[0], goes_on && n + 1 == tokens.len()).map_err(failed)?;
    }
    context.decode(batch).map_err(failed)
}

/// Creates the sampler, constrained by the schema's grammar if there is one.
fn sampler(model: &LlamaModel, request: &ModelRequest) -> Result<LlamaSampler, Stop> {
    let mut chain = Vec::new();
    if let Some(schema) = &request.schema {
        let refused = |error: &dyn std::fmt::Display| {
            LlmError::Rejected(format!("llamaCpp cannot enforce this schema: {error}"))
        };
        let grammar =
            json_schema_to_grammar(&schema.to_string()).map_err(|error| refused(&error))?;
        chain
            .push(LlamaSampler::grammar(model, &grammar, "root").map_err(|error| refused(&error))?);
    }
    let temperature = request.temperature.map_or(TEMPERATURE, |value| value as f32);
    if temperature <= 0.0 {
        chain.push(LlamaSampler::greedy());
    } else {
        let mut seed = [0_u8; 4];
        getrandom::fill(&mut seed).map_err(failed)?;
        let seed = u32::from_ne_bytes(seed);
        chain.extend([
            LlamaSampler::top_k(40),
            LlamaSampler::top_p(0.95, 1),
            LlamaSampler::temp(temperature),
        ]);
        chain.push(LlamaSampler::dist(seed));
    }
    Ok(LlamaSampler::chain(chain, true))
}

/// Takes the complete characters of `bytes`; an incomplete rest remains.
fn take_complete_characters(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    loop {
        match std::str::from_utf8(bytes) {
            Ok(all) => {
                text.push_str(all);
                bytes.clear();
                return text;
            }
            Err(error) => {
                let (good, rest) = bytes.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(good));
                let Some(bad) = error.error_len() else {
                    *bytes = rest.to_vec();
                    return text;
                };
                text.push('\u{fffd}');
                *bytes = rest[bad..].to_vec();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_characters_are_joined() {
        let (mut bytes, mut text) = (Vec::new(), String::new());
        for byte in "aé🌍".bytes().chain([0xff, b'b']) {
            bytes.push(byte);
            text += &take_complete_characters(&mut bytes);
        }
        assert_eq!((text.as_str(), bytes.len()), ("aé🌍\u{fffd}b", 0));
    }
}
