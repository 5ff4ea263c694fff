//! Links that open the viewer, each valid once and for a minute. A page that used one has its own
//! secret, never the daemon's.

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
    connection::{Caller, lock},
    method::Method,
    rights::Right,
};

/// Time within which a link must be opened.
pub const LINK_LIFE: Duration = Duration::from_secs(60);
/// Time without requests after which a page needs another link.
const PAGE_LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// Maximum number of stored links and of stored pages; the oldest is dropped first.
const MAX_ENTRIES: usize = 32;

/// Answer of the method `viewer.link`.
#[derive(schemars::JsonSchema, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ViewerLink {
    /// Path of the page on the daemon's address, with the code behind `#`, which browsers do not
    /// send.
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
    /// Creates a code.
    ///
    /// # Errors
    /// `internal` when the system supplies no randomness.
    pub fn create(&self, now: Instant) -> Result<String, Failure> {
        store_secret(&mut lock(&self.codes), now)
    }

    /// Exchanges a code for the secret of a page and invalidates the code; `None` when it is
    /// unknown, used or expired.
    ///
    /// # Errors
    /// `internal` when the system supplies no randomness.
    pub fn exchange(&self, code: &str, now: Instant) -> Result<Option<String>, Failure> {
        let mut codes = lock(&self.codes);
        let Some(at) = codes.iter().position(|(known, _)| constant_time_eq(known, code)) else {
            return Ok(None);
        };
        let (_, created_at) = codes.remove(at);
        drop(codes);
        if now.duration_since(created_at) > LINK_LIFE {
            return Ok(None);
        }
        store_secret(&mut lock(&self.pages), now).map(Some)
    }

    /// Returns true if a page with this secret is open.
    pub fn admits(&self, secret: &str, now: Instant) -> bool {
        let mut pages = lock(&self.pages);
        pages.retain(|(_, used)| now.duration_since(*used) <= PAGE_LIFE);
        let Some(page) = pages.iter_mut().find(|(known, _)| constant_time_eq(known, secret)) else {
            return false;
        };
        page.1 = now;
        true
    }
}

fn constant_time_eq(known: &str, given: &str) -> bool {
    known.as_bytes().ct_eq(given.as_bytes()).into()
}

fn store_secret(secrets: &mut Vec<(String, Instant)>, now: Instant) -> Result<String, Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|e| Failure::new(Reason::Internal, format!("cannot get random bytes: {e}")))?;
    let secret = hex::encode(bytes);
    if secrets.len() >= MAX_ENTRIES {
        secrets.remove(0);
    }
    secrets.push((secret.clone(), now));
    Ok(secret)
}

pub(crate) fn methods() -> Vec<Method> {
    let summary = "Creates a link that opens the viewer in a browser, once and within a minute.";
    let link = |cx: Caller, _: Empty| async move {
        let code = cx.api().links().create(Instant::now())?;
        Ok(ViewerLink { path: format!("/viewer#{code}"), expires_in_seconds: LINK_LIFE.as_secs() })
    };
    vec![Method::new("viewer.link", summary, link).detached(Right::Admin)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewer_link_is_valid_once_for_a_minute() {
        let links = Links::default();
        let now = Instant::now();
        let code = links.create(now).unwrap();
        assert_eq!(links.exchange("", now).unwrap(), None);
        assert_eq!(links.exchange(&code[1..], now).unwrap(), None);
        let secret = links.exchange(&code, now + LINK_LIFE).unwrap().unwrap();
        assert!(secret != code && links.admits(&secret, now));
        assert_eq!(links.exchange(&code, now).unwrap(), None);
        assert!(!links.admits(&code, now) && !links.admits("", now));
        let late = links.create(now).unwrap();
        assert_eq!(
            links.exchange(&late, now + LINK_LIFE + Duration::from_millis(1)).unwrap(),
            None
        );
        assert!(!links.admits(&secret, now + PAGE_LIFE * 2));
    }

    #[test]
    fn oldest_link_is_dropped_first() {
        let links = Links::default();
        let now = Instant::now();
        let codes: Vec<String> = (0..=MAX_ENTRIES).map(|_| links.create(now).unwrap()).collect();
        assert_eq!(links.exchange(&codes[0], now).unwrap(), None);
        assert!(links.exchange(&codes[1], now).unwrap().is_some());
    }
}
