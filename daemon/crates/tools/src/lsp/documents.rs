//! The files that a server has open, and the diagnostics that it reported for files.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::diagnostic::Diagnostic;

/// Most files whose diagnostics are stored.
const MAX_FILES: usize = 512;
/// Most open files of a server; the one that was edited longest ago is closed.
pub const MAX_OPEN: usize = 64;

/// A file whose text the server has from here, not from the disk.
struct Open {
    version: i32,
    text: Arc<str>,
    /// Position in the order of all events at which this version was sent.
    sent: u64,
    /// Diagnostics of this version, if they were requested.
    pulled: Option<Vec<Diagnostic>>,
}

/// The last diagnostics that the server published for a file.
struct Pushed {
    version: Option<i64>,
    /// Position in the order of all events.
    at: u64,
    diagnostics: Vec<Diagnostic>,
}

#[derive(Default)]
struct Document {
    open: Option<Open>,
    pushed: Option<Pushed>,
    /// Diagnostics with which those after the edit are compared; `None` if they are not known.
    baseline: Option<Vec<Diagnostic>>,
    /// True while an edit has had no answer.
    is_unanswered: bool,
}

/// Message about a file that the server needs.
#[derive(Debug, PartialEq, Eq)]
pub enum Sync {
    Open,
    Change(i32),
    /// The server has this text already.
    Unchanged,
}

/// The files of one server.
#[derive(Default)]
pub struct Documents {
    files: HashMap<PathBuf, Document>,
    /// Number of the last event.
    events: u64,
}

impl Documents {
    fn next_event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    fn open(&self, path: &Path) -> Option<&Open> {
        self.files.get(path)?.open.as_ref()
    }

    fn open_mut(&mut self, path: &Path) -> Option<&mut Open> {
        self.files.get_mut(path)?.open.as_mut()
    }

    /// Stores what a server published.
    pub fn publish(&mut self, path: PathBuf, version: Option<i64>, diagnostics: Vec<Diagnostic>) {
        let at = self.next_event();
        if self.files.len() >= MAX_FILES && !self.files.contains_key(&path) {
            // The oldest report about a file that is not open.
            let closed = self.files.iter().filter(|(_, file)| file.open.is_none());
            let oldest = closed.min_by_key(|(_, file)| file.pushed.as_ref().map(|p| p.at));
            let Some(oldest) = oldest.map(|(path, _)| path.clone()) else { return };
            self.files.remove(&oldest);
        }
        self.files.entry(path).or_default().pushed = Some(Pushed { version, at, diagnostics });
    }

    /// Stores the answer to a request for a version.
    pub fn set_pulled(&mut self, path: &Path, version: i32, diagnostics: Vec<Diagnostic>) {
        if let Some(open) = self.open_mut(path).filter(|open| open.version == version) {
            open.pulled = Some(diagnostics);
        }
    }

    /// Sets the text of a file and returns the message that the server needs.
    pub fn set_text(&mut self, path: &Path, text: &str) -> Sync {
        let sent = self.next_event();
        let document = self.files.entry(path.to_owned()).or_default();
        match &mut document.open {
            Some(open) if *open.text == *text => Sync::Unchanged,
            Some(open) => {
                open.version += 1;
                open.text = text.into();
                open.sent = sent;
                open.pulled = None;
                Sync::Change(open.version)
            }
            None => {
                document.open = Some(Open { version: 1, text: text.into(), sent, pulled: None });
                Sync::Open
            }
        }
    }

    /// Closes a file; returns true if it was open.
    pub fn close(&mut self, path: &Path) -> bool {
        self.files.get_mut(path).and_then(|file| file.open.take()).is_some()
    }

    /// Returns the open file whose last change is oldest, if too many are open.
    pub fn surplus(&self) -> Option<PathBuf> {
        let open = || self.files.iter().filter_map(|(path, f)| Some((path, f.open.as_ref()?)));
        if open().count() <= MAX_OPEN {
            return None;
        }
        open().min_by_key(|(_, open)| open.sent).map(|(path, _)| path.clone())
    }

    /// Returns the version of an open file.
    pub fn version(&self, path: &Path) -> Option<i32> {
        self.open(path).map(|open| open.version)
    }

    /// Returns the diagnostics of the current version; `None` while they are not known. `pulls` is
    /// true if the server is asked for them.
    pub fn current(&self, path: &Path, pulls: bool) -> Option<Vec<Diagnostic>> {
        let document = self.files.get(path)?;
        let open = document.open.as_ref()?;
        let pushed = document.pushed.as_ref();
        if !pulls {
            let is_current = |pushed: &&Pushed| match pushed.version {
                Some(version) => version == i64::from(open.version),
                None => pushed.at > open.sent,
            };
            return pushed.filter(is_current).map(|pushed| pushed.diagnostics.clone());
        }
        let mut all = open.pulled.clone()?;
        // Some servers publish what a separate check finds.
        let others = pushed.into_iter().flat_map(|pushed| &pushed.diagnostics);
        let others: Vec<Diagnostic> =
            others.filter(|one| !all.iter().any(|known| known == *one)).cloned().collect();
        all.extend(others);
        Some(all)
    }

    /// Sets the diagnostics before an edit. While an earlier edit has had no answer, those before
    /// that edit stay.
    pub fn set_baseline(&mut self, path: &Path, baseline: Option<Vec<Diagnostic>>) {
        if let Some(document) = self.files.get_mut(path).filter(|file| !file.is_unanswered) {
            document.baseline = baseline;
        }
    }

    /// Sets the baseline of a file that did not exist.
    pub fn set_created(&mut self, path: &Path) {
        self.files.entry(path.to_owned()).or_default();
        self.set_baseline(path, Some(vec![]));
    }

    /// Notes that an edit needs an answer.
    pub fn set_edited(&mut self, path: &Path) {
        self.files.entry(path.to_owned()).or_default().is_unanswered = true;
    }

    /// Removes and returns the baseline of an edit that is answered now.
    pub fn take_baseline(&mut self, path: &Path) -> Option<Vec<Diagnostic>> {
        let document = self.files.get_mut(path)?;
        document.is_unanswered = false;
        document.baseline.take()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::diagnostic::Severity, *};

    fn error(text: &str) -> Diagnostic {
        Diagnostic { severity: Severity::Error, line: 1, column: 1, text: text.into() }
    }

    #[test]
    fn only_reports_about_the_current_version_count() {
        let (mut documents, path) = (Documents::default(), Path::new("/a.py"));
        documents.publish(path.into(), Some(7), vec![error("earlier")]);
        assert_eq!(documents.current(path, false), None, "the file is not open");
        assert_eq!(documents.set_text(path, "1"), Sync::Open);
        assert_eq!(documents.current(path, false), None);
        documents.publish(path.into(), Some(1), vec![error("a")]);
        assert_eq!(documents.current(path, false), Some(vec![error("a")]));
        assert_eq!(documents.set_text(path, "1"), Sync::Unchanged);
        assert_eq!(documents.set_text(path, "2"), Sync::Change(2));
        assert_eq!(documents.current(path, false), None);
        documents.publish(path.into(), Some(1), vec![]);
        assert_eq!(documents.current(path, false), None, "a late report about the last version");
        // A server without versions is believed from the first report after the change on.
        documents.publish(path.into(), None, vec![]);
        assert_eq!(documents.current(path, false), Some(vec![]));
        assert_eq!(documents.current(path, true), None);
        documents.set_pulled(path, 1, vec![error("late")]);
        assert_eq!(documents.current(path, true), None);
        documents.publish(path.into(), None, vec![error("check"), error("b")]);
        documents.set_pulled(path, 2, vec![error("b")]);
        assert_eq!(documents.current(path, true), Some(vec![error("b"), error("check")]));
    }

    #[test]
    fn baseline_stays_while_an_edit_is_unanswered() {
        let (mut documents, path) = (Documents::default(), Path::new("/a.py"));
        documents.set_text(path, "1");
        documents.set_baseline(path, Some(vec![error("a")]));
        documents.set_edited(path);
        documents.set_baseline(path, Some(vec![error("a"), error("b")]));
        assert_eq!(documents.take_baseline(path), Some(vec![error("a")]));
        documents.set_baseline(path, Some(vec![]));
        assert_eq!(documents.take_baseline(path), Some(vec![]));
        // An edit before the server was ready leaves no baseline for the next one.
        let other = Path::new("/b.py");
        documents.set_edited(other);
        documents.set_text(other, "2");
        documents.set_baseline(other, Some(vec![error("c")]));
        assert_eq!(documents.take_baseline(other), None);
    }

    #[test]
    fn files_are_bounded() {
        let mut documents = Documents::default();
        for n in 0..2 * MAX_FILES {
            documents.publish(format!("/{n}.py").into(), None, vec![]);
        }
        assert_eq!(documents.files.len(), MAX_FILES);
        for n in 0..=MAX_OPEN {
            documents.set_text(Path::new(&format!("/{n}.rs")), "x");
        }
        let surplus = documents.surplus().unwrap();
        assert_eq!(surplus, Path::new("/0.rs"));
        assert!(documents.close(&surplus) && !documents.close(&surplus));
        assert_eq!(documents.surplus(), None);
    }
}
