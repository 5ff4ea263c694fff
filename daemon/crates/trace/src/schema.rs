//! The tables of `trace.db`.

use cairn_store::Migration;

/// All migrations so far, in order.
pub const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, sql: V1 },
    Migration { version: 2, sql: V2 },
    Migration { version: 3, sql: V3 },
    Migration { version: 4, sql: V4 },
];

/// `trace_event.payload` is the complete record, the same bytes that clients receive.
/// `receipt.scope` is a session id, or a method for calls that create their session. `audit`
/// outlives its session on purpose.
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

/// Turns: agent of the latest run, model of a session, origin of a fork; approvals, which belong to
/// the session; the call of an audit row, so that a crash between intent and outcome can be
/// detected.
const V2: &str = "
ALTER TABLE session ADD COLUMN run_op TEXT NOT NULL DEFAULT 'explore';
ALTER TABLE session ADD COLUMN provider TEXT;
ALTER TABLE session ADD COLUMN model TEXT;
ALTER TABLE session ADD COLUMN endpoint TEXT;
ALTER TABLE session ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
CREATE TABLE approval (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES session(id) ON DELETE CASCADE,
    call_id TEXT,
    request TEXT NOT NULL,
    grants TEXT NOT NULL,
    expires_ms INTEGER NOT NULL,
    decision TEXT,
    decided_by TEXT,
    reason TEXT,
    decided_ms INTEGER
) WITHOUT ROWID;
CREATE INDEX approval_by_session ON approval(session_id, id);
CREATE INDEX approval_waiting ON approval(id) WHERE decision IS NULL;
ALTER TABLE audit ADD COLUMN call_id TEXT;
ALTER TABLE audit ADD COLUMN command TEXT;
CREATE INDEX audit_open ON audit(session_id, call_id) WHERE call_id IS NOT NULL;
";

/// Parts of blobs whose import is incomplete.
const V3: &str = "
CREATE TABLE blob_part (
    session_id TEXT NOT NULL REFERENCES session(id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    start INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (session_id, sha256, start)
) WITHOUT ROWID;
";

/// Index of calls without an outcome, which the daemon looks up at its start.
const V4: &str = "
CREATE INDEX audit_unfinished ON audit(session_id) WHERE decision = 'allow' AND outcome IS NULL;
";
