//! Copies of blobs on the broker: before the records that name them, each once.

use std::collections::{BTreeSet, HashSet};

use async_nats::jetstream::object_store::{InfoErrorKind, ObjectStore};
use cairn_trace::{Line, Trace, TraceError};
use serde_json::Value;

use super::{Halt, Mirror, log_failure};
use crate::{
    error::{chain, unreachable},
    redact,
};

/// Blobs that are known to be on the broker; beyond that the set is emptied.
const MAX_KNOWN: usize = 10_000;
/// Largest blob that is copied, in bytes. Readers see its size in the record that names it.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The object store with the blobs of one daemon.
pub struct Blobs {
    store: ObjectStore,
    known: HashSet<String>,
}

impl Blobs {
    pub async fn open(mirror: &Mirror) -> Result<Self, Halt> {
        let store = mirror.broker.blob_store(&mirror.daemon).await?;
        Ok(Self { store, known: HashSet::new() })
    }

    /// Copies the blobs that these records name. One that the log no longer has, or
    /// has with another content, is left out.
    pub async fn copy(&mut self, trace: &Trace, records: &[Line]) -> Result<(), Halt> {
        for hash in references(records) {
            if self.known.contains(&hash) {
                continue;
            }
            if !self.has(&hash).await? {
                self.copy_one(trace, &hash).await?;
            }
            if self.known.len() >= MAX_KNOWN {
                self.known.clear();
            }
            self.known.insert(hash);
        }
        Ok(())
    }

    async fn has(&self, hash: &str) -> Result<bool, Halt> {
        match self.store.info(hash).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == InfoErrorKind::NotFound => Ok(false),
            Err(error) => Err(unreachable("the blobs of the mirror", &chain(&error)).into()),
        }
    }

    async fn copy_one(&self, trace: &Trace, hash: &str) -> Result<(), Halt> {
        let text = match trace.complete_blob(hash).await {
            Ok(text) if text.len() <= MAX_BYTES => text,
            Ok(_) | Err(TraceError::BlobNotFound(_)) => return Ok(()),
            // One damaged content must not stop the copy of everything after it.
            Err(error @ TraceError::DamagedBlob(_)) => {
                tracing::warn!(%error, "a blob is not copied to the mirror");
                return Ok(());
            }
            Err(error) => return Err(log_failure(error).into()),
        };
        let clean = tokio::task::spawn_blocking(move || {
            redact::record(&text).unwrap_or_else(|| cairn_harness::redact_secrets(&text))
        });
        let clean = clean.await.map_err(|error| unreachable("a blob for the mirror", &error))?;
        let put = self.store.put(hash, &mut clean.as_bytes()).await;
        put.map_err(|error| unreachable("the blobs of the mirror", &chain(&error)))?;
        Ok(())
    }
}

/// Lists the hashes of the results that records name. Former contents of files are not among them:
/// they are encoded, so that secrets in them would not be found.
fn references<T: std::ops::Deref<Target = str>>(records: &[T]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for record in records.iter().filter(|record| record.contains("\"sha256\"")) {
        if let Ok(value) = serde_json::from_str(record) {
            collect(&value, &mut found);
        }
    }
    found
}

fn collect(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let named = fields.get("blob").and_then(|blob| blob["sha256"].as_str());
            found.extend(named.filter(|hash| is_hash(hash)).map(str::to_owned));
            fields.values().for_each(|value| collect(value, found));
        }
        Value::Array(all) => all.iter().for_each(|value| collect(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_references_are_found_at_any_depth() {
        let hash = "a".repeat(64);
        let record = format!(
            r#"{{"evt":{{"items":[{{"blob":{{"sha256":"{hash}","size":9}}}},{{"blob":{{"sha256":"short","size":1}}}},{{"before":{{"sha256":"{}","size":1}}}}]}}}}"#,
            "b".repeat(64)
        );
        let other = r#"{"evt":{"text":"\"sha256\""}}"#.to_owned();
        assert_eq!(references(&[record, other]), BTreeSet::from([hash]));
    }
}
