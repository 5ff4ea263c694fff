//! One moving line on standard error, when that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Redraws a second.
const RATE: u8 = 10;

/// How often the line moves.
const TICK: Duration = Duration::from_millis(100);

/// A line that says what goes on, and is gone at the end.
pub struct Progress(ProgressBar);

impl Progress {
    /// A line; nothing is drawn when `shown` is false or standard error is no terminal.
    pub fn new(shown: bool) -> Self {
        let target =
            if shown { ProgressDrawTarget::stderr_with_hz(RATE) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {elapsed:>3} {wide_msg}") {
            bar.set_style(style);
        }
        if shown {
            bar.enable_steady_tick(TICK);
        }
        Self(bar)
    }

    /// Whether anybody sees it.
    pub fn is_shown(&self) -> bool {
        !self.0.is_hidden()
    }

    /// Says what goes on now.
    pub fn say(&self, text: impl Into<String>) {
        self.0.set_message(text.into());
    }

    /// Stops drawing and clears the line, while something else is written.
    pub fn pause(&self) {
        self.0.disable_steady_tick();
        self.0.set_draw_target(ProgressDrawTarget::hidden());
    }

    /// Draws again after a pause.
    pub fn resume(&self) {
        self.0.set_draw_target(ProgressDrawTarget::stderr_with_hz(RATE));
        self.0.enable_steady_tick(TICK);
    }

    /// Prints a line above it, or to standard error when it is not drawn.
    pub fn above(&self, text: &str) {
        self.0.suspend(|| {
            let _closed = std::io::Write::write_all(&mut std::io::stderr(), format!("{text}\n").as_bytes());
        });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
