//! The user's command-line agents as models: run once per request in headless mode, each as a
//! process that the host starts and confines.
//!
//! They answer with text. They cannot call a session's tools, and receive nothing of the session
//! except the prompt.

pub(crate) mod read;
mod words;

use std::{any::Any, sync::Arc, time::Duration};

use cairn_protocol::{
    id::SessionId,
    model::{Message, ModelInfo, Part},
};
use futures_util::stream;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    ChunkStream, Decoder, Format, Limits, LlmError, ModelRequest, Provider, Recording,
    incoming::Patience,
};

/// Maximum number of queued pieces of output; the program waits beyond it.
pub const WAITING_PIECES: usize = 64;

/// Maximum time between the answer and the exit of a program before it is killed.
const LINGER: Duration = Duration::from_secs(5);

/// Starts programs for a host, which controls what they see, stops them and records them.
#[async_trait::async_trait]
pub trait Launcher: Send + Sync {
    /// Checks that the program of `provider` is configured and installed, without starting it.
    ///
    /// # Errors
    /// [`LlmError::NotSupported`] when it is not configured, [`LlmError::Unavailable`] when it is
    /// not installed.
    fn check(&self, provider: &str) -> Result<(), LlmError>;

    /// Starts the program.
    ///
    /// # Errors
    /// As [`Launcher::check`]; [`LlmError::Host`] for a refusal of the host.
    async fn launch(&self, launch: Launch) -> Result<Running, LlmError>;
}

/// A program to start.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Provider that the program implements.
    pub provider: &'static str,
    /// Arguments of the program, without the prompt.
    pub arguments: Vec<String>,
    /// Standard input of the program.
    pub prompt: String,
    /// Session of the request.
    pub session: SessionId,
    /// Maximum run time, after which the program is killed.
    pub total: Duration,
}

pub struct Running {
    /// Output in order; the last piece is the exit. Capacity of at most [`WAITING_PIECES`].
    pub pieces: mpsc::Receiver<Piece>,
    /// Guard that kills the program and all its children when dropped.
    pub guard: Box<dyn Any + Send + Sync>,
}

/// Output or exit of a program.
#[derive(Debug)]
pub enum Piece {
    /// Bytes of the standard output.
    Out(Vec<u8>),
    /// Exit of the program; the last piece.
    End(Result<Exit, LlmError>),
}

/// Exit status of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    /// Exit code; 128 plus the signal's number if a signal killed it.
    pub code: i32,
    /// True if the program exceeded its time limit.
    pub timed_out: bool,
    /// Start and end of the standard error output.
    pub stderr: String,
}

/// A supported command-line agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ClaudeCode,
    Codex,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claudeCode",
            Self::Codex => "codex",
        }
    }

    fn format(self) -> Format {
        match self {
            Self::ClaudeCode => Format::ClaudeCode,
            Self::Codex => Format::Codex,
        }
    }

    /// Returns advice for an agent without a login.
    fn login(self) -> &'static str {
        match self {
            Self::ClaudeCode => {
                "log in with `claude`, or name a variable with its token in llm.agents.claudeCode.env"
            }
            Self::Codex => {
                "log in with `codex login`, or name a variable with its key in llm.agents.codex.env"
            }
        }
    }

    fn arguments(self, model: &str) -> Vec<String> {
        let (words, option): (&[&str], &str) = match self {
            Self::ClaudeCode => (&["-p", "--output-format", "stream-json", "--verbose"], "--model"),
            // The program runs in an empty folder, and changes nothing there.
            Self::Codex => {
                (&["exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only"], "-m")
            }
        };
        let mut arguments: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if !model.is_empty() {
            arguments.extend([option.to_owned(), model.to_owned()]);
        }
        if self == Self::Codex {
            // The prompt is passed on standard input.
            arguments.push("-".into());
        }
        arguments
    }
}

/// Provider that runs a command-line agent.
pub(crate) struct Program {
    pub kind: Kind,
    /// Name of the model; empty for the agent's default.
    pub model: String,
    pub launcher: Arc<dyn Launcher>,
    pub context: Option<u64>,
    pub limits: Limits,
    pub idle: Duration,
    pub total: Duration,
}

#[async_trait::async_trait]
impl Provider for Program {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn model(&self) -> &str {
        &self.model
    }

    /// Always true: the agent sends the prompt to its vendor's service.
    fn external(&self) -> bool {
        true
    }

    fn takes_images(&self) -> bool {
        false
    }

    fn context_tokens(&self) -> Option<u64> {
        self.context
    }

    async fn chat(&self, request: ModelRequest) -> Result<ChunkStream, LlmError> {
        let name = self.kind.name();
        if !request.tools.is_empty() {
            return Err(LlmError::NotSupported(format!(
                "{name} cannot call a session's tools: use it with llm_call, or choose another provider \
                for turns"
            )));
        }
        if self.model.starts_with('-') {
            return Err(LlmError::Rejected(format!(
                "{name}: '{}' is not a valid model name",
                self.model
            )));
        }
        let nobodys = || LlmError::Rejected(format!("{name} can only be used in a session"));
        let session = request.session.clone().ok_or_else(nobodys)?;
        let prompt = prompt(name, &request)?;
        let (arguments, total) = (self.kind.arguments(&self.model), self.total);
        let launch = Launch { provider: name, arguments, prompt, session, total };
        let running = self.launcher.launch(launch).await?;
        let mut answer = Answering {
            running,
            decoder: Decoder::new(self.kind.format(), name, &request, self.limits),
            recording: request.recording,
            patience: Patience { idle: self.idle, total, until: Instant::now() + total },
            kind: self.kind,
            model: self.model.clone(),
            failed: None,
        };
        answer.begin().await?;
        Ok(answer.stream())
    }

    /// Returns the configured model: neither agent lists its models.
    async fn models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        self.launcher.check(self.kind.name())?;
        let model = if self.model.is_empty() { "default" } else { &self.model };
        let (provider, model) = (self.kind.name().to_owned(), model.to_owned());
        Ok(vec![ModelInfo { context_tokens: self.context, ..ModelInfo::new(provider, model) }])
    }
}

/// Returns the request as one text.
fn prompt(name: &str, request: &ModelRequest) -> Result<String, LlmError> {
    let mut parts = Vec::new();
    if !request.system.trim().is_empty() {
        parts.push(request.system.clone());
    }
    if let Some(schema) = &request.schema {
        parts.push(format!(
            "Answer only with JSON, without a code fence, that conforms to this JSON Schema: {schema}"
        ));
    }
    let several = request.messages.len() > 1;
    for message in &request.messages {
        let (who, text) = match message {
            Message::User { parts } => ("User", plain(name, parts)?),
            Message::Assistant { text, .. } => ("Assistant", text.clone()),
            Message::Tool { name, content, .. } => ("Tool", format!("{name}: {content}")),
        };
        if !text.trim().is_empty() {
            parts.push(if several { format!("{who}: {text}") } else { text });
        }
    }
    Ok(parts.join("\n\n"))
}

fn plain(name: &str, parts: &[Part]) -> Result<String, LlmError> {
    let texts = parts.iter().map(|part| match part {
        Part::Text { text } => Ok(text.as_str()),
        Part::Image { .. } => Err(LlmError::Rejected(format!("{name} does not support images"))),
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

/// An answer in progress.
struct Answering {
    running: Running,
    decoder: Decoder,
    recording: Option<Recording>,
    patience: Patience,
    kind: Kind,
    model: String,
    /// Error to return after the chunks that are ready.
    failed: Option<LlmError>,
}

impl Answering {
    /// Reads until a chunk can be shown, so that a program that cannot answer fails the request
    /// itself.
    async fn begin(&mut self) -> Result<(), LlmError> {
        while !self.decoder.has_started() {
            if let Err(error) = self.read().await {
                if !self.decoder.has_started() {
                    return Err(error);
                }
                self.failed = Some(error);
            }
        }
        Ok(())
    }

    fn stream(self) -> ChunkStream {
        Box::pin(stream::unfold(Some(self), |state| async move {
            let mut answering = state?;
            match answering.next().await? {
                Ok(chunk) => Some((Ok(chunk), Some(answering))),
                Err(error) => Some((Err(error), None)),
            }
        }))
    }

    async fn next(&mut self) -> Option<Result<crate::Chunk, LlmError>> {
        loop {
            if let Some(chunk) = self.decoder.next() {
                return Some(Ok(chunk));
            }
            if let Some(error) = self.failed.take() {
                return Some(Err(error));
            }
            if self.decoder.finished() {
                return None;
            }
            if let Err(error) = self.read().await {
                self.failed = Some(error);
            }
        }
    }

    /// Waits a limited time for the program to exit after a complete answer. Consumers that take
    /// the last chunk drop the rest.
    async fn linger(&mut self) -> Result<(), LlmError> {
        let end = async {
            loop {
                match self.running.pieces.recv().await {
                    Some(Piece::End(exit)) => return exit.map(drop),
                    Some(Piece::Out(_)) => {}
                    None => return Ok(()),
                }
            }
        };
        timeout(LINGER, end).await.unwrap_or(Ok(()))
    }

    async fn read(&mut self) -> Result<(), LlmError> {
        let name = self.kind.name();
        let piece = timeout_at(self.patience.next(), self.running.pieces.recv()).await;
        let exit = match piece.map_err(|_| self.patience.over(name))? {
            Some(Piece::Out(bytes)) => {
                if let Some(recording) = &self.recording {
                    recording.push(&bytes);
                }
                self.decoder.feed(&bytes).map_err(|error| self.explained(error))?;
                return if self.decoder.finished() { self.linger().await } else { Ok(()) };
            }
            Some(Piece::End(exit)) => exit?,
            None => {
                return Err(LlmError::Cut(format!(
                    "{name} stopped before its answer was complete"
                )));
            }
        };
        let outcome = self.decoder.end().map_err(|error| self.explained(error));
        if self.decoder.finished() {
            return Ok(());
        }
        if exit.timed_out {
            let text = format!("{name} did not finish its answer within {:?}", self.patience.total);
            return Err(LlmError::TimedOut(text));
        }
        match outcome {
            // A reason in the program's own message is more helpful than its exit code.
            Err(LlmError::Cut(_) | LlmError::Malformed(_)) if exit.code != 0 => {
                let stderr = words::line(&exit.stderr);
                let stderr = if stderr.is_empty() { String::new() } else { format!(": {stderr}") };
                Err(self.explained(words::classify(
                    name,
                    &format!("exited with {}{stderr}", exit.code),
                )))
            }
            other => other,
        }
    }

    /// Adds the model's name and advice to the error.
    fn explained(&self, error: LlmError) -> LlmError {
        match error {
            LlmError::Unauthorized(text) => {
                LlmError::Unauthorized(format!("{text}; {}", self.kind.login()))
            }
            LlmError::Unavailable(text)
                if text.to_lowercase().contains("read-only file system") =>
            {
                let key = format!("llm.agents.{}.credentials_writable", self.kind.name());
                LlmError::Unavailable(format!(
                    "{text}; set {key} if it must write to its login folder"
                ))
            }
            LlmError::ModelNotFound { provider, known, .. } => {
                LlmError::ModelNotFound { provider, model: self.model.clone(), known }
            }
            other => other,
        }
    }
}
