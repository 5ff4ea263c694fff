//! Builder of a session.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use cairn_agent::{
    Coder,
    prompt::{Sources, Texts},
};
use cairn_engine::{
    DomainAccess, Engine, EngineDeps, EngineOptions, Rules, TurnSettings,
    model::ModelLimits,
    tool::{Registry, Tool},
};
use cairn_harness::{RuleError, Sandbox, sandbox::Host};
use cairn_llm::{Key, Provider, Settings};
use cairn_memory::Memory;
use cairn_protocol::{
    approval::{Approval, ApprovalDecision},
    error::{Failure, Reason},
    session::SessionCreateParams,
};
use cairn_search::{Embedder, IndexOptions, Indexes};
use cairn_trace::Trace;
use cairn_workspace::Roots;

use crate::{Session, source::Single};

/// Maximum number of queued progress messages of the index; further ones are lost.
const PROGRESS: usize = 256;

/// Source of the model's answers.
enum Backend {
    Provider(Arc<dyn Provider>),
    Settings(Box<Settings>),
}

/// Options of the text between the operator's texts and the tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PreambleOptions {
    /// Date at which the model's knowledge ends.
    pub knowledge_cutoff: Option<String>,
    /// Omits the date and time.
    pub no_clock: bool,
    /// Omits the instruction to name sources.
    pub no_citing: bool,
}

/// A text that is appended to the system text.
pub(crate) type Appendix = Box<dyn Fn() -> String + Send + Sync>;
pub(crate) type OnToken = Box<dyn Fn(&str) + Send + Sync>;
pub(crate) type OnApproval = Box<dyn Fn(&Approval) -> ApprovalDecision + Send + Sync>;

/// Parts of the system text, shared with the agent that renders it.
#[derive(Default)]
pub(crate) struct Shared {
    pub base: Option<String>,
    pub appendices: Vec<Appendix>,
    pub preamble: PreambleOptions,
}

/// A session that is being built. Nothing is opened before [`SessionBuilder::init`].
pub struct SessionBuilder {
    backend: Backend,
    root: Option<PathBuf>,
    data: Option<PathBuf>,
    memory: Option<PathBuf>,
    default_tools: bool,
    tools: Vec<Arc<dyn Tool>>,
    rules: Rules,
    settings: TurnSettings,
    external: bool,
    shared: Shared,
    on_token: Option<OnToken>,
    on_approval: Option<OnApproval>,
    helper: Option<PathBuf>,
    domains: Vec<String>,
}

impl Session {
    /// Uses a model in a GGUF file on this machine, run in this process by llama.cpp.
    #[cfg(feature = "llama")]
    pub fn local(path: impl AsRef<Path>) -> SessionBuilder {
        Self::settings(Settings {
            provider: "llamaCpp".into(),
            model: path.as_ref().display().to_string(),
            ..Settings::default()
        })
    }

    /// Uses a server that supports OpenAI's format; an empty `model` selects the first that it
    /// lists. The URL may omit `/v1`.
    pub fn remote(url: impl Into<String>, model: impl Into<String>) -> SessionBuilder {
        Self::settings(Settings {
            provider: "openai-compatible".into(),
            model: model.into(),
            endpoint: Some(url.into()),
            ..Settings::default()
        })
    }

    /// Uses a provider with the given settings.
    pub fn settings(settings: Settings) -> SessionBuilder {
        SessionBuilder::new(Backend::Settings(Box::new(settings)))
    }

    /// Uses an existing provider: a scripted one for tests, or a custom one.
    pub fn provider(provider: Arc<dyn Provider>) -> SessionBuilder {
        SessionBuilder::new(Backend::Provider(provider))
    }
}

impl SessionBuilder {
    fn apply_domains(&mut self) -> Result<(), Failure> {
        for domain in std::mem::take(&mut self.domains) {
            let bad = |e: RuleError| Failure::new(Reason::InvalidParams, format!("{domain}: {e}"));
            self.rules.allow.push(format!("network({domain})").parse().map_err(bad)?);
            self.settings.domains = DomainAccess::All;
        }
        Ok(())
    }

    fn new(backend: Backend) -> Self {
        Self {
            backend,
            root: None,
            data: None,
            memory: None,
            default_tools: true,
            tools: vec![],
            rules: Rules::default(),
            settings: TurnSettings::default(),
            external: false,
            shared: Shared::default(),
            on_token: None,
            on_approval: None,
            helper: None,
            domains: vec![],
        }
    }

    /// Sets the key for the provider.
    #[must_use]
    pub fn key(mut self, key: Key) -> Self {
        if let Backend::Settings(settings) = &mut self.backend {
            settings.key = Some(key);
        }
        self
    }

    /// Sets the working folder. Without one the tools for files return an error.
    #[must_use]
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Sets the folder of log and index; a temporary one is used when not set.
    #[must_use]
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data = Some(folder.into());
        self
    }

    /// Sets the folder of knowledge that outlives the session: gives the agent the `memory_*` tools
    /// and the list of keywords.
    #[must_use]
    pub fn memory(mut self, folder: impl Into<PathBuf>) -> Self {
        self.memory = Some(folder.into());
        self
    }

    /// Replaces the built-in base of the system text.
    #[must_use]
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.shared.base = Some(text.into());
        self
    }

    /// Removes the built-in base of the system text.
    #[must_use]
    pub fn no_builtin_system(self) -> Self {
        self.system("")
    }

    /// Appends to the system text, after the texts of the tools, in the order of the calls.
    #[must_use]
    pub fn system_append(self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.system_append_with(move || text.clone())
    }

    /// Appends the result of a function each time the system text is rendered.
    #[must_use]
    pub fn system_append_with(mut self, text: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.shared.appendices.push(Box::new(text));
        self
    }

    /// Sets the options of the preamble.
    #[must_use]
    pub fn preamble_options(mut self, options: PreambleOptions) -> Self {
        self.shared.preamble = options;
        self
    }

    /// Enables or disables the built-in tools, which are enabled by default.
    #[must_use]
    pub fn with_default_tools(mut self, yes: bool) -> Self {
        self.default_tools = yes;
        self
    }

    /// Adds a custom tool.
    #[must_use]
    pub fn add_tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Sets the rules of the gate; by default reading is allowed and everything else requires an
    /// approval.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Sets the settings of turns.
    #[must_use]
    pub fn turn_settings(mut self, settings: TurnSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Allows models outside this machine.
    #[must_use]
    pub fn allow_external(mut self) -> Self {
        self.external = true;
        self
    }

    /// Calls a function with the model's visible text as it arrives.
    #[must_use]
    pub fn on_token(mut self, callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_token = Some(Box::new(callback));
        self
    }

    /// Sets the approver. Without one, every call that requires an approval is denied.
    #[must_use]
    pub fn on_approval(
        mut self,
        answer: impl Fn(&Approval) -> ApprovalDecision + Send + Sync + 'static,
    ) -> Self {
        self.on_approval = Some(Box::new(answer));
        self
    }

    /// Sets the program that confines commands: its `main` must delegate to
    /// [`crate::sandbox_main`], as `cairn` itself does. Without it the shell is refused.
    #[must_use]
    pub fn sandbox_helper(mut self, program: impl Into<PathBuf>) -> Self {
        self.helper = Some(program.into());
        self
    }

    /// Lets commands reach a domain (`crates.io`, `*.example.org`), and offers the web tools. Commands
    /// need the full sandbox for it.
    #[must_use]
    pub fn allow_domain(mut self, domain: impl Into<String>) -> Self {
        self.domains.push(domain.into());
        self
    }

    /// Opens the session.
    ///
    /// # Errors
    /// Fails for an unknown provider, an invalid root, or a duplicate tool name.
    pub async fn init(mut self) -> Result<Session, Failure> {
        self.apply_domains()?;
        let provider = match self.backend {
            Backend::Provider(provider) => provider,
            Backend::Settings(settings) => cairn_llm::connect(&settings)?,
        };
        let temporary = match &self.data {
            Some(_) => None,
            None => Some(tempfile::tempdir().map_err(|e| unusable(&e))?),
        };
        let data = self
            .data
            .or_else(|| temporary.as_ref().map(|dir| dir.path().to_owned()))
            .unwrap_or_default();
        std::fs::create_dir_all(&data).map_err(|e| unusable(&e))?;
        let root =
            self.root.map(|r| r.canonicalize()).transpose().map_err(|e| {
                Failure::new(Reason::PathNotFound, format!("the session's root: {e}"))
            })?;
        let limits = ModelLimits {
            allow_external: self.external,
            requests_per_minute: 10_000,
            ..ModelLimits::default()
        };
        let options = EngineOptions {
            workspaces: data.join("workspaces"),
            state_file: data.join("state.json"),
            rules: self.rules,
            roots: vec![],
            max_runs: 256,
            // The session belongs to the host, which closes it itself.
            drain: Duration::ZERO,
            granted_file: Some(data.join("permissions.json")),
            approval_timeout: Duration::from_secs(600),
            turns: self.settings,
            models: limits,
            ..EngineOptions::default()
        };
        let memory = self.memory.map(Memory::single);
        let tools = self.default_tools.then(|| memory.clone());
        let engine = open(&data, options, tools, self.tools, self.helper).await?;
        engine.set_models(Arc::new(Single(provider)));
        let shared = Arc::new(Mutex::new(self.shared));
        engine.set_turn_agent(Arc::new(Coder::new(sources(&shared, memory))));
        engine.set_explorer(Arc::new(cairn_agent::Explorer));
        let mut params = SessionCreateParams::default();
        if let Some(root) = root {
            let path = root.to_string_lossy().into_owned();
            engine
                .add_root(cairn_protocol::index::AddRootParams {
                    path: path.clone(),
                    request_id: None,
                })
                .await?;
            params.root = Some(path);
        }
        let id = engine.create_session(params).await?.session_id;
        Ok(Session::opened(
            engine,
            id,
            shared,
            self.on_token,
            self.on_approval,
            self.external,
            temporary,
        ))
    }
}

fn sources(shared: &Arc<Mutex<Shared>>, memory: Option<Memory>) -> Sources {
    let shared = Arc::clone(shared);
    Sources::new(move |_, _| {
        let shared = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Texts {
            base: shared.base.clone(),
            appendices: shared.appendices.iter().map(|text| text()).collect(),
            knowledge_cutoff: shared.preamble.knowledge_cutoff.clone(),
            no_clock: shared.preamble.no_clock,
            no_citing: shared.preamble.no_citing,
            vocabulary: memory
                .as_ref()
                .and_then(|m| m.general().vocabulary().ok())
                .unwrap_or_default(),
            ..Texts::default()
        }
    })
}

async fn open(
    data: &Path,
    options: EngineOptions,
    // The built-in tools, if enabled, and their knowledge store.
    built_in: Option<Option<Memory>>,
    own: Vec<Arc<dyn Tool>>,
    helper: Option<PathBuf>,
) -> Result<Engine, Failure> {
    let trace = Trace::open(&data.join("trace.db"))?;
    let roots = Arc::new(Roots::new(vec![data.to_owned()]));
    let (sender, progress) = crossbeam_channel::bounded(PROGRESS);
    let index = IndexOptions::new(Embedder::builtin()?)?;
    let indexes = Arc::new(Indexes::open(data.join("index"), index, Some(sender)));
    let registry = Registry::default();
    if let Some(memory) = built_in {
        let (roots, indexes) = (Arc::clone(&roots), Arc::clone(&indexes));
        let deps = cairn_tools::Deps { memory, ..cairn_tools::Deps::new(roots, indexes) };
        cairn_tools::register(&registry, &deps)?;
    }
    own.into_iter().try_for_each(|tool| registry.add(tool))?;
    let sandbox = Arc::new(Sandbox::new(helper).for_host(host()));
    Engine::open(EngineDeps { trace, roots, indexes, progress, registry, sandbox }, options).await
}

/// Returns the parts of this process that its commands may see: the program paths, but no other
/// variables.
fn host() -> Host {
    Host {
        home: std::env::var_os("HOME").map(PathBuf::from),
        path: std::env::var_os("PATH")
            .map(|p| std::env::split_paths(&p).collect())
            .unwrap_or_default(),
        lang: std::env::var("LANG").ok(),
        blocked: vec![],
        closed: vec![],
    }
}

fn unusable(error: &std::io::Error) -> Failure {
    Failure::new(Reason::StorageFailed, format!("the session's data folder: {error}"))
}
