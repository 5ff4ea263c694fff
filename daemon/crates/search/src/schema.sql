CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;

-- One row per file of the walk. `pending_stages` has a bit for each pending stage: 1 text, 2 vectors, 4 symbols.
-- Files that are not indexed are listed with the reason in `skipped`, so that grep still reads them.
-- `grams` is 1 while a trigram segment covers the file. Ids are never reused, because segments refer to them.
CREATE TABLE file(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    lang TEXT,
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    sha256 BLOB,
    indexed_at INTEGER,
    skipped TEXT,
    clock INTEGER NOT NULL DEFAULT 0,
    pending_stages INTEGER NOT NULL DEFAULT 1,
    grams INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX file_pending ON file(pending_stages) WHERE pending_stages <> 0;

-- `text` of a window with `lead` 0 is a zstd frame of its bytes and of those of the following windows up to the next
-- `lead` 0. Other windows have no text of their own: their frame is that of the chunk `lead` ids before.
CREATE TABLE chunk(
    id INTEGER PRIMARY KEY,
    file_id INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    byte_range_start INTEGER NOT NULL,
    byte_range_end INTEGER NOT NULL,
    lead INTEGER NOT NULL DEFAULT 0,
    text BLOB,
    fingerprint INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX chunk_file ON chunk(file_id);

-- Files of the inverted index (`words-<id>.seg`) and the chunks that each covers. Chunks after the last segment are
-- indexed again from their text when the index is opened.
CREATE TABLE segment(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    first_chunk INTEGER NOT NULL DEFAULT 0,
    last_chunk INTEGER NOT NULL DEFAULT 0,
    docs INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL
);
-- Removed chunks that a segment still contains.
CREATE TABLE gone_chunk(chunk_id INTEGER PRIMARY KEY);

-- Files of the trigram index (`grams-<id>.tri`); the newest segment wins for a file that is in several.
CREATE TABLE gram_segment(id INTEGER PRIMARY KEY AUTOINCREMENT, bytes INTEGER NOT NULL);

-- `vec`: Float16, little-endian, of length 1 (or all zero); Float32 if an older version wrote it.
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

-- Import statements of a file, in the form of `cairn_code_graph::FileImports::encode`; no row for a file without any.
CREATE TABLE file_import(file_id INTEGER PRIMARY KEY, imports BLOB NOT NULL);
