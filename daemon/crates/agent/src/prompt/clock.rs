//! Date and time of a session: stored once, so that the system text stays the same; only a turn
//! that starts on another day adds that date.

use cairn_protocol::time::Timestamp;

/// Formats a time to the minute, in UTC.
pub fn minute(at: Timestamp) -> String {
    let text = at.to_string();
    let date = text.get(..10).unwrap_or(&text);
    let time = text.get(11..16).unwrap_or("");
    format!("{date} {time} UTC").trim().to_owned()
}

/// Returns the stored text if it is of the day of `at`; else the new date, followed by the stored
/// text.
pub fn today(stored: &str, at: Timestamp) -> String {
    let now = minute(at);
    match (stored.get(..10), now.get(..10)) {
        (Some(then), Some(today)) if then != today => format!("{today}, some time after {stored}"),
        _ => stored.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_is_updated_on_another_day() {
        let at = |text: &str| serde_json::from_value(serde_json::json!(text)).unwrap();
        let stored = minute(at("2026-11-22T23:50:00.000Z"));
        assert_eq!(stored, "2026-11-22 23:50 UTC");
        assert_eq!(today(&stored, at("2026-11-22T23:59:00.000Z")), stored);
        assert_eq!(
            today(&stored, at("2026-11-23T00:06:00.000Z")),
            "2026-11-23, some time after 2026-11-22 23:50 UTC"
        );
    }
}
