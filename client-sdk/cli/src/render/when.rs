//! Times for people: in the user's time zone, as short as they are clear.

use cairn_protocol::time::Timestamp;
use jiff::{Zoned, tz::TimeZone};

/// Renders a time: the hour today, the day this year, else the date.
pub fn short(time: Timestamp) -> String {
    relative_to(time, &Zoned::now())
}

fn relative_to(time: Timestamp, now: &Zoned) -> String {
    let Some(zoned) = zoned(time, now.time_zone().clone()) else { return time.to_string() };
    let format = if zoned.date() == now.date() {
        "%H:%M"
    } else if zoned.year() == now.year() {
        "%b %e %H:%M"
    } else {
        "%Y-%m-%d"
    };
    format!("{:>12}", zoned.strftime(format).to_string())
}

/// Renders a time with its date and seconds.
pub fn long(time: Timestamp) -> String {
    match zoned(time, TimeZone::system()) {
        Some(zoned) => zoned.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        None => time.to_string(),
    }
}

fn zoned(time: Timestamp, zone: TimeZone) -> Option<Zoned> {
    Some(jiff::Timestamp::from_millisecond(time.0).ok()?.to_zoned(zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_and_local() {
        let zone = TimeZone::fixed(jiff::tz::offset(5));
        // 2023-11-14T22:13:20Z, which is the next day five hours to the east.
        let now = zoned(Timestamp(1_700_000_000_000), zone).unwrap();
        for (millis, expected) in [
            (1_700_000_000_000, "       03:13"),
            (1_699_900_000_000, "Nov 13 23:26"),
            (1_600_000_000_000, "  2020-09-13"),
        ] {
            assert_eq!(relative_to(Timestamp(millis), &now), expected);
        }
    }
}
