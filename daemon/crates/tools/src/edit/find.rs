//! Finding lines in a file: exactly, else without regard to white space, and never at one of
//! several positions.

use cairn_protocol::error::{Failure, Reason};

/// Most line numbers that an error lists.
const LISTED: usize = 8;

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

/// Returns `new` with the indentation of the file, if every line of `old` differs from the file's
/// by the same indentation.
pub fn reindented(file: &[&str], old: &[&str], new: &[&str]) -> Vec<String> {
    let indent = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
    let full = |(a, b): &(&&str, &&str)| !a.trim().is_empty() && !b.trim().is_empty();
    let mut pairs = file.iter().zip(old).filter(full);
    let unchanged = || new.iter().map(|line| (*line).to_owned()).collect();
    let Some((first_file, first_old)) = pairs.next() else { return unchanged() };
    let (to, from) = (indent(first_file), indent(first_old));
    let moved = |line: &str| line.strip_prefix(from.as_str()).map(|rest| format!("{to}{rest}"));
    let is_constant = pairs.all(|(a, b)| moved(b).is_some_and(|moved| indent(&moved) == indent(a)));
    if !is_constant {
        return unchanged();
    }
    let fitted = |line: &&str| match line.trim().is_empty() {
        true => String::new(),
        false => moved(line).unwrap_or_else(|| (*line).to_owned()),
    };
    new.iter().map(fitted).collect()
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

    #[test]
    fn constant_difference_of_indentation_is_applied() {
        let file = ["    if x {", "        y();"];
        let new = ["if x {", "    z();", "", "}"];
        assert_eq!(
            reindented(&file, &["if x {", "    y();"], &new),
            ["    if x {", "        z();", "", "    }"]
        );
        // Tabs for spaces are no constant difference.
        assert_eq!(reindented(&file, &["if x {", "\ty();"], &new), new);
    }
}
