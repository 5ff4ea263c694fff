//! Finding lines in a file: exactly, else without regard to white space, and never at one of
//! several positions.

use cairn_protocol::error::{Failure, Reason};

/// Most line numbers that an error lists.
const LISTED: usize = 8;
/// Most lines of the file that an error shows.
const LISTED_LINES: usize = 6;

/// Comparison of a line of the file with a searched one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    Exact,
    /// White space at the ends of lines does not count.
    TrimEnd,
    /// Only the order of words and signs counts.
    Words,
}

impl Rule {
    pub const ALL: [Self; 3] = [Self::Exact, Self::TrimEnd, Self::Words];

    pub fn is_same(self, line: &str, searched: &str) -> bool {
        match self {
            Self::Exact => line == searched,
            Self::TrimEnd => line.trim_end() == searched.trim_end(),
            Self::Words => line.split_whitespace().eq(searched.split_whitespace()),
        }
    }
}

/// Returns all positions, from line `from` on, where `searched` begins, by the first rule that has any.
pub fn positions(lines: &[&str], searched: &[&str], from: usize) -> (Vec<usize>, Rule) {
    for rule in Rule::ALL {
        // Blank lines alone would be found everywhere.
        if rule != Rule::Exact && searched.iter().all(|line| line.trim().is_empty()) {
            break;
        }
        let last = lines.len().saturating_sub(searched.len());
        let fits = |at: &usize| {
            let here = lines.get(*at..*at + searched.len());
            here.is_some_and(|here| here.iter().zip(searched).all(|(a, b)| rule.is_same(a, b)))
        };
        let found: Vec<usize> = (from..=last).filter(fits).collect();
        if !found.is_empty() {
            return (found, rule);
        }
    }
    (vec![], Rule::Exact)
}

/// Refuses a text that occurs at several positions, with their lines counted from 1.
pub fn ambiguous(what: &str, path: &str, positions: &[usize], way_out: &str) -> Failure {
    let lines: Vec<String> = positions.iter().take(LISTED).map(|at| (at + 1).to_string()).collect();
    let text = format!(
        "{what} occurs {} times in '{path}' (lines {}): {way_out}",
        positions.len(),
        lines.join(", ")
    );
    Failure::new(Reason::InvalidParams, text)
}

/// Refuses new lines that cannot be written in the form of the lines that they replace.
pub fn untranslatable(what: &str, path: &str, first: usize, lines: &[&str]) -> Failure {
    let excerpt: Vec<String> =
        lines.iter().take(LISTED_LINES).map(|line| format!("{:?}", clipped(line))).collect();
    let text = format!(
        "{what} matches lines {} to {} of '{path}' but for white space or letters, and the new text \
        has no unambiguous form there: write it as the file does, which has (\\t is a tab) {}",
        first + 1,
        first + lines.len(),
        excerpt.join(", ")
    );
    Failure::new(Reason::InvalidParams, text)
}

fn clipped(line: &str) -> String {
    line.chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strictest_rule_with_a_match_counts() {
        let lines = ["a", "  b ", "a ", "b", "a", "b"];
        assert_eq!(positions(&lines, &["a", "b"], 0), (vec![4], Rule::Exact));
        assert_eq!(positions(&lines, &["a", "b "], 0), (vec![2, 4], Rule::TrimEnd));
        assert_eq!(positions(&lines[..2], &["a", "b"], 0), (vec![0], Rule::Words));
        assert_eq!(positions(&lines, &["x"], 0), (vec![], Rule::Exact));
        assert_eq!(
            positions(&lines, &["a", "b", "c", "d", "e", "f", "g"], 0),
            (vec![], Rule::Exact)
        );
        assert_eq!(positions(&["", ""], &[" "], 0), (vec![], Rule::Exact));
    }
}
