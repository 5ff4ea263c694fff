//! Times in words and as cron expressions, and the changes of the clock.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use cairn_schedule::{Times, TimesError};
use jiff::Timestamp;

fn millis(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

fn text(millis: i64) -> String {
    Timestamp::from_millisecond(millis).unwrap().to_string()
}

/// The first `count` times after an instant, in UTC.
fn next(when: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let times = Times::parse(when, zone).unwrap();
    let mut at = millis(after);
    let mut all = Vec::new();
    for _ in 0..count {
        at = times.next_after(at).unwrap();
        all.push(text(at));
    }
    all
}

#[test]
fn words_become_cron_expressions() {
    for (when, cron) in [
        ("every weekday 7:00", "0 7 * * 1-5"),
        ("Every Weekday at 07:00", "0 7 * * 1-5"),
        ("weekdays 7am", "0 7 * * 1-5"),
        ("every day at 19.30", "30 19 * * *"),
        ("daily 12am", "0 0 * * *"),
        ("daily 12:15 pm", "15 12 * * *"),
        ("every day noon", "0 12 * * *"),
        ("every monday, thursday and sun 9:05", "5 9 * * 1,4,0"),
        ("on fridays at 17:00", "0 17 * * 5"),
        ("every weekend 10:00", "0 10 * * 0,6"),
        ("every month 6:00", "0 6 1 * *"),
        ("every month on day 15 at 6:00", "0 6 15 * *"),
        ("every hour", "0 * * * *"),
        ("every 15 minutes", "*/15 * * * *"),
        ("every 2 hours", "0 */2 * * *"),
        ("0  7 * * 1-5", "0 7 * * 1-5"),
    ] {
        assert_eq!(
            Times::parse(when, "UTC").map(|times| times.cron().to_owned()).as_deref(),
            Ok(cron),
            "{when}"
        );
    }
}

#[test]
fn unknown_words_and_impossible_times_are_refused() {
    for when in [
        "",
        "soon",
        "every weekday",
        "every weekday 7",
        "every weekday 25:00",
        "every weekday 7:60",
        "every weekday 13pm",
        "every weekday 7:00 except holidays",
        "every 7 minutes",
        "every 0 hours",
        "every month on day 32 at 6:00",
        "every second 7:00",
        "60 7 * * *",
        "0 7 * *",
        "* * * * * *",
        "0 7 31 2 *",
        "0 7 * * * Europe/Paris",
        &"1".repeat(300),
    ] {
        assert!(Times::parse(when, "UTC").is_err(), "{when}");
    }
    for zone in ["", "Mars/Olympus", "../../etc/passwd", "UTC; rm"] {
        let error = Times::parse("every day 7:00", zone).unwrap_err();
        assert!(matches!(error, TimesError::Zone(_)), "{zone}: {error}");
    }
}

#[test]
fn times_follow_the_clock_of_their_zone() {
    let table: &[(&str, &str, &str, &[&str])] = &[
        // 7:00 in Berlin is 6:00 in winter and 5:00 in summer; the weekend lies between.
        (
            "every weekday 7:00",
            "Europe/Berlin",
            "2026-03-26T12:00:00Z",
            &["2026-03-27T06:00:00Z", "2026-03-30T05:00:00Z"],
        ),
        // 2:30 does not exist on 29 March: it runs at 3:30.
        (
            "every day 2:30",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"],
        ),
        // 2:30 occurs twice on 25 October: it runs at the first.
        (
            "every day 2:30",
            "Europe/Berlin",
            "2026-10-24T12:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
        ),
        // From between the two, the next one is that of the day after.
        ("every day 2:30", "Europe/Berlin", "2026-10-25T00:45:00Z", &["2026-10-26T01:30:00Z"]),
        ("every day 2:30", "Europe/Berlin", "2026-10-25T01:10:00Z", &["2026-10-26T01:30:00Z"]),
        // Half an hour is skipped and repeated on Lord Howe Island.
        (
            "every day 2:15",
            "Australia/Lord_Howe",
            "2026-10-03T00:00:00Z",
            &["2026-10-03T15:45:00Z"],
        ),
        // An open hour runs in both equal hours, and not in the skipped one.
        (
            "every hour",
            "Europe/Berlin",
            "2026-10-24T23:30:00Z",
            &["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"],
        ),
        (
            "every hour",
            "Europe/Berlin",
            "2026-03-29T00:30:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"],
        ),
        ("every 15 minutes", "Asia/Kathmandu", "2026-01-01T00:01:00Z", &["2026-01-01T00:15:00Z"]),
        // A zone without changes, beyond the date line.
        (
            "every monday 0:00",
            "Pacific/Kiritimati",
            "2026-01-01T00:00:00Z",
            &["2026-01-04T10:00:00Z"],
        ),
        // A time is after itself.
        ("every day 7:00", "UTC", "2026-01-01T07:00:00Z", &["2026-01-02T07:00:00Z"]),
        // A leap day.
        ("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", &["2028-02-29T00:00:00Z"]),
    ];
    for (when, zone, after, expected) in table {
        assert_eq!(next(when, zone, after, expected.len()), *expected, "{when} {zone} {after}");
    }
}

#[test]
fn missed_times_are_counted_up_to_a_bound() {
    let times = Times::parse("every day 7:00", "UTC").unwrap();
    let from = millis("2026-01-01T07:00:00Z");
    assert_eq!(times.count(from, millis("2026-01-01T23:00:00Z")), 0);
    assert_eq!(times.count(from, millis("2026-01-04T07:00:00Z")), 3);
    let often = Times::parse("* * * * *", "UTC").unwrap();
    assert_eq!(often.count(from, millis("2027-01-01T07:00:00Z")), 1000);
}

#[test]
fn clocks_of_two_zones_agree_on_the_instant() {
    let paris = next("every day 7:00", "Europe/Paris", "2026-06-01T00:00:00Z", 1);
    let tokyo = next("every day 14:00", "Asia/Tokyo", "2026-06-01T00:00:00Z", 1);
    assert_eq!(paris, tokyo);
}
