//! A model in this process by llama.cpp: a GGUF file, without a server.
//!
//! Answers run one at a time: a context uses all processors anyway, and two concurrent contexts of
//! one model are not safe.

mod calls;
mod prompt;
mod write;

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use cairn_protocol::model::ModelInfo;
use futures_util::stream;
use llama_cpp_2::{
    LogOptions,
    llama_backend::LlamaBackend,
    model::{LlamaModel, params::LlamaModelParams},
    send_logs_to_tracing,
};
use tokio::{
    sync::{OnceCell, Semaphore, mpsc},
    time::{Instant, timeout_at},
};

use crate::{Chunk, ChunkStream, LlmError, ModelRequest, Provider, Settings, tokens};

/// Default context size in tokens, if the model supports more: its memory is allocated at once.
const CONTEXT: u64 = 8192;
/// Maximum number of queued chunks; the model waits beyond it.
const WAITING: usize = 32;

/// Returns the llama.cpp backend, which is initialised once per process.
fn backend() -> Result<&'static LlamaBackend, LlmError> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    let backend_result = BACKEND.get_or_init(|| {
        // llama.cpp logs a page for every model.
        send_logs_to_tracing(LogOptions::default().with_logs_enabled(false));
        LlamaBackend::init().map_err(|error| error.to_string())
    });
    backend_result
        .as_ref()
        .map_err(|error| LlmError::Unavailable(format!("llamaCpp cannot start: {error}")))
}

/// Creates a provider for a model at a path; the model is loaded at the first request.
pub(crate) fn connect(settings: &Settings) -> Result<Arc<dyn Provider>, LlmError> {
    if settings.model.is_empty() {
        let text = "llamaCpp needs the path of a GGUF file as its model: set llm.model".to_owned();
        return Err(LlmError::Rejected(text));
    }
    let path = PathBuf::from(&settings.model);
    let size =
        std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file).map(|meta| meta.len());
    let missing = || LlmError::ModelNotFound {
        provider: "llamaCpp".into(),
        model: settings.model.clone(),
        known: beside(&path),
    };
    Ok(Arc::new(InProcess {
        name: settings.model.clone(),
        size: size.ok_or_else(missing)?,
        path,
        context: settings.context_tokens,
        total: settings.total_timeout,
        loaded: OnceCell::new(),
        turn: Arc::new(Semaphore::new(1)),
    }))
}

/// Lists the GGUF files in the folder of a path that does not exist.
fn beside(path: &std::path::Path) -> Vec<String> {
    let entries = path.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let files = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut models: Vec<String> = files
        .filter(|file| file.extension().is_some_and(|end| end == "gguf"))
        .map(|file| file.display().to_string())
        .take(50)
        .collect();
    models.sort();
    models
}

struct InProcess {
    name: String,
    path: PathBuf,
    size: u64,
    /// Context size that the user configured.
    context: Option<u64>,
    total: Duration,
    loaded: OnceCell<Arc<LlamaModel>>,
    /// Permit of the answer that runs now.
    turn: Arc<Semaphore>,
}

impl InProcess {
    async fn load(&self) -> Result<&Arc<LlamaModel>, LlmError> {
        self.loaded
            .get_or_try_init(|| async {
                let path = self.path.clone();
                let load = tokio::task::spawn_blocking(move || {
                    LlamaModel::load_from_file(backend()?, &path, &LlamaModelParams::default())
                        .map_err(|error| {
                            LlmError::Rejected(format!(
                                "llamaCpp cannot load {}: {error}",
                                path.display()
                            ))
                        })
                });
                let lost = |error| {
                    LlmError::Unavailable(format!("llamaCpp could not load its model: {error}"))
                };
                load.await.map_err(lost)?.map(Arc::new)
            })
            .await
    }
}

#[async_trait::async_trait]
impl Provider for InProcess {
    fn name(&self) -> &str {
        "llamaCpp"
    }

    fn model(&self) -> &str {
        &self.name
    }

    fn external(&self) -> bool {
        false
    }

    fn takes_images(&self) -> bool {
        false
    }

    fn context_tokens(&self) -> Option<u64> {
        let trained = self.loaded.get().map(|model| u64::from(model.n_ctx_train()));
        match (self.context, trained) {
            (Some(set), Some(trained)) => Some(set.min(trained)),
            (Some(set), None) => Some(set),
            (None, trained) => trained.map(|trained| trained.min(CONTEXT)),
        }
    }

    async fn prepare(&self) -> Result<(), LlmError> {
        self.load().await.map(drop)
    }

    async fn chat(&self, request: ModelRequest) -> Result<ChunkStream, LlmError> {
        let model = Arc::clone(self.load().await?);
        let until = Instant::now() + self.total;
        let late = || {
            LlmError::TimedOut(format!(
                "llamaCpp did not finish its answer within {:?}",
                self.total
            ))
        };
        let turn =
            timeout_at(until, Arc::clone(&self.turn).acquire_owned()).await.map_err(|_| late())?;
        let turn = turn.map_err(|_| LlmError::Unavailable("llamaCpp is shut down".into()))?;
        let context = self.context_tokens().unwrap_or(CONTEXT);
        let (sender, mut receiver) = mpsc::channel(WAITING);
        let (late, until) = (late(), until.into_std());
        tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let mut writing = write::Writing {
                sender: &sender,
                until,
                late,
                recording: request.recording.clone(),
            };
            if let Err(write::Stop::Failed(error)) =
                write::answer(&model, context, &request, &mut writing)
            {
                // A receiver that was dropped needs no error.
                let _ignored = sender.blocking_send(Err(error));
            }
        });
        // An error before the first chunk fails the request itself.
        let first: Option<Result<Chunk, LlmError>> = receiver.recv().await;
        let first =
            first.ok_or_else(|| LlmError::Cut("llamaCpp stopped before it answered".into()))??;
        Ok(Box::pin(stream::unfold((Some(first), receiver), |(first, mut receiver)| async move {
            match first {
                Some(chunk) => Some((Ok(chunk), (None, receiver))),
                None => receiver.recv().await.map(|item| (item, (None, receiver))),
            }
        })))
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        let (provider, model) = ("llamaCpp".to_owned(), self.name.clone());
        Ok(vec![ModelInfo {
            provider,
            model,
            context_tokens: self.context_tokens(),
            size_bytes: Some(self.size),
            ..ModelInfo::default()
        }])
    }

    fn count_tokens(&self, text: &str) -> u64 {
        match self.loaded.get() {
            Some(model) => model.vocab().tokenize(text.as_bytes(), false, false).len() as u64,
            None => tokens::estimate(text),
        }
    }
}
