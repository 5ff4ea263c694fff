//! Which files the rest of the code refers to most: PageRank over references from files to the files that define what
//! they name.
//!
//! A file refers to a definition when one of its identifiers has that name. A name defined in many files, or used in
//! nearly all, says little; its weight is split and damped.

use cairn_protocol::error::Failure;
use cairn_protocol::explore::TopFile;
use cairn_protocol::id::RootId;
use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use rustc_hash::{FxHashMap, FxHashSet};

use super::extract::ident_hash;
use crate::indexes::Indexes;

/// Names defined in more files than this are no references.
pub(super) const MAX_HOMES: usize = 6;
/// Letters a name needs.
pub(super) const MIN_NAME: usize = 4;
/// What a test or an example has of its own, beside 1 of other files.
pub(super) const SECONDARY_WEIGHT: f64 = 0.2;
const DAMPING: f64 = 0.85;
const ROUNDS: usize = 25;
/// Names told for each file.
const NAMES: usize = 5;

/// What is known of one defined name.
pub(super) struct Name {
    pub text: String,
    pub homes: Vec<u32>,
    pub users: Vec<u32>,
    /// How much more than others it counts.
    pub factor: f64,
}

impl Indexes {
    /// The `k` files of a root that the rest of its code refers to most, best first.
    ///
    /// # Errors
    /// `root_not_found`, or a storage failure.
    pub fn rank_files(&self, root: &RootId, k: usize) -> Result<Vec<TopFile>, Failure> {
        let index = self.index(root)?;
        let conn = index.readers.get()?;
        let table = index.files(&conn)?;
        let place: FxHashMap<u32, u32> = table.files.iter().zip(0..).map(|(f, i)| (f.id, i)).collect();
        let mut names = defined(&conn, &place)?;
        add_users(&conn, &place, &mut names)?;
        let secondary: Vec<bool> = table.files.iter().map(|f| crate::rank::is_secondary(&f.path)).collect();
        let base: Vec<f64> = secondary.iter().map(|a| if *a { SECONDARY_WEIGHT } else { 1.0 }).collect();
        let scores = page_rank(&names, &base);
        let mut best: Vec<(usize, f64)> =
            scores.into_iter().enumerate().filter(|(i, s)| *s > 0.0 && !secondary[*i]).collect();
        best.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let view = index.root.view();
        best.retain(|(i, _)| view.shows(&table.files[*i].path));
        best.truncate(k.min(500));
        let chosen: FxHashMap<u32, usize> =
            best.iter().enumerate().map(|(n, (i, _))| (*i as u32, n)).collect();
        let mut told: Vec<TopFile> = best
            .iter()
            .map(|(i, score)| TopFile {
                path: table.files[*i].path.to_string(),
                score: *score,
                referring_files: 0,
                symbols: Vec::new(),
            })
            .collect();
        describe(&names, &chosen, &mut told);
        told.retain(|f| index.root.stat(&f.path).is_ok());
        Ok(told)
    }
}

fn defined(conn: &Connection, place: &FxHashMap<u32, u32>) -> Result<FxHashMap<u32, Name>, StoreError> {
    let mut all = conn.prepare_cached(
        "SELECT name, file_id FROM symbol WHERE kind NOT IN ('module', 'section') ORDER BY file_id",
    )?;
    let mut rows = all.query([])?;
    let mut names: FxHashMap<u32, Name> = FxHashMap::default();
    while let Some(row) = rows.next()? {
        let text = row.get_ref(0)?.as_str().unwrap_or("");
        let Some(file) = place.get(&row.get(1)?) else { continue };
        if text.len() < MIN_NAME {
            continue;
        }
        let name = names.entry(ident_hash(text.as_bytes())).or_insert_with(|| Name {
            text: text.to_owned(),
            homes: Vec::new(),
            users: Vec::new(),
            factor: 1.0,
        });
        if name.homes.last() != Some(file) && name.homes.len() <= MAX_HOMES {
            name.homes.push(*file);
        }
    }
    names.retain(|_, n| n.homes.len() <= MAX_HOMES);
    Ok(names)
}

fn add_users(
    conn: &Connection,
    place: &FxHashMap<u32, u32>,
    names: &mut FxHashMap<u32, Name>,
) -> Result<(), StoreError> {
    let own = modules(conn, place)?;
    let mut all = conn.prepare_cached("SELECT file_id, idents FROM file_ref")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let Some(file) = place.get(&row.get(0)?) else { continue };
        for hash in row.get_ref(1)?.as_blob().unwrap_or(&[]).as_chunks::<4>().0 {
            let hash = u32::from_le_bytes(*hash);
            if let Some(name) = names.get_mut(&hash)
                && !name.homes.contains(file)
                && !own.contains(&(*file, hash))
            {
                name.users.push(*file);
            }
        }
    }
    Ok(())
}

/// Files and the names of modules in them: a file that has a module `tests` means that one.
fn modules(conn: &Connection, place: &FxHashMap<u32, u32>) -> Result<FxHashSet<(u32, u32)>, StoreError> {
    let mut all = conn.prepare_cached("SELECT name, file_id FROM symbol WHERE kind = 'module'")?;
    let mut rows = all.query([])?;
    let mut own = FxHashSet::default();
    while let Some(row) = rows.next()? {
        let Some(file) = place.get(&row.get(1)?) else { continue };
        own.insert((*file, ident_hash(row.get_ref(0)?.as_str().unwrap_or("").as_bytes())));
    }
    Ok(own)
}

/// Weight of one reference to a name: rarer, less ambiguous and more telling is more.
pub(super) fn weight(name: &Name, files: usize) -> f64 {
    let rarity = ((1 + files) as f64 / (1 + name.users.len()) as f64).ln().max(0.05);
    name.factor * rarity * selectivity(&name.text) / (name.homes.len() * name.homes.len()) as f64
}

/// Names that standard libraries use for their own: a mention hardly ever means a definition of this project.
const EVERYBODYS: &[&str] = &[
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
    "valueOf",
    "keySet",
    "entrySet",
    "setdefault",
    "isinstance",
    "__init__",
    "setUp",
    "tearDown",
];

/// Names that tell less than this are left out of what is said about a file.
const TOLD: f64 = 0.03;

/// How sure it is that a mention of a name means its definition: `push` or `clone` may be anybody's, `append_record`
/// or `RecordLog` hardly.
pub(super) fn selectivity(name: &str) -> f64 {
    let bytes = name.trim_matches('_').as_bytes();
    let humps = bytes.windows(2).filter(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase()).count();
    let joints = bytes.iter().filter(|b| **b == b'_').count();
    let long = (bytes.len().min(16) as f64 / 16.0).sqrt();
    if EVERYBODYS.contains(&name) {
        return 0.02;
    }
    // What a compiler or a system names, and macros, say little about the files that mention them.
    if name.starts_with('_') {
        return 0.05 * long;
    }
    if bytes.len() > 3 && !bytes.iter().any(u8::is_ascii_lowercase) {
        return 0.2 * long;
    }
    match (humps + joints, bytes.first().is_some_and(u8::is_ascii_uppercase)) {
        (0, false) => 0.06 * long,
        (0, true) => 0.4 * long,
        _ => long,
    }
}

/// The rank of each file; `base` is what each has of its own, in any measure.
pub(super) fn page_rank(names: &FxHashMap<u32, Name>, base: &[f64]) -> Vec<f64> {
    let files = base.len();
    let mut edges: FxHashMap<(u32, u32), f64> = FxHashMap::default();
    for name in names.values().filter(|n| !n.users.is_empty()) {
        let each = weight(name, files);
        for user in &name.users {
            for home in &name.homes {
                *edges.entry((*user, *home)).or_default() += each;
            }
        }
    }
    // The square root keeps one pair with many common names from counting like many pairs.
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
        let left = 1.0 - next.iter().sum::<f64>();
        next.iter_mut().zip(&base).for_each(|(n, b)| *n += left * b);
        score = next;
    }
    score
}

/// Fills in who refers to the chosen files, and by which names most.
fn describe(names: &FxHashMap<u32, Name>, chosen: &FxHashMap<u32, usize>, told: &mut [TopFile]) {
    let mut users: Vec<rustc_hash::FxHashSet<u32>> = vec![Default::default(); told.len()];
    let mut most: Vec<Vec<(f64, &str)>> = vec![Vec::new(); told.len()];
    // Names that may be anybody's neither count as users nor stand for a file.
    for name in names.values().filter(|n| !n.users.is_empty() && selectivity(&n.text) >= TOLD) {
        for home in &name.homes {
            if let Some(n) = chosen.get(home) {
                users[*n].extend(&name.users);
                most[*n].push((name.users.len() as f64 * selectivity(&name.text), &name.text));
            }
        }
    }
    for ((file, users), mut names) in told.iter_mut().zip(users).zip(most) {
        names.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        file.referring_files = users.len() as u32;
        file.symbols = names.into_iter().take(NAMES).map(|(_, n)| n.to_owned()).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compound_names_tell_more() {
        let names = ["RecordLog", "append_record", "Record", "clone", "push"];
        let weights: Vec<f64> = names.iter().map(|n| selectivity(n)).collect();
        assert!(
            weights[0] > weights[2] && weights[1] > weights[2] && weights[2] > 3.0 * weights[3],
            "{weights:?}"
        );
    }
}
