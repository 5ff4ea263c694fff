//! Limits of the log of sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

section! {
    /// Limits of the log. Sessions beyond a limit are removed, least recently used first, a week
    /// after the daemon first found one.
    RetentionConfig "camelCase" {
        /// Days after its last use, after which a session is removed; 0 removes none by age.
        max_age_days: u32 = 365,
        /// Bytes of the log above which sessions are removed; 0 removes none by size.
        max_bytes: u64 = 10 * 1024 * 1024 * 1024,
        /// Number of the most recently used sessions that remain in any case.
        keep: u32 = 100,
        /// Days after its last use, after which a session's records are compressed; they are read
        /// as before. 0 compresses none.
        pack_after_days: u32 = 14,
    }
}
