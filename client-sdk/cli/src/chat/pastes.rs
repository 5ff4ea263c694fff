//! Large pastes: the line of the prompt has a short note in place of the text.

use std::{
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{exit::Failure, render::output};

/// Pastes with more lines than this are replaced by a note.
const MAX_LINES: usize = 20;
/// Pastes with more bytes than this are replaced by a note.
const MAX_BYTES: usize = 4 * 1024;
/// Maximum bytes of all stored pastes, the limit of a turn's input.
pub const MAX_STORED: usize = 8 * 1024 * 1024;

/// The pastes of the line that is edited. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Pastes(Arc<Mutex<Stored>>);

#[derive(Debug, Default)]
struct Stored {
    texts: Vec<String>,
    /// Bytes of a paste that was refused.
    refused: Option<usize>,
}

impl Pastes {
    /// Takes a pasted text and returns the text for the line: itself if it is short, else a note.
    pub fn add(&self, text: String) -> String {
        let lines = text.lines().count();
        if text.len() <= MAX_BYTES && lines <= MAX_LINES {
            return text;
        }
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let total: usize = stored.texts.iter().map(String::len).sum();
        if total + text.len() > MAX_STORED {
            stored.refused = Some(text.len());
            return String::new();
        }
        stored.texts.push(text);
        note(stored.texts.len(), lines)
    }

    /// Returns the failure of a refused paste.
    pub fn take_refusal(&self) -> Option<Failure> {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner).refused.take()?;
        let text = format!(
            "the paste has {}; a message may have at most {}",
            output::bytes(refused as u64),
            output::bytes(MAX_STORED as u64)
        );
        Some(Failure::usage(text).hint("save it in the folder and mention the file with @"))
    }

    /// Replaces each note in a line by its paste, once.
    pub fn expand(&self, line: &str) -> String {
        let stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut slots: Vec<(Range<usize>, &str)> = Vec::new();
        for (at, text) in stored.texts.iter().enumerate() {
            let note = note(at + 1, text.lines().count());
            if let Some(start) = line.find(&note) {
                slots.push((start..start + note.len(), text));
            }
        }
        slots.sort_by_key(|(range, _)| range.start);
        let mut out = String::new();
        let mut from = 0;
        for (range, text) in slots {
            out.push_str(line.get(from..range.start).unwrap_or_default());
            out.push_str(text);
            from = range.end;
        }
        out.push_str(line.get(from..).unwrap_or_default());
        out
    }

    /// Forgets the pastes of a line that was sent.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).texts.clear();
    }
}

fn note(number: usize, lines: usize) -> String {
    let unit = if lines == 1 { "line" } else { "lines" };
    format!("[pasted text #{number}, {} {unit}]", output::number(lines as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_paste_is_a_note_until_it_is_sent() {
        let pastes = Pastes::default();
        assert_eq!(pastes.add("short\ntext".into()), "short\ntext");
        let long = "row\n".repeat(1234);
        let first = pastes.add(long.clone());
        assert_eq!(first, "[pasted text #1, 1,234 lines]");
        let second = pastes.add("x".repeat(5000));
        assert_eq!(second, "[pasted text #2, 1 line]");
        let line = format!("see {second} and {first}.");
        assert_eq!(pastes.expand(&line), format!("see {} and {long}.", "x".repeat(5000)));
        // A note inside a paste stays as it is.
        let sly = pastes.add(format!("{first}{}", "y".repeat(5000)));
        assert_eq!(pastes.expand(&sly), format!("{first}{}", "y".repeat(5000)));
        pastes.clear();
        assert_eq!(pastes.expand(&first), first);
    }

    #[test]
    fn paste_beyond_the_limit_is_refused() {
        let pastes = Pastes::default();
        let five = "z".repeat(5 * 1024 * 1024);
        assert!(pastes.add(five.clone()).starts_with("[pasted text #1"));
        assert!(pastes.take_refusal().is_none());
        assert_eq!(pastes.add(five), "");
        let failure = pastes.take_refusal().unwrap();
        assert!(failure.text().contains("at most 8"), "{}", failure.text());
        assert!(pastes.take_refusal().is_none());
    }
}
