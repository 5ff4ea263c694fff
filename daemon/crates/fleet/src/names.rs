//! Names of subjects, streams and buckets, which other clients of the broker also rely on.

use cairn_protocol::{id::SessionId, remote::Right};

/// Prefix of all subjects.
const PREFIX: &str = "cairn";
/// Bucket with the state of each connected daemon.
pub const DAEMONS: &str = "CAIRN_DAEMONS";

/// Subject of a session's records.
pub fn records(daemon: &str, session: &SessionId) -> String {
    format!("{PREFIX}.{daemon}.ev.{session}")
}

/// Subjects of all records of a daemon.
pub fn all_records(daemon: &str) -> String {
    format!("{PREFIX}.{daemon}.ev.*")
}

/// Stream with the records of a daemon.
pub fn record_stream(daemon: &str) -> String {
    format!("CAIRN_EV_{daemon}")
}

/// Object store with the blobs of a daemon's sessions.
pub fn blob_bucket(daemon: &str) -> String {
    format!("CAIRN_BLOBS_{daemon}")
}

/// Subject on which a connection with the rights up to `level` sends its messages.
pub fn calls(daemon: &str, level: Right, connection: &str) -> String {
    format!("{PREFIX}.{daemon}.rpc.{}.{connection}", level.as_str())
}

/// Subjects of all connections of a daemon.
pub fn all_calls(daemon: &str) -> String {
    format!("{PREFIX}.{daemon}.rpc.*.*")
}

/// Level and connection of a subject of [`calls`].
pub fn parse_calls(subject: &str) -> Option<(Right, &str)> {
    let mut parts = subject.split('.').skip(3);
    let (level, connection) = (parts.next()?, parts.next()?);
    let level = Right::ALL.into_iter().find(|right| right.as_str() == level)?;
    Some((level, connection))
}

/// Subject of the runs of a pool that senders with the rights up to `level` add.
pub fn runs(pool: &str, level: Right) -> String {
    format!("{PREFIX}.pool.{pool}.run.{}", level.as_str())
}

/// Subjects of all runs of a pool.
pub fn all_runs(pool: &str) -> String {
    format!("{PREFIX}.pool.{pool}.run.*")
}

/// Rights of the sender of a message on a subject of [`runs`].
pub fn parse_runs(subject: &str) -> Option<Right> {
    let level = subject.split('.').nth(4)?;
    Right::ALL.into_iter().find(|right| right.as_str() == level)
}

/// Stream with the waiting and active runs of a pool.
pub fn run_stream(pool: &str) -> String {
    format!("CAIRN_POOL_{pool}")
}

/// Bucket with the state of each run of a pool.
pub fn run_bucket(pool: &str) -> String {
    format!("CAIRN_RUNS_{pool}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_parsed_back() {
        let subject = calls("host", Right::Approve, "c1");
        assert_eq!(parse_calls(&subject), Some((Right::Approve, "c1")));
        assert_eq!(parse_calls("cairn.host.rpc.root.c1"), None);
        assert_eq!(parse_runs(&runs("ci", Right::Prompt)), Some(Right::Prompt));
        assert_eq!(parse_runs("cairn.pool.ci.run"), None);
    }
}
