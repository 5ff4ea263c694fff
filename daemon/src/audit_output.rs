//! `cairn serve --audit-stdout`: each row of the audit as a line of JSON, when it is written and
//! when it is completed.

use std::{
    collections::BTreeSet,
    io::{self, Write},
    sync::mpsc::{SyncSender, TrySendError, sync_channel},
    time::Duration,
};

use cairn_protocol::trace::{AuditEntry, AuditQueryParams};
use cairn_trace::{Trace, TraceError};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// Rows of one query.
const PAGE: u32 = 500;
/// Maximum number of unfinished calls whose end is awaited; the end of older ones is not printed.
const MAX_OPEN: usize = 1024;
/// Lines that wait for a reader of the output. The rows behind them are read later.
const MAX_LINES: usize = 256;
/// Pause while the reader is behind.
const BEHIND: Duration = Duration::from_millis(20);
/// Time for the last lines when the daemon stops.
const DRAIN: Duration = Duration::from_secs(1);

/// The task that prints the audit.
pub struct AuditOutput {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl AuditOutput {
    /// Prints the rows that are written from now on.
    ///
    /// # Errors
    /// The audit cannot be read.
    pub async fn start(trace: &Trace) -> Result<Self, TraceError> {
        let stop = CancellationToken::new();
        let writes = trace.audit_writes();
        let reader = Reader { last: trace.audit_head().await?, open: BTreeSet::new() };
        let lines = spawn_writer(io::stdout());
        let task = tokio::spawn(print((trace.clone(), writes), reader, lines, stop.clone()));
        Ok(Self { stop, task })
    }

    /// Prints the last rows and ends.
    pub async fn close(self) {
        self.stop.cancel();
        if tokio::time::timeout(DRAIN, self.task).await.is_err() {
            tracing::warn!("the last lines of the audit were not read from standard output");
        }
    }
}

/// Writes lines on a thread of its own, because a reader may stop reading; it ends with the
/// program.
fn spawn_writer(mut out: impl Write + Send + 'static) -> SyncSender<String> {
    let (sender, receiver) = sync_channel::<String>(MAX_LINES);
    std::thread::spawn(move || {
        for line in receiver {
            if let Err(error) = out.write_all(line.as_bytes()).and_then(|()| out.flush()) {
                tracing::warn!(%error, "the audit is no longer printed to standard output");
                return;
            }
        }
    });
    sender
}

async fn print(
    (trace, mut writes): (Trace, watch::Receiver<u64>),
    mut reader: Reader,
    lines: SyncSender<String>,
    stop: CancellationToken,
) {
    loop {
        writes.mark_unchanged();
        match reader.next(&trace).await {
            Ok(entries) => {
                for entry in entries {
                    if !send(&lines, &entry).await {
                        return;
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "the audit cannot be printed"),
        }
        if stop.is_cancelled() {
            return;
        }
        tokio::select! {
            // The log is closed together with the daemon.
            changed = writes.changed() => if changed.is_err() { return },
            () = stop.cancelled() => {}
        }
    }
}

/// Sends an entry to the writer; false if there is no output any more.
async fn send(lines: &SyncSender<String>, entry: &AuditEntry) -> bool {
    let Ok(mut line) = serde_json::to_string(entry) else { return true };
    line.push('\n');
    loop {
        match lines.try_send(line) {
            Ok(()) => return true,
            Err(TrySendError::Disconnected(_)) => return false,
            Err(TrySendError::Full(back)) => line = back,
        }
        tokio::time::sleep(BEHIND).await;
    }
}

/// The position in the audit.
struct Reader {
    /// The last printed entry.
    last: u64,
    /// Entries that were printed before they were complete.
    open: BTreeSet<u64>,
}

impl Reader {
    /// Returns new entries, and printed ones that have been completed since.
    async fn next(&mut self, trace: &Trace) -> Result<Vec<AuditEntry>, TraceError> {
        let mut news = Vec::new();
        for id in self.open.clone() {
            let found = query(trace, id - 1, 1).await?.into_iter().find(|entry| entry.id == id);
            match found {
                Some(entry) if is_open(&entry) => {}
                found => {
                    self.open.remove(&id);
                    news.extend(found);
                }
            }
        }
        loop {
            let page = query(trace, self.last, PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            for entry in page {
                self.last = entry.id;
                if is_open(&entry) {
                    self.open.insert(entry.id);
                    if self.open.len() > MAX_OPEN {
                        self.open.pop_first();
                    }
                }
                news.push(entry);
            }
            if is_last {
                return Ok(news);
            }
        }
    }
}

async fn query(trace: &Trace, after: u64, limit: u32) -> Result<Vec<AuditEntry>, TraceError> {
    let params = AuditQueryParams { after, limit: Some(limit), ..AuditQueryParams::default() };
    trace.audit_query(params).await
}

fn is_open(entry: &AuditEntry) -> bool {
    entry.decision == "allow" && entry.outcome.is_none()
}
