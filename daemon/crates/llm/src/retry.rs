//! Retries of failed attempts.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

use crate::LlmError;

/// Maximum wait before the next attempt.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Error of an attempt, and its retry rule.
#[derive(Debug)]
pub(crate) struct Failed {
    pub error: LlmError,
    pub retry: Retry,
}

/// Benefit of another attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// The next attempt would fail in the same way.
    No,
    /// Retry after a pause of the schedule.
    Backoff,
    /// Retry after the pause that the provider requests.
    After(Duration),
    /// Retry at once without fields that the server may not know; else as [`Retry::No`].
    WithoutOptional,
}

impl From<LlmError> for Failed {
    /// Classifies an error without an answer: interrupted and unavailable requests are retried; a
    /// timeout has taken long enough.
    fn from(error: LlmError) -> Self {
        let retry = match error {
            LlmError::Unavailable(_) | LlmError::RateLimited { .. } | LlmError::Cut(_) => {
                Retry::Backoff
            }
            _ => Retry::No,
        };
        Self { error, retry }
    }
}

/// Number of attempts and pauses between them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    /// Maximum number of attempts, at least 1.
    pub attempts: u32,
    /// Pause before the second attempt; it doubles each time.
    pub base: Duration,
}

impl Schedule {
    /// Returns the pause after attempt number `attempt` (from 1), or `None` when no other follows.
    /// `chance` in 0..=1 spreads clients that failed together.
    pub(crate) fn pause(&self, attempt: u32, retry: Retry, chance: f64) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        match retry {
            Retry::No | Retry::WithoutOptional => None,
            Retry::After(wait) => (wait <= LONGEST_WAIT).then_some(wait),
            Retry::Backoff => {
                let full = self
                    .base
                    .saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)))
                    .min(LONGEST_WAIT);
                Some(full / 2 + (full / 2).mul_f64(chance.clamp(0.0, 1.0)))
            }
        }
    }
}

/// Adds to an error why no other attempt follows, if the provider requests a wait that is too long.
pub(crate) fn explain_wait(failed: Failed) -> LlmError {
    match failed.retry {
        Retry::After(wait) if wait > LONGEST_WAIT => {
            let (wait, most) = (wait.as_secs(), LONGEST_WAIT.as_secs());
            let text = format!("; it requests a wait of {wait} s, and at most {most} s are waited");
            failed.error.map_text(|error| format!("{error}{text}"))
        }
        _ => failed.error,
    }
}

/// Returns a random number in 0..=1, or the middle if the system has no random numbers: it only
/// spreads load.
pub(crate) fn chance() -> f64 {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes)
        .map_or(0.5, |()| f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX))
}

/// Parses a provider's retry time: `retry-after-ms`, or `Retry-After` in seconds or as a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|t| t.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let after = text("retry-after")?;
    if let Ok(seconds) = after.parse::<f64>() {
        // A number too large for a duration still means a wait, longer than any that is accepted.
        return (seconds >= 0.0)
            .then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    let date = httpdate::parse_http_date(after).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_within_bounds_and_attempts_are_limited() {
        let schedule = Schedule { attempts: 12, base: Duration::from_millis(500) };
        for attempt in 1..12 {
            let full = Duration::from_millis(500 * 2_u64.pow(attempt - 1)).min(LONGEST_WAIT);
            assert_eq!(schedule.pause(attempt, Retry::Backoff, 0.0), Some(full / 2));
            assert_eq!(schedule.pause(attempt, Retry::Backoff, 1.0), Some(full));
        }
        assert_eq!(schedule.pause(12, Retry::Backoff, 0.0), None);
        assert_eq!(schedule.pause(1, Retry::No, 0.0), None);
        let endless = Schedule { attempts: u32::MAX, base: Duration::MAX };
        assert_eq!(endless.pause(u32::MAX - 1, Retry::Backoff, 1.0), Some(LONGEST_WAIT));
    }

    #[test]
    fn provider_wait_is_honoured_up_to_a_minute() {
        let schedule = Schedule { attempts: 3, base: Duration::from_millis(1) };
        for (seconds, wait) in [(0, true), (7, true), (60, true), (61, false), (u64::MAX, false)] {
            let requested = Duration::from_secs(seconds);
            assert_eq!(schedule.pause(1, Retry::After(requested), 0.5), wait.then_some(requested));
        }
        assert!((0.0..=1.0).contains(&chance()));
    }

    #[test]
    fn retry_after_is_parsed_in_all_forms() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        for (name, value, wait) in [
            ("retry-after", "7", Some(7_000)),
            ("retry-after", " 0 ", Some(0)),
            ("retry-after", "1.5", Some(1_500)),
            ("retry-after", "-1", None),
            ("retry-after", "soon", None),
            ("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT", Some(10_000)),
            ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("retry-after-ms", "250", Some(250)),
            ("x-other", "7", None),
        ] {
            let mut headers = HeaderMap::new();
            headers
                .insert(http::HeaderName::from_static(name), http::HeaderValue::from_static(value));
            assert_eq!(
                retry_after(&headers, now),
                wait.map(Duration::from_millis),
                "{name}: {value}"
            );
        }
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", http::HeaderValue::from_static("99999999999999999999999999"));
        assert!(retry_after(&headers, now).is_some_and(|wait| wait > LONGEST_WAIT));
    }
}
