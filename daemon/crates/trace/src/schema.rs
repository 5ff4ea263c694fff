//! The tables of `trace.db`.

use cairn_store::Migration;

/// Every step so far.
pub const MIGRATIONS: &[Migration] = &[Migration { version: 1, sql: V1 }];

/// `trace_event.payload` is the whole record, the same bytes that clients receive. `receipt.scope` is a session
/// id, or a method for calls that make their session. `audit` outlives its session on purpose.
const V1: &str = "
CREATE TABLE session (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    root TEXT,
    state TEXT NOT NULL DEFAULT 'idle',
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    head_seq INTEGER NOT NULL DEFAULT 0,
    run_id TEXT,
    run_params TEXT,
    imported INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX session_by_time ON session(created_ms DESC, id DESC);
CREATE INDEX session_running ON session(id) WHERE state = 'running';
CREATE TABLE trace_event (
    session_id TEXT NOT NULL REFERENCES session(id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    ts INTEGER NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;
CREATE TABLE receipt (
    scope TEXT NOT NULL,
    request_id TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES session(id) ON DELETE CASCADE,
    digest TEXT NOT NULL,
    receipt TEXT NOT NULL,
    PRIMARY KEY (scope, request_id)
) WITHOUT ROWID;
CREATE INDEX receipt_by_session ON receipt(session_id);
CREATE TABLE artifact (
    session_id TEXT NOT NULL REFERENCES session(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (session_id, name)
) WITHOUT ROWID;
CREATE TABLE blob (
    sha256 TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    content BLOB NOT NULL
);
CREATE TABLE blob_ref (
    session_id TEXT NOT NULL REFERENCES session(id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (session_id, sha256)
) WITHOUT ROWID;
CREATE INDEX blob_ref_by_hash ON blob_ref(sha256);
CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    ts INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    args_digest TEXT NOT NULL,
    decision TEXT NOT NULL,
    rule TEXT NOT NULL,
    millis INTEGER,
    outcome TEXT,
    exit_code INTEGER,
    truncated INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX audit_by_session ON audit(session_id, id);
";
