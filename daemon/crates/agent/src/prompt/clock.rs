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
pub fn today(kept: &str, at: Timestamp) -> String {
    let now = minute(at);
    match (kept.get(..10), now.get(..10)) {
        (Some(then), Some(today)) if then != today => format!("{today}, some time after {kept}"),
        _ => kept.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_day_is_told_anew() {
        let at = |text: &str| serde_json::from_value(serde_json::json!(text)).unwrap();
        let kept = minute(at("2026-11-22T23:50:00.000Z"));
        assert_eq!(kept, "2026-11-22 23:50 UTC");
        assert_eq!(today(&kept, at("2026-11-22T23:59:00.000Z")), kept);
        assert_eq!(
            today(&kept, at("2026-11-23T00:06:00.000Z")),
            "2026-11-23, some time after 2026-11-22 23:50 UTC"
        );
    }
}
