//! The times of a schedule: read from words or a cron expression, computed in a time zone.
//!
//! A time that the clock skips (the start of daylight saving time) runs as much later as the clock
//! was moved; a time that occurs twice (its end) runs once, at the first. Schedules with an open
//! hour (`every 15 minutes`, `0 * * * *`) run by the elapsed time instead, so in each of the two
//! equal hours.

mod words;

use cronexpr::Crontab;
use jiff::{
    Timestamp,
    civil::DateTime,
    tz::{TimeZone, TimeZoneDatabase},
};

/// Longest text of times, in bytes.
const MAX_TEXT: usize = 200;
/// Most candidates that are examined for one next time: of those in a repeated hour, all are past.
const MAX_CANDIDATES: usize = 256;
/// Most missed times that are counted.
const MAX_MISSED: u32 = 1000;

/// Reason why times cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimesError {
    /// The text is neither in words that are known, nor a cron expression.
    #[error(
        "'{0}' is not a time: write 'every weekday 7:00', 'every 2 hours', or a cron expression such as '0 7 * * 1-5'"
    )]
    Unreadable(String),
    /// The cron expression has a wrong field.
    #[error("'{text}' is not a cron expression: {reason}")]
    Cron {
        /// The expression, with escapes.
        text: String,
        /// The reason of the reader.
        reason: String,
    },
    /// No time zone of this name is known.
    #[error("'{0}' is not an IANA time zone, such as Europe/Paris")]
    Zone(String),
    /// There is no such time, as on 31 February.
    #[error("'{0}' never occurs")]
    Never(String),
}

/// The times of a schedule.
#[derive(Debug, Clone)]
pub struct Times {
    cron: String,
    zone: TimeZone,
    /// The expression on a clock without changes: each civil time is one instant.
    civil: Crontab,
    /// The expression in the zone itself; for schedules with an open hour.
    elapsed: Option<Crontab>,
}

impl Times {
    /// Reads times in words, or a cron expression of five fields, in a time zone.
    ///
    /// # Errors
    /// [`TimesError`] with the reason, for people.
    pub fn parse(when: &str, zone: &str) -> Result<Self, TimesError> {
        let escaped =
            || when.chars().take(MAX_TEXT).flat_map(char::escape_debug).collect::<String>();
        if when.len() > MAX_TEXT {
            return Err(TimesError::Unreadable(escaped()));
        }
        let cron = match words::to_cron(when) {
            Some(cron) => cron,
            None if words::is_cron(when) => when.split_whitespace().collect::<Vec<_>>().join(" "),
            None => return Err(TimesError::Unreadable(escaped())),
        };
        let unknown = |_| TimesError::Zone(zone.chars().flat_map(char::escape_debug).collect());
        let zone_found = TimeZoneDatabase::bundled().get(zone).map_err(unknown)?;
        let read = |zone: &str| {
            cronexpr::parse_crontab(&format!("{cron} {zone}")).map_err(|error| TimesError::Cron {
                text: escaped(),
                reason: error.to_string().lines().next().unwrap_or_default().to_owned(),
            })
        };
        let hour = cron.split(' ').nth(1).unwrap_or_default();
        let elapsed = if hour.starts_with('*') { Some(read(zone)?) } else { None };
        let times = Self { civil: read("UTC")?, elapsed, zone: zone_found, cron };
        match times.next_after(0) {
            Some(_) => Ok(times),
            None => Err(TimesError::Never(escaped())),
        }
    }

    /// Returns the times as a cron expression.
    pub fn cron(&self) -> &str {
        &self.cron
    }

    /// Returns the first time after `millis` (since the Unix epoch).
    pub fn next_after(&self, millis: i64) -> Option<i64> {
        let now = Timestamp::from_millisecond(millis).ok()?;
        if let Some(crontab) = &self.elapsed {
            let next = crontab.find_next(cronexpr::MakeTimestamp(now)).ok()?;
            return Some(next.timestamp().as_millisecond());
        }
        let mut from = now.to_zoned(self.zone.clone()).datetime();
        for _ in 0..MAX_CANDIDATES {
            let next = self.next_civil(from)?;
            let instant = self.zone.to_ambiguous_zoned(next).compatible().ok()?.timestamp();
            if instant > now {
                return Some(instant.as_millisecond());
            }
            from = next;
        }
        None
    }

    fn next_civil(&self, after: DateTime) -> Option<DateTime> {
        let floating = TimeZone::UTC.to_timestamp(after).ok()?;
        let next = self.civil.find_next(cronexpr::MakeTimestamp(floating)).ok()?;
        Some(next.datetime())
    }

    /// Renders an instant as date and time on the clock of the zone.
    pub fn local(&self, millis: i64) -> Option<String> {
        let zoned = Timestamp::from_millisecond(millis).ok()?.to_zoned(self.zone.clone());
        Some(zoned.strftime("%a %Y-%m-%d %H:%M").to_string())
    }

    /// Returns the number of times after `from` up to and including `to`, at most 1,000.
    pub fn count(&self, from: i64, to: i64) -> u32 {
        let mut count = 0;
        let mut at = from;
        while count < MAX_MISSED {
            match self.next_after(at) {
                Some(next) if next <= to => at = next,
                _ => break,
            }
            count += 1;
        }
        count
    }
}

/// Returns the IANA name of this machine's time zone; `UTC` if it has none.
pub fn system_zone() -> String {
    let zone = TimeZone::try_system().ok();
    zone.and_then(|zone| zone.iana_name().map(str::to_owned)).unwrap_or_else(|| "UTC".to_owned())
}
