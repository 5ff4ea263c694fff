//! The report of an edit for the model.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Map, Value, json};

use super::{Unavailable, diagnostic::one_line, server::Outcome};

/// Most diagnostics of one report.
const MAX_REPORTED: usize = 20;

/// New errors and warnings of edited files, and the files that no server checked.
#[derive(Debug, Default)]
pub struct Report {
    /// Names of the servers that answered.
    servers: BTreeSet<String>,
    lines: Vec<String>,
    omitted: usize,
    notes: Vec<String>,
    /// Notes on servers that are not there, which concern only a user who requires them.
    absent: Vec<String>,
    /// True if a file has no server, or one without an answer.
    has_unchecked: bool,
}

impl Report {
    /// Adds a file that no server is for.
    pub fn add_unchecked(&mut self) {
        self.has_unchecked = true;
    }

    /// Adds files whose server does not run.
    pub fn add_unavailable(&mut self, server: &str, reason: Unavailable, wait: Duration) {
        self.has_unchecked = true;
        let (notes, text) = match reason {
            Unavailable::NotApplicable => (&mut self.absent, "not used in this run".to_owned()),
            Unavailable::Untrusted => (
                &mut self.absent,
                "not started: the folder is not trusted (trust.folders of the user's \
                configuration)"
                    .to_owned(),
            ),
            Unavailable::NotInstalled => (&mut self.absent, "not installed".to_owned()),
            Unavailable::Full(limit) => {
                (&mut self.notes, format!("not started: {limit} language servers are in use"))
            }
            Unavailable::Late => (&mut self.notes, no_answer(wait)),
            Unavailable::Off(reason) => (
                &mut self.notes,
                format!("off for an hour after three failures; the last: {}", one_line(&reason)),
            ),
            Unavailable::Failed(reason) => {
                (&mut self.notes, format!("failed: {}", one_line(&reason)))
            }
        };
        notes.push(format!("{server}: {text}"));
    }

    /// Adds the result of one file.
    pub(super) fn add(&mut self, server: &str, path: &str, outcome: Outcome, wait: Duration) {
        match outcome {
            Outcome::New { diagnostics, is_compared, is_complete } => {
                self.servers.insert(server.to_owned());
                if !is_compared && !diagnostics.is_empty() {
                    self.note(format!("{path}: all of its problems, not only those of this edit"));
                }
                if !is_complete {
                    self.note(format!("{server}: still checking; there may be more"));
                }
                for one in diagnostics {
                    if self.lines.len() < MAX_REPORTED {
                        self.lines.push(one.render(path));
                    } else {
                        self.omitted += 1;
                    }
                }
            }
            Outcome::Unanswered => {
                self.has_unchecked = true;
                self.note(format!("{server}: {}", no_answer(wait)));
            }
            Outcome::Failed(reason) => {
                self.has_unchecked = true;
                self.note(format!("{server}: failed: {}", one_line(&reason)));
            }
        }
    }

    fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Returns true if a file was not checked by a server.
    pub fn has_unchecked(&self) -> bool {
        self.has_unchecked
    }

    /// Returns the fields of the answer; `all` includes notes on servers that are not there.
    pub fn fields(self, all: bool) -> Map<String, Value> {
        let mut fields = Map::new();
        if !self.servers.is_empty() {
            fields.insert("servers".into(), self.servers.into_iter().collect::<Vec<_>>().into());
            fields.insert("new".into(), self.lines.into());
        }
        if self.omitted > 0 {
            fields.insert("omitted".into(), json!(self.omitted));
        }
        let absent = if all { self.absent } else { vec![] };
        let notes: Vec<String> = self.notes.into_iter().chain(absent).collect();
        if !notes.is_empty() {
            fields.insert("notes".into(), notes.into());
        }
        fields
    }
}

fn no_answer(wait: Duration) -> String {
    format!("no answer within {} s", wait.as_secs_f64())
}
