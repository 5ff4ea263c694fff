//! The life of a pairing code: who may try it, how often, until when. Pure: the time and the code are given.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use cairn_protocol::remote::{PairState, Right};

/// How long a code is good.
pub const LIFE: Duration = Duration::from_secs(120);
/// Tries of one code; one that is begun counts, however it ends.
pub const TRIES: u32 = 3;
/// Codes within [`HOUR`]: whoever makes one after the other gives a guesser no more tries than three times this.
pub const CODES: usize = 20;
/// The span that codes are counted in.
pub const HOUR: Duration = Duration::from_secs(3600);

/// What the person at the daemon decided about the device to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// What it may do.
    pub rights: Vec<Right>,
    /// What it is called; `None` for its own word.
    pub name: Option<String>,
}

/// Why nobody is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no code that waits.
    #[error("no code waits for a device")]
    NoCode,
    /// It is too late.
    #[error("the code has expired")]
    Expired,
    /// Its tries are used up.
    #[error("the code is void: it was tried {TRIES} times")]
    Void,
    /// Too many codes were made.
    #[error("{CODES} codes were made within an hour")]
    TooMany,
}

/// A try that was counted; it is given back to [`Codes::end`] or [`Codes::accept`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Try {
    serial: u64,
}

#[derive(Debug)]
struct Current {
    serial: u64,
    code: String,
    terms: Terms,
    until: Instant,
    left: u32,
    /// Tries at work.
    open: u32,
    state: PairState,
}

/// The latest code and when earlier ones were made.
#[derive(Debug, Default)]
pub struct Codes {
    current: Option<Current>,
    made: VecDeque<Instant>,
    serial: u64,
}

impl Codes {
    /// Takes a new code; an earlier one is void.
    ///
    /// # Errors
    /// [`Refusal::TooMany`], and the earlier one stays as it is.
    pub fn begin(&mut self, now: Instant, code: String, terms: Terms) -> Result<(), Refusal> {
        while self.made.front().is_some_and(|made| now.saturating_duration_since(*made) >= HOUR) {
            self.made.pop_front();
        }
        if self.made.len() >= CODES {
            return Err(Refusal::TooMany);
        }
        self.made.push_back(now);
        self.serial += 1;
        let (serial, until) = (self.serial, now + LIFE);
        let state = PairState::Waiting;
        self.current = Some(Current { serial, code, terms, until, left: TRIES, open: 0, state });
        Ok(())
    }

    /// Counts a try; the answer has the code to compare with, in an exchange that does not tell it.
    ///
    /// # Errors
    /// [`Refusal`] of every kind but `TooMany`.
    pub fn attempt(&mut self, now: Instant) -> Result<(Try, String), Refusal> {
        let current = self.waiting(now)?;
        if current.left == 0 {
            return Err(Refusal::Void);
        }
        current.left -= 1;
        current.open += 1;
        Ok((Try { serial: current.serial }, current.code.clone()))
    }

    /// A try has ended without a pairing.
    pub fn end(&mut self, which: Try) {
        if let Some(current) = self.current.as_mut().filter(|c| c.serial == which.serial) {
            current.open = current.open.saturating_sub(1);
            if current.state == PairState::Waiting && current.left == 0 && current.open == 0 {
                current.state = PairState::Void;
            }
        }
    }

    /// A try has proved the code: it is used up, and the device gets what was decided.
    ///
    /// # Errors
    /// When meanwhile another try was faster, the time is over, or there is another code.
    pub fn accept(&mut self, now: Instant, which: Try) -> Result<Terms, Refusal> {
        let current = self.waiting(now)?;
        if current.serial != which.serial {
            return Err(Refusal::NoCode);
        }
        current.state = PairState::Paired;
        Ok(current.terms.clone())
    }

    /// Makes the code void.
    pub fn cancel(&mut self, now: Instant) {
        if let Ok(current) = self.waiting(now) {
            current.state = PairState::Cancelled;
        }
    }

    /// How the latest code stands, and its tries that are left.
    pub fn state(&mut self, now: Instant) -> (PairState, u32) {
        // Asked for its effect: a code whose time is over becomes void.
        let _waits = self.waiting(now).is_ok();
        self.current.as_ref().map_or((PairState::None, 0), |c| match c.state {
            PairState::Waiting => (c.state, c.left),
            ended => (ended, 0),
        })
    }

    fn waiting(&mut self, now: Instant) -> Result<&mut Current, Refusal> {
        let current = self.current.as_mut().ok_or(Refusal::NoCode)?;
        if current.state == PairState::Waiting && now >= current.until {
            current.state = PairState::Expired;
        }
        match current.state {
            PairState::Waiting => Ok(current),
            PairState::Expired => Err(Refusal::Expired),
            PairState::Void => Err(Refusal::Void),
            PairState::None | PairState::Paired | PairState::Cancelled => Err(Refusal::NoCode),
        }
    }
}

#[cfg(test)]
#[path = "codes_tests.rs"]
mod tests;
