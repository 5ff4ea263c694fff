//! The log: records per second, each durable before it is acknowledged.

use std::{path::Path, time::Instant};

use cairn_protocol::{envelope::Body, event::AgentEvt, id::SessionId};
use cairn_trace::{Append, NewRecord, NewSession, Trace};

use crate::meter::{cpu, latencies, report};

/// Records appended in each measurement.
const RECORDS: usize = 40_000;

/// Measures single records, concurrent appenders, and batches.
pub async fn run(path: &Path) {
    let trace = Trace::open(path).expect("a log");
    let session = trace.create_session(NewSession::default()).await.expect("a session").session_id;
    let mut alone = Vec::new();
    for n in 0..300 {
        let start = Instant::now();
        append(&trace, &session, n, 1).await;
        alone.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    latencies("log: one record, durable", alone, "");
    for (appenders, batch) in [(64, 1), (1024, 1), (64, 64)] {
        let start = Instant::now();
        let before = cpu(None);
        let each = RECORDS / appenders / batch;
        let tasks: Vec<_> = (0..appenders)
            .map(|_| {
                let trace = trace.clone();
                let session = session.clone();
                tokio::spawn(async move {
                    for n in 0..each {
                        append(&trace, &session, n, batch).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("appended");
        }
        let done = (each * appenders * batch) as f64;
        let wall = start.elapsed().as_secs_f64();
        let spent = cpu(None) - before;
        report(format!(
            "log: {appenders:4} appenders x {batch:2} records       {:.0} records/s durable, {:.1} us CPU each",
            done / wall,
            spent * 1e6 / done
        ));
    }
}

async fn append(trace: &Trace, session: &SessionId, n: usize, batch: usize) {
    let record = || {
        let evt = AgentEvt::Progress {
            op: "bench".into(),
            percent: n as f64,
            message: Some("x".repeat(80)),
        };
        NewRecord {
            id: uuid::Uuid::now_v7(),
            parent_id: None,
            origin: None,
            body: Body::Evt { evt },
        }
    };
    let records = (0..batch).map(|_| record()).collect();
    trace.append(Append::new(session, records)).await.expect("durable");
}
