//! The reasons of a result in a few words.

use cairn_protocol::search::Share;

/// Minimum share of the score for a reason to be named.
const MIN_SHARE: f64 = 0.2;
/// Maximum number of reasons.
const MAX_REASONS: usize = 3;

/// Names the main reasons, as in "name and meaning"; empty if none are known.
pub fn why(shares: &[Share]) -> String {
    let exact = shares.iter().any(|s| s.feature == "exact" && s.share > 0.0);
    let mut reasons: Vec<(&str, f64)> = Vec::new();
    for share in shares.iter().filter(|s| s.share > 0.0) {
        let reason = match share.feature.as_str() {
            "exact" | "name" | "windowNames" | "nameMeaning" if exact => "exact name",
            "name" | "windowNames" => "name",
            "words" | "windowWords" => "words",
            "line" => "words in one line",
            "fileWords" => "words of its file",
            "path" => "path",
            "fileName" => "name of its file",
            "meaning" | "nameMeaning" | "rerank" => "meaning",
            "fileMeaning" => "meaning of its file",
            // A newer daemon may have other features.
            _ => continue,
        };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, sum)) => *sum += share.share,
            None => reasons.push((reason, share.share)),
        }
    }
    let all: f64 = reasons.iter().map(|(_, sum)| sum).sum();
    reasons.sort_by(|a, b| b.1.total_cmp(&a.1));
    let named =
        reasons.iter().enumerate().filter(|(n, (_, sum))| *n == 0 || *sum >= MIN_SHARE * all);
    let named: Vec<&str> = named.take(MAX_REASONS).map(|(_, (reason, _))| *reason).collect();
    match named.split_last() {
        None => String::new(),
        Some((only, [])) => (*only).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strongest_reasons_are_named() {
        for (shares, expected) in [
            (&[][..], ""),
            (
                &[("name", 0.4), ("meaning", 0.2), ("nameMeaning", 0.3), ("path", 0.1)],
                "meaning and name",
            ),
            (&[("name", 0.3), ("exact", 0.15), ("definition", -0.4)], "exact name"),
            (
                &[("windowWords", 0.3), ("words", 0.1), ("fileWords", 0.2), ("path", 0.2)],
                "words, words of its file and path",
            ),
            (
                &[("exact", 0.2), ("nameMeaning", 0.9), ("meaning", 0.6), ("size", 1.1)],
                "exact name and meaning",
            ),
            (&[("line", 0.8), ("windowWords", 0.5), ("path", 0.1)], "words in one line and words"),
            (&[("definition", -0.4)], ""),
            (&[("unheardOf", 3.0), ("path", 0.1)], "path"),
        ] {
            let share = |(feature, share): &(&str, f64)| Share {
                feature: (*feature).into(),
                value: 1.0,
                share: *share,
            };
            assert_eq!(why(&shares.iter().map(share).collect::<Vec<_>>()), expected, "{shares:?}");
        }
    }
}
