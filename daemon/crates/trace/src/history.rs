//! Search in the log: an index of what people and models wrote and of what they ran and changed.
//!
//! Records are indexed after they were committed, by [`Trace::index_history`] and before each
//! search, so that appending does not pay for it. `session.history_seq` is the last indexed record.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use cairn_protocol::{
    envelope::{Body, Envelope},
    event::AgentEvt,
    history::{HistoryAnswer, HistoryEntry, HistoryKind, HistoryParams},
    id::SessionId,
    model::Part,
};
use cairn_store::{
    StoreError,
    rusqlite::{Connection, OptionalExtension, Savepoint, params},
};
use uuid::Uuid;

use crate::{
    Trace, TraceError,
    meaning::{self, TextEmbedder},
    read::parse,
    records,
};

/// Longest time of one step of indexing, except for its last record.
const STEP: Duration = Duration::from_millis(10);
/// Time that a search spends on records that are not indexed yet.
const CATCH_UP: Duration = Duration::from_millis(1500);
/// Maximum characters of a query, and number of its words.
const MAX_QUERY: (usize, usize) = (1000, 32);
/// Maximum bytes of an indexed text; the rest is not searched.
const MAX_TEXT: usize = 64 * 1024;
/// Entries of an answer: the default and the maximum.
const LIMIT: (u32, u32) = (20, 100);
/// Maximum entries with a similar meaning, before filters.
const MAX_NEAREST: usize = 200;
/// Maximum entries of an answer that have a similar meaning without having the words.
const MAX_SIMILAR: usize = 5;
/// Characters of an entry's text before and after the word.
const AROUND: (usize, usize) = (60, 240);

impl Trace {
    /// Searches the log. Records that were appended just before are indexed first, for at most 1.5
    /// seconds.
    ///
    /// # Errors
    /// `invalid_params` for a query that is too long.
    pub async fn search_history(&self, params: HistoryParams) -> Result<HistoryAnswer, TraceError> {
        let search = Search::new(params)?;
        self.index_history_for(CATCH_UP).await?;
        let embedder = self.inner.embedder.get().cloned();
        self.read(move |conn| search.run(conn, embedder.as_ref())).await
    }

    /// Indexes all records that are not indexed yet, step by step.
    ///
    /// # Errors
    /// Fails when the log cannot be written.
    pub async fn index_history(&self) -> Result<(), TraceError> {
        self.index_history_for(Duration::MAX).await
    }

    async fn index_history_for(&self, limit: Duration) -> Result<(), TraceError> {
        let start = Instant::now();
        while let Some(session) = self.next_to_index().await? {
            let embedder = self.inner.embedder.get().cloned();
            self.inner.writer.write(move |tx| index_step(tx, &session, embedder.as_ref())).await?;
            if start.elapsed() >= limit {
                break;
            }
        }
        Ok(())
    }

    async fn next_to_index(&self) -> Result<Option<SessionId>, TraceError> {
        self.read(|conn| {
            let id: Option<String> = conn
                .prepare_cached("SELECT id FROM session WHERE history_seq < head_seq LIMIT 1")?
                .query_row([], |row| row.get(0))
                .optional()?;
            Ok(id.and_then(|id| id.parse().ok()))
        })
        .await
    }
}

/// Indexes the next records of a session, unless it was deleted meanwhile.
fn index_step(
    tx: &Savepoint<'_>,
    session: &SessionId,
    embedder: Option<&Arc<dyn TextEmbedder>>,
) -> Result<(), StoreError> {
    let row: Option<(u64, u64)> = tx
        .prepare_cached("SELECT history_seq, head_seq FROM session WHERE id = ?1")?
        .query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (Some((after, head)), Some(key)) = (row, records::key(tx, session)?) else {
        return Ok(());
    };
    let start = Instant::now();
    let (mut entries, mut last) = (Vec::new(), after);
    let read = records::visit(tx, session, after, |seq, line| {
        // Most records have nothing to search for; they are not parsed.
        if may_have_text(line)
            && let Ok(record) = parse(line)
        {
            entries.extend(texts(&record).into_iter().map(|(kind, text)| (seq, kind, text)));
        }
        last = seq;
        start.elapsed() < STEP
    });
    match read {
        // Whoever reads the session is told; the other sessions can still be searched.
        Err(StoreError::DamagedRecord { .. }) => last = head,
        read => read?,
    }
    for (seq, kind, text) in entries {
        if kind == HistoryKind::File {
            let mut add = tx.prepare_cached("INSERT INTO history_file VALUES (?1, ?2, ?3)")?;
            for path in text.lines() {
                add.execute(params![key, seq, path])?;
            }
        }
        tx.prepare_cached("INSERT INTO history (session, seq, kind) VALUES (?1, ?2, ?3)")?
            .execute(params![key, seq, kind.as_str()])?;
        let entry = tx.last_insert_rowid();
        tx.prepare_cached("INSERT INTO history_text (rowid, text) VALUES (?1, ?2)")?
            .execute(params![entry, text])?;
        if let Some(embedder) = embedder.filter(|_| kind != HistoryKind::File) {
            meaning::add(tx, embedder, entry, &text)?;
        }
    }
    // A record that is missing must not be looked for again and again.
    let done = if last == after { head } else { last };
    tx.prepare_cached("UPDATE session SET history_seq = ?2 WHERE id = ?1")?
        .execute(params![session.as_str(), done])?;
    Ok(())
}

/// Deletes up to `rows` entries of a deleted session; true if there were any.
pub fn delete_some(tx: &Savepoint<'_>, key: i64, rows: u32) -> Result<bool, StoreError> {
    let ids: Vec<i64> = tx
        .prepare_cached("SELECT id FROM history WHERE session = ?1 LIMIT ?2")?
        .query_map([key, i64::from(rows)], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for id in &ids {
        tx.prepare_cached("DELETE FROM history_text WHERE rowid = ?1")?.execute([id])?;
        tx.prepare_cached("DELETE FROM history_vector WHERE id = ?1")?.execute([id])?;
        tx.prepare_cached("DELETE FROM history WHERE id = ?1")?.execute([id])?;
    }
    if ids.is_empty() {
        tx.prepare_cached("DELETE FROM history_file WHERE session = ?1")?.execute([key])?;
    }
    Ok(!ids.is_empty())
}

/// Types of events that [`texts`] reads.
const TYPES: [&str; 8] = [
    "\"turn_accepted\"",
    "\"steered\"",
    "\"run_completed\"",
    "\"completed\"",
    "\"tool_call\"",
    "\"approval_required\"",
    "\"turn_diff\"",
    "\"git_commit\"",
];

fn may_have_text(line: &str) -> bool {
    TYPES.iter().any(|name| line.contains(name))
}

/// Returns the texts of a record that are searched.
fn texts(record: &Envelope) -> Vec<(HistoryKind, String)> {
    let Body::Evt { evt } = &record.body else { return vec![] };
    let found = match evt {
        AgentEvt::TurnAccepted { input, .. } => {
            let text = |part: &Part| match part {
                Part::Text { text } => Some(text.clone()),
                Part::Image { .. } => None,
            };
            // The context comes first, the user's own words last.
            input.iter().filter_map(text).next_back().map(|text| (HistoryKind::Question, text))
        }
        AgentEvt::Steered { text, .. } => Some((HistoryKind::Question, text.clone())),
        AgentEvt::RunCompleted { result } => {
            result.final_output.clone().map(|text| (HistoryKind::Answer, text))
        }
        AgentEvt::Completed { summary } => {
            let details = &summary.details;
            let purpose = details.purpose.as_ref().or(details.description.as_ref());
            purpose.map(|text| (HistoryKind::Answer, format!("{}: {text}", summary.repo_name)))
        }
        AgentEvt::ToolCall { arguments, .. } => {
            let command = arguments.get("command").or_else(|| arguments.get("cmd"));
            command.and_then(|c| c.as_str()).map(|c| (HistoryKind::Command, c.to_owned()))
        }
        AgentEvt::ApprovalRequired { approval } => {
            let text = format!("{}: {}", approval.tool, approval.preview.summary);
            Some((HistoryKind::Approval, text))
        }
        AgentEvt::TurnDiff { paths, .. } => Some((HistoryKind::File, paths.join("\n"))),
        AgentEvt::GitCommit { message, .. } => Some((HistoryKind::Commit, message.clone())),
        _ => None,
    };
    let cut = |(kind, mut text): (HistoryKind, String)| {
        let mut end = text.len().min(MAX_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        (kind, text)
    };
    found.into_iter().filter(|(_, text)| !text.trim().is_empty()).map(cut).collect()
}

/// A search whose parameters were checked.
struct Search {
    query: String,
    words: Vec<String>,
    file: Option<String>,
    kinds: Option<Vec<HistoryKind>>,
    root: Option<String>,
    limit: u32,
}

/// Condition of a search on its entries.
enum Match {
    /// They have the words of the search, joined by an operator of FTS5.
    Words(&'static str),
    /// They have these ids, best first.
    Entries(Vec<i64>),
}

/// A row that was found, without its text.
struct Hit {
    seq: u64,
    kind: HistoryKind,
    session: SessionId,
    title: String,
    root: Option<String>,
}

/// Appends hits that are not there yet, at most `limit`.
fn add_others(hits: &mut Vec<Hit>, others: Vec<Hit>, limit: usize) {
    let is_new =
        |other: &Hit| hits.iter().all(|hit| (&hit.session, hit.seq) != (&other.session, other.seq));
    let others: Vec<Hit> = others.into_iter().filter(is_new).take(limit).collect();
    hits.extend(others);
}

impl Search {
    fn new(params: HistoryParams) -> Result<Self, TraceError> {
        let HistoryParams { query, file, kinds, root, limit } = params;
        if query.chars().count() > MAX_QUERY.0 {
            return Err(TraceError::HistoryQuery(format!(
                "query has more than {} characters",
                MAX_QUERY.0
            )));
        }
        let words: Vec<String> = query
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .take(MAX_QUERY.1)
            .map(str::to_lowercase)
            .collect();
        let file = file.map(|file| file.trim_start_matches("./").to_owned());
        let limit = limit.unwrap_or(LIMIT.0).clamp(1, LIMIT.1);
        Ok(Self { query, words, file, kinds, root, limit })
    }

    fn run(
        &self,
        conn: &Connection,
        embedder: Option<&Arc<dyn TextEmbedder>>,
    ) -> Result<HistoryAnswer, TraceError> {
        let snapshot = conn.unchecked_transaction()?;
        let mut hits = self.hits(&snapshot, &Match::Words(" "))?;
        let has_all_words = !hits.is_empty();
        if let Some(embedder) = embedder.filter(|_| !self.words.is_empty()) {
            let nearest = meaning::nearest(&snapshot, embedder, &self.query, MAX_NEAREST)?;
            add_others(&mut hits, self.hits(&snapshot, &Match::Entries(nearest))?, MAX_SIMILAR);
        }
        if !has_all_words && self.words.len() > 1 {
            add_others(&mut hits, self.hits(&snapshot, &Match::Words(" OR "))?, usize::MAX);
        }
        let (mut data, mut seen) = (Vec::new(), HashSet::new());
        for hit in hits {
            if data.len() < self.limit as usize
                && let Some((id, entry)) = self.entry(&snapshot, hit)?
                && seen.insert((id, entry.kind))
            {
                data.push(entry);
            }
        }
        let query = "SELECT count(*) FROM session WHERE history_seq < head_seq";
        let pending = snapshot.query_row(query, [], |row| row.get(0))?;
        Ok(HistoryAnswer { data, pending })
    }

    /// Returns the rows that match.
    fn hits(&self, conn: &Connection, matching: &Match) -> Result<Vec<Hit>, StoreError> {
        let quoted = |word: &String| format!("\"{word}\"*");
        let text = match matching {
            Match::Words(operator) => {
                self.words.iter().map(quoted).collect::<Vec<_>>().join(operator)
            }
            Match::Entries(entries) => serde_json::to_string(entries).unwrap_or_default(),
        };
        let names: Vec<&str> = match &self.kinds {
            Some(kinds) => kinds.iter().map(|kind| kind.as_str()).collect(),
            None => HistoryKind::ALL.map(HistoryKind::as_str).to_vec(),
        };
        let kinds = serde_json::to_string(&names).unwrap_or_default();
        let (source, condition, order) = match (matching, self.words.is_empty()) {
            (Match::Entries(_), _) => {
                ("json_each(?1) n JOIN history h ON h.id = n.value", "1", "n.key")
            }
            (Match::Words(_), true) => ("history h", "?1 = ''", "h.id DESC"),
            (Match::Words(_), false) => (
                "history_text JOIN history h ON h.id = history_text.rowid",
                "history_text MATCH ?1",
                "bm25(history_text), h.id DESC",
            ),
        };
        // With words, the file is one that the session changed; without, one of the entry itself.
        let query = format!(
            "SELECT h.seq, h.kind, s.id, s.title, s.root FROM {source}
             JOIN session_key k ON k.num = h.session JOIN session s ON s.id = k.id
             WHERE {condition} AND h.kind IN (SELECT value FROM json_each(?2))
                 AND (?3 IS NULL OR s.root = ?3)
                 AND (?4 IS NULL OR EXISTS (SELECT 1 FROM history_file f
                     WHERE f.session = h.session AND (?5 OR f.seq = h.seq)
                     AND (f.path = ?4 OR substr(f.path, -length(?4) - 1) = '/' || ?4)))
             ORDER BY {order} LIMIT ?6"
        );
        let mut statement = conn.prepare_cached(&query)?;
        let has_words = !self.words.is_empty();
        // Forks have the same entries again.
        let limit = self.limit * 4;
        let rows = statement.query_map(
            params![text, kinds, self.root, self.file, has_words, limit],
            |row| {
                let (kind, id): (String, String) = (row.get(1)?, row.get(2)?);
                Ok(Hit {
                    seq: row.get(0)?,
                    kind: HistoryKind::parse(&kind).unwrap_or(HistoryKind::Question),
                    session: id.parse().unwrap_or_else(|_| SessionId::nil()),
                    title: row.get(3)?,
                    root: row.get(4)?,
                })
            },
        )?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Reads the text of a hit from its record, and returns it with the record's id.
    fn entry(
        &self,
        conn: &Connection,
        hit: Hit,
    ) -> Result<Option<(Uuid, HistoryEntry)>, StoreError> {
        let lines = records::lines(conn, &hit.session, hit.seq - 1, 1)?;
        let Some(record) = lines.first().and_then(|line| parse(line).ok()) else { return Ok(None) };
        let text = texts(&record).into_iter().find(|(kind, _)| *kind == hit.kind);
        let Some((_, text)) = text else { return Ok(None) };
        let entry = HistoryEntry {
            session_id: hit.session,
            title: hit.title,
            root: hit.root,
            seq: hit.seq,
            ts: record.ts,
            kind: hit.kind,
            text: excerpt(&text, &self.words, self.file.as_deref()),
        };
        Ok(Some((record.id, entry)))
    }
}

/// Returns the part of a text around the first word, on one line.
fn excerpt(text: &str, words: &[String], file: Option<&str>) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let chars: Vec<char> = line.chars().collect();
    let lower: Vec<char> = chars.iter().map(|c| c.to_lowercase().next().unwrap_or(*c)).collect();
    let position = |word: &str| {
        let word: Vec<char> = word.to_lowercase().chars().collect();
        lower.windows(word.len().max(1)).position(|window| window == word.as_slice())
    };
    let found = words.iter().map(String::as_str).chain(file).filter_map(position).min();
    let start = found.unwrap_or(0).saturating_sub(AROUND.0);
    let end = (start + AROUND.0 + AROUND.1).min(chars.len());
    let cut = |yes: bool| if yes { "…" } else { "" };
    let inner: String = chars[start..end].iter().collect();
    format!("{}{inner}{}", cut(start > 0), cut(end < chars.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_is_around_the_first_word() {
        let text = format!("{}the Needle is here {}", "a ".repeat(100), "b ".repeat(300));
        let cut = excerpt(&text, &["needle".into()], None);
        assert!(cut.starts_with("…a ") && cut.contains("the Needle is here b"), "{cut}");
        assert!(cut.ends_with('…') && cut.chars().count() <= 302, "{cut}");
        assert_eq!(excerpt("short\ntext", &["none".into()], None), "short text");
        assert_eq!(excerpt("ÄÖ", &["äö".into()], None), "ÄÖ");
    }
}
