//! Date and time of a session: told once and kept, so that the system text stays the same; told anew when the day is
//! another.

use cairn_protocol::time::Timestamp;

/// The time now, to the minute, in UTC.
pub fn now() -> String {
    let text = Timestamp::now().to_string();
    let date = text.get(..10).unwrap_or(&text);
    let time = text.get(11..16).unwrap_or("");
    format!("{date} {time} UTC").trim().to_owned()
}

/// What was kept when it is of today; else today's date.
pub fn today(kept: &str) -> String {
    let now = now();
    match (kept.get(..10), now.get(..10)) {
        (Some(then), Some(today)) if then != today => format!("{today}, some time after {kept}"),
        _ => kept.to_owned(),
    }
}
