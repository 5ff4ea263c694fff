//! The space of the log: forks by reference, packed records, deletion in steps, limits, and the
//! migration of an older database.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use cairn_protocol::{
    envelope::Body, event::AgentEvt, explore::RunState, id::SessionId, time::Timestamp,
};
use cairn_store::rusqlite::{Connection, params};
use cairn_trace::{Append, ForkCut, NewRecord, NewSession, Retention, Trace};
use uuid::Uuid;

const FAR: Timestamp = Timestamp(i64::MAX / 2);

async fn session(trace: &Trace, title: &str) -> SessionId {
    let new = NewSession { title: title.into(), ..NewSession::default() };
    trace.create_session(new).await.unwrap().session_id
}

fn record(text: &str) -> NewRecord {
    let evt = AgentEvt::Interrupted { op: text.to_owned() };
    NewRecord { id: Uuid::now_v7(), parent_id: None, origin: None, body: Body::Evt { evt } }
}

async fn append(trace: &Trace, id: &SessionId, count: usize, bytes: usize) {
    // Text that hardly compresses, so that frames are large.
    let noise = |n: usize| {
        let words = (0..bytes / 32).map(|i| Uuid::now_v7().simple().to_string() + &i.to_string());
        format!("{n} {}", words.collect::<String>())
    };
    for chunk in (0..count).collect::<Vec<_>>().chunks(100) {
        let records = chunk.iter().map(|n| record(&noise(*n))).collect();
        trace.append(Append::new(id, records)).await.unwrap();
    }
}

async fn lines(trace: &Trace, id: &SessionId) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let page = trace.lines(id, all.len() as u64, 77).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page.iter().map(|line| line.to_string()));
    }
}

fn open(dir: &Path) -> Trace {
    Trace::open(&dir.join("trace.db")).unwrap()
}

fn number(dir: &Path, query: &str) -> i64 {
    let conn = cairn_store::open_read_only(&dir.join("trace.db")).unwrap();
    conn.query_row(query, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn packed_records_are_read_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let trace = open(dir.path());
    let id = session(&trace, "a").await;
    append(&trace, &id, 700, 1000).await;
    let before = lines(&trace, &id).await;
    assert_eq!(trace.pack(Timestamp(0)).await.unwrap(), 0, "the session was used since");
    assert_eq!(trace.pack(FAR).await.unwrap(), 1);
    assert_eq!(lines(&trace, &id).await, before);
    assert_eq!(number(dir.path(), "SELECT count(*) FROM record"), 0);
    let frames = number(dir.path(), "SELECT count(*) FROM packed_record");
    assert!((2..10).contains(&frames), "{frames}");
    // The session continues, and is packed again.
    append(&trace, &id, 30, 50).await;
    let after = lines(&trace, &id).await;
    assert_eq!((after.len(), &after[..700]), (730, &before[..]));
    assert_eq!(trace.session(&id).await.unwrap().head_seq, 730);
    assert_eq!(trace.pack(FAR).await.unwrap(), 1);
    assert_eq!(lines(&trace, &id).await, after);
    for seq in [0, 1, 699, 700, 701, 729, 730, u64::MAX] {
        let page = trace.lines(&id, seq, 2).await.unwrap();
        let start = usize::try_from(seq.min(730)).unwrap();
        assert_eq!(page.len(), (730 - start).min(2), "after {seq}");
        assert!(page.iter().zip(&after[start..]).all(|(line, text)| **line == **text));
    }
    // An export has all of it, with the same checksum, and can be imported elsewhere.
    let (mut cursor, mut parts) = (None, Vec::new());
    loop {
        let part = trace.export(&id, cursor.as_deref()).await.unwrap();
        parts.push(part.jsonl);
        cursor = part.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let other_dir = tempfile::tempdir().unwrap();
    let other = open(other_dir.path());
    for part in &parts {
        other.import(part).await.unwrap();
    }
    assert_eq!(lines(&other, &id).await, after);
}

#[tokio::test]
async fn readers_see_every_record_while_sessions_are_packed() {
    let dir = tempfile::tempdir().unwrap();
    let trace = open(dir.path());
    let id = session(&trace, "a").await;
    append(&trace, &id, 1500, 600).await;
    let packing = tokio::spawn({
        let trace = trace.clone();
        async move { trace.pack(FAR).await.unwrap() }
    });
    let mut reads = 0;
    while !packing.is_finished() || reads == 0 {
        assert_eq!(lines(&trace, &id).await.len(), 1500);
        reads += 1;
    }
    assert_eq!(packing.await.unwrap(), 1);
}

#[tokio::test]
async fn fork_refers_to_records_and_outlives_its_origin() {
    let dir = tempfile::tempdir().unwrap();
    let trace = open(dir.path());
    let id = session(&trace, "a").await;
    append(&trace, &id, 300, 400).await;
    let stored = number(dir.path(), "SELECT count(*) FROM record");
    let cut = ForkCut { upto: 200, ..ForkCut::default() };
    let fork = trace.fork(&id, cut, "b".into()).await.unwrap().session_id;
    let again = trace.fork(&fork, ForkCut { upto: 150, ..ForkCut::default() }, "c".into()).await;
    let again = again.unwrap().session_id;
    assert_eq!(number(dir.path(), "SELECT count(*) FROM record"), stored, "nothing is copied");
    let expected = |of: &SessionId, count: usize, all: &[String]| -> Vec<String> {
        let renamed = |line: &String| line.replacen(id.as_str(), of.as_str(), 1);
        all.iter().take(count).map(renamed).collect()
    };
    let all = lines(&trace, &id).await;
    assert_eq!(lines(&trace, &fork).await, expected(&fork, 200, &all));
    append(&trace, &fork, 2, 10).await;
    assert_eq!(lines(&trace, &fork).await.len(), 202);
    // An outsider sees the same.
    let payload = format!(
        "SELECT count(*) FROM trace_event WHERE session_id = '{again}' AND seq = 150
         AND json_extract(payload, '$.sessionId') = session_id
         AND json_extract(payload, '$.seq') = seq"
    );
    assert_eq!(number(dir.path(), &payload), 1);
    trace.delete_session(&id).await.unwrap();
    trace.reclaim().await.unwrap();
    assert_eq!(lines(&trace, &id).await, Vec::<String>::new());
    assert_eq!(lines(&trace, &fork).await[..200], expected(&fork, 200, &all));
    assert_eq!(lines(&trace, &again).await, expected(&again, 150, &all));
    assert_eq!(number(dir.path(), "SELECT count(*) FROM record"), 202);
    // Packing one of them leaves the other's.
    trace.pack(FAR).await.unwrap();
    assert_eq!(lines(&trace, &fork).await[..200], expected(&fork, 200, &all));
    assert_eq!(lines(&trace, &again).await, expected(&again, 150, &all));
    trace.delete_session(&fork).await.unwrap();
    trace.delete_session(&again).await.unwrap();
    trace.reclaim().await.unwrap();
    for table in ["record", "session_record", "shared_record", "packed_record", "session_key"] {
        assert_eq!(number(dir.path(), &format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
}

#[tokio::test]
async fn fork_without_some_turns_copies_what_follows_them() {
    let dir = tempfile::tempdir().unwrap();
    let trace = open(dir.path());
    let id = session(&trace, "a").await;
    append(&trace, &id, 10, 40).await;
    let cut = ForkCut { upto: 8, omitted: vec![4, 5], ends: vec![record("end")] };
    let fork = trace.fork(&id, cut, "b".into()).await.unwrap();
    assert_eq!(fork.head_seq, 7);
    let records = trace.records(&fork.session_id, 0, 100).await.unwrap();
    let numbers: Vec<u64> = records.iter().map(|record| record.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    assert!(records.iter().all(|record| record.session_id == fork.session_id));
    let old = trace.records(&id, 0, 100).await.unwrap();
    let ids: Vec<Uuid> = records[..6].iter().map(|record| record.id).collect();
    let remaining: Vec<Uuid> = [1, 2, 3, 6, 7, 8].map(|seq: usize| old[seq - 1].id).to_vec();
    assert_eq!(ids, remaining);
}

#[tokio::test]
async fn deleted_sessions_free_their_space_in_steps() {
    let dir = tempfile::tempdir().unwrap();
    let trace = open(dir.path());
    let mut sessions = Vec::new();
    for n in 0..20 {
        let id = session(&trace, &n.to_string()).await;
        append(&trace, &id, 200, 2000).await;
        let blob = (format!("{n:064}"), vec![b'x'; 50_000]);
        let shared = ("f".repeat(64), vec![b'y'; 50_000]);
        let with_blobs = Append::new(&id, vec![]).blob(blob.0, blob.1).blob(shared.0, shared.1);
        trace.append(with_blobs).await.unwrap();
        sessions.push(id);
    }
    let usage = trace.usage(3).await.unwrap();
    assert_eq!((usage.sessions, usage.records, usage.blob_bytes), (20, 4000, 21 * 50_000));
    assert_eq!(usage.largest.len(), 3);
    let ratio = usage.file_bytes as f64 / (usage.record_bytes + usage.blob_bytes) as f64;
    // The write-ahead log is up to 64 MiB of it.
    let file = number(
        dir.path(),
        "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
    );
    let exact = file as f64 / (usage.record_bytes + usage.blob_bytes) as f64;
    assert!(exact < 1.3, "{exact} of the data, {ratio} with the write-ahead log");
    for id in &sessions[..10] {
        trace.delete_session(id).await.unwrap();
    }
    // A reader of what is deleted gets nothing, and a new session is not mixed with it.
    assert!(lines(&trace, &sessions[0]).await.is_empty());
    let new = session(&trace, "new").await;
    append(&trace, &new, 3, 10).await;
    drop(trace);
    // A crash before the space is free loses nothing of the work.
    let trace = open(dir.path());
    trace.reclaim().await.unwrap();
    let after = trace.usage(0).await.unwrap();
    assert_eq!((after.sessions, after.records, after.free_bytes), (11, 2003, 0));
    assert_eq!(after.blob_bytes, 11 * 50_000, "the shared blob remains");
    assert!(
        number(
            dir.path(),
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        ) < file * 6 / 10
    );
    assert_eq!(lines(&trace, &new).await.len(), 3);
    assert_eq!(lines(&trace, &sessions[10]).await.len(), 200);
    assert_eq!(trace.integrity_check().await.unwrap(), "ok");
}

#[tokio::test]
async fn limits_remove_the_least_recently_used() {
    let dir = tempfile::tempdir().unwrap();
    let trace = open(dir.path());
    let mut ids = Vec::new();
    for n in 0..6 {
        let id = session(&trace, &n.to_string()).await;
        append(&trace, &id, 10, 4000).await;
        ids.push(id);
    }
    let conn = Connection::open(dir.path().join("trace.db")).unwrap();
    for (n, id) in ids.iter().enumerate() {
        let query = "UPDATE session SET updated_ms = ?2 WHERE id = ?1";
        conn.execute(query, params![id.as_str(), 1000 * (n as i64 + 1)]).unwrap();
    }
    conn.execute("UPDATE session SET state = 'running' WHERE id = ?1", [ids[1].as_str()]).unwrap();
    let now = Timestamp(7000);
    let all = Retention::UNLIMITED;
    let old = Retention { max_age_ms: Some(3500), ..all };
    let cases: [(Retention, &[usize]); 6] = [
        (all, &[]),
        (old, &[0, 2]),
        (Retention { keep: 5, ..old }, &[0]),
        (Retention { keep: 6, ..old }, &[]),
        (Retention { max_bytes: Some(1), ..all }, &[0, 2, 3, 4, 5]),
        (Retention { max_bytes: Some(1), keep: 2, ..all }, &[0, 2, 3]),
    ];
    for (limits, expected) in cases {
        let expired = trace.expired(limits, now).await.unwrap();
        let got: Vec<&SessionId> = expired.iter().map(|session| &session.session_id).collect();
        let want: Vec<&SessionId> = expected.iter().map(|n| &ids[*n]).collect();
        assert_eq!(got, want, "{limits:?}");
    }
    // Only as many as bring the log below its limit.
    let pages = number(
        dir.path(),
        "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
    );
    let limits = Retention { max_bytes: Some(pages as u64 - 50_000), ..all };
    assert_eq!(trace.expired(limits, now).await.unwrap().len(), 2);
}

#[tokio::test]
async fn database_of_the_former_schema_is_migrated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.db");
    let (one, two) = (SessionId::new(), SessionId::new());
    let line = |id: &SessionId, seq: u64| {
        format!("{{\"sessionId\":\"{id}\",\"seq\":{seq},\"text\":\"{}\"}}", "x".repeat(3000))
    };
    {
        let conn = cairn_store::open(&path, cairn_trace::FORMER_MIGRATIONS).unwrap();
        for id in [&one, &two] {
            let query = "INSERT INTO session (id, title, created_ms, updated_ms, head_seq)
                         VALUES (?1, 't', 1, 1, 50)";
            conn.execute(query, [id.as_str()]).unwrap();
        }
        // Records of sessions that ran at the same time.
        for seq in 1..=50_u64 {
            for id in [&two, &one] {
                let query = "INSERT INTO trace_event VALUES (?1, ?2, 5, 'Evt', ?3)";
                conn.execute(query, params![id.as_str(), seq, line(id, seq)]).unwrap();
            }
        }
        conn.execute("INSERT INTO blob VALUES ('orphan', 1, 'x')", []).unwrap();
    }
    let trace = open(dir.path());
    for id in [&one, &two] {
        let expected: Vec<String> = (1..=50).map(|seq| line(id, seq)).collect();
        assert_eq!(lines(&trace, id).await, expected);
        assert_eq!(trace.session(id).await.unwrap().state, RunState::Idle);
    }
    assert_eq!(number(dir.path(), "PRAGMA auto_vacuum"), 2);
    let bytes = line(&one, 1).len() as i64 * 9 + line(&one, 10).len() as i64 * 41;
    assert_eq!(number(dir.path(), "SELECT min(bytes) FROM session"), bytes);
    append(&trace, &one, 1, 10).await;
    assert_eq!(lines(&trace, &one).await.len(), 51);
    trace.reclaim().await.unwrap();
    assert_eq!(number(dir.path(), "SELECT count(*) FROM blob"), 0);
    assert_eq!(trace.integrity_check().await.unwrap(), "ok");
}

#[tokio::test]
async fn clock_that_jumps_is_steady_from_there() {
    let dir = tempfile::tempdir().unwrap();
    let trace = Trace::open(&dir.path().join("trace.db")).unwrap();
    let day = 24 * 3600 * 1000;
    let start = 1_000 * day;
    for (now, expected) in [
        (start, start),
        (start + day, start),
        // Corrected by a second, and a machine that was off for six days.
        (start + day - 1_000, start),
        (start + 7 * day - 1_000, start),
        // A year ahead, and back again.
        (start + 372 * day, start + 372 * day),
        (start + 373 * day, start + 372 * day),
        (start + 8 * day, start + 8 * day),
        (start + 9 * day, start + 8 * day),
    ] {
        let since = trace.clock_steady_since(Timestamp(now)).await.unwrap();
        assert_eq!(since.0 - start, expected - start, "at day {}", (now - start) / day);
    }
}
