//! Command-line agents of the user's as models: asked once, headless, each a process that the host starts and confines.
//!
//! They answer with text. They cannot call a session's tools, and nothing of the session but the question reaches them.

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
    ChunkStream, Decoder, Format, Limits, LlmError, ModelRequest, Provider, Recording, incoming::Patience,
};

/// Pieces of output that wait to be read; then the program waits.
pub const WAITING_PIECES: usize = 64;

/// How long a program that has answered may take to end before it is ended.
const LINGER: Duration = Duration::from_secs(5);

/// What a host starts programs with. It decides what they see, ends them, and records them.
#[async_trait::async_trait]
pub trait Launcher: Send + Sync {
    /// Whether the program of `provider` is set up and there, without starting it.
    ///
    /// # Errors
    /// [`LlmError::NotSupported`] when it is not set up, [`LlmError::Unavailable`] when it is not there.
    fn check(&self, provider: &str) -> Result<(), LlmError>;

    /// Starts it.
    ///
    /// # Errors
    /// As [`Launcher::check`]; [`LlmError::Host`] for what the host refuses.
    async fn launch(&self, launch: Launch) -> Result<Running, LlmError>;
}

/// A program to be started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The provider it stands for.
    pub provider: &'static str,
    /// Its arguments. The question is not among them.
    pub arguments: Vec<String>,
    /// Its standard input.
    pub prompt: String,
    /// Whose question it is.
    pub session: SessionId,
    /// Longest time it may run.
    pub total: Duration,
}

/// A program at work.
pub struct Running {
    /// What it writes, in order; the last piece tells its end. Keep at most [`WAITING_PIECES`].
    pub pieces: mpsc::Receiver<Piece>,
    /// Ends the program and all that it started when it is dropped.
    pub held: Box<dyn Any + Send + Sync>,
}

/// Something that a program did.
#[derive(Debug)]
pub enum Piece {
    /// It wrote to its standard output.
    Out(Vec<u8>),
    /// It ended; nothing follows.
    End(Result<Exit, LlmError>),
}

/// How a program ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    /// Its code; 128 and the signal's number when a signal ended it.
    pub code: i32,
    /// Whether its time was over.
    pub timed_out: bool,
    /// The beginning and the end of what it wrote to standard error.
    pub stderr: String,
}

/// One of the agents there are.
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

    /// What to do where it is not logged in.
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
            // It runs in an empty folder, and changes nothing there.
            Self::Codex => (&["exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only"], "-m"),
        };
        let mut arguments: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if !model.is_empty() {
            arguments.extend([option.to_owned(), model.to_owned()]);
        }
        if self == Self::Codex {
            // The question comes by standard input.
            arguments.push("-".into());
        }
        arguments
    }
}

/// A command-line agent.
pub(crate) struct Program {
    pub kind: Kind,
    /// Empty: its own default.
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

    /// Always: whatever it runs on, its question goes to its maker's service.
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
                "{name} answers questions and cannot call a session's tools: ask it by llm_call, or choose another provider for turns"
            )));
        }
        if self.model.starts_with('-') {
            return Err(LlmError::Rejected(format!("{name}: '{}' is no name of a model", self.model)));
        }
        let nobodys = || LlmError::Rejected(format!("{name} is asked for a session only, and there is none"));
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

    /// The one that is set: neither agent lists the models it has.
    async fn models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        self.launcher.check(self.kind.name())?;
        let model = if self.model.is_empty() { "default" } else { &self.model };
        let (provider, model) = (self.kind.name().to_owned(), model.to_owned());
        Ok(vec![ModelInfo { provider, model, context_tokens: self.context, size_bytes: None }])
    }
}

/// The question as one text.
fn prompt(name: &str, request: &ModelRequest) -> Result<String, LlmError> {
    let mut parts = Vec::new();
    if !request.system.trim().is_empty() {
        parts.push(request.system.clone());
    }
    if let Some(schema) = &request.schema {
        parts.push(format!(
            "Answer with JSON alone, without a code fence, that follows this JSON Schema: {schema}"
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
        Part::Image { .. } => Err(LlmError::Rejected(format!("{name} takes text, no images"))),
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

/// An answer on its way.
struct Answering {
    running: Running,
    decoder: Decoder,
    recording: Option<Recording>,
    patience: Patience,
    kind: Kind,
    model: String,
    /// What comes after the chunks that are ready.
    failed: Option<LlmError>,
}

impl Answering {
    /// Reads until there is something to show, so that a program that cannot answer fails the question itself.
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

    /// Once the answer is whole: lets the program end by itself, for a while. Whoever takes the last chunk drops the rest.
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
            None => return Err(LlmError::Cut(format!("{name} was lost before its answer was whole"))),
        };
        let ended = self.decoder.end().map_err(|error| self.explained(error));
        if self.decoder.finished() {
            return Ok(());
        }
        if exit.timed_out {
            let text = format!("{name} did not finish its answer within {:?}", self.patience.total);
            return Err(LlmError::TimedOut(text));
        }
        match ended {
            // What it said of the reason itself is worth more than its code.
            Err(LlmError::Cut(_) | LlmError::Malformed(_)) if exit.code != 0 => {
                let said = words::line(&exit.stderr);
                let said = if said.is_empty() { String::new() } else { format!(": {said}") };
                Err(self.explained(words::meant(name, &format!("ended with {}{said}", exit.code))))
            }
            other => other,
        }
    }

    /// The error with the model's name and the way out.
    fn explained(&self, error: LlmError) -> LlmError {
        match error {
            LlmError::Unauthorized(text) => LlmError::Unauthorized(format!("{text}; {}", self.kind.login())),
            LlmError::Unavailable(text) if text.to_lowercase().contains("read-only file system") => {
                let key = format!("llm.agents.{}.credentials_writable", self.kind.name());
                LlmError::Unavailable(format!(
                    "{text}; set {key} if it must write to the folder of its login"
                ))
            }
            LlmError::ModelNotFound { provider, known, .. } => {
                LlmError::ModelNotFound { provider, model: self.model.clone(), known }
            }
            other => other,
        }
    }
}
