//! A progress line on standard error, if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Maximum number of redraws per second.
const RATE: u8 = 10;

/// Interval of the animation.
const TICK: Duration = Duration::from_millis(100);

/// A progress line that disappears at the end.
pub struct Progress(ProgressBar);

impl Progress {
    /// Creates a line; nothing is drawn if `visible` is false or standard error is not a terminal.
    pub fn new(visible: bool) -> Self {
        let target = if visible {
            ProgressDrawTarget::stderr_with_hz(RATE)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {elapsed:>3} {wide_msg}") {
            bar.set_style(style);
        }
        if visible {
            bar.enable_steady_tick(TICK);
        }
        Self(bar)
    }

    /// Returns true if the line is drawn.
    pub fn is_visible(&self) -> bool {
        !self.0.is_hidden()
    }

    pub fn set_text(&self, text: impl Into<String>) {
        self.0.set_message(text.into());
    }

    /// Stops drawing and clears the line while other output is written.
    pub fn pause(&self) {
        self.0.disable_steady_tick();
        self.0.set_draw_target(ProgressDrawTarget::hidden());
    }

    /// Removes the line for good, before the result is printed.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }

    /// Draws again after a pause.
    pub fn resume(&self) {
        self.0.set_draw_target(ProgressDrawTarget::stderr_with_hz(RATE));
        self.0.enable_steady_tick(TICK);
    }

    /// Prints a line above it, or to standard error if it is not drawn.
    pub fn println(&self, text: &str) {
        self.0.suspend(|| {
            let _closed =
                std::io::Write::write_all(&mut std::io::stderr(), format!("{text}\n").as_bytes());
        });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
