//! Removal of old sessions, and packing of those that are not in use.

use std::{
    path::Path,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use cairn_protocol::{
    error::Failure,
    history::{HistoryAnswer, HistoryParams},
    time::Timestamp,
    usage::{
        CollectParams, Collected, DiskUsage, ExpiredUsage, IndexUsage, SharedIndexUsage,
        UsageParams,
    },
};
use cairn_search::Indexes;
use cairn_trace::{Retention, TextEmbedder};

use crate::Engine;

/// Time between the first finding of an expired session and the first removal by the daemon itself.
const GRACE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Name of the notice that removals will begin.
const NOTICE: &str = "retention";
/// Time for which the clock must not have jumped before a removal by the daemon itself.
const CLOCK_STEADY: Duration = Duration::from_secs(24 * 3600);
/// Interval of the daemon's own collections.
const INTERVAL: Duration = Duration::from_secs(3600);
/// Time from the daemon's start to its first collection, in which clients come first.
const FIRST: Duration = Duration::from_secs(60);
/// Sessions that are listed if the caller does not say how many.
const LISTED: u32 = 10;

/// Limits in force, which a change of the configuration replaces.
pub(crate) struct RetentionLimits(RwLock<Retention>);

impl RetentionLimits {
    pub(crate) fn new(limits: Retention) -> Self {
        Self(RwLock::new(limits))
    }

    pub(crate) fn set(&self, limits: Retention) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    fn get(&self) -> Retention {
        *self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Returns what the data consists of.
    ///
    /// # Errors
    /// An error of the log.
    pub async fn usage(&self, params: UsageParams) -> Result<DiskUsage, Failure> {
        let trace = &self.inner.trace;
        let log = trace.usage(params.sessions.unwrap_or(LISTED)).await?;
        let expired = trace.expired(self.inner.retention.get(), Timestamp::now()).await?;
        let removed_from =
            if expired.is_empty() { None } else { Some(self.removal_start().await?) };
        let expired = ExpiredUsage {
            sessions: expired.len() as u64,
            bytes: expired.iter().map(|session| session.bytes).sum(),
            removed_from,
        };
        let (indexes, shared_indexes) = self.index_usage().await?;
        Ok(DiskUsage { log, indexes, shared_indexes, expired })
    }

    async fn index_usage(&self) -> Result<(Vec<IndexUsage>, Vec<SharedIndexUsage>), Failure> {
        let roots = self.inner.indexes.status(None)?;
        let folders: Vec<_> = roots
            .into_iter()
            .filter_map(|status| {
                let folder = self.inner.indexes.folder(&status.root).ok()?;
                let hidden = self.inner.indexes.hidden_folder(&status.root);
                Some((status.root, status.path, [folder, hidden]))
            })
            .collect();
        let shared = self.inner.indexes.shared_folders();
        let sizes = tokio::task::spawn_blocking(move || {
            let size = |(root, path, folders): (_, _, [std::path::PathBuf; 2])| IndexUsage {
                root,
                path,
                bytes: folders.iter().map(|folder| folder_bytes(folder)).sum(),
            };
            let mut sizes: Vec<IndexUsage> = folders.into_iter().map(size).collect();
            sizes.sort_by_key(|usage| std::cmp::Reverse(usage.bytes));
            let shared = shared.into_iter();
            let mut shared: Vec<_> = shared
                .map(|(folder, roots)| SharedIndexUsage { roots, bytes: folder_bytes(&folder) })
                .collect();
            shared.sort_by_key(|usage| std::cmp::Reverse(usage.bytes));
            (sizes, shared)
        });
        Ok(sizes.await.unwrap_or_default())
    }

    /// Searches the log of all sessions.
    ///
    /// # Errors
    /// `invalid_params` for a query that is too long.
    pub async fn search_history(&self, params: HistoryParams) -> Result<HistoryAnswer, Failure> {
        Ok(self.inner.trace.search_history(params).await?)
    }

    /// Removes the sessions that the limits of `retention` cover, packs those that are not
    /// in use, and returns the freed space to the file system. With `dry_run` nothing changes.
    ///
    /// # Errors
    /// An error of the log.
    pub async fn collect(&self, params: CollectParams) -> Result<Collected, Failure> {
        let trace = &self.inner.trace;
        let limits = self.inner.retention.get();
        let bytes_before = trace.bytes();
        let mut collected =
            Collected { bytes_before, bytes_after: bytes_before, ..Default::default() };
        if params.dry_run {
            collected.removed = trace.expired(limits, Timestamp::now()).await?;
            return Ok(collected);
        }
        loop {
            let expired = trace.expired(limits, Timestamp::now()).await?;
            let mut removed = 0;
            for session in expired {
                // A session that became busy meanwhile remains.
                if self.delete_session(&session.session_id).await.is_ok() {
                    removed += 1;
                    collected.removed.push(session);
                }
            }
            if removed == 0 {
                break;
            }
        }
        collected.packed = self.pack(limits).await?;
        trace.reclaim().await?;
        collected.bytes_after = trace.bytes();
        Ok(collected)
    }

    async fn pack(&self, limits: Retention) -> Result<u64, Failure> {
        let Some(after) = limits.pack_after_ms else { return Ok(0) };
        Ok(self.inner.trace.pack(Timestamp(Timestamp::now().0 - after)).await?)
    }

    /// Returns the time from which the daemon removes expired sessions, and announces it when it is
    /// determined first.
    async fn removal_start(&self) -> Result<Timestamp, Failure> {
        let now = Timestamp::now();
        let first = self.inner.trace.notice(NOTICE, now).await?;
        if first == now {
            tracing::warn!(
                "sessions are older or larger than the limits of `retention` in the configuration \
                 and will be removed in 7 days; 'cairn gc --dry-run' lists them"
            );
        }
        let grace = i64::try_from(GRACE.as_millis()).unwrap_or(i64::MAX);
        Ok(Timestamp(first.0.saturating_add(grace)))
    }

    /// Frees the space of deleted sessions, and collects once an hour, until the engine closes.
    pub async fn keep_log_small(&self) {
        let shutdown = self.inner.shutdown.clone();
        let work = async {
            Self::log_failure(self.inner.trace.reclaim().await.map_err(Failure::from));
            tokio::time::sleep(FIRST).await;
            loop {
                let indexed = self.inner.trace.index_history().await.map_err(Failure::from);
                Self::log_failure(indexed);
                Self::log_failure(self.collect_if_announced().await);
                tokio::time::sleep(INTERVAL).await;
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = work => {}
        }
    }

    async fn collect_if_announced(&self) -> Result<(), Failure> {
        let limits = self.inner.retention.get();
        let now = Timestamp::now();
        let nothing_expired = self.inner.trace.expired(limits, now).await?.is_empty();
        let steady = self.inner.trace.clock_steady_since(now).await?;
        let is_early =
            now.0 - steady.0 < i64::try_from(CLOCK_STEADY.as_millis()).unwrap_or(i64::MAX);
        if !nothing_expired && (is_early || self.removal_start().await? > now) {
            self.pack(limits).await?;
            return Ok(self.inner.trace.reclaim().await?);
        }
        let collected = self.collect(CollectParams::default()).await?;
        if !collected.removed.is_empty() || collected.packed > 0 {
            let Collected { removed, packed, bytes_before, bytes_after } = collected;
            tracing::info!(removed = removed.len(), packed, bytes_before, bytes_after, "collected");
        }
        Ok(())
    }

    fn log_failure(outcome: Result<(), Failure>) {
        if let Err(error) = outcome {
            tracing::error!(%error, "the log could not be collected");
        }
    }

    /// Frees the space of a deleted session in the background.
    pub(crate) fn reclaim_later(&self) {
        let trace = self.inner.trace.clone();
        self.inner.tasks.spawn(async move {
            if let Err(error) = trace.reclaim().await {
                tracing::warn!(%error, "the space of a deleted session is not free yet");
            }
        });
    }
}

/// The table of words of the indexes, as the embedding model of the history.
pub struct TextTable(pub Arc<Indexes>);

impl TextEmbedder for TextTable {
    fn embed(&self, text: &str) -> Vec<f32> {
        self.0.embed_text(text)
    }

    fn model(&self) -> i64 {
        self.0.table_id()
    }
}

/// Returns the bytes of a folder's files on disk.
fn folder_bytes(folder: &Path) -> u64 {
    let mut folders = vec![folder.to_owned()];
    let mut bytes = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => bytes += metadata.len(),
                // The file was removed meanwhile.
                Err(_) => {}
            }
        }
    }
    bytes
}
