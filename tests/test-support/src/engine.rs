//! An engine in a temporary folder: its components, its only model, and a tool that waits.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use cairn_engine::{
    EngineDeps, EngineOptions,
    model::{Models, Provider},
    record::Trace,
    tool::{Output, Permit, Registry, Tool, ToolSpec},
};
use cairn_harness::Sandbox;
use cairn_protocol::{
    error::Failure,
    session::Empty,
    turn::{ModelChoice, ProviderInfo},
};
use cairn_search::{Embedder, IndexOptions, Indexes};
use cairn_workspace::Roots;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Returns the default options of indexes, with the built-in embedder.
pub fn index_options() -> IndexOptions {
    IndexOptions::new(Embedder::builtin().unwrap()).unwrap()
}

/// Opens the components of an engine in a folder, without tools; a second call opens the same log.
pub fn deps(dir: &Path, index_options: IndexOptions) -> EngineDeps {
    let (notify, progress) = crossbeam_channel::bounded(16);
    EngineDeps {
        trace: Trace::open(&dir.join("trace.db")).unwrap(),
        roots: Arc::new(Roots::new(vec![])),
        indexes: Arc::new(Indexes::open(dir.join("index"), index_options, Some(notify))),
        progress,
        registry: Registry::default(),
        sandbox: Arc::new(Sandbox::new(None)),
    }
}

/// Returns the default options of an engine that stores everything in a folder.
pub fn options(dir: &Path) -> EngineOptions {
    EngineOptions {
        workspaces: dir.join("workspaces"),
        state_file: dir.join("state.json"),
        ..EngineOptions::default()
    }
}

/// Returns the same provider for every choice.
pub struct SingleModel(pub Arc<dyn Provider>);

impl Models for SingleModel {
    fn default_choice(&self) -> ModelChoice {
        ModelChoice { provider: "scripted".into(), model: self.0.model().into(), endpoint: None }
    }

    fn provider(&self, _: &ModelChoice) -> Result<Arc<dyn Provider>, Failure> {
        Ok(Arc::clone(&self.0))
    }

    fn list(&self) -> Vec<ProviderInfo> {
        vec![]
    }
}

/// The tool `wait`: each call waits for a permit of the gate. Clones share it.
#[derive(Clone)]
pub struct WaitTool {
    pub gate: Arc<Semaphore>,
    calls: Arc<AtomicUsize>,
}

impl Default for WaitTool {
    fn default() -> Self {
        Self { gate: Arc::new(Semaphore::new(0)), calls: Arc::default() }
    }
}

impl WaitTool {
    /// Returns the number of calls that were started.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait::async_trait]
impl Tool for WaitTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec::reading::<Empty>("wait", "Waits.")
    }

    async fn run(&self, _: Permit, _: Value) -> Result<Output, Failure> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.gate.acquire().await.unwrap().forget();
        Output::of("waited", &json!({}), false)
    }
}
