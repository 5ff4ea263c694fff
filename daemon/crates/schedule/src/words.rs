//! Times in words. Every word must be understood: a wrong guess would run at the wrong time.

/// Days of the week by name, with their numbers in cron.
const DAYS: &[(&str, u8)] = &[
    ("sunday", 0),
    ("monday", 1),
    ("tuesday", 2),
    ("wednesday", 3),
    ("thursday", 4),
    ("friday", 5),
    ("saturday", 6),
];

/// Returns true if a text has the form of a cron expression.
pub fn is_cron(text: &str) -> bool {
    let fields: Vec<&str> = text.split_whitespace().collect();
    fields.len() == 5
        && fields[..2]
            .iter()
            .all(|field| field.starts_with(|c: char| c.is_ascii_digit() || c == '*'))
}

/// Returns the cron expression of times in words; `None` if any word is unknown.
pub fn to_cron(text: &str) -> Option<String> {
    let lower = text.to_lowercase().replace(',', " , ");
    let mut words: Vec<&str> = lower.split_whitespace().collect();
    let is_every = matches!(words.first(), Some(&"every" | &"each" | &"on"));
    if is_every {
        words.remove(0);
    }
    if let Some(interval) = interval(&words).filter(|_| is_every) {
        return Some(interval);
    }
    let (days, rest) = days(&words)?;
    let rest = rest.strip_prefix(&["at"]).unwrap_or(rest);
    let (hour, minute) = time_of_day(rest)?;
    Some(format!("{minute} {hour} {days}"))
}

/// Reads `hour`, `15 minutes`, `2 hours`. An interval must divide an hour or a day, because cron
/// starts over at each.
fn interval(words: &[&str]) -> Option<String> {
    let (number, unit) = match words {
        [unit] => (1, *unit),
        [number, unit] => (number.parse::<u32>().ok()?, *unit),
        _ => return None,
    };
    match unit {
        "minute" | "minutes" if number == 1 => Some("* * * * *".to_owned()),
        "minute" | "minutes" if number > 1 && number < 60 && 60 % number == 0 => {
            Some(format!("*/{number} * * * *"))
        }
        "hour" | "hours" if number == 1 => Some("0 * * * *".to_owned()),
        "hour" | "hours" if number > 1 && number < 24 && 24 % number == 0 => {
            Some(format!("0 */{number} * * *"))
        }
        _ => None,
    }
}

/// Reads the days, as the last three fields of cron, and returns the words after them.
fn days<'a, 'b>(words: &'a [&'b str]) -> Option<(String, &'a [&'b str])> {
    let (first, rest) = words.split_first()?;
    match *first {
        "day" | "daily" => return Some(("* * *".to_owned(), rest)),
        "weekday" | "weekdays" => return Some(("* * 1-5".to_owned(), rest)),
        "weekend" | "weekends" => return Some(("* * 0,6".to_owned(), rest)),
        "month" => {
            let (day, rest) = match rest {
                ["on", "day", day, rest @ ..] => (day.parse::<u8>().ok()?, rest),
                rest => (1, rest),
            };
            return (1..=31).contains(&day).then(|| (format!("{day} * *"), rest));
        }
        _ => {}
    }
    let mut numbers = Vec::new();
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        match *word {
            "," | "and" if !numbers.is_empty() => rest = after,
            word => match day(word) {
                Some(number) => {
                    numbers.push(number.to_string());
                    rest = after;
                }
                None => break,
            },
        }
    }
    (!numbers.is_empty()).then(|| (format!("* * {}", numbers.join(",")), rest))
}

/// Reads `monday`, `mondays` or `mon`.
fn day(word: &str) -> Option<u8> {
    let word = if word.len() > 4 { word.strip_suffix('s').unwrap_or(word) } else { word };
    let named =
        |(name, _): &&(&str, u8)| *name == word || (word.len() == 3 && name.starts_with(word));
    DAYS.iter().find(named).map(|(_, number)| *number)
}

/// Reads `7:00`, `07:00`, `19.30`, `7am`, `7:30 pm`, `noon`, `midnight`.
fn time_of_day(words: &[&str]) -> Option<(u8, u8)> {
    let text = match words {
        ["noon"] => return Some((12, 0)),
        ["midnight"] => return Some((0, 0)),
        [time] => (*time).to_owned(),
        [time, half @ ("am" | "pm")] => format!("{time}{half}"),
        _ => return None,
    };
    let half = ["am", "pm"].into_iter().find(|half| text.ends_with(half));
    let digits = half.map_or(text.as_str(), |half| text.trim_end_matches(half));
    let (hour, minute) = match digits.split_once([':', '.']) {
        Some((hour, minute)) if minute.len() == 2 => (hour, minute),
        Some(_) => return None,
        // A lone number is ambiguous without its half of the day.
        None if half.is_some() => (digits, "00"),
        None => return None,
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(hour) || !is_number(minute) {
        return None;
    }
    let (hour, minute) = (hour.parse::<u8>().ok()?, minute.parse::<u8>().ok()?);
    let hour = match half {
        None => hour,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some("am") => hour % 12,
        Some(_) => hour % 12 + 12,
    };
    (hour < 24 && minute < 60).then_some((hour, minute))
}
