//! Why a result was found, in a few words.

use cairn_protocol::search::Share;

/// Part of all that speaks for a result that a reason must have to be told.
const TELLING: f64 = 0.2;
/// Reasons told at most.
const MOST: usize = 3;

/// The reasons that count most, as in "name and meaning"; nothing when none are known.
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
            // A newer daemon may know more.
            _ => continue,
        };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, sum)) => *sum += share.share,
            None => reasons.push((reason, share.share)),
        }
    }
    let all: f64 = reasons.iter().map(|(_, sum)| sum).sum();
    reasons.sort_by(|a, b| b.1.total_cmp(&a.1));
    let told = reasons.iter().enumerate().filter(|(n, (_, sum))| *n == 0 || *sum >= TELLING * all);
    let told: Vec<&str> = told.take(MOST).map(|(_, (reason, _))| *reason).collect();
    match told.split_last() {
        None => String::new(),
        Some((only, [])) => (*only).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_most_is_told() {
        for (shares, want) in [
            (&[][..], ""),
            (&[("name", 0.4), ("meaning", 0.2), ("nameMeaning", 0.3), ("path", 0.1)], "meaning and name"),
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
            assert_eq!(why(&shares.iter().map(share).collect::<Vec<_>>()), want, "{shares:?}");
        }
    }
}
