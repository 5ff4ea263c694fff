//! Export of a trace as JSONL.

use std::collections::BTreeMap;

use cairn_protocol::{
    id::SessionId,
    time::Timestamp,
    trace::{BlobParams, TraceBlobLine, TraceExportPart, TraceHeader},
};

use crate::{
    PAGE, Trace, TraceError,
    checksum::{Checksum, Sum},
};

/// Artifact of an imported session: parameters of its latest run, as JSON. It is separate from
/// parameters of local runs, so that a run from another machine is never resumed.
pub const RUN_PARAMS: &str = "imported-run";

/// Approximate bytes of one part: an export of any size consists of bounded parts.
const PART_BYTES: usize = 1024 * 1024;

impl Trace {
    /// Returns one part of an export. The first one starts with a header line; each part ends after
    /// a complete line.
    ///
    /// # Errors
    /// `session_not_found`; `invalid_params` for an invalid cursor.
    pub async fn export(
        &self,
        id: &SessionId,
        cursor: Option<&str>,
    ) -> Result<TraceExportPart, TraceError> {
        let bad = || TraceError::ExportCursor;
        let mut after: u64 = match cursor.map(|c| (c, c.split_once(':'))) {
            None => 0,
            Some((_, Some((sha256, offset)))) => {
                return self
                    .export_blobs(id, String::new(), sha256, offset.parse().map_err(|_| bad())?)
                    .await;
            }
            Some((seq, None)) => seq.parse().map_err(|_| bad())?,
        };
        let session = self.session(id).await?;
        let mut jsonl = String::new();
        if cursor.is_none() {
            let head = TraceHeader {
                format: "cairn-trace".into(),
                version: 1,
                session,
                exported_at: Timestamp::now(),
                artifacts: self.artifacts(id).await?,
            };
            let line = serde_json::to_string(&head).map_err(TraceError::UnwritableLine)?;
            jsonl.push_str(&line);
            jsonl.push('\n');
        }
        loop {
            let lines = self.lines(id, after, PAGE).await?;
            let count = lines.len();
            for line in lines {
                jsonl.push_str(&line);
                jsonl.push('\n');
                after += 1;
                if jsonl.len() >= PART_BYTES {
                    return Ok(TraceExportPart { jsonl, next_cursor: Some(after.to_string()) });
                }
            }
            if count < PAGE as usize {
                jsonl.push_str(&self.checksum(id, after).await?);
                jsonl.push('\n');
                return self.export_blobs(id, jsonl, "", 0).await;
            }
        }
    }

    /// Returns the checksum line after the last of that number of records.
    async fn checksum(&self, id: &SessionId, records: u64) -> Result<String, TraceError> {
        let (mut sum, mut after) = (Sum::default(), 0);
        while after < records {
            let lines = self.lines(id, after, PAGE).await?;
            let batch_length =
                usize::try_from(records - after).unwrap_or(usize::MAX).min(lines.len());
            if batch_length == 0 {
                return Err(TraceError::SessionNotFound(id.clone()));
            }
            lines[..batch_length].iter().for_each(|line| sum.add(line));
            after += batch_length as u64;
        }
        let line = Checksum { digest: sum.finish(), session_id: id.clone(), records };
        serde_json::to_string(&line).map_err(TraceError::UnwritableLine)
    }

    /// Returns the rest of a part: blobs of the session in the order of their hashes, from an
    /// offset in the blob `sha256` on.
    async fn export_blobs(
        &self,
        id: &SessionId,
        mut jsonl: String,
        sha256: &str,
        mut offset: u64,
    ) -> Result<TraceExportPart, TraceError> {
        for hash in self.blobs_of(id, sha256).await? {
            let mut next = if hash == sha256 { Some(offset) } else { Some(0) };
            while let Some(at) = next {
                if jsonl.len() >= PART_BYTES {
                    return Ok(TraceExportPart {
                        jsonl,
                        next_cursor: Some(format!("{hash}:{at}")),
                    });
                }
                offset = at;
                let part =
                    match self.blob(BlobParams { sha256: hash.clone(), offset, limit: None }).await
                    {
                        Ok(part) => part,
                        // The blob is not text, or was deleted meanwhile: it is not exported.
                        Err(TraceError::BlobNotFound(_)) => break,
                        Err(error) => return Err(error),
                    };
                let line = TraceBlobLine {
                    blob: hash.clone(),
                    session_id: id.clone(),
                    offset,
                    size: part.size,
                    text: part.text,
                };
                let line = serde_json::to_string(&line).map_err(TraceError::UnwritableLine)?;
                jsonl.push_str(&line);
                jsonl.push('\n');
                next = part.next_offset;
            }
        }
        Ok(TraceExportPart { jsonl, next_cursor: None })
    }

    /// Returns the artifacts of a session by name, with the parameters of its latest run.
    async fn artifacts(&self, id: &SessionId) -> Result<BTreeMap<String, String>, TraceError> {
        let latest = self.latest_run(id).await?;
        let key = id.as_str().to_owned();
        let mut all = self
            .read(move |conn| {
                let mut query = conn
                    .prepare_cached("SELECT name, content FROM artifact WHERE session_id = ?1")?;
                let rows = query.query_map([key], |row| Ok((row.get(0)?, row.get(1)?)))?;
                rows.collect::<Result<BTreeMap<String, String>, _>>().map_err(TraceError::from)
            })
            .await?;
        if let Some(run) = latest {
            all.insert(RUN_PARAMS.to_owned(), run.params);
        }
        Ok(all)
    }

    /// Returns the hashes of a session's blobs in order, from `first` on.
    async fn blobs_of(&self, id: &SessionId, first: &str) -> Result<Vec<String>, TraceError> {
        let (id, first) = (id.as_str().to_owned(), first.to_owned());
        self.read(move |conn| {
            let mut all = conn.prepare_cached(
                "SELECT r.sha256, b.sha256 IS NOT NULL FROM blob_ref r
                 LEFT JOIN blob b ON b.sha256 = r.sha256
                 WHERE r.session_id = ?1 AND r.sha256 >= ?2 ORDER BY r.sha256",
            )?;
            let rows = all.query_map([id, first], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let mut hashes = Vec::new();
            for row in rows {
                let (hash, exists): (String, bool) = row?;
                if !exists {
                    return Err(TraceError::DamagedBlob(hash));
                }
                hashes.push(hash);
            }
            Ok(hashes)
        })
        .await
    }
}
