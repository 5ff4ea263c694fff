//! The lifetime of a pairing code: attempts and expiry. Pure: the caller passes the time and the
//! code.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use cairn_protocol::remote::{PairState, Right};
use subtle::ConstantTimeEq as _;

/// Lifetime of a code.
pub const CODE_LIFETIME: Duration = Duration::from_secs(120);
/// Maximum attempts per code; an attempt counts from its start, whatever its outcome.
pub const MAX_ATTEMPTS: u32 = 3;
/// Maximum codes per [`HOUR`]. Together with [`MAX_ATTEMPTS`] this bounds the attempts of a
/// guesser.
pub const MAX_CODES: usize = 20;
/// The period in which codes are counted.
pub const HOUR: Duration = Duration::from_secs(3600);

/// The decisions of the person at the daemon about the new device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Rights of the device.
    pub rights: Vec<Right>,
    /// Name of the device; `None` for the one that it declares.
    pub name: Option<String>,
}

/// The reason why a device is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no active code.
    #[error("no pairing code is active")]
    NoCode,
    /// The code has expired.
    #[error("the code has expired")]
    Expired,
    /// The code has no attempts left.
    #[error("the code is no longer valid: it was tried {MAX_ATTEMPTS} times")]
    Void,
    /// The code of a page is not the active one's.
    #[error("the link was already used, or is older than two minutes")]
    WrongPage,
    /// Too many codes were created.
    #[error("{MAX_CODES} codes were created within an hour")]
    TooMany,
}

/// The two ways to use one offer: a machine proves that it knows the short code, a browser sends
/// the long one.
#[derive(Debug, Clone)]
pub struct NewCodes {
    /// Digits that a person can type; it is never sent.
    pub machine: String,
    /// 128 random bits as hexadecimal digits, which cannot be guessed: attempts are not counted.
    pub page: String,
}

/// A counted attempt, to be passed to [`Codes::end`] or [`Codes::accept`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    serial: u64,
}

#[derive(Debug)]
struct Current {
    serial: u64,
    code: String,
    page_code: String,
    terms: Terms,
    until: Instant,
    remaining_attempts: u32,
    /// Number of attempts in progress.
    open: u32,
    state: PairState,
}

/// The latest code and the times at which earlier ones were created.
#[derive(Debug, Default)]
pub struct Codes {
    current: Option<Current>,
    created: VecDeque<Instant>,
    serial: u64,
}

impl Codes {
    /// Activates a new code and invalidates an earlier one.
    ///
    /// # Errors
    /// [`Refusal::TooMany`]; the earlier code stays active.
    pub fn begin(&mut self, now: Instant, codes: NewCodes, terms: Terms) -> Result<(), Refusal> {
        while self
            .created
            .front()
            .is_some_and(|created| now.saturating_duration_since(*created) >= HOUR)
        {
            self.created.pop_front();
        }
        if self.created.len() >= MAX_CODES {
            return Err(Refusal::TooMany);
        }
        self.created.push_back(now);
        self.serial += 1;
        let serial = self.serial;
        let until = now + CODE_LIFETIME;
        let state = PairState::Waiting;
        self.current = Some(Current {
            serial,
            code: codes.machine,
            page_code: codes.page,
            terms,
            until,
            remaining_attempts: MAX_ATTEMPTS,
            open: 0,
            state,
        });
        Ok(())
    }

    /// Counts an attempt and returns the code, for an exchange that does not reveal it.
    ///
    /// # Errors
    /// Every [`Refusal`] except `TooMany`.
    pub fn attempt(&mut self, now: Instant) -> Result<(Attempt, String), Refusal> {
        let current = self.active(now)?;
        if current.remaining_attempts == 0 {
            return Err(Refusal::Void);
        }
        current.remaining_attempts -= 1;
        current.open += 1;
        Ok((Attempt { serial: current.serial }, current.code.clone()))
    }

    /// Ends an attempt without a pairing.
    pub fn end(&mut self, which: Attempt) {
        if let Some(current) = self.current.as_mut().filter(|c| c.serial == which.serial) {
            current.open = current.open.saturating_sub(1);
            if current.state == PairState::Waiting
                && current.remaining_attempts == 0
                && current.open == 0
            {
                current.state = PairState::Void;
            }
        }
    }

    /// Completes an attempt that proved the code: the code is used up, and its terms apply to the
    /// device.
    ///
    /// # Errors
    /// Another attempt was faster, the code has expired, or there is a newer code.
    pub fn accept(&mut self, now: Instant, which: Attempt) -> Result<Terms, Refusal> {
        let current = self.active(now)?;
        if current.serial != which.serial {
            return Err(Refusal::NoCode);
        }
        current.state = PairState::Paired;
        Ok(current.terms.clone())
    }

    /// Completes the pairing of a browser that sent the page's code.
    ///
    /// # Errors
    /// The code is not that of the active offer, or there is none.
    pub fn accept_page(&mut self, now: Instant, code: &str) -> Result<Terms, Refusal> {
        let current = self.active(now).map_err(|_| Refusal::WrongPage)?;
        if !bool::from(current.page_code.as_bytes().ct_eq(code.as_bytes())) {
            return Err(Refusal::WrongPage);
        }
        current.state = PairState::Paired;
        Ok(current.terms.clone())
    }

    /// Invalidates the code without a device.
    pub fn cancel(&mut self, now: Instant) {
        if let Ok(current) = self.active(now) {
            current.state = PairState::Cancelled;
        }
    }

    /// Returns the state of the latest code and its remaining attempts.
    pub fn state(&mut self, now: Instant) -> (PairState, u32) {
        // Called for its side effect: an expired code is invalidated.
        let _active = self.active(now).is_ok();
        self.current.as_ref().map_or((PairState::None, 0), |c| match c.state {
            PairState::Waiting => (c.state, c.remaining_attempts),
            closed => (closed, 0),
        })
    }

    fn active(&mut self, now: Instant) -> Result<&mut Current, Refusal> {
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
