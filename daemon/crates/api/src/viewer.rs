//! Links that open the viewer, each valid once and for a minute. A page that used one has its own
//! secret, never the daemon's.

use std::{
    sync::{Arc, Mutex},
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
/// Time without a connection after which a page needs another link.
const PAGE_LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// Maximum number of stored links and of stored pages; the oldest is dropped first, and pages that
/// are connected last.
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
    pages: Arc<Mutex<Vec<Page>>>,
}

struct Page {
    secret: String,
    /// Time of the exchange, or of the end of the latest connection.
    used: Instant,
    connections: u32,
}

/// A connection of a page, whose secret stays valid while it is open.
pub struct PageConnection {
    pages: Arc<Mutex<Vec<Page>>>,
    secret: String,
}

impl Drop for PageConnection {
    fn drop(&mut self) {
        if let Some(page) = lock(&self.pages).iter_mut().find(|p| p.secret == self.secret) {
            page.connections = page.connections.saturating_sub(1);
            page.used = Instant::now();
        }
    }
}

impl Links {
    /// Creates a code.
    ///
    /// # Errors
    /// `internal` when the system supplies no randomness.
    pub fn create(&self, now: Instant) -> Result<String, Failure> {
        let code = random_secret()?;
        let mut codes = lock(&self.codes);
        if codes.len() >= MAX_ENTRIES {
            codes.remove(0);
        }
        codes.push((code.clone(), now));
        Ok(code)
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
        let secret = random_secret()?;
        let mut pages = lock(&self.pages);
        if pages.len() >= MAX_ENTRIES {
            let closed = pages.iter().position(|page| page.connections == 0);
            pages.remove(closed.unwrap_or(0));
        }
        pages.push(Page { secret: secret.clone(), used: now, connections: 0 });
        Ok(Some(secret))
    }

    /// Admits a connection of the page with this secret; `None` when there is no such page, or it
    /// was closed for too long.
    pub fn connect(&self, secret: &str, now: Instant) -> Option<PageConnection> {
        let mut pages = lock(&self.pages);
        pages.retain(|page| page.connections > 0 || now.duration_since(page.used) <= PAGE_LIFE);
        let page = pages.iter_mut().find(|page| constant_time_eq(&page.secret, secret))?;
        page.connections += 1;
        page.used = now;
        let secret = page.secret.clone();
        Some(PageConnection { pages: Arc::clone(&self.pages), secret })
    }
}

fn constant_time_eq(known: &str, given: &str) -> bool {
    known.as_bytes().ct_eq(given.as_bytes()).into()
}

fn random_secret() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|e| Failure::new(Reason::Internal, format!("cannot get random bytes: {e}")))?;
    Ok(hex::encode(bytes))
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
        assert!(secret != code && links.connect(&secret, now).is_some());
        assert_eq!(links.exchange(&code, now).unwrap(), None);
        assert!(links.connect(&code, now).is_none() && links.connect("", now).is_none());
        let late = links.create(now).unwrap();
        assert_eq!(
            links.exchange(&late, now + LINK_LIFE + Duration::from_millis(1)).unwrap(),
            None
        );
        assert!(links.connect(&secret, now + PAGE_LIFE * 2).is_none());
    }

    #[test]
    fn open_page_outlives_its_time_limit_and_newer_pages() {
        let links = Links::default();
        let now = Instant::now();
        let open = |links: &Links| {
            let code = links.create(now).unwrap();
            links.exchange(&code, now).unwrap().unwrap()
        };
        let (connected, closed) = (open(&links), open(&links));
        let day = now + PAGE_LIFE * 2;
        let connection = links.connect(&connected, now).unwrap();
        for _ in 0..MAX_ENTRIES - 1 {
            open(&links);
        }
        assert!(links.connect(&closed, now).is_none());
        // A second connection of the same page, such as a reconnection, a day later.
        drop(links.connect(&connected, day).expect("the page is open"));
        drop(connection);
        assert!(links.connect(&connected, Instant::now()).is_some());
        assert!(links.connect(&connected, day + PAGE_LIFE * 2).is_none());
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
