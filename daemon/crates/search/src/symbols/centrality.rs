//! Centrality of files: PageRank over references from files to the files that define the referenced
//! names.
//!
//! A file refers to a definition if one of its identifiers has that name and it can see the file of
//! the definition by its imports; otherwise the reference counts little. Names that are defined in
//! many files or used in nearly all files say little, so their weight is split and damped.

use cairn_protocol::error::Failure;
use cairn_protocol::explore::TopFile;
use cairn_protocol::id::RootId;
use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph::Resolved;
use crate::indexes::Indexes;
use cairn_symbols::extract::ident_hash;

/// Names that are defined in more files than this are ignored.
pub(super) const MAX_DEFINING_FILES: usize = 6;
/// Minimum length of a name.
pub(super) const MIN_NAME: usize = 4;
/// Base rank of tests and examples, relative to 1 for other files.
pub(super) const SECONDARY_WEIGHT: f64 = 0.2;
const DAMPING: f64 = 0.85;
const ROUNDS: usize = 25;
/// Maximum number of names reported for a file.
const MAX_NAMES: usize = 5;

/// A defined name with its references.
pub(super) struct DefinedName {
    pub text: String,
    pub defining_files: Vec<u32>,
    pub referring_files: Vec<u32>,
    /// Weight of a reference of each referring file: [`Links::strength`].
    pub strengths: Vec<f64>,
    /// Additional weight of the name.
    pub factor: f64,
}

impl DefinedName {
    /// Adds a reference from a file.
    pub fn refer(&mut self, file: u32, links: &Links) {
        let strength =
            self.defining_files.iter().map(|to| links.strength(file, *to)).fold(0.0, f64::max);
        self.referring_files.push(file);
        self.strengths.push(strength);
    }
}

/// The files that each file can see by its imports.
#[derive(Debug, Default)]
pub struct Links {
    /// True for files whose language says what they see.
    is_known: Vec<bool>,
    pairs: FxHashSet<(u32, u32)>,
}

/// Weight of a reference to a file that the referring one does not import: the name of a method,
/// whose type is not named, or a coincidence.
const UNSEEN: f64 = 0.1;

impl Links {
    /// Adds the links of a root whose files follow those that are there.
    pub fn add(&mut self, resolved: &Resolved) {
        let first = self.is_known.len() as u32;
        let pairs = resolved.seen().map(|(from, to)| (first + from, first + to));
        self.pairs.extend(pairs);
        self.is_known.extend((0..resolved.table.files.len()).map(|at| resolved.has_scope(at)));
    }

    /// Weight of a reference from one file to a definition in another, from 0 to 1.
    pub fn strength(&self, from: u32, to: u32) -> f64 {
        let is_known = self.is_known.get(from as usize).copied().unwrap_or(false);
        if is_known && !self.pairs.contains(&(from, to)) { UNSEEN } else { 1.0 }
    }
}

impl Indexes {
    /// The `k` most referenced files of a root, best first.
    ///
    /// # Errors
    /// `root_not_found`, or a storage failure.
    pub fn rank_files(&self, root: &RootId, k: usize) -> Result<Vec<TopFile>, Failure> {
        let index = self.index(root)?;
        let conn = index.readers.get()?;
        let table = index.files(&conn)?;
        let positions: FxHashMap<u32, u32> =
            table.files.iter().zip(0..).map(|(f, i)| (f.id, i)).collect();
        let mut names = read_definitions(&conn, &positions)?;
        let mut links = Links::default();
        links.add(&*index.resolved(&conn)?);
        add_references(&conn, &positions, &mut names, &links)?;
        let secondary: Vec<bool> =
            table.files.iter().map(|f| crate::rank::is_secondary(&f.path)).collect();
        let base: Vec<f64> =
            secondary.iter().map(|a| if *a { SECONDARY_WEIGHT } else { 1.0 }).collect();
        let scores = page_rank(&names, &base, &links);
        let mut best: Vec<(usize, f64)> =
            scores.into_iter().enumerate().filter(|(i, s)| *s > 0.0 && !secondary[*i]).collect();
        best.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let view = index.root.view();
        best.retain(|(i, _)| view.shows(&table.files[*i].path));
        best.truncate(k.min(500));
        let chosen: FxHashMap<u32, usize> =
            best.iter().enumerate().map(|(n, (i, _))| (*i as u32, n)).collect();
        let mut files: Vec<TopFile> = best
            .iter()
            .map(|(i, score)| TopFile {
                path: table.files[*i].path.to_string(),
                score: *score,
                referring_files: 0,
                symbols: Vec::new(),
                reason: String::new(),
            })
            .collect();
        describe(&names, &chosen, &mut files);
        files.retain(|f| index.root.stat(&f.path).is_ok());
        Ok(files)
    }
}

fn read_definitions(
    conn: &Connection,
    positions: &FxHashMap<u32, u32>,
) -> Result<FxHashMap<u32, DefinedName>, StoreError> {
    let mut all = conn.prepare_cached(
        "SELECT name, file_id FROM symbol WHERE kind NOT IN ('module', 'section') ORDER BY file_id",
    )?;
    let mut rows = all.query([])?;
    let mut names: FxHashMap<u32, DefinedName> = FxHashMap::default();
    while let Some(row) = rows.next()? {
        let text = row.get_ref(0)?.as_str().unwrap_or("");
        let Some(file) = positions.get(&row.get(1)?) else { continue };
        if text.len() < MIN_NAME {
            continue;
        }
        let name = names.entry(ident_hash(text.as_bytes())).or_insert_with(|| DefinedName {
            text: text.to_owned(),
            defining_files: Vec::new(),
            referring_files: Vec::new(),
            strengths: Vec::new(),
            factor: 1.0,
        });
        if name.defining_files.last() != Some(file)
            && name.defining_files.len() <= MAX_DEFINING_FILES
        {
            name.defining_files.push(*file);
        }
    }
    names.retain(|_, n| n.defining_files.len() <= MAX_DEFINING_FILES);
    Ok(names)
}

fn add_references(
    conn: &Connection,
    positions: &FxHashMap<u32, u32>,
    names: &mut FxHashMap<u32, DefinedName>,
    links: &Links,
) -> Result<(), StoreError> {
    let own_modules = read_modules(conn, positions)?;
    let mut all = conn.prepare_cached("SELECT file_id, idents FROM file_ref")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let Some(file) = positions.get(&row.get(0)?) else { continue };
        for hash in row.get_ref(1)?.as_blob().unwrap_or(&[]).as_chunks::<4>().0 {
            let hash = u32::from_le_bytes(*hash);
            if let Some(name) = names.get_mut(&hash)
                && !name.defining_files.contains(file)
                && !own_modules.contains(&(*file, hash))
            {
                name.refer(*file, links);
            }
        }
    }
    Ok(())
}

/// Pairs of a file and a module name in it: a file with a module `tests` refers to its own one.
fn read_modules(
    conn: &Connection,
    positions: &FxHashMap<u32, u32>,
) -> Result<FxHashSet<(u32, u32)>, StoreError> {
    let mut all = conn.prepare_cached("SELECT name, file_id FROM symbol WHERE kind = 'module'")?;
    let mut rows = all.query([])?;
    let mut own_modules = FxHashSet::default();
    while let Some(row) = rows.next()? {
        let Some(file) = positions.get(&row.get(1)?) else { continue };
        own_modules.insert((*file, ident_hash(row.get_ref(0)?.as_str().unwrap_or("").as_bytes())));
    }
    Ok(own_modules)
}

/// Weight of one reference to a name: higher for rare, unambiguous and selective names.
pub(super) fn weight(name: &DefinedName, files: usize) -> f64 {
    let rarity = ((1 + files) as f64 / (1 + name.referring_files.len()) as f64).ln().max(0.05);
    name.factor * rarity * selectivity(&name.text)
        / (name.defining_files.len() * name.defining_files.len()) as f64
}

/// Names that standard libraries define: a reference rarely means a definition of the project.
const STANDARD_NAMES: &[&str] = &[
    "Clone",
    "Debug",
    "Default",
    "Display",
    "Error",
    "Result",
    "Option",
    "Iterator",
    "String",
    "Object",
    "Name",
    "Value",
    "Type",
    "Equal",
    "Close",
    "Read",
    "Write",
    "Next",
    "Len",
    "as_str",
    "as_ref",
    "as_mut",
    "as_bytes",
    "as_slice",
    "from_str",
    "from_utf8",
    "into_iter",
    "is_empty",
    "is_some",
    "is_none",
    "is_ok",
    "is_err",
    "is_dir",
    "is_file",
    "to_string",
    "to_owned",
    "to_vec",
    "to_json",
    "to_str",
    "push_str",
    "push_back",
    "pop_front",
    "starts_with",
    "ends_with",
    "write_all",
    "read_line",
    "read_to_string",
    "read_to_end",
    "remove_file",
    "create_dir",
    "with_capacity",
    "unwrap_or",
    "try_from",
    "try_into",
    "sort_by",
    "get_mut",
    "iter_mut",
    "set_len",
    "or_default",
    "or_insert",
    "spawn_blocking",
    "toString",
    "hashCode",
    "isEmpty",
    "getName",
    "getValue",
    "getType",
    "getClass",
    "getKey",
    "indexOf",
    "forEach",
    "charAt",
    "startsWith",
    "endsWith",
    "addAll",
    "setValue",
    "setName",
    "asList",
    "size_t",
    "ssize_t",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "intptr_t",
    "uintptr_t",
    "valueOf",
    "keySet",
    "entrySet",
    "setdefault",
    "isinstance",
    "__init__",
    "setUp",
    "tearDown",
];

/// Minimum selectivity of the names that describe a file.
const MIN_SELECTIVITY: f64 = 0.03;

/// The likelihood that a reference to a name means its definition in the project: low for `push` or
/// `clone`, high for `append_record` or `RecordLog`.
pub(super) fn selectivity(name: &str) -> f64 {
    let bytes = name.trim_matches('_').as_bytes();
    let capitals =
        bytes.windows(2).filter(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase()).count();
    let underscores = bytes.iter().filter(|b| **b == b'_').count();
    let long = (bytes.len().min(16) as f64 / 16.0).sqrt();
    if STANDARD_NAMES.contains(&name) {
        return 0.02;
    }
    // Names of compilers and systems, and macros, say little about the files that use them.
    if name.starts_with('_') {
        return 0.05 * long;
    }
    if bytes.len() > 3 && !bytes.iter().any(u8::is_ascii_lowercase) {
        return 0.2 * long;
    }
    match (capitals + underscores, bytes.first().is_some_and(u8::is_ascii_uppercase)) {
        (0, false) => 0.06 * long,
        (0, true) => 0.4 * long,
        _ => long,
    }
}

/// The rank of each file; `base` is the rank source of each file in any unit.
pub(super) fn page_rank(
    names: &FxHashMap<u32, DefinedName>,
    base: &[f64],
    links: &Links,
) -> Vec<f64> {
    let files = base.len();
    let mut edges: FxHashMap<(u32, u32), f64> = FxHashMap::default();
    for name in names.values().filter(|n| !n.referring_files.is_empty()) {
        let each = weight(name, files);
        for referrer in &name.referring_files {
            for definer in &name.defining_files {
                *edges.entry((*referrer, *definer)).or_default() +=
                    each * links.strength(*referrer, *definer);
            }
        }
    }
    // With the square root, one pair of files with many common names does not count like many
    // pairs.
    let mut edges: Vec<(u32, u32, f64)> =
        edges.into_iter().map(|((from, to), w)| (from, to, w.sqrt())).collect();
    edges.sort_unstable_by_key(|e| (e.0, e.1));
    let mut out = vec![0f64; files];
    for (from, _, w) in &edges {
        out[*from as usize] += w;
    }
    if edges.is_empty() {
        return vec![0.0; files];
    }
    let sum: f64 = base.iter().sum();
    let base: Vec<f64> = base.iter().map(|b| b / sum.max(f64::MIN_POSITIVE)).collect();
    let mut score = base.clone();
    for _ in 0..ROUNDS {
        let mut next = vec![0f64; files];
        for (from, to, w) in &edges {
            next[*to as usize] += DAMPING * score[*from as usize] * w / out[*from as usize];
        }
        let missing = 1.0 - next.iter().sum::<f64>();
        next.iter_mut().zip(&base).for_each(|(n, b)| *n += missing * b);
        score = next;
    }
    score
}

/// Fills in the number of referring files and the most used names of the chosen files.
fn describe(
    names: &FxHashMap<u32, DefinedName>,
    chosen: &FxHashMap<u32, usize>,
    files: &mut [TopFile],
) {
    let mut referring_files: Vec<rustc_hash::FxHashSet<u32>> =
        vec![Default::default(); files.len()];
    let mut most: Vec<Vec<(f64, &str)>> = vec![Vec::new(); files.len()];
    // Unselective names neither count as references nor describe a file.
    for name in names
        .values()
        .filter(|n| !n.referring_files.is_empty() && selectivity(&n.text) >= MIN_SELECTIVITY)
    {
        for definer in &name.defining_files {
            if let Some(n) = chosen.get(definer) {
                let seen = name.referring_files.iter().zip(&name.strengths);
                let seen = seen.filter(|(_, strength)| **strength > UNSEEN);
                referring_files[*n].extend(seen.map(|(file, _)| *file));
                let count: f64 = name.strengths.iter().sum();
                most[*n].push((count * selectivity(&name.text), &name.text));
            }
        }
    }
    for ((file, referring_files), mut names) in files.iter_mut().zip(referring_files).zip(most) {
        names.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        file.referring_files = referring_files.len() as u32;
        file.symbols = names.into_iter().take(MAX_NAMES).map(|(_, n)| n.to_owned()).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compound_names_are_more_selective() {
        let names = ["RecordLog", "append_record", "Record", "clone", "push"];
        let weights: Vec<f64> = names.iter().map(|n| selectivity(n)).collect();
        assert!(
            weights[0] > weights[2] && weights[1] > weights[2] && weights[2] > 3.0 * weights[3],
            "{weights:?}"
        );
    }
}
