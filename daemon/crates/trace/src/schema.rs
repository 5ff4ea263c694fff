//! The tables of `trace.db`.

use cairn_store::Migration;

/// All migrations so far, in order.
pub const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, sql: V1 },
    Migration { version: 2, sql: V2 },
    Migration { version: 3, sql: V3 },
    Migration { version: 4, sql: V4 },
    Migration { version: 5, sql: V5 },
    Migration { version: 6, sql: V6 },
    Migration { version: 7, sql: V7 },
    Migration { version: 8, sql: V8 },
];

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

/// Records in the order of their commit, their numbers in each session, and packed records (see
/// `records.rs`); numbers of sessions, of which one without an id is deleted; blobs to be deleted;
/// the bytes of a session's records. `trace_event` remains as a view of the records that are not
/// packed.
const V5: &str = "
CREATE TABLE session_key (
    num INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT UNIQUE
);
CREATE INDEX session_key_deleted ON session_key(num) WHERE id IS NULL;
INSERT INTO session_key (id) SELECT id FROM session ORDER BY id;
CREATE TABLE record (
    id INTEGER PRIMARY KEY,
    ts INTEGER NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL
);
CREATE TABLE session_record (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    record INTEGER NOT NULL,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
CREATE TABLE shared_record (
    record INTEGER PRIMARY KEY,
    uses INTEGER NOT NULL
);
CREATE TABLE packed_record (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    size INTEGER NOT NULL,
    frame BLOB NOT NULL
);
CREATE UNIQUE INDEX packed_record_by_session ON packed_record(session, last);
CREATE TABLE orphan_blob (sha256 TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO orphan_blob SELECT sha256 FROM blob WHERE sha256 NOT IN (SELECT sha256 FROM blob_ref);
INSERT INTO session_record
    SELECT k.num, e.seq, row_number() OVER (ORDER BY e.session_id, e.seq)
    FROM trace_event e JOIN session_key k ON k.id = e.session_id;
INSERT INTO record
    SELECT row_number() OVER (ORDER BY session_id, seq), ts, kind, payload FROM trace_event;
ALTER TABLE session ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE session SET bytes = coalesce(
    (SELECT sum(octet_length(payload)) FROM trace_event WHERE session_id = session.id), 0);
ALTER TABLE session ADD COLUMN packed_seq INTEGER NOT NULL DEFAULT 0;
CREATE INDEX session_by_use ON session(updated_ms, id);
DROP TABLE trace_event;
CREATE VIEW trace_event AS
    SELECT k.id AS session_id, e.seq AS seq, r.ts AS ts, r.kind AS kind,
        CASE WHEN substr(r.payload, 1, 14) = '{\"sessionId\":\"'
             THEN '{\"sessionId\":\"' || k.id || substr(r.payload, 51)
             ELSE r.payload END AS payload
    FROM session_record e
    JOIN session_key k ON k.num = e.session
    JOIN record r ON r.id = e.record;
CREATE TABLE notice (name TEXT PRIMARY KEY, ms INTEGER NOT NULL) WITHOUT ROWID;
";

/// Search in the log (see `history.rs`): entries with their records, the words of their texts, and
/// the paths of changed files.
const V6: &str = "
ALTER TABLE session ADD COLUMN history_seq INTEGER NOT NULL DEFAULT 0;
CREATE INDEX session_not_searched ON session(id) WHERE history_seq < head_seq;
CREATE TABLE history (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL
);
CREATE INDEX history_by_session ON history(session);
CREATE VIRTUAL TABLE history_text USING fts5(
    text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TABLE history_file (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    path TEXT NOT NULL,
    PRIMARY KEY (session, seq, path)
) WITHOUT ROWID;
";

/// Vectors of the texts (see `meaning.rs`). All records are indexed again.
const V7: &str = "
CREATE TABLE history_vector (id INTEGER PRIMARY KEY, model INTEGER NOT NULL, vec BLOB NOT NULL);
INSERT INTO history_text(history_text) VALUES ('delete-all');
DELETE FROM history;
DELETE FROM history_file;
UPDATE session SET history_seq = 0;
";

/// Checksums of records and frames (see `integrity.rs`), which are computed when the database is
/// opened next.
const V8: &str = "
ALTER TABLE session_record ADD COLUMN sum INTEGER;
ALTER TABLE packed_record ADD COLUMN sum INTEGER;
";
