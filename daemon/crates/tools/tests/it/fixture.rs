//! A workspace and a gate with the tools.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use cairn_harness::{
    Call, GrantedRules, Grants, Harness, Output, Registry, Rules, Sandbox, WhenMissing,
    egress::Egress,
};
use cairn_protocol::{error::Failure, id::SessionId};
use cairn_search::{CancelFlag, Embedder, IndexOptions, Indexes, Until};
use cairn_tools::Deps;
use cairn_trace::{NewSession, Trace};
use cairn_workspace::{Root, Roots};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub struct Fixture {
    dir: tempfile::TempDir,
    pub harness: Harness,
    trace: Trace,
    session: SessionId,
    roots: Arc<Roots>,
    root: Root,
    indexes: Arc<Indexes>,
    _log: tempfile::TempDir,
}

impl Fixture {
    /// Creates a workspace with these files; a call that no rule allows is denied, as no approver
    /// is connected.
    pub async fn new(files: &[(&str, &str)], rules: Rules) -> Self {
        Self::with_deps(files, rules, |deps| deps).await
    }

    pub async fn with_deps(
        files: &[(&str, &str)],
        rules: Rules,
        change: impl FnOnce(Deps) -> Deps,
    ) -> Self {
        // The sandbox has separate tests; it is off, so that these run anywhere.
        let sandbox = Sandbox::new(None).when_missing(WhenMissing::Off);
        Self::sandboxed(files, rules, change, sandbox).await
    }

    pub async fn sandboxed(
        files: &[(&str, &str)],
        rules: Rules,
        change: impl FnOnce(Deps) -> Deps,
        sandbox: Sandbox,
    ) -> Self {
        Self::connected(files, rules, change, sandbox, Arc::default()).await
    }

    /// Creates a workspace whose commands reach domains by `egress`.
    pub async fn connected(
        files: &[(&str, &str)],
        rules: Rules,
        change: impl FnOnce(Deps) -> Deps,
        sandbox: Sandbox,
        egress: Arc<Egress>,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().canonicalize().unwrap();
        std::fs::create_dir(at.join("work")).unwrap();
        for (file, text) in files {
            let file = at.join("work").join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        // In memory if there is such a folder: the cost of the log is measured elsewhere.
        let memory = Path::new("/dev/shm");
        let log = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
            .unwrap();
        let trace = Trace::open(&log.path().join("trace.db")).unwrap();
        let roots = Arc::new(Roots::new(vec![]));
        let root = roots.declare(&at.join("work")).unwrap();
        let options = IndexOptions::new(Embedder::builtin().unwrap()).unwrap();
        let indexes = Arc::new(Indexes::open(at.join("index"), options, None));
        let registry = Registry::default();
        let deps = change(Deps::new(Arc::clone(&roots), Arc::clone(&indexes)));
        cairn_tools::register(&registry, &deps).unwrap();
        let session = trace.create_session(NewSession::default()).await.unwrap().session_id;
        let granted = GrantedRules::load(None).unwrap();
        let (wait, stopping) = (Duration::from_secs(60), CancellationToken::new());
        let sandbox = Arc::new(sandbox);
        let harness = Harness::new(registry, rules, trace.clone(), granted, wait, stopping)
            .with_roots(Arc::clone(&roots))
            .with_sandbox(sandbox)
            .with_egress(egress);
        Self { dir, harness, trace, session, roots, root, indexes, _log: log }
    }

    /// Indexes the complete workspace.
    pub fn index(&self) {
        self.indexes.add_root(self.root.clone()).unwrap();
        self.indexes.build_and_wait(&self.root.id, Until::Everything, &CancelFlag::new()).unwrap();
    }

    /// Replaces the rules for later calls.
    pub fn set_rules(&self, rules: Rules) {
        self.harness.set_rules(rules);
    }

    pub async fn output(
        &self,
        name: &str,
        arguments: Value,
        grants: Grants,
    ) -> Result<Output, Failure> {
        let root = Some(self.root.clone());
        let call = Call { root, grants, ..Call::new(self.session.clone(), name, arguments) };
        self.harness.call(call).await
    }

    pub async fn with(
        &self,
        name: &str,
        arguments: Value,
        grants: Grants,
    ) -> Result<Value, Failure> {
        self.output(name, arguments, grants).await.map(|o| o.value)
    }

    pub async fn call(&self, name: &str, arguments: Value) -> Result<Value, Failure> {
        self.with(name, arguments, Grants::default()).await
    }

    /// Declares another root, beside the workspace.
    pub fn declare(&self, path: &Path) -> Root {
        self.roots.declare(path).unwrap()
    }

    /// Makes a call of a session of another root.
    pub async fn in_root(
        &self,
        root: &Root,
        name: &str,
        arguments: Value,
    ) -> Result<Value, Failure> {
        let call =
            Call { root: Some(root.clone()), ..Call::new(self.session.clone(), name, arguments) };
        self.harness.call(call).await.map(|output| output.value)
    }

    /// Makes a call of another session.
    pub async fn in_other_session(&self, name: &str, arguments: Value) -> Result<Value, Failure> {
        let session = self.trace.create_session(NewSession::default()).await.unwrap().session_id;
        let root = Some(self.root.clone());
        let call = Call { root, ..Call::new(session, name, arguments) };
        self.harness.call(call).await.map(|output| output.value)
    }

    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the audit entries.
    pub async fn audit(&self) -> Vec<cairn_protocol::trace::AuditEntry> {
        self.trace.audit_query(Default::default()).await.unwrap()
    }

    /// Returns a path in the workspace.
    pub fn path(&self, inner: &str) -> PathBuf {
        self.root.path.join(inner)
    }

    pub fn read(&self, inner: &str) -> Option<String> {
        std::fs::read_to_string(self.path(inner)).ok()
    }

    /// Returns a folder beside the workspace.
    pub fn beside(&self, inner: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(inner)
    }
}

/// Returns rules that allow these.
pub fn allow(rules: &[&str]) -> Rules {
    Rules { allow: rules.iter().map(|r| r.parse().unwrap()).collect(), ..Rules::default() }
}

/// Returns grants of a run that is limited to these paths.
pub fn within(paths: &[&str]) -> Grants {
    Grants { paths: Some(paths.iter().map(|p| (*p).to_owned()).collect()), ..Grants::default() }
}
