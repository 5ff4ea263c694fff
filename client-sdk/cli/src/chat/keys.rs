//! Keyboard input while the model works.

use std::{
    io::IsTerminal as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crossterm::{
    ExecutableCommand as _,
    event::{
        self, DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange,
        Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
    },
    terminal,
};
use tokio::sync::mpsc;

/// Interval of polling for keys, which also bounds the time to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Time within which a key after Escape belongs to the same sequence, such as Alt+B.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(30);
/// Capacity of the key queue; further keys are dropped.
const QUEUE_CAPACITY: usize = 1024;

/// A key with a meaning in the chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Char(char),
    /// Pasted text.
    Paste(String),
    Enter,
    Backspace,
    /// Ctrl+U, which clears the typed text.
    Clear,
    /// Clears the typed text; without any, stops the turn.
    Escape,
    /// Ctrl+C, which stops the turn.
    Interrupt,
    /// Ctrl+O, which displays the last folded result.
    Unfold,
    /// The terminal has got or lost the focus.
    Focus(bool),
    /// Ctrl+D, which ends the input.
    End,
}

/// A key with the time at which it was read from the terminal, which may be long before it is
/// handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPress {
    pub key: Key,
    pub at: Instant,
}

/// The keyboard in raw mode, until this is dropped.
pub struct Keys {
    keys: mpsc::Receiver<KeyPress>,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Keys {
    /// Takes over the keyboard; `None` without a terminal.
    pub fn take() -> Option<Self> {
        if !has_keyboard() || terminal::enable_raw_mode().is_err() {
            return None;
        }
        let mut out = std::io::stdout();
        // A terminal that does not know the modes ignores them.
        let _unsupported = out.execute(EnableBracketedPaste);
        let _unsupported = out.execute(EnableFocusChange);
        let (sender, keys) = mpsc::channel(QUEUE_CAPACITY);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let reader = std::thread::spawn(move || read(&sender, &stopped));
        Some(Self { keys, stop, reader: Some(reader) })
    }

    /// Restores the keyboard and returns the unread keys.
    pub fn release(mut self) -> Vec<Key> {
        self.end();
        let mut unread = Vec::new();
        while let Ok(press) = self.keys.try_recv() {
            unread.push(press.key);
        }
        unread
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(reader) = self.reader.take() {
            let _reader_panicked = reader.join();
            let mut out = std::io::stdout();
            let _unsupported = out.execute(DisableFocusChange);
            let _unsupported = out.execute(DisableBracketedPaste);
            // A failure to restore the mode cannot be handled.
            let _unrestorable = terminal::disable_raw_mode();
        }
    }

    /// Returns the next key; `None` when the keyboard is gone.
    pub async fn next(&mut self) -> Option<KeyPress> {
        self.keys.recv().await
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns true if a person is at the keyboard and sees the output.
pub fn has_keyboard() -> bool {
    use std::io;
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

fn read(sender: &mpsc::Sender<KeyPress>, stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        match event::poll(POLL_INTERVAL) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(_) => return,
        }
        let Ok(event) = event::read() else { return };
        let at = Instant::now();
        let is_sequence_start = is_escape(&event);
        let mut events = vec![event];
        if is_sequence_start && event::poll(ESCAPE_TIMEOUT).unwrap_or(false) {
            let Ok(next) = event::read() else { return };
            // Alt and a key may arrive in two parts; the sequence has no meaning here.
            if is_key(&next) {
                continue;
            }
            events.push(next);
        }
        for key in events.into_iter().filter_map(meaning) {
            let press = KeyPress { key, at };
            if let Err(mpsc::error::TrySendError::Closed(_)) = sender.try_send(press) {
                return;
            }
        }
    }
}

fn is_escape(event: &Event) -> bool {
    matches!(event, Event::Key(KeyEvent { code: KeyCode::Esc, .. }))
}

fn is_key(event: &Event) -> bool {
    matches!(event, Event::Key(KeyEvent { code, .. }) if *code != KeyCode::Esc)
}

fn meaning(event: Event) -> Option<Key> {
    let key = match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        Event::Paste(text) => return Some(Key::Paste(text)),
        Event::FocusGained => return Some(Key::Focus(true)),
        Event::FocusLost => return Some(Key::Focus(false)),
        _ => return None,
    };
    if key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if control => Some(Key::Interrupt),
        KeyCode::Char('d') if control => Some(Key::End),
        KeyCode::Char('h') if control => Some(Key::Backspace),
        KeyCode::Char('u') if control => Some(Key::Clear),
        KeyCode::Char('o') if control => Some(Key::Unfold),
        KeyCode::Char('j' | 'm') if control => Some(Key::Enter),
        KeyCode::Char(c) if !control => Some(Key::Char(c)),
        KeyCode::Enter => Some(Key::Enter),
        KeyCode::Backspace => Some(Key::Backspace),
        KeyCode::Esc => Some(Key::Escape),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alt_sequences_are_not_escape() {
        let press = |code, modifiers| meaning(Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(press(KeyCode::Esc, KeyModifiers::NONE), Some(Key::Escape));
        assert_eq!(press(KeyCode::Char('b'), KeyModifiers::ALT), None);
        assert_eq!(press(KeyCode::Esc, KeyModifiers::ALT), None);
        assert_eq!(press(KeyCode::Backspace, KeyModifiers::ALT), None);
        assert_eq!(press(KeyCode::Char('o'), KeyModifiers::CONTROL), Some(Key::Unfold));
        assert_eq!(press(KeyCode::Char('b'), KeyModifiers::NONE), Some(Key::Char('b')));
        assert_eq!(meaning(Event::FocusLost), Some(Key::Focus(false)));
        assert!(is_key(&Event::Key(KeyEvent::new(KeyCode::Char('b'), KeyModifiers::NONE))));
        assert!(!is_key(&Event::FocusLost));
    }
}
