//! Common parts of all providers over HTTP; each dialect implements the differences.

use std::{
    borrow::Cow,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use cairn_model_presets::{Preset, Presets};
use cairn_protocol::model::{ModelInfo, TokenUsage};
use http::{HeaderMap, HeaderValue, header};
use serde_json::Value;
use tokio::{
    sync::mpsc::Sender,
    time::{Instant, sleep},
};

pub(crate) use crate::server::Query;
use crate::{
    ChunkStream, Decoder, Key, Limits, LlmError, ModelRequest, Notice, Provider, catalog,
    decode::Format,
    effort::Effort,
    endpoint::Endpoint,
    incoming::{Incoming, Patience},
    openai::EASYAI_PROGRESS,
    optional::{self, RefusedFields},
    presets,
    retry::{Failed, Retry, Schedule, chance, explain_wait},
    server::Server,
};

/// Time limit of a secondary request; after a timeout it is repeated with a later chat.
const SECONDARY_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of requests for the context size while a server does not report it.
const MAX_LEARNING: u32 = 3;
/// Maximum number of models that an error lists.
const MAX_KNOWN: usize = 50;

/// Model that a request is for, with the facts that are known of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub model: &'a str,
    /// Context size in tokens.
    pub context: Option<u64>,
    pub preset: Option<&'a Preset>,
    /// Effort of reasoning that the user set.
    pub effort: Option<Effort>,
}

impl Target<'_> {
    /// Returns the temperature of a request, unless the model is known to refuse one.
    pub(crate) fn temperature(&self, request: &ModelRequest) -> Option<f64> {
        request.temperature.filter(|_| !self.preset.is_some_and(|preset| preset.fixed_sampling))
    }
}

/// Format of a provider's requests and answers.
pub(crate) trait Dialect: Send + Sync {
    fn format(&self) -> Format;
    fn name(&self) -> &'static str;
    fn chat_path(&self, model: &str) -> Cow<'static, str>;
    fn headers(&self, key: Option<&Key>) -> Result<HeaderMap, LlmError>;
    /// Returns the body of a chat request.
    fn body(&self, target: &Target<'_>, request: &ModelRequest) -> Result<Value, LlmError>;
    fn models_query(&self, endpoint: &Endpoint) -> Query;
    /// Parses the list of models; `None` if the answer is not one.
    fn models(&self, answer: &Value) -> Option<Vec<ModelInfo>>;

    /// Returns the request for the model's context size.
    fn context_query(&self, _endpoint: &Endpoint, _model: &str) -> Option<Query> {
        None
    }

    /// Parses the context size from that answer.
    fn context(&self, _answer: &Value, _model: &str) -> Option<u64> {
        None
    }

    /// Returns the context size that the server is requested to have when nothing is known.
    fn default_context(&self) -> Option<u64> {
        None
    }

    /// True if the list of models has their context sizes, where [`Dialect::context_query`] fails.
    fn lists_context(&self) -> bool {
        false
    }

    /// Returns the fields that a server of this dialect may not know.
    fn unsure_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// True if the answer to [`Dialect::context_query`] is one of llama.cpp, which reports the
    /// progress of reading the prompt.
    fn is_llama(&self, _answer: &Value) -> bool {
        false
    }
}

/// A provider over HTTP.
pub(crate) struct Remote {
    pub dialect: Box<dyn Dialect>,
    pub server: Arc<Server>,
    pub endpoint: Endpoint,
    pub key: Option<Key>,
    /// Name of the model; empty for the server's first one.
    pub model: String,
    pub chosen: OnceLock<String>,
    /// Context size that the user configured.
    pub context: Option<u64>,
    /// Effort of reasoning that the user configured.
    pub effort: Option<Effort>,
    pub presets: Arc<Presets>,
    /// Context size that the server reported; 0 while unknown.
    pub learnt: AtomicU64,
    pub context_queries: AtomicU32,
    /// True once the server is known to be llama.cpp.
    pub is_llama: AtomicBool,
    /// Optional fields that the server has refused.
    pub refused: RefusedFields,
    pub schedule: Schedule,
    pub limits: Limits,
    pub idle: Duration,
    pub total: Duration,
}

impl Remote {
    fn patience(&self) -> Patience {
        let (idle, total) = (self.idle, self.total);
        Patience { idle, total, until: Instant::now() + total }
    }

    /// Returns the model, which is queried if none was configured.
    async fn choose(&self) -> Result<&str, LlmError> {
        if !self.model().is_empty() {
            return Ok(self.model());
        }
        let first = self.list(self.schedule, self.patience()).await?.into_iter().next();
        let none = || {
            LlmError::Rejected(format!("{} has no model: load one or name one", self.server.who))
        };
        let first = first.ok_or_else(none)?;
        Ok(self.chosen.get_or_init(|| first.model))
    }

    /// Queries the model's context size while it is unknown, and for `progress` the kind of the
    /// server. Failures are ignored.
    async fn learn(&self, model: &str, progress: bool) {
        let Some(query) = self.dialect.context_query(&self.endpoint, model) else { return };
        let needs_context = self.known_context().is_none();
        let needs_kind =
            progress && self.dialect.lists_context() && !self.is_llama.load(Ordering::Relaxed);
        if !(needs_context || needs_kind)
            || self.context_queries.fetch_add(1, Ordering::Relaxed) >= MAX_LEARNING
        {
            return;
        }
        let until = Instant::now() + SECONDARY_TIMEOUT.min(self.idle);
        let answer = self.server.json(&query, model, until).await.ok();
        if answer.as_ref().is_some_and(|answer| self.dialect.is_llama(answer)) {
            self.is_llama.store(true, Ordering::Relaxed);
        }
        let mut tokens = answer.and_then(|answer| self.dialect.context(&answer, model));
        if tokens.is_none() && needs_context && self.dialect.lists_context() {
            let models = self.list_once().await;
            tokens = models.into_iter().find(|m| m.model == model).and_then(|m| m.context_tokens);
        }
        if let Some(tokens) = tokens {
            self.learnt.store(tokens, Ordering::Relaxed);
        }
    }

    /// Returns the context size that is configured, reported by the server, or known of the model.
    fn known_context(&self) -> Option<u64> {
        let learnt = Some(self.learnt.load(Ordering::Relaxed)).filter(|tokens| *tokens > 0);
        let family =
            || self.is_known_service().then(|| catalog::family_context(self.model())).flatten();
        let known = || self.preset().and_then(|preset| preset.context_tokens);
        self.context.or(learnt).or_else(known).or_else(family)
    }

    /// Returns the known facts of the model.
    fn preset(&self) -> Option<&Preset> {
        self.presets.find(self.dialect.name(), self.model()).filter(|_| self.is_known_service())
    }

    /// True unless the server may be one of the user, which serves any model under any name.
    fn is_known_service(&self) -> bool {
        self.dialect.name() != "openai-compatible" || self.endpoint.distant()
    }

    /// Returns the models in one attempt of a few seconds; none if it fails.
    async fn list_once(&self) -> Vec<ModelInfo> {
        let once = Schedule { attempts: 1, ..self.schedule };
        let patience = Patience { until: Instant::now() + SECONDARY_TIMEOUT, ..self.patience() };
        self.list(once, patience).await.unwrap_or_default()
    }

    /// Waits before the next attempt after the `attempt`-th failed, or returns the error when none
    /// remains. The wait is reported before it.
    async fn rest(
        &self,
        schedule: Schedule,
        until: Instant,
        attempt: u32,
        failed: Failed,
        notices: Option<&Sender<Notice>>,
    ) -> Result<(), LlmError> {
        let pause = schedule.pause(attempt, failed.retry, chance());
        // A pause beyond the deadline would only delay the error.
        let Some(wait) = pause.filter(|pause| Instant::now() + *pause < until) else {
            return Err(explain_wait(failed));
        };
        tracing::debug!(who = %self.server.who, attempt, ?wait, "model request failed; retrying");
        let (retry, retries) = (attempt, schedule.attempts.saturating_sub(1));
        let error = self.redacted(failed.error).to_string();
        notify(notices, Notice::Retry { wait, retry, retries, error });
        sleep(wait).await;
        Ok(())
    }

    async fn list(
        &self,
        schedule: Schedule,
        patience: Patience,
    ) -> Result<Vec<ModelInfo>, LlmError> {
        let query = self.dialect.models_query(&self.endpoint);
        let mut attempt = 0;
        let answer = loop {
            match self.server.json(&query, "", patience.next()).await {
                Ok(answer) => break answer,
                Err(failed) => {
                    attempt += 1;
                    self.rest(schedule, patience.until, attempt, failed, None).await?;
                }
            }
        };
        let wrong = || {
            LlmError::Malformed(format!("{} did not answer with a list of models", self.server.who))
        };
        self.dialect.models(&answer).ok_or_else(wrong)
    }

    async fn open(&self, request: ModelRequest) -> Result<ChunkStream, LlmError> {
        let patience = self.patience();
        let model = self.choose().await?;
        self.learn(model, request.prompt_progress).await;
        let target = Target {
            model,
            context: self.context_tokens(),
            preset: self.preset(),
            effort: self.effort,
        };
        let mut body = self.dialect.body(&target, &request)?;
        if !self.is_llama.load(Ordering::Relaxed) {
            optional::remove(&mut body, &["return_progress"]);
        }
        if !self.server.is_easyai.load(Ordering::Relaxed)
            && let Some(options) = body.get_mut("stream_options")
        {
            optional::remove(options, &[EASYAI_PROGRESS]);
        }
        self.refused.remove_from(&mut body);
        let mut bytes = encoded(&body)?;
        let query = Query::get(self.endpoint.api(&self.dialect.chat_path(model)));
        let notices = request.notices.as_ref();
        let mut omitted = Vec::new();
        let mut attempt = 0;
        loop {
            let failed = match self.attempt(&query, bytes.clone(), model, &request, patience).await
            {
                Ok(incoming) => {
                    self.refused.add(&omitted);
                    return Ok(incoming.stream());
                }
                Err(failed) => failed,
            };
            let fields = match failed.retry {
                Retry::WithoutOptional => {
                    optional::to_omit(&body, &failed.error, self.dialect.unsure_fields())
                }
                _ => Vec::new(),
            };
            if fields.is_empty() {
                attempt += 1;
                self.rest(self.schedule, patience.until, attempt, failed, notices).await?;
                continue;
            }
            optional::remove(&mut body, &fields);
            bytes = encoded(&body)?;
            // The user did not set the other fields.
            if fields.iter().any(|field| optional::SETTINGS.contains(field)) {
                let error = self.redacted(failed.error).to_string();
                notify(notices, Notice::FieldsOmitted { fields: fields.clone(), error });
            }
            omitted.extend(fields);
        }
    }

    async fn attempt(
        &self,
        query: &Query,
        body: Bytes,
        model: &str,
        request: &ModelRequest,
        patience: Patience,
    ) -> Result<Incoming, Failed> {
        let sent = self.server.send(query, Some(body), model, patience.next()).await;
        let mut response = sent.map_err(|failed| match failed.error {
            LlmError::TimedOut(_) => patience.over(&self.server.who).into(),
            error => Failed { error, retry: failed.retry },
        })?;
        self.server.check_stream(&mut response, patience.next()).await?;
        // Bytes of a failed attempt do not belong to this recording.
        let recording = request.recording.clone().inspect(|recording| drop(recording.take()));
        let decoder = Decoder::new(self.dialect.format(), &self.server.who, request, self.limits);
        let (server, key) = (Arc::clone(&self.server), self.key.clone());
        let mut incoming =
            Incoming { response, decoder, recording, patience, server, key, failed: None };
        incoming.begin().await?;
        Ok(incoming)
    }

    /// Removes the key from an error, and adds the available models if one was not found.
    async fn explained(&self, error: LlmError) -> LlmError {
        let error = match error {
            LlmError::ModelNotFound { provider, model, .. } => {
                let known = self
                    .list_once()
                    .await
                    .into_iter()
                    .take(MAX_KNOWN)
                    .map(|info| info.model)
                    .collect();
                LlmError::ModelNotFound { provider, model, known }
            }
            error => error,
        };
        self.redacted(error)
    }

    fn redacted(&self, error: LlmError) -> LlmError {
        match &self.key {
            Some(key) => error.map_text(|text| key.redact(text)),
            None => error,
        }
    }
}

fn encoded(body: &Value) -> Result<Bytes, LlmError> {
    let bytes = serde_json::to_vec(body).map_err(|error| LlmError::Rejected(error.to_string()))?;
    Ok(Bytes::from(bytes))
}

fn notify(notices: Option<&Sender<Notice>>, notice: Notice) {
    if let Some(notices) = notices {
        // A receiver that is gone or full misses a report, and the request continues.
        let _dropped = notices.try_send(notice);
    }
}

#[async_trait::async_trait]
impl Provider for Remote {
    fn name(&self) -> &str {
        self.dialect.name()
    }

    fn model(&self) -> &str {
        self.chosen.get().unwrap_or(&self.model)
    }

    fn external(&self) -> bool {
        self.endpoint.external()
    }

    fn context_tokens(&self) -> Option<u64> {
        self.known_context().or_else(|| self.dialect.default_context())
    }

    fn retries_requests(&self) -> bool {
        true
    }

    fn cost(&self, usage: &TokenUsage) -> Option<u64> {
        self.preset()?.cost(usage.input_tokens, usage.cached_tokens, usage.output_tokens)
    }

    async fn prepare(&self) -> Result<(), LlmError> {
        match self.choose().await {
            Ok(model) => {
                self.learn(model, false).await;
                Ok(())
            }
            Err(error) => Err(self.explained(error).await),
        }
    }

    async fn chat(&self, request: ModelRequest) -> Result<ChunkStream, LlmError> {
        match self.open(request).await {
            Ok(stream) => Ok(stream),
            Err(error) => Err(self.explained(error).await),
        }
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        // Someone waits for the list, and may ask again: a server that does not run is known soon.
        let schedule = Schedule { attempts: self.schedule.attempts.min(2), ..self.schedule };
        match self.list(schedule, self.patience()).await {
            Ok(mut models) => {
                if self.is_known_service() {
                    models.iter_mut().for_each(|model| presets::complete(model, &self.presets));
                }
                Ok(models)
            }
            Err(error) => Err(self.explained(error).await),
        }
    }
}

/// Returns the key as `Authorization: Bearer …`.
pub(crate) fn bearer(key: Option<&Key>) -> Result<HeaderMap, LlmError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        headers.insert(header::AUTHORIZATION, secret(&format!("Bearer {}", key.expose()))?);
    }
    Ok(headers)
}

/// Creates a header value that is never printed.
pub(crate) fn secret(text: &str) -> Result<HeaderValue, LlmError> {
    let wrong = "the key contains characters that are invalid in a header: check for a line break or a typo";
    let mut value =
        HeaderValue::from_str(text).map_err(|_| LlmError::Unauthorized(wrong.into()))?;
    value.set_sensitive(true);
    Ok(value)
}
