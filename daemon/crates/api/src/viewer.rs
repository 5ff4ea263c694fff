//! Links that open the viewer: each is good once and for a minute. A page that used one holds a secret of its own, never
//! the daemon's.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use cairn_protocol::{
    error::{Failure, Reason},
    session::Empty,
};
use subtle::ConstantTimeEq;

use crate::{
    connection::{Caller, locked},
    method::Method,
    rights::Right,
};

/// How long a link may wait to be opened.
pub const LINK_LIFE: Duration = Duration::from_secs(60);
/// How long a page may leave the daemon alone before it needs another link.
const PAGE_LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// Links and pages that are remembered at most; the oldest is forgotten first.
const MAX_KEPT: usize = 32;

/// Answer of `viewer.link`.
#[derive(schemars::JsonSchema, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ViewerLink {
    /// Path of the page on the daemon's address, with the code behind `#`, which no browser sends along.
    path: String,
    /// Seconds within which it must be opened, once.
    expires_in_seconds: u64,
}

/// The codes of links and the secrets of pages.
#[derive(Default)]
pub struct Links {
    codes: Mutex<Vec<(String, Instant)>>,
    pages: Mutex<Vec<(String, Instant)>>,
}

impl Links {
    /// A new code.
    ///
    /// # Errors
    /// `internal` when the system gives no randomness.
    pub fn make(&self, now: Instant) -> Result<String, Failure> {
        keep(&mut locked(&self.codes), now)
    }

    /// The secret of a page for a code, which is then used up; nothing when it is unknown, used or too old.
    ///
    /// # Errors
    /// `internal` when the system gives no randomness.
    pub fn exchange(&self, code: &str, now: Instant) -> Result<Option<String>, Failure> {
        let mut codes = locked(&self.codes);
        let Some(at) = codes.iter().position(|(known, _)| same(known, code)) else { return Ok(None) };
        let (_, made) = codes.remove(at);
        drop(codes);
        if now.duration_since(made) > LINK_LIFE {
            return Ok(None);
        }
        keep(&mut locked(&self.pages), now).map(Some)
    }

    /// Whether a page holds this secret.
    pub fn admits(&self, secret: &str, now: Instant) -> bool {
        let mut pages = locked(&self.pages);
        pages.retain(|(_, used)| now.duration_since(*used) <= PAGE_LIFE);
        let Some(page) = pages.iter_mut().find(|(known, _)| same(known, secret)) else { return false };
        page.1 = now;
        true
    }
}

fn same(known: &str, given: &str) -> bool {
    known.as_bytes().ct_eq(given.as_bytes()).into()
}

fn keep(kept: &mut Vec<(String, Instant)>, now: Instant) -> Result<String, Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|e| Failure::new(Reason::Internal, format!("the system gives no randomness: {e}")))?;
    let secret = hex::encode(bytes);
    if kept.len() >= MAX_KEPT {
        kept.remove(0);
    }
    kept.push((secret.clone(), now));
    Ok(secret)
}

pub(crate) fn methods() -> Vec<Method> {
    let summary = "A link that opens the viewer in a browser: once, within a minute.";
    let link = |cx: Caller, _: Empty| async move {
        let code = cx.api().links().make(Instant::now())?;
        Ok(ViewerLink { path: format!("/viewer#{code}"), expires_in_seconds: LINK_LIFE.as_secs() })
    };
    vec![Method::new("viewer.link", summary, link).detached(Right::Admin)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_good_once_and_for_a_minute() {
        let (links, now) = (Links::default(), Instant::now());
        let code = links.make(now).unwrap();
        assert_eq!(links.exchange("", now).unwrap(), None);
        assert_eq!(links.exchange(&code[1..], now).unwrap(), None);
        let secret = links.exchange(&code, now + LINK_LIFE).unwrap().unwrap();
        assert!(secret != code && links.admits(&secret, now));
        assert_eq!(links.exchange(&code, now).unwrap(), None);
        assert!(!links.admits(&code, now) && !links.admits("", now));
        let late = links.make(now).unwrap();
        assert_eq!(links.exchange(&late, now + LINK_LIFE + Duration::from_millis(1)).unwrap(), None);
        assert!(!links.admits(&secret, now + PAGE_LIFE * 2));
    }

    #[test]
    fn the_oldest_link_is_forgotten_first() {
        let (links, now) = (Links::default(), Instant::now());
        let codes: Vec<String> = (0..=MAX_KEPT).map(|_| links.make(now).unwrap()).collect();
        assert_eq!(links.exchange(&codes[0], now).unwrap(), None);
        assert!(links.exchange(&codes[1], now).unwrap().is_some());
    }
}
