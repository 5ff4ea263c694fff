//! An engine over a folder, an agent that follows a program, tools that count, and gates that tests
//! open.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use cairn_engine::{
    Agent, Approver, Engine, EngineOptions, Rule, Rules, RunContext, TurnAgent, TurnContext,
    TurnSettings,
    record::Trace,
    tool::{Intent, Output, Permit, Registry, Tool, ToolSpec},
};
use cairn_harness::Caller;
use cairn_protocol::{
    envelope::Envelope,
    error::{Failure, Reason},
    event::AgentEvt,
    explore::{ExploreStartParams, ExploreSummary, RunState},
    id::SessionId,
    model::{Message, Part, ToolUse},
    session::SessionCreateParams,
    turn::{ExecutionPolicy, Input, RunStartParams},
};
use cairn_search::IndexOptions;
use cairn_test_support::engine::{deps, index_options, options};
use serde_json::{Value, json};
use tokio::sync::watch;

/// State that outlives an engine: the number of times each action was made, and the open gates.
#[derive(Clone, Default)]
pub struct World {
    acts: Arc<Mutex<HashMap<String, u32>>>,
    gates: Arc<Mutex<HashMap<String, watch::Sender<bool>>>>,
}

impl World {
    pub fn acts(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.acts.lock().unwrap()
    }

    fn gate(&self, name: &str) -> watch::Sender<bool> {
        self.gates
            .lock()
            .unwrap()
            .entry(name.to_owned())
            .or_insert_with(|| watch::channel(false).0)
            .clone()
    }

    pub fn open(&self, name: &str) {
        self.gate(name).send_replace(true);
    }

    pub async fn pass(&self, name: &str) {
        let mut open = self.gate(name).subscribe();
        let _open = open.wait_for(|open| *open).await;
    }

    /// Waits until the action `id` was made.
    pub async fn acted(&self, id: &str) {
        while self.acts().get(id).is_none() {
            tokio::task::yield_now().await;
        }
    }
}

#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Arguments {
    /// The action's id; the tool's name when absent.
    id: Option<String>,
    /// A gate inside the action.
    gate: Option<String>,
    /// A file that it writes.
    write: Option<String>,
}

/// Counts, passes a gate, writes a file.
struct Act {
    name: &'static str,
    read_only: bool,
    world: World,
}

#[async_trait::async_trait]
impl Tool for Act {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            read_only: self.read_only,
            paths: &[],
            ..ToolSpec::writing::<Arguments>(self.name, "Acts.")
        }
    }

    async fn intent(&self, _: &Caller<'_>, _: &Value) -> Result<Intent, Failure> {
        Ok(Intent { grants: vec![cairn_harness::Rule::of_tool(self.name)], ..Intent::default() })
    }

    async fn run(&self, permit: Permit, arguments: Value) -> Result<Output, Failure> {
        let id = arguments["id"].as_str().unwrap_or(self.name).to_owned();
        *self.world.acts().entry(id.clone()).or_default() += 1;
        if id.starts_with("missing") {
            return Err(Failure::new(Reason::PathNotFound, "it is not there"));
        }
        tokio::task::yield_now().await;
        if let Some(gate) = arguments["gate"].as_str() {
            tokio::select! {
                () = self.world.pass(gate) => {}
                () = permit.cancel().cancelled() => return Err(Failure::new(Reason::Cancelled, "cancelled")),
            }
        }
        if let Some(path) = arguments["write"].as_str() {
            permit.write_file(&permit.resolve_own(path)?, None, b"text\n".to_vec())?;
        }
        Output::of("acted", &json!({"commit": "0".repeat(40), "paths": arguments["paths"]}), false)
    }
}

/// Registers the tools that count.
pub fn act_tools(registry: &Registry, world: &World) {
    let tools = [("act", false), ("note", false), ("git_commit", false), ("read", true)];
    for (name, read_only) in tools {
        registry.add(Arc::new(Act { name, read_only, world: world.clone() })).unwrap();
    }
}

/// Follows the program in a turn's input, with steps separated by `;`: `act ID`, `note ID`, `read
/// ID`, `gate NAME`, `write PATH`, `yield N`, `fail`. A step whose result is in the log is not
/// repeated.
pub struct Robot(pub World);

impl Robot {
    async fn done(cx: &TurnContext) -> Result<Vec<String>, Failure> {
        let all = records(cx.engine().trace(), cx.session()).await?;
        let call = |record: Envelope| match record.body.evt() {
            Some(AgentEvt::ToolResult(outcome)) => Some(outcome.call_id.clone()),
            _ => None,
        };
        Ok(all.into_iter().filter_map(call).collect())
    }
}

#[async_trait::async_trait]
impl TurnAgent for Robot {
    async fn system(&self, _: &TurnContext) -> Result<String, Failure> {
        Ok(String::new())
    }

    async fn turn(&self, cx: &TurnContext) -> Result<String, Failure> {
        let talk = cx.conversation().await?;
        let program = talk.messages.iter().rev().find_map(|m| match m {
            Message::User { parts } => match parts.first() {
                Some(Part::Text { text }) => text.strip_prefix("do ").map(str::to_owned),
                _ => None,
            },
            _ => None,
        });
        let program = program.unwrap_or_default();
        let done = Self::done(cx).await?;
        for (at, step) in program.split(';').map(str::trim).enumerate() {
            let (verb, what) = step.split_once(' ').unwrap_or((step, ""));
            let call_id = format!("{}-{at}", cx.run());
            match verb {
                "gate" => tokio::select! {
                    () = self.0.pass(what) => {}
                    () = cx.cancel().cancelled() => return Err(Failure::new(Reason::Cancelled, "cancelled")),
                },
                "yield" => {
                    for _ in 0..what.parse().unwrap_or(1) {
                        tokio::task::yield_now().await;
                    }
                }
                "fail" => return Err(Failure::new(Reason::ToolFailed, "as it was told")),
                "" => {}
                _ if done.contains(&call_id) => {}
                _ => {
                    let (name, arguments) = match verb {
                        "write" => ("note", json!({"id": what, "write": what})),
                        // A gate inside the action itself.
                        "hold" => ("note", json!({"id": what, "gate": what})),
                        _ => (verb, json!({"id": what})),
                    };
                    cx.call_all(vec![ToolUse { id: call_id, name: name.into(), arguments }])
                        .await?;
                }
            }
            cx.steering();
        }
        Ok(format!("did {program}"))
    }
}

#[async_trait::async_trait]
impl Agent for Robot {
    async fn explore(&self, cx: &RunContext, goals: &[String]) -> Result<ExploreSummary, Failure> {
        for goal in goals {
            match goal.strip_prefix("gate ") {
                Some(gate) => self.0.pass(gate).await,
                // A failed operation is a result too.
                None => drop(cx.call("read", json!({"id": goal})).await),
            }
        }
        Ok(ExploreSummary::default())
    }
}

/// Returns every record of a session.
pub async fn records(trace: &Trace, session: &SessionId) -> Result<Vec<Envelope>, Failure> {
    let mut all: Vec<Envelope> = Vec::new();
    loop {
        let after = all.last().map_or(0, |r| r.seq);
        let page = trace.records(session, after, cairn_engine::record::PAGE).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// Settings of a stage.
pub struct Setup {
    pub drain: Duration,
    pub max_runs: u32,
    pub auto_commit: bool,
    pub index_options: IndexOptions,
}

impl Setup {
    pub fn new() -> Self {
        let mut index_options = index_options();
        index_options.watch = false;
        Self { drain: Duration::ZERO, max_runs: 16, auto_commit: false, index_options }
    }
}

pub struct Stage {
    pub engine: Engine,
    pub world: World,
    _approver: Approver,
}

impl Stage {
    /// Opens an engine over the log in `dir`, as a daemon does when it starts. Actions need an
    /// approval, notes and commits do not.
    pub async fn open(dir: &Path, world: &World, setup: &Setup) -> Self {
        let deps = deps(dir, setup.index_options.clone());
        act_tools(&deps.registry, world);
        let allowed = ["note", "git_commit"].map(|rule| rule.parse::<Rule>().unwrap());
        let options = EngineOptions {
            rules: Rules { allow: allowed.into(), ..Rules::default() },
            max_runs: setup.max_runs,
            drain: setup.drain,
            turns: TurnSettings {
                auto_commit: setup.auto_commit.then(|| "[test]".to_owned()),
                ..TurnSettings::default()
            },
            ..options(dir)
        };
        let engine = Engine::open(deps, options).await.unwrap();
        engine.set_turn_agent(Arc::new(Robot(world.clone())));
        engine.set_explorer(Arc::new(Robot(world.clone())));
        let approver = engine.approver();
        Self { engine, world: world.clone(), _approver: approver }
    }

    pub async fn session(&self, root: Option<&Path>) -> SessionId {
        let root = root.map(|path| path.to_string_lossy().into_owned());
        let params = SessionCreateParams { root, ..SessionCreateParams::default() };
        self.engine.create_session(params).await.unwrap().session_id
    }

    pub async fn root(&self, path: &Path) -> PathBuf {
        std::fs::create_dir_all(path).unwrap();
        let params = json!({"path": path.to_string_lossy()});
        self.engine.add_root(serde_json::from_value(params).unwrap()).await.unwrap();
        path.canonicalize().unwrap()
    }

    pub async fn remove_root(&self, path: &Path) {
        let params = json!({"root": path.to_string_lossy()});
        self.engine.remove_root(serde_json::from_value(params).unwrap()).await.unwrap();
    }

    pub async fn start(
        &self,
        session: &SessionId,
        turn: &str,
        program: &str,
    ) -> Result<(), Failure> {
        self.engine
            .start_run(turn_params(session, turn, program), Some("test".into()))
            .await
            .map(drop)
    }

    pub fn explore(
        &self,
        session: Option<&SessionId>,
        root: &Path,
        goals: &[&str],
    ) -> ExploreStartParams {
        ExploreStartParams {
            session_id: session.cloned(),
            root: Some(root.to_string_lossy().into_owned()),
            goals: goals.iter().map(|&goal| goal.to_owned()).collect(),
            ..ExploreStartParams::default()
        }
    }

    pub async fn records(&self, session: &SessionId) -> Vec<Envelope> {
        records(self.engine.trace(), session).await.unwrap()
    }

    pub async fn state(&self, session: &SessionId) -> RunState {
        self.engine.session(session).await.unwrap().state
    }

    /// Waits until the session's log contains a record that `pick` accepts.
    pub async fn until<T>(&self, session: &SessionId, pick: impl Fn(&AgentEvt) -> Option<T>) -> T {
        loop {
            if let Some(value) =
                self.records(session).await.iter().filter_map(|r| r.body.evt()).find_map(&pick)
            {
                return value;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Waits for the end of a turn; returns its status and the reason of its failure.
    pub async fn wait_for_end(
        &self,
        session: &SessionId,
        turn: &str,
    ) -> (cairn_protocol::turn::Outcome, Option<String>) {
        self.until(session, |evt| match evt {
            AgentEvt::RunCompleted { result } if result.turn_id == turn => {
                Some((result.status, result.error.as_ref().map(|e| e.reason.clone())))
            }
            _ => None,
        })
        .await
    }
}

pub fn turn_params(session: &SessionId, turn: &str, program: &str) -> RunStartParams {
    RunStartParams {
        session_id: session.clone(),
        turn_id: turn.into(),
        input: Input::Text(format!("do {program}")),
        context: None,
        policy: Some(ExecutionPolicy::default()),
        metadata: [("of".to_owned(), turn.to_owned())].into(),
    }
}

/// Returns the final records of turns in a log, in order.
pub fn ends(records: &[Envelope]) -> Vec<String> {
    let end = |r: &Envelope| match r.body.evt() {
        Some(AgentEvt::RunCompleted { result }) => Some(result.turn_id.clone()),
        _ => None,
    };
    records.iter().filter_map(end).collect()
}
