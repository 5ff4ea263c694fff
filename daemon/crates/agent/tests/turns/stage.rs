//! An engine with a scripted model and tools that count, for tests of turns.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use cairn_agent::Coder;
use cairn_engine::{
    Engine, EngineDeps, EngineOptions, Rule, Rules, TurnSettings, Verdict,
    model::{ModelLimits, Provider},
    record::{Follower, Step},
    tool::{Output, Permit, Tool, ToolSpec},
};
use cairn_harness::{Sandbox, WhenMissing};
use cairn_llm::{Scripted, ScriptedAnswer, ScriptedCall};
use cairn_protocol::{
    envelope::Envelope,
    error::{Failure, Reason},
    event::AgentEvt,
    id::SessionId,
    index::AddRootParams,
    session::{After, SessionCreateParams},
    turn::{ExecutionPolicy, Input, RunResult, RunStartParams},
};
use cairn_test_support::engine::{SingleModel, deps, index_options, options};
use serde_json::{Value, json};

/// A tool that returns its argument, and counts its calls.
pub struct WordTool {
    pub name: &'static str,
    pub read_only: bool,
    pub runs: Arc<AtomicU32>,
}

#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Words {
    /// The word to return.
    word: String,
}

#[async_trait::async_trait]
impl Tool for WordTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            read_only: self.read_only,
            ..ToolSpec::reading::<Words>(self.name, "Says a word.")
        }
    }

    async fn run(&self, permit: Permit, arguments: Value) -> Result<Output, Failure> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        match arguments["word"].as_str().unwrap_or_default() {
            "hang" => {
                permit.cancel().cancelled().await;
                Err(Failure::new(Reason::Cancelled, "cancelled"))
            }
            "fail" => Err(Failure::new(Reason::ToolFailed, "it failed")),
            "long" => Output::of("word", &"x".repeat(200_000), false),
            word => Output::of("word", &format!("said {word}"), false),
        }
    }
}

/// A stage: an engine in a folder, its script, its tools' counters.
pub struct Stage {
    pub engine: Engine,
    pub session: SessionId,
    pub script: Arc<Scripted>,
    pub reads: Arc<AtomicU32>,
    pub writes: Arc<AtomicU32>,
    pub dir: Arc<tempfile::TempDir>,
    turns: AtomicU32,
}

pub fn allow_all() -> Rules {
    Rules { allow: vec!["*".parse::<Rule>().unwrap()], default: Verdict::Allow, ..Rules::default() }
}

pub fn quick() -> TurnSettings {
    TurnSettings {
        retry_backoff: Duration::from_millis(1),
        repo_map_tokens: 0,
        ..TurnSettings::default()
    }
}

impl Stage {
    pub async fn new(answers: Vec<ScriptedAnswer>) -> Self {
        Self::with(Scripted::new(answers), allow_all(), quick()).await
    }

    pub async fn with(script: Scripted, rules: Rules, settings: TurnSettings) -> Self {
        Self::over(Arc::new(tempfile::tempdir().unwrap()), None, script, rules, settings).await
    }

    /// Opens a stage whose session has a root, in which commands run without a sandbox.
    pub async fn in_root(
        dir: Arc<tempfile::TempDir>,
        session: Option<SessionId>,
        answers: Vec<ScriptedAnswer>,
        settings: TurnSettings,
    ) -> Self {
        Self::in_root_under(allow_all(), dir, session, answers, settings).await
    }

    /// Opens a stage as [`Stage::in_root`] does, under these rules.
    pub async fn in_root_under(
        rules: Rules,
        dir: Arc<tempfile::TempDir>,
        session: Option<SessionId>,
        answers: Vec<ScriptedAnswer>,
        settings: TurnSettings,
    ) -> Self {
        let root = dir.path().join("work");
        std::fs::create_dir_all(&root).unwrap();
        let root = root.canonicalize().unwrap().to_string_lossy().into_owned();
        let script = Scripted::new(answers);
        let agent = Coder::default();
        let is_new = session.is_none();
        let mut stage = Self::open(
            dir,
            Some(session.unwrap_or_else(SessionId::new)),
            script,
            (rules, settings),
            agent,
        )
        .await;
        let add = AddRootParams { path: root.clone(), request_id: None };
        stage.engine.add_root(add).await.unwrap();
        // Ids of turns are unique in a session.
        stage.turns.store(if is_new { 0 } else { 100 }, Ordering::SeqCst);
        if is_new {
            let params = SessionCreateParams { root: Some(root), ..Default::default() };
            stage.session = stage.engine.create_session(params).await.unwrap().session_id;
        }
        stage
    }

    /// Opens a stage with an agent that has texts of its own.
    pub async fn with_agent(script: Scripted, agent: Coder) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        Self::open(dir, None, script, (allow_all(), quick()), agent).await
    }

    /// Opens a stage on the log of an earlier one, as after a restart.
    pub async fn over(
        dir: Arc<tempfile::TempDir>,
        session: Option<SessionId>,
        script: Scripted,
        rules: Rules,
        settings: TurnSettings,
    ) -> Self {
        Self::open(dir, session, script, (rules, settings), Coder::default()).await
    }

    async fn open(
        dir: Arc<tempfile::TempDir>,
        session: Option<SessionId>,
        script: Scripted,
        (rules, settings): (Rules, TurnSettings),
        agent: Coder,
    ) -> Self {
        let (engine, reads, writes) = open(dir.path(), rules, settings).await;
        let script = Arc::new(script);
        let provider: Arc<dyn Provider> = Arc::<Scripted>::clone(&script);
        engine.set_models(Arc::new(SingleModel(provider)));
        engine.set_turn_agent(Arc::new(agent));
        let session = match session {
            Some(session) => session,
            None => engine.create_session(SessionCreateParams::default()).await.unwrap().session_id,
        };
        Self { engine, session, script, reads, writes, dir, turns: AtomicU32::new(0) }
    }

    pub fn params(&self, turn_id: &str, text: &str) -> RunStartParams {
        RunStartParams {
            session_id: self.session.clone(),
            turn_id: turn_id.into(),
            input: Input::Text(text.into()),
            context: None,
            policy: None,
            metadata: Default::default(),
        }
    }

    /// Runs a turn until it finishes.
    pub async fn turn(&self, text: &str) -> RunResult {
        self.turn_with(text, ExecutionPolicy::default()).await
    }

    pub async fn turn_with(&self, text: &str, policy: ExecutionPolicy) -> RunResult {
        let id = format!("t{}", self.turns.fetch_add(1, Ordering::SeqCst));
        let params = RunStartParams { policy: Some(policy), ..self.params(&id, text) };
        let receipt = self.engine.start_run(params, Some("test".into())).await.unwrap();
        let mut watch = self.watch(receipt.seq - 1).await;
        watch.end().await
    }

    pub async fn watch(&self, after: u64) -> Watch {
        let (follower, _) =
            self.engine.trace().follow(&self.session, &After::Seq(after)).await.unwrap();
        Watch::of(follower)
    }

    /// Returns every record of the session.
    pub async fn records(&self) -> Vec<AgentEvt> {
        let all = self.engine.trace().records(&self.session, 0, 500).await.unwrap();
        all.into_iter().filter_map(|r| r.body.evt().cloned()).collect()
    }
}

async fn open(
    dir: &Path,
    rules: Rules,
    turns: TurnSettings,
) -> (Engine, Arc<AtomicU32>, Arc<AtomicU32>) {
    let sandbox = Arc::new(Sandbox::new(None).when_missing(WhenMissing::Off));
    let deps = EngineDeps { sandbox, ..deps(dir, index_options()) };
    let (reads, writes) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    deps.registry
        .add(Arc::new(WordTool { name: "look", read_only: true, runs: Arc::clone(&reads) }))
        .unwrap();
    deps.registry
        .add(Arc::new(WordTool { name: "change", read_only: false, runs: Arc::clone(&writes) }))
        .unwrap();
    let tools = cairn_tools::Deps::new(Arc::clone(&deps.roots), Arc::clone(&deps.indexes));
    cairn_tools::register(&deps.registry, &tools).unwrap();
    let options = EngineOptions {
        rules,
        max_runs: 200,
        drain: Duration::ZERO,
        approval_timeout: Duration::from_secs(60),
        turns,
        models: ModelLimits { requests_per_minute: 10_000, ..ModelLimits::default() },
        ..options(dir)
    };
    (Engine::open(deps, options).await.unwrap(), reads, writes)
}

/// A subscriber of a session.
pub struct Watch {
    follower: Follower,
    waiting: Vec<Envelope>,
    /// Live-only events, as JSON.
    pub passed: Vec<Value>,
}

impl Watch {
    pub fn of(follower: Follower) -> Self {
        Self { follower, waiting: vec![], passed: vec![] }
    }

    pub async fn next(&mut self) -> AgentEvt {
        loop {
            if let Some(evt) = self.record().await.body.evt() {
                return evt.clone();
            }
        }
    }

    pub async fn record(&mut self) -> Envelope {
        loop {
            if !self.waiting.is_empty() {
                return self.waiting.remove(0);
            }
            match self.follower.step().await.unwrap() {
                Step::Records(lines) => {
                    self.waiting = lines.iter().map(|l| serde_json::from_str(l).unwrap()).collect();
                }
                Step::Ephemeral(lines) => {
                    self.passed
                        .extend(lines.iter().map(|l| serde_json::from_str::<Value>(l).unwrap()));
                }
                Step::Deleted => panic!("the session is gone"),
                Step::Synced(_) | Step::Lagged(_) => {}
            }
        }
    }

    /// Waits for the next step of the log and stores what is live only.
    pub async fn live(&mut self) {
        if let Step::Ephemeral(lines) = self.follower.step().await.unwrap() {
            self.passed.extend(lines.iter().map(|l| serde_json::from_str::<Value>(l).unwrap()));
        }
    }

    /// Returns the next event that `pick` accepts.
    pub async fn until<T>(&mut self, pick: impl Fn(&AgentEvt) -> Option<T>) -> T {
        loop {
            if let Some(value) = pick(&self.next().await) {
                return value;
            }
        }
    }

    pub async fn end(&mut self) -> RunResult {
        self.until(|evt| match evt {
            AgentEvt::RunCompleted { result } => Some((**result).clone()),
            _ => None,
        })
        .await
    }
}

pub fn text_answer(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::new(vec![cairn_llm::Step::Text(text.into())])
}

pub fn calls(all: &[(&str, &str)]) -> ScriptedAnswer {
    let call = |(name, word): &(&str, &str)| {
        cairn_llm::Step::Call(ScriptedCall {
            id: None,
            name: (*name).into(),
            arguments: json!({"word": word}),
        })
    };
    ScriptedAnswer::new(all.iter().map(call).collect())
}
