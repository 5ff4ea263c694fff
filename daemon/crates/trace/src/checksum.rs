//! Checksum line after the records of an export. It covers all records from the first one, so that
//! it does not depend on the division of the export into parts.

use cairn_protocol::id::SessionId;
use cairn_store::{StoreError, rusqlite::Savepoint};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::records;

/// Start of the line.
pub const BEGIN: &str = "{\"digest\":";

/// Content of the checksum line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Checksum {
    /// SHA-256 (hex) of the records, each with a line feed.
    pub digest: String,
    pub session_id: SessionId,
    /// Number of records before the line.
    pub records: u64,
}

/// A checksum that is being computed.
#[derive(Default)]
pub struct Sum(Sha256);

impl Sum {
    pub fn add(&mut self, record: &str) {
        self.0.update(record.as_bytes());
        self.0.update(b"\n");
    }

    pub fn finish(self) -> String {
        hex::encode(self.0.finalize())
    }
}

impl Checksum {
    /// True if the stored records of the session match the checksum.
    pub fn fits(&self, tx: &Savepoint<'_>) -> Result<bool, StoreError> {
        let (mut sum, mut count) = (Sum::default(), 0);
        records::visit(tx, &self.session_id, 0, |seq, line| {
            if seq <= self.records {
                sum.add(line);
                count += 1;
            }
            seq < self.records
        })?;
        Ok(count == self.records && sum.finish() == self.digest)
    }
}
