//! A log of many sessions: its size, opening it, lists and followers, and other writes while half
//! of it is removed and the rest is packed. `CAIRN_BENCH_SESSIONS` sets the number of sessions.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use cairn_protocol::{
    envelope::Body, event::AgentEvt, id::SessionId, session::After, time::Timestamp,
};
use cairn_trace::{Append, NewRecord, NewSession, Trace};

use crate::meter::{latencies, quantile, report, value};

/// Records of a session.
const RECORDS: usize = 70;
/// Sessions that are written at once.
const WRITERS: usize = 64;
/// Interval of the writes beside a collection.
const PAUSE: Duration = Duration::from_millis(2);

/// Measures a log of the configured number of sessions in `scratch`.
pub async fn run(scratch: &Path) {
    let count = std::env::var("CAIRN_BENCH_SESSIONS").ok().and_then(|n| n.parse().ok());
    let count: usize = count.unwrap_or(5000);
    let path = scratch.join("long.db");
    let empty = scratch.join("empty.db");
    drop(Trace::open(&empty).expect("a log"));
    let (sessions, data) = fill(&path, count).await;
    checkpoint(&path);
    let file = path.metadata().expect("a file").len();
    let ratio = file as f64 / data as f64;
    value("long log: file / data", ratio);
    report(format!(
        "long log: {} sessions, {} records, {:.0} MB of data: file {:.0} MB, {ratio:.2} x  <= 1.3 x",
        sessions.len(),
        sessions.len() * RECORDS,
        data as f64 / 1e6,
        file as f64 / 1e6,
    ));
    let (first, again) = (opened(&empty).await, opened(&path).await);
    value("long log: open ms", again);
    report(format!("long log: open {again:.1} ms, empty {first:.1} ms  <= 1.5 x"));
    let trace = Trace::open(&path).expect("a log");
    reads(&trace, &sessions).await;
    let half = sessions.len() / 2;
    let (stalls, seconds) = beside(&trace, async {
        for session in &sessions[..half] {
            trace.delete_session(session).await.expect("deleted");
        }
        trace.reclaim().await.expect("reclaimed");
    })
    .await;
    stalled("long log: write while half is removed", stalls, seconds);
    let (stalls, seconds) = beside(&trace, async {
        trace.pack(Timestamp(i64::MAX / 2)).await.expect("packed");
        trace.reclaim().await.expect("reclaimed");
    })
    .await;
    stalled("long log: write while the rest is packed", stalls, seconds);
    reads(&trace, &sessions[half..]).await;
    drop(trace);
    checkpoint(&path);
    let after = path.metadata().expect("a file").len();
    report(format!(
        "long log: file after both {:.0} MB, {:.2} x of the remaining data",
        after as f64 / 1e6,
        after as f64 / (data as f64 / 2.0)
    ));
}

/// Writes the sessions, and returns them with the bytes of their records.
async fn fill(path: &Path, count: usize) -> (Vec<SessionId>, u64) {
    let trace = Trace::open(path).expect("a log");
    let writers = (0..WRITERS).map(|writer| {
        let trace = trace.clone();
        let own = (writer..count).step_by(WRITERS);
        tokio::spawn(async move {
            let mut sessions = Vec::new();
            for n in own {
                let new = NewSession { title: format!("session {n}"), ..NewSession::default() };
                let id = trace.create_session(new).await.expect("a session").session_id;
                for start in (0..RECORDS).step_by(7) {
                    let records = (start..start + 7).map(|at| record(n * RECORDS + at)).collect();
                    trace.append(Append::new(&id, records)).await.expect("durable");
                }
                sessions.push(id);
            }
            sessions
        })
    });
    let mut sessions = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        sessions.extend(writer.await.expect("written"));
    }
    let data = trace.usage(0).await.expect("usage").record_bytes;
    (sessions, data)
}

/// A record of 0.3 to 12 KB with text as of code; most are small.
fn record(n: usize) -> NewRecord {
    let mut state = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let words = match next() % 20 {
        0 => 1500,
        1..=4 => 300,
        _ => 20,
    };
    let text: Vec<String> = (0..words).map(|_| format!("name_{:x}", next() % 4096)).collect();
    let evt =
        AgentEvt::Progress { op: "bench".into(), percent: 1.0, message: Some(text.join(" ")) };
    NewRecord { id: uuid::Uuid::now_v7(), parent_id: None, origin: None, body: Body::Evt { evt } }
}

async fn opened(path: &Path) -> f64 {
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        let trace = Trace::open(path).expect("a log");
        trace.mark_interrupted().await.expect("marked");
        trace.sessions(None, None, false).await.expect("a list");
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        drop(trace);
        checkpoint(path);
    }
    quantile(&mut times, 0.5)
}

/// Moves the write-ahead log of a dropped log into its file.
fn checkpoint(path: &Path) {
    let conn = cairn_store::rusqlite::Connection::open(path).expect("a database");
    conn.busy_timeout(Duration::from_secs(5)).expect("a timeout");
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("a checkpoint");
}

async fn reads(trace: &Trace, sessions: &[SessionId]) {
    let (mut lists, mut follows, mut pages) = (Vec::new(), Vec::new(), Vec::new());
    let millis = |start: Instant| start.elapsed().as_secs_f64() * 1000.0;
    for n in 0..200 {
        let session = &sessions[n * 7919 % sessions.len()];
        let start = Instant::now();
        trace.sessions(Some(session.to_string()), None, false).await.expect("a list");
        lists.push(millis(start));
        let start = Instant::now();
        let after = After::Seq(RECORDS as u64 - 5);
        let (mut follower, _) = trace.follow(session, &after).await.expect("a follower");
        follower.step().await.expect("a step");
        follows.push(millis(start));
        let start = Instant::now();
        trace.records(session, 0, 500).await.expect("records");
        pages.push(millis(start));
    }
    latencies("long log: list of sessions", lists, "<= 20 ms");
    latencies("long log: resume a follower", follows, "<= 20 ms");
    latencies("long log: records of a session", pages, "<= 20 ms");
}

/// Runs `work` beside small durable writes; returns their latencies and the seconds of the work.
async fn beside(trace: &Trace, work: impl Future<Output = ()>) -> (Vec<f64>, f64) {
    let done = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (trace, done) = (trace.clone(), Arc::clone(&done));
        async move {
            let id = trace.create_session(NewSession::default()).await.expect("one").session_id;
            let mut latencies = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let start = Instant::now();
                let append = Append::new(&id, vec![record(7)]);
                trace.append(append).await.expect("durable");
                latencies.push(start.elapsed().as_secs_f64() * 1000.0);
                tokio::time::sleep(PAUSE).await;
            }
            latencies
        }
    });
    let start = Instant::now();
    work.await;
    let seconds = start.elapsed().as_secs_f64();
    done.store(true, Ordering::Relaxed);
    (writer.await.expect("written"), seconds)
}

fn stalled(name: &str, mut times: Vec<f64>, seconds: f64) {
    let worst = quantile(&mut times, 1.0);
    value(&format!("{name} worst ms"), worst);
    latencies(name, times, &format!("worst {worst:.1} ms <= 50 ms; {seconds:.1} s in all"));
}
