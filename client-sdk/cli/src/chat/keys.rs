//! Keyboard input while the model works.

use std::{
    io::IsTerminal as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use crossterm::{
    event::{self, Event, KeyCode, KeyEventKind, KeyModifiers},
    terminal,
};
use tokio::sync::mpsc;

/// Interval of polling for keys, which also bounds the time to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(40);
/// Capacity of the key queue; further keys are dropped.
const QUEUE_CAPACITY: usize = 1024;

/// A key with a meaning in the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Enter,
    Backspace,
    /// Clears the typed text.
    Escape,
    /// Ctrl+C, which stops the turn.
    Interrupt,
    /// Ctrl+D, which ends the input.
    End,
}

/// The keyboard in raw mode, until this is dropped.
pub struct Keys {
    keys: mpsc::Receiver<Key>,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Keys {
    /// Takes over the keyboard; `None` without a terminal.
    pub fn take() -> Option<Self> {
        if !has_keyboard() || terminal::enable_raw_mode().is_err() {
            return None;
        }
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
        while let Ok(key) = self.keys.try_recv() {
            unread.push(key);
        }
        unread
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(reader) = self.reader.take() {
            let _reader_panicked = reader.join();
            // A failure to restore the mode cannot be handled.
            let _unrestorable = terminal::disable_raw_mode();
        }
    }

    /// Returns the next key; `None` when the keyboard is gone.
    pub async fn next(&mut self) -> Option<Key> {
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

fn read(sender: &mpsc::Sender<Key>, stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        match event::poll(POLL_INTERVAL) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(_) => return,
        }
        let Ok(event) = event::read() else { return };
        let Some(key) = meaning(&event) else { continue };
        if let Err(mpsc::error::TrySendError::Closed(_)) = sender.try_send(key) {
            return;
        }
    }
}

fn meaning(event: &Event) -> Option<Key> {
    let Event::Key(key) = event else { return None };
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if control => Some(Key::Interrupt),
        KeyCode::Char('d') if control => Some(Key::End),
        KeyCode::Char('h') if control => Some(Key::Backspace),
        KeyCode::Char('u') if control => Some(Key::Escape),
        KeyCode::Char('j' | 'm') if control => Some(Key::Enter),
        KeyCode::Char(c) if !control => Some(Key::Char(c)),
        KeyCode::Enter => Some(Key::Enter),
        KeyCode::Backspace => Some(Key::Backspace),
        KeyCode::Esc => Some(Key::Escape),
        _ => None,
    }
}
