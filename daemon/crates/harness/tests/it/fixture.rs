//! A log in a temporary folder and the harness over it.

use std::{path::Path, sync::Arc, time::Duration};

use cairn_harness::{GrantedRules, Harness, Registry, Rules, Tool};
use cairn_protocol::id::SessionId;
use cairn_trace::{NewSession, Trace};
use tokio_util::sync::CancellationToken;

/// Opens a new log in a temporary folder, with a session.
pub async fn open_log() -> (tempfile::TempDir, Trace, SessionId) {
    let dir = tempfile::tempdir().unwrap();
    let trace = Trace::open(&dir.path().join("trace.db")).unwrap();
    let session = create_session(&trace).await;
    (dir, trace, session)
}

pub async fn create_session(trace: &Trace) -> SessionId {
    trace.create_session(NewSession::default()).await.unwrap().session_id
}

/// Opens a harness whose granted rules are stored in `dir`; the token stops it.
pub fn open_harness(
    dir: &Path,
    trace: &Trace,
    tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    rules: Rules,
    timeout: Duration,
) -> (Arc<Harness>, CancellationToken) {
    let registry = Registry::default();
    for tool in tools {
        registry.add(tool).unwrap();
    }
    let granted = GrantedRules::load(Some(dir.join("permissions.json"))).unwrap();
    let stopping = CancellationToken::new();
    let harness = Harness::new(registry, rules, trace.clone(), granted, timeout, stopping.clone());
    (Arc::new(harness), stopping)
}
