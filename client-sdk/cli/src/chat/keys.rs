//! Keys as they are pressed while the model works.

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

/// How long a look for a key takes; leaving waits for one.
const LOOK: Duration = Duration::from_millis(40);
/// Keys that wait to be read; more are lost.
const WAITING: usize = 1024;

/// A key that means something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Enter,
    Backspace,
    /// Clears what was typed.
    Escape,
    /// Ctrl+C.
    Interrupt,
    /// Ctrl+D.
    End,
}

/// The keyboard, until it is dropped.
pub struct Keys {
    keys: mpsc::Receiver<Key>,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Keys {
    /// Takes the keyboard; `None` where there is no terminal to take it from.
    pub fn take() -> Option<Self> {
        if !has_keyboard() || terminal::enable_raw_mode().is_err() {
            return None;
        }
        let (tell, keys) = mpsc::channel(WAITING);
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let reader = std::thread::spawn(move || read(&tell, &ended));
        Some(Self { keys, stop, reader: Some(reader) })
    }

    /// Gives the keyboard back, and the keys that nobody took.
    pub fn give_back(mut self) -> Vec<Key> {
        self.end();
        let mut left = Vec::new();
        while let Ok(key) = self.keys.try_recv() {
            left.push(key);
        }
        left
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(reader) = self.reader.take() {
            let _ended = reader.join();
            // What the terminal says to this does not matter any more.
            let _left = terminal::disable_raw_mode();
        }
    }

    /// The next key; `None` when the keyboard is gone.
    pub async fn next(&mut self) -> Option<Key> {
        self.keys.recv().await
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether a person is at the keyboard and sees what is asked.
pub fn has_keyboard() -> bool {
    use std::io;
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

fn read(tell: &mpsc::Sender<Key>, stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        match event::poll(LOOK) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(_) => return,
        }
        let Ok(event) = event::read() else { return };
        let Some(key) = meaning(&event) else { continue };
        if let Err(mpsc::error::TrySendError::Closed(_)) = tell.try_send(key) {
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
