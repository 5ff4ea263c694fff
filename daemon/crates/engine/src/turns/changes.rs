//! File changes of a turn: published as one diff at its end, and undone by its id.

use std::collections::BTreeMap;

use base64::Engine as _;
use cairn_harness::diff;
use cairn_protocol::{
    envelope::{Body, Envelope},
    error::{Failure, Reason},
    event::{AgentEvt, BlobRef, FileChange},
    id::{RunId, SessionId},
};
use cairn_trace::Trace;
use cairn_workspace::{MAX_WRITTEN_BYTES, Root};

/// Largest diff of a turn, in bytes.
const MAX_DIFF: usize = 256 * 1024;

/// One file over a complete turn: its content before the first change, and the hash after the last
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetChange {
    /// `None` when the file did not exist.
    pub before: Option<BlobRef>,
    /// `None` when the file was deleted.
    pub after: Option<String>,
    /// True if the file existed and its former content was not stored.
    pub lost: bool,
}

/// Returns the files that a turn changed, by path.
///
/// # Errors
/// `run_not_found` when the session has no such turn; errors of the log.
pub(crate) async fn of_turn(
    trace: &Trace,
    session: &SessionId,
    turn: &Turn<'_>,
) -> Result<BTreeMap<String, NetChange>, Failure> {
    let mut files: BTreeMap<String, NetChange> = BTreeMap::new();
    let mut run: Option<RunId> = match turn {
        Turn::Run(run) => Some((*run).clone()),
        Turn::Id(_) => None,
    };
    let visit = |record: Envelope| {
        let of = record.origin.and_then(|o| o.run_id);
        let Body::Evt { evt } = record.body else { return };
        match evt {
            AgentEvt::TurnAccepted { run_id, turn_id, .. } if matches!(turn, Turn::Id(id) if *id == turn_id) =>
            {
                run = Some(run_id);
            }
            AgentEvt::ToolResult(outcome) if of.is_some() && of == run => {
                outcome.changes.into_iter().for_each(|change| add(&mut files, change));
            }
            _ => {}
        }
    };
    trace.for_each_record(session, visit).await?;
    if run.is_none() {
        let text = format!("session {session} has no such turn");
        return Err(Failure::new(Reason::RunNotFound, text));
    }
    // A file that was created and deleted again is unchanged.
    files.retain(|_, w| w.before.is_some() || w.after.is_some() || w.lost);
    Ok(files)
}

/// Reference to a turn.
pub(crate) enum Turn<'a> {
    /// By the id of its run.
    Run(&'a RunId),
    /// By the name that its client gave it.
    Id(&'a str),
}

fn add(files: &mut BTreeMap<String, NetChange>, change: FileChange) {
    let FileChange { path, before, after, lost } = change;
    files.entry(path).and_modify(|net| net.after.clone_from(&after)).or_insert(NetChange {
        before,
        after,
        lost,
    });
}

/// Returns the bytes of a file from their blob.
///
/// # Errors
/// `storage_failed` for an invalid blob.
pub(crate) async fn content(trace: &Trace, blob: &BlobRef) -> Result<Vec<u8>, Failure> {
    let text = trace.complete_blob(&blob.sha256).await?;
    let broken =
        |e| Failure::new(Reason::StorageFailed, format!("a saved file cannot be read: {e}"));
    base64::engine::general_purpose::STANDARD.decode(text).map_err(broken)
}

/// Returns the changes of a run as one event; `None` when there are none.
///
/// # Errors
/// Errors of the log and of reading the files.
pub(crate) async fn event(
    trace: &Trace,
    session: &SessionId,
    run: &RunId,
    turn_id: &str,
    root: &Root,
) -> Result<Option<AgentEvt>, Failure> {
    let files = of_turn(trace, session, &Turn::Run(run)).await?;
    let mut text = String::new();
    for (path, net) in &files {
        if net.lost {
            text.push_str(&format!(
                "{path}: changed by a command; its previous content was not saved\n"
            ));
            continue;
        }
        let before = match &net.before {
            Some(blob) => Some(content(trace, blob).await?),
            None => None,
        };
        let (root, rel) = (root.clone(), path.clone());
        let read = move || root.read_file(&rel, MAX_WRITTEN_BYTES);
        let now = tokio::task::spawn_blocking(read).await.ok().and_then(Result::ok).flatten();
        let room = MAX_DIFF.saturating_sub(text.len());
        text.push_str(&diff::unified(path, before.as_deref(), now.as_deref(), room.max(200)));
    }
    if text.is_empty() {
        return Ok(None);
    }
    let paths = files.into_keys().collect();
    Ok(Some(AgentEvt::TurnDiff { turn_id: turn_id.to_owned(), diff: text, paths }))
}
