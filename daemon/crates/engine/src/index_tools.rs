//! The engine's own tools: they change the set of indexes, so they belong to its life cycle.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use cairn_harness::{
    Caller, Intent, MustAsk, Output, Permit, Registry, Rule, Tool, ToolSpec, arguments,
};
use cairn_protocol::{
    approval::Preview,
    command::{IndexAddRoot, IndexBuild},
    error::{Failure, Reason},
    git::CloneParams,
    id::{RootId, SessionId},
    index::{IndexState, RootStatus},
};
use cairn_search::{CancelFlag, Indexes, Until};
use cairn_workspace::{
    Roots,
    git::{Remote, RemoteLocation},
};
use serde_json::Value;

use crate::{
    clone::{self, CloneSecrets},
    roots::blocking,
};

/// Longest wait for an index build.
const BUILD_WAIT: Duration = Duration::from_secs(600);
/// Interval in which the number of other builds is checked.
const LOOK: Duration = Duration::from_millis(25);

/// Adds `index_add_root`, `index_build` and `git_clone`; returns the credentials store of the last
/// one.
pub fn register(
    registry: &Registry,
    roots: &Arc<Roots>,
    indexes: &Arc<Indexes>,
    workspaces: &std::path::Path,
) -> Result<Arc<CloneSecrets>, Failure> {
    let secrets = Arc::new(CloneSecrets::default());
    let shared = Shared {
        roots: Arc::clone(roots),
        indexes: Arc::clone(indexes),
        workspaces: workspaces.to_owned(),
        secrets: Arc::clone(&secrets),
    };
    let shared = Arc::new(shared);
    registry.add(Arc::new(AddRoot(Arc::clone(&shared))))?;
    registry.add(Arc::new(Build(Arc::clone(&shared))))?;
    registry.add(Arc::new(GitClone(shared)))?;
    Ok(secrets)
}

struct Shared {
    roots: Arc<Roots>,
    indexes: Arc<Indexes>,
    workspaces: PathBuf,
    secrets: Arc<CloneSecrets>,
}

struct AddRoot(Arc<Shared>);

#[async_trait::async_trait]
impl Tool for AddRoot {
    fn spec(&self) -> ToolSpec {
        let text = "Indexes a clone as a separate root. An already declared root is not changed.";
        ToolSpec::reading::<IndexAddRoot>("index_add_root", text)
    }

    async fn run(&self, _: Permit, value: Value) -> Result<Output, Failure> {
        let params: IndexAddRoot = arguments(value)?;
        let shared = Arc::clone(&self.0);
        blocking(move || {
            let clones = std::fs::canonicalize(&shared.workspaces).ok();
            // A folder inside a root would bypass the rules of that root: only a user may declare
            // it.
            let root = shared.roots.declare_if(Path::new(&params.path), &|real| {
                let is_clone = clones
                    .as_ref()
                    .is_some_and(|clones| real.starts_with(clones) && real != clones);
                if is_clone || shared.roots.find(&real.to_string_lossy()).is_ok() {
                    return Ok(());
                }
                let text =
                    format!("path '{}' is neither a clone nor a declared root", real.display());
                Err(Failure::new(Reason::PathOutsideRoots, text))
            })?;
            shared.indexes.add_root(root.clone())?;
            let created = serde_json::json!({"root": root.id, "path": root.path});
            Output::of("index_receipt", &created, false)
        })
        .await
    }
}

struct Build(Arc<Shared>);

#[async_trait::async_trait]
impl Tool for Build {
    fn spec(&self) -> ToolSpec {
        let text = "Updates the index of the session's root and waits for it.";
        ToolSpec {
            timeout: BUILD_WAIT + Duration::from_secs(5),
            ..ToolSpec::reading::<IndexBuild>("index_build", text)
        }
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let params: IndexBuild = arguments(value)?;
        let wait = params
            .timeout_seconds
            .map_or(BUILD_WAIT, |s| Duration::from_secs(s.into()).min(BUILD_WAIT));
        let id = permit.require_root()?.id.clone();
        let flag = CancelFlag::new();
        let stop = flag.clone();
        let (indexes, cancel) = (Arc::clone(&self.0.indexes), permit.cancel().clone());
        let all = Arc::clone(&indexes);
        let late = cancel.clone();
        let watch = tokio::spawn(async move {
            let _late = tokio::time::timeout(wait, cancel.cancelled()).await;
            stop.cancel();
        });
        let limit = params.max_concurrency.unwrap_or(u32::MAX);
        if limit == 0 {
            return Err(Failure::new(Reason::InvalidParams, "maxConcurrency must be at least 1"));
        }
        let build = move |id: &RootId| {
            wait_for_others(&indexes, id, limit, &flag)?;
            indexes.build_and_wait(id, Until::Everything, &flag)
        };
        let status = blocking(move || match build(&id) {
            // The time is over but the call was not cancelled: the current state is the answer.
            Err(failure) if failure.reason == Reason::Cancelled && !late.is_cancelled() => {
                let status = all.status(Some(&id))?.into_iter().next();
                status.ok_or(failure)
            }
            outcome => outcome,
        })
        .await;
        watch.abort();
        Output::of("index_status", &status?, false)
    }
}

/// Waits until fewer than `limit` other indexes are being built.
fn wait_for_others(
    indexes: &Indexes,
    id: &RootId,
    limit: u32,
    flag: &CancelFlag,
) -> Result<(), Failure> {
    let at_work = |r: &RootStatus| {
        r.root != *id && matches!(r.state, IndexState::Indexing | IndexState::Enriching)
    };
    while limit < u32::MAX
        && indexes.status(None)?.iter().filter(|r| at_work(r)).count() >= limit as usize
    {
        flag.check()?;
        std::thread::sleep(LOOK);
    }
    Ok(())
}

struct GitClone(Arc<Shared>);

#[async_trait::async_trait]
impl Tool for GitClone {
    fn spec(&self) -> ToolSpec {
        let text =
            "Clones a repository into the workspaces folder with the user's own git credentials.";
        let spec = ToolSpec::reading::<CloneParams>("git_clone", text);
        ToolSpec {
            read_only: false,
            network: true,
            paths: &["dest"],
            timeout: Duration::from_secs(900),
            ..spec
        }
    }

    fn withhold_secrets(&self, session: &SessionId, arguments: &mut Value) {
        self.0.secrets.withhold(session, arguments);
    }

    async fn intent(&self, _: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let params: CloneParams = arguments(value.clone())?;
        let (source, doubt) =
            clone::judge(&self.0.roots, Remote::parse(&params.remote_url)?).await?;
        let why = doubt.map(|doubt| doubt.text().to_owned());
        let preview = Preview {
            summary: format!("git_clone {}", source.url()),
            network: true,
            warnings: why.iter().cloned().collect(),
            ..Preview::default()
        };
        // A rule that names the tool would allow any other address as well.
        let grants = if why.is_some() { vec![] } else { vec![Rule::of_tool("git_clone")] };
        Ok(Intent { preview, must_ask: why.map(MustAsk::Always), grants, ..Intent::default() })
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let params: CloneParams = arguments(value)?;
        let dest = clone::destination(&self.0.workspaces, &params)?;
        let remote = Remote::parse(&params.remote_url)?;
        match remote.location() {
            RemoteLocation::Host { name, .. } => permit.require_host(name).await?,
            RemoteLocation::Folder(_) => permit.require_network()?,
        }
        let credentials = self.0.secrets.take(permit.session(), remote.url());
        let remote = remote.with_credentials(credentials);
        let (source, doubt) = clone::judge(&self.0.roots, remote).await?;
        // The name may resolve to another address than when it was approved.
        let known =
            |why: &str| permit.approved().is_some_and(|p| p.warnings.iter().any(|w| w == why));
        if let Some(doubt) = doubt.filter(|doubt| !known(doubt.text())) {
            return Err(Failure::new(Reason::NetworkDenied, doubt.text()));
        }
        let cancel = permit.cancel().clone();
        let result = clone::clone(source, params.branch, dest, cancel, |_, _| ()).await?;
        Output::of("clone_result", &result, false)
    }
}
