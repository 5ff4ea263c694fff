//! Candidates with everything the ranker and the answer need: text, lines, definitions, word counts, cosine.

use std::collections::hash_map::Entry;
use std::rc::Rc;

use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use rustc_hash::FxHashMap;

use crate::db::unpack;
use crate::dense::dot_blob;
use crate::lexical::Term;
use crate::live::{FileEntry, FileTable};
use crate::words;

/// A definition that overlaps a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub name: String,
    pub kind: String,
    pub start_line: u32,
    pub end_line: u32,
}

/// A word of the query in a candidate's text: which, on which line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    pub term: u16,
    pub line: u32,
}

/// A chunk that may be an answer.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Position of its root in the query's list of roots.
    pub root: usize,
    pub file: u32,
    pub path: Rc<str>,
    pub lang: Option<&'static str>,
    pub start_line: u32,
    pub end_line: u32,
    pub fingerprint: i64,
    pub tokens: u32,
    pub text: Vec<u8>,
    /// Definitions that overlap it.
    pub spans: Vec<Span>,
    /// Words of the query in its text.
    pub matches: Vec<Match>,
    /// How often each term is in the body, in names defined here, and in the path.
    pub counts: Vec<[u16; 3]>,
    /// Cosine with the query, when its vector is known.
    pub cosine: Option<f32>,
}

/// Reads the chunks `ids`; those that are gone are left out.
///
/// # Errors
/// When the database cannot be read.
pub fn gather(
    conn: &Connection,
    table: &FileTable,
    root: usize,
    ids: &[i64],
    terms: &[Term],
    vector: Option<&[f32]>,
) -> Result<Vec<Candidate>, StoreError> {
    let index: FxHashMap<words::Stem, u16> = terms.iter().zip(0..).map(|(t, i)| (t.stem, i)).collect();
    let mut chunk = conn.prepare_cached(
        "SELECT file_id, start_line, end_line, fingerprint, tokens, text FROM chunk WHERE id = ?",
    )?;
    let mut vec = conn.prepare_cached("SELECT vec FROM chunk_vec WHERE chunk_id = ?")?;
    let mut files: FxHashMap<u32, OfFile> = FxHashMap::default();
    let mut all = Vec::with_capacity(ids.len());
    for id in ids {
        let mut rows = chunk.query([id])?;
        let Some(row) = rows.next()? else { continue };
        let file: u32 = row.get(0)?;
        let Some(entry) = table.get(file) else { continue };
        let of_file = match files.entry(file) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(slot) => slot.insert(of_file(conn, entry, &index)?),
        };
        let mut made = Candidate {
            root,
            file,
            path: Rc::clone(&of_file.path),
            lang: entry.lang,
            start_line: row.get(1)?,
            end_line: row.get(2)?,
            fingerprint: row.get(3)?,
            tokens: row.get(4)?,
            text: unpack(row.get_ref(5)?.as_blob().unwrap_or(&[])),
            spans: Vec::new(),
            matches: Vec::new(),
            counts: of_file.in_path.iter().map(|n| [0, 0, *n]).collect(),
            cosine: None,
        };
        made.spans = of_file
            .spans
            .iter()
            .filter(|s| s.start_line <= made.end_line && s.end_line >= made.start_line)
            .cloned()
            .collect();
        count(&mut made, &index);
        if let Some(query) = vector {
            let mut own = vec.query([id])?;
            made.cosine =
                own.next()?.and_then(|r| r.get_ref(0).ok()?.as_blob().ok().map(|b| dot_blob(b, query)));
        }
        all.push(made);
    }
    Ok(all)
}

/// What all candidates of one file share.
struct OfFile {
    path: Rc<str>,
    spans: Vec<Span>,
    /// How often each term is in the path.
    in_path: Vec<u16>,
}

fn of_file(
    conn: &Connection,
    entry: &FileEntry,
    index: &FxHashMap<words::Stem, u16>,
) -> Result<OfFile, StoreError> {
    let mut in_path = vec![0; index.len()];
    words::each_lexical(entry.path.as_bytes(), |stem, _, _| {
        if let Some(i) = index.get(&stem) {
            in_path[*i as usize] += 1;
        }
    });
    Ok(OfFile { path: (&*entry.path).into(), spans: spans_of(conn, entry.id)?, in_path })
}

/// The definitions of a file.
///
/// # Errors
/// When the database cannot be read.
pub fn spans_of(conn: &Connection, file: u32) -> Result<Vec<Span>, StoreError> {
    let mut get = conn.prepare_cached(
        "SELECT name, kind, start_line, end_line FROM symbol WHERE file_id = ? ORDER BY start_line, end_line DESC",
    )?;
    let rows = get.query_map([file], |r| {
        Ok(Span { name: r.get(0)?, kind: r.get(1)?, start_line: r.get(2)?, end_line: r.get(3)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Counts the terms in the candidate's text and in the names it defines.
fn count(made: &mut Candidate, index: &FxHashMap<words::Stem, u16>) {
    if index.is_empty() {
        return;
    }
    let (mut line, mut counted) = (made.start_line, 0);
    let (text, matches, counts) = (&made.text, &mut made.matches, &mut made.counts);
    words::each_lexical(text, |stem, start, _| {
        if let Some(term) = index.get(&stem) {
            line += memchr::memchr_iter(b'\n', &text[counted..start]).count() as u32;
            counted = start;
            matches.push(Match { term: *term, line });
            counts[*term as usize][0] = counts[*term as usize][0].saturating_add(1);
        }
    });
    let mut defined = |name: &str| {
        words::each_lexical(name.as_bytes(), |stem, _, _| {
            if let Some(term) = index.get(&stem) {
                counts[*term as usize][1] = counts[*term as usize][1].saturating_add(1);
            }
        });
    };
    if made.spans.is_empty() {
        let mut names = String::new();
        crate::chunk::defined_words(text, &mut names);
        defined(&names);
    } else {
        made.spans.iter().filter(|s| s.start_line >= made.start_line).for_each(|s| defined(&s.name));
    }
}
