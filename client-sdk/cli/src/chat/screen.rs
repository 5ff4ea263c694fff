//! Two streams that share a terminal: lines that stay, and a status under them that is drawn anew.

use std::io::{self, IsTerminal as _, Write};

use console::truncate_str;

/// What is written, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Out {
    /// The model's answer.
    Answer(String),
    /// Everything else.
    Note(String),
}

/// How much a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// Standard output is a terminal, and colours are wanted there.
    pub rich: bool,
    /// Standard output is a terminal.
    pub terminal: bool,
    /// Standard error is a terminal: a status can be drawn.
    pub status: bool,
    /// Columns.
    pub width: usize,
}

impl Abilities {
    /// Of this process's terminal.
    pub fn of_process(quiet: bool) -> Self {
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        Self {
            rich: out && console::colors_enabled(),
            terminal: out,
            status: err && !quiet,
            width: columns(),
        }
    }
}

/// Columns of the terminal; 80 where they are not known.
fn columns() -> usize {
    crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns)).max(1)
}

/// The terminal.
pub struct Screen {
    abilities: Abilities,
    /// Rows of the status that stand below the cursor's line now.
    drawn: usize,
    /// Carriage returns are ours to write: the terminal hands keys over as they are pressed.
    pub raw: bool,
}

impl Screen {
    pub fn new(abilities: Abilities) -> Self {
        Self { abilities, drawn: 0, raw: false }
    }

    pub fn abilities(&self) -> Abilities {
        self.abilities
    }

    /// Looks how wide the terminal is now.
    pub fn measure(&mut self) {
        self.abilities.width = columns();
    }

    /// Writes lines that stay. The status is gone until it is drawn again.
    pub fn write(&mut self, out: &[Out]) -> io::Result<()> {
        let mut out = out.iter().filter(|o| !text(o).is_empty()).peekable();
        if out.peek().is_none() {
            return Ok(());
        }
        self.clear()?;
        for one in out {
            let text = self.ends(text(one));
            match one {
                Out::Answer(_) => flush(&mut io::stdout().lock(), &text)?,
                Out::Note(_) => flush(&mut io::stderr().lock(), &text)?,
            }
        }
        Ok(())
    }

    /// Draws the status: rows that are cut to the width.
    pub fn status(&mut self, rows: &[String]) -> io::Result<()> {
        if !self.abilities.status {
            return Ok(());
        }
        let mut text = String::from("\r\u{1b}[J");
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            // The last column stays free: a terminal may go on to the next line by itself.
            text.push_str(&truncate_str(row, self.abilities.width.saturating_sub(1), "…"));
        }
        if rows.len() > 1 {
            text.push_str(&format!("\u{1b}[{}A", rows.len() - 1));
        }
        text.push('\r');
        self.drawn = rows.len();
        flush(&mut io::stderr().lock(), &self.ends(&text))
    }

    /// Takes the status away.
    pub fn clear(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.drawn) == 0 {
            return Ok(());
        }
        flush(&mut io::stderr().lock(), "\r\u{1b}[J")
    }

    fn ends(&self, text: &str) -> String {
        if self.raw { text.replace('\n', "\r\n") } else { text.to_owned() }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nobody may be left to see it.
        let _closed = self.clear();
    }
}

fn text(out: &Out) -> &str {
    match out {
        Out::Answer(text) | Out::Note(text) => text,
    }
}

fn flush(to: &mut impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}
