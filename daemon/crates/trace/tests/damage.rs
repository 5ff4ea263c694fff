//! Damage of the log's file: each is without effect or named, and what is intact is rescued.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use cairn_protocol::{envelope::Body, event::AgentEvt, id::SessionId, time::Timestamp};
use cairn_trace::{Append, ForkCut, NewRecord, NewSession, Trace, TraceError, inspect, rescue};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

const SESSIONS: usize = 50;
const PAGE: usize = 8192;

/// A pseudo-random sequence, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

fn record(text: String) -> NewRecord {
    let evt = AgentEvt::Warning { op: "t".into(), message: text };
    NewRecord { id: Uuid::now_v7(), parent_id: None, origin: None, body: Body::Evt { evt } }
}

/// The records of each session.
type Content = BTreeMap<SessionId, Vec<String>>;

/// Creates a log with packed, forked and ordinary sessions, and blobs; returns its content.
async fn filled(path: &Path) -> Content {
    let trace = Trace::open(path).unwrap();
    let mut random = Random(7);
    let mut all = Vec::new();
    for n in 0..SESSIONS {
        let new = NewSession { title: format!("session {n}"), ..NewSession::default() };
        let id = trace.create_session(new).await.unwrap().session_id;
        let records = 5 + random.below(30);
        for at in 0..records {
            let text = format!("{n} {at} {}", "words ".repeat(random.below(900)));
            let mut append = Append::new(&id, vec![record(text)]);
            if at == 3 {
                let blob = format!("blob of {n} ").repeat(1000);
                let hash = hex::encode(Sha256::digest(blob.as_bytes()));
                append = append.blob(hash, blob.into_bytes());
            }
            trace.append(append).await.unwrap();
        }
        all.push(id.clone());
        if n == SESSIONS / 3 {
            trace.pack(Timestamp(i64::MAX / 2)).await.unwrap();
        }
        if n % 10 == 9 {
            let cut = ForkCut { upto: 4, ..ForkCut::default() };
            all.push(trace.fork(&id, cut, "fork".into()).await.unwrap().session_id);
        }
    }
    let mut content = Content::new();
    for id in all {
        content.insert(id.clone(), lines(&trace, &id).await.unwrap());
    }
    content
}

async fn lines(trace: &Trace, id: &SessionId) -> Result<Vec<String>, TraceError> {
    trace.session(id).await?;
    let mut all = Vec::new();
    loop {
        let page = trace.lines(id, all.len() as u64, 50).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page.iter().map(|line| line.to_string()));
    }
}

async fn exported(trace: &Trace, id: &SessionId) -> Result<(), TraceError> {
    let mut cursor = None;
    loop {
        cursor = trace.export(id, cursor.as_deref()).await?.next_cursor;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

/// Outcomes of one damage.
#[derive(Debug, Default)]
struct Outcomes {
    /// Sessions whose records are as before.
    intact: usize,
    /// Sessions whose damage is named.
    named: usize,
    /// Sessions with other records than before and no error.
    silent: Vec<String>,
}

async fn compare(trace: &Trace, content: &Content) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for (id, expected) in content {
        match lines(trace, id).await {
            Ok(found) if found == *expected => match exported(trace, id).await {
                Ok(()) => outcomes.intact += 1,
                Err(error) => name(&mut outcomes, id, &error),
            },
            Ok(found) => {
                outcomes.silent.push(format!("{id}: {} of {}", found.len(), expected.len()))
            }
            Err(error) => name(&mut outcomes, id, &error),
        }
    }
    outcomes
}

/// An error names the damage and the way out.
fn name(outcomes: &mut Outcomes, id: &SessionId, error: &TraceError) {
    let text = error.to_string();
    let is_named = text.contains("damaged") && text.contains("cairn doctor --repair");
    if is_named { outcomes.named += 1 } else { outcomes.silent.push(format!("{id}: {text}")) }
}

fn damaged_copy(bytes: &[u8], folder: &Path, damage: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let path = folder.join("trace.db");
    for suffix in ["", "-wal", "-shm"] {
        let _absent = fs::remove_file(folder.join(format!("trace.db{suffix}")));
    }
    let mut bytes = bytes.to_vec();
    damage(&mut bytes);
    fs::write(&path, bytes).unwrap();
    path
}

/// Rescues a log and compares the result: every session has the beginning of its records, and what
/// is missing is named.
async fn check_rescue(damaged: &Path, content: &Content) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.db");
    let Ok(outcome) = rescue(damaged, &path) else { return 0 };
    assert!(inspect(&path).unwrap().is_empty(), "a rescued log is intact");
    let trace = Trace::open(&path).unwrap();
    let (mut records, mut shorter) = (0, 0);
    for (id, expected) in content {
        let found = lines(&trace, id).await.unwrap_or_default();
        assert_eq!(found[..], expected[..found.len()], "{id}");
        records += found.len();
        shorter += usize::from(found.len() < expected.len());
    }
    assert!(shorter == 0 || !outcome.lost.is_empty(), "{shorter} sessions are shorter");
    records
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_flipped_byte_is_without_effect_or_named() {
    let dir = tempfile::tempdir().unwrap();
    let original = dir.path().join("original.db");
    let content = filled(&original).await;
    let total: usize = content.values().map(Vec::len).sum();
    let conn = cairn_store::rusqlite::Connection::open(&original).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(conn);
    assert_eq!(inspect(&original).unwrap(), Vec::<String>::new(), "the control");
    let bytes = fs::read(&original).unwrap();
    let pages = bytes.len() / PAGE;
    assert!(pages > 100, "{pages}");
    let mut random = Random(42);
    let (mut without_effect, mut named, mut refused) = (0, 0, 0);
    for round in 0..150 {
        let (page, flips) = (random.below(pages), 1 + random.below(8));
        let path = damaged_copy(&bytes, dir.path(), |bytes| {
            for _ in 0..flips {
                let at = page * PAGE + random.below(PAGE);
                bytes[at] ^= 1 << random.below(8);
            }
        });
        let trace = match Trace::open(&path) {
            Ok(trace) => trace,
            Err(error) => {
                assert!(error.to_string().contains("cairn doctor --repair"), "{error}");
                refused += 1;
                continue;
            }
        };
        let outcomes = compare(&trace, &content).await;
        assert!(outcomes.silent.is_empty(), "round {round}, page {page}: {:?}", outcomes.silent);
        drop(trace);
        if outcomes.named == 0 {
            without_effect += 1;
            continue;
        }
        named += 1;
        let findings = inspect(&path).unwrap();
        assert!(!findings.is_empty(), "round {round}: doctor finds it too");
        if round % 5 == 0 {
            let rescued = check_rescue(&path, &content).await;
            assert!(rescued * 10 > total * 5, "round {round}: {rescued} of {total} records");
        }
    }
    assert!(named > 20, "{without_effect} without effect, {named} named, {refused} refused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_without_its_first_page_is_refused_and_rescued() {
    let dir = tempfile::tempdir().unwrap();
    let original = dir.path().join("original.db");
    let content = filled(&original).await;
    let total: usize = content.values().map(Vec::len).sum();
    let conn = cairn_store::rusqlite::Connection::open(&original).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(conn);
    let bytes = fs::read(&original).unwrap();
    for length in [16, 100, PAGE] {
        let path = damaged_copy(&bytes, dir.path(), |bytes| bytes[..length].fill(0xAA));
        let error = Trace::open(&path).err().unwrap();
        assert!(error.to_string().contains("cairn doctor --repair"), "{error}");
        assert_eq!(check_rescue(&path, &content).await, total, "{length} bytes");
    }
    // A log that is cut in the middle has the sessions of its first half.
    let path = damaged_copy(&bytes, dir.path(), |bytes| bytes.truncate(bytes.len() / 2));
    let rescued = check_rescue(&path, &content).await;
    assert!(rescued > 0 && rescued < total, "{rescued} of {total}");
}

#[tokio::test]
async fn damaged_record_is_named_with_session_number_and_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.db");
    let trace = Trace::open(&path).unwrap();
    let id = trace.create_session(NewSession::default()).await.unwrap().session_id;
    let records = (0..9).map(|n| record(format!("text {n}"))).collect();
    trace.append(Append::new(&id, records)).await.unwrap();
    let damage = |query: &str| {
        let conn = cairn_store::rusqlite::Connection::open(&path).unwrap();
        conn.execute(query, []).unwrap();
    };
    let text = |error: TraceError| error.to_string();
    damage("UPDATE record SET payload = replace(payload, 'text 4', 'text 9') WHERE id = 5");
    let error = text(trace.export(&id, None).await.unwrap_err());
    let expected = format!("record 5 of session {id} is damaged: it does not match its checksum");
    assert!(error.starts_with(&expected) && error.contains("cairn doctor --repair"), "{error}");
    assert_eq!(trace.lines(&id, 5, 9).await.unwrap().len(), 4, "records after it can be read");
    let cut = ForkCut { upto: 9, ..ForkCut::default() };
    assert!(text(trace.fork(&id, cut, String::new()).await.unwrap_err()).contains("record 5"));
    damage("UPDATE record SET payload = replace(payload, 'text 9', 'text 4') WHERE id = 5");
    assert!(trace.export(&id, None).await.is_ok(), "the control");
    damage("DELETE FROM session_record WHERE seq = 9");
    assert!(text(trace.export(&id, None).await.unwrap_err()).contains("record 9"));
    // Packing must not make a session shorter.
    trace.pack(Timestamp(i64::MAX / 2)).await.unwrap();
    assert!(text(trace.export(&id, None).await.unwrap_err()).contains("record 9"));
    damage("DELETE FROM session");
    assert!(text(trace.session(&id).await.unwrap_err()).contains("its row is missing"));
    assert!(!inspect(&path).unwrap().is_empty());
}
