CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;

-- One row for each file of the walk. `due` says what is still to do: 1 text, 2 vectors, 4 symbols.
-- Files left out of the index stay here with the reason in `skipped`, so that grep still reads them.
CREATE TABLE file(
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    lang TEXT,
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    sha256 BLOB,
    indexed_at INTEGER,
    skipped TEXT,
    clock INTEGER NOT NULL DEFAULT 0,
    due INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX file_due ON file(due) WHERE due <> 0;

-- `text` is the window's bytes in lz4 block form behind their length (u32, little-endian).
CREATE TABLE chunk(
    id INTEGER PRIMARY KEY,
    file_id INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    byte_range_start INTEGER NOT NULL,
    byte_range_end INTEGER NOT NULL,
    text BLOB NOT NULL,
    fingerprint INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX chunk_file ON chunk(file_id);

-- Fed with stems, so that its tokenizer has nothing left to decide: `body` has each word of a window once, `often` the
-- words it has three times or more. That is all it needs to choose candidates; the ranker counts in the text itself.
-- Without `detail=full` a contentless table has no bm25: all scores are 0.
CREATE VIRTUAL TABLE chunk_fts USING fts5(
    path, defs, body, often, content='', contentless_delete=1, detail=full, tokenize='ascii'
);
CREATE VIRTUAL TABLE chunk_words USING fts5vocab(chunk_fts, row);

-- `vec`: Float32, little-endian, length 1 (or all zero).
CREATE TABLE chunk_vec(
    chunk_id INTEGER PRIMARY KEY,
    dim INTEGER NOT NULL,
    vec BLOB NOT NULL,
    created_at INTEGER NOT NULL
);

CREATE TABLE symbol(
    id INTEGER PRIMARY KEY,
    file_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    folded TEXT NOT NULL,
    kind TEXT NOT NULL,
    container TEXT,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL
);
CREATE INDEX symbol_file ON symbol(file_id);
CREATE INDEX symbol_name ON symbol(folded);

-- Distinct identifiers of a file as sorted 32-bit hashes, little-endian.
CREATE TABLE file_ref(file_id INTEGER PRIMARY KEY, idents BLOB NOT NULL);
