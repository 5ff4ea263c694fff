//! Taking a trace away as JSONL.

use cairn_protocol::{
    error::{Failure, Reason},
    id::SessionId,
    time::Timestamp,
    trace::{TraceExportPart, TraceHeader},
};

use crate::{PAGE, Trace};

/// Bytes of one part, about: an export of any size is made of bounded parts.
const PART_BYTES: usize = 1024 * 1024;

impl Trace {
    /// One part of an export. The first begins with a header line; a part ends after a whole line.
    ///
    /// # Errors
    /// `session_not_found`; `invalid_params` for a cursor that is none.
    pub async fn export(&self, id: &SessionId, cursor: Option<&str>) -> Result<TraceExportPart, Failure> {
        let bad = |_| Failure::new(Reason::InvalidParams, "cursor is not one of this export");
        let mut after: u64 = cursor.map_or(Ok(0), str::parse).map_err(bad)?;
        let session = self.session(id).await?;
        let mut jsonl = String::new();
        if cursor.is_none() {
            let head = TraceHeader {
                format: "cairn-trace".into(),
                version: 1,
                session,
                exported_at: Timestamp::now(),
            };
            let line = serde_json::to_string(&head)
                .map_err(|e| Failure::new(Reason::Internal, format!("header cannot be written: {e}")))?;
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
                return Ok(TraceExportPart { jsonl, next_cursor: None });
            }
        }
    }
}
