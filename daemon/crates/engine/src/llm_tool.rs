//! `llm_call`: one request to a model, as a command.

use std::{
    sync::{Arc, Weak},
    time::Instant,
};

use cairn_harness::{Output, Permit, Tool, ToolSpec, arguments};
use cairn_llm::ModelRequest;
use cairn_protocol::{
    command::LlmCall,
    error::{Failure, Reason},
    event::AgentEvt,
    explore::{ExplorePlan, ExploreSummary},
    model::Message,
    turn::ModelChoice,
};
use serde_json::{Value, json};

use crate::{engine::Inner, llm_call, structured::Snapshots};

/// Most tokens of an answer.
const MAX_TOKENS: u32 = 8192;
/// Longest prompt and longest instructions, in bytes.
const MAX_PROMPT: usize = 1024 * 1024;

/// The tool. It fails once its engine has been dropped.
struct Ask {
    engine: Weak<Inner>,
}

/// Creates the tool for the registry of `engine`.
pub fn tool(engine: &Arc<Inner>) -> Arc<dyn Tool> {
    Arc::new(Ask { engine: Arc::downgrade(engine) })
}

/// Returns the schema of a named type of answer.
fn schema(name: &str) -> Result<Value, Failure> {
    match name {
        "ExplorePlan" => Ok(schemars::schema_for!(ExplorePlan).to_value()),
        "ExploreSummary" => Ok(schemars::schema_for!(ExploreSummary).to_value()),
        _ => {
            let text = format!(
                "type '{}' is not registered; the types are ExplorePlan and ExploreSummary",
                name.escape_default()
            );
            Err(Failure::new(Reason::InvalidParams, text))
        }
    }
}

/// Parses the answer as the requested type. A model that does not enforce a schema may put a fence
/// around it.
fn typed(name: &str, text: &str) -> Result<Value, Failure> {
    let wrong = |e: serde_json::Error| {
        Failure::new(
            Reason::SchemaMismatch,
            format!("the model's answer is not a valid {name}: {e}"),
        )
    };
    let text = cairn_harness::unfenced(text.trim());
    match name {
        "ExplorePlan" => {
            serde_json::from_str::<ExplorePlan>(text).and_then(serde_json::to_value).map_err(wrong)
        }
        _ => serde_json::from_str::<ExploreSummary>(text)
            .and_then(serde_json::to_value)
            .map_err(wrong),
    }
}

#[async_trait::async_trait]
impl Tool for Ask {
    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::reading::<LlmCall>(
            "llm_call",
            "Sends one prompt to a model. A model outside this machine needs policy.allowExternalLLMs \
            and models.allowExternal.",
        );
        ToolSpec {
            hidden: true,
            paths: &[],
            timeout: std::time::Duration::from_secs(15 * 60),
            ..spec
        }
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let call: LlmCall = arguments(value)?;
        let size = call.prompt.len() + call.instructions.as_ref().map_or(0, String::len);
        if size > MAX_PROMPT {
            let text = format!("the prompt has {size} bytes; the limit is {MAX_PROMPT}");
            return Err(Failure::new(Reason::TooLarge, text));
        }
        if call.stream_structured && call.expects_type.is_none() {
            let text = "streamStructured requires expectsType";
            return Err(Failure::new(Reason::InvalidParams, text));
        }
        let engine = self
            .engine
            .upgrade()
            .ok_or_else(|| Failure::new(Reason::ShuttingDown, "the engine has shut down"))?;
        if engine.sessions.has_turn(permit.session()) {
            let text =
                format!("session {} already has a model request in progress", permit.session());
            return Err(Failure::new(Reason::SessionBusy, text));
        }
        let schema = call.expects_type.as_deref().map(schema).transpose()?;
        let engine = crate::Engine { inner: engine };
        let choice = match &call.provider {
            Some(name) => {
                let model = call.policy.model.clone().unwrap_or_default();
                ModelChoice { provider: known(name), model, endpoint: None }
            }
            None => engine.model_choice(permit.session()).await?,
        };
        let provider = engine.model_source()?.provider(&choice)?;
        // A run sets it in its policy; a call of its own in the policy that it carries.
        let allowed = call.policy.allow_external_llms || permit.require_network().is_ok();
        engine.inner.models.admit(&*provider, allowed)?;
        engine.load_costs().await?;
        if let Some(wait) = engine.inner.models.wait(Instant::now())? {
            let text = format!(
                "models.maxRequestsPerMinute is reached; try again in {} s",
                wait.as_secs().max(1)
            );
            return Err(Failure::new(Reason::ModelRateLimited, text));
        }
        let request = ModelRequest {
            system: call.instructions.unwrap_or_default(),
            messages: vec![Message::user(call.prompt)],
            temperature: call.policy.temperature,
            max_tokens: call.policy.max_tokens.unwrap_or(1024).clamp(1, MAX_TOKENS),
            schema,
            session: Some(permit.session().clone()),
            ..ModelRequest::default()
        };
        let mut snapshots =
            call.expects_type.as_deref().filter(|_| call.stream_structured).map(Snapshots::new);
        let pass = |evt: Option<AgentEvt>| {
            if let Some(evt) = evt {
                engine.inner.trace.pass(permit.session(), None, permit.command(), &evt);
            }
        };
        let on_text = |text: &str| pass(snapshots.as_mut().and_then(|s| s.look(text)));
        let answer =
            llm_call::collect_with_progress(&*provider, request, permit.cancel(), on_text).await?;
        engine.inner.models.spend(answer.usage);
        let typed =
            call.expects_type.as_deref().map(|name| typed(name, &answer.text)).transpose()?;
        if let (Some(snapshots), Some(value)) = (snapshots, &typed) {
            pass(snapshots.end(value));
        }
        let result = json!({
            "text": answer.text, "value": typed, "usage": answer.usage,
            "model": {"provider": provider.name(), "model": provider.model()},
        });
        Output::of("llm_answer", &result, false)
    }
}

/// Returns the provider's name in this engine.
fn known(name: &str) -> String {
    cairn_llm::find_provider(name).map_or(name, |known| known.name).to_owned()
}
