//! Estimates how many tokens a language model reads for a text. The weights are a quantile
//! regression on the larger count of the tokenizers `cl100k_base` and `o200k_base`, over 40-line
//! blocks of source files of thirty repositories: 97 % of the blocks have at most the estimate,
//! which is 14 % above the count on average. A margin covers pages of rare words.

/// Hundredths of a token.
pub type Cost = u64;

/// Costs of a word of lower-case letters by its length: up to the given length.
const WORDS: [(usize, Cost); 6] = [(1, 74), (2, 121), (4, 85), (7, 96), (9, 153), (12, 172)];
/// Cost of a longer word, up to 13 letters, and of each further letter.
const LONG_WORD: (Cost, Cost) = (450, 30);
/// Cost of a run of capitals, and of each letter after the first.
const CAPITALS: (Cost, Cost) = (60, 35);
/// Cost of up to three digits.
const DIGITS: Cost = 203;
/// Costs of one, two and three characters of punctuation, and of each further one.
const PUNCTUATION: [Cost; 4] = [73, 88, 146, 40];
const NEWLINE: Cost = 113;
const TAB: Cost = 38;
/// Cost of several blanks, and of each further 16 of them.
const BLANKS: (Cost, Cost) = (103, 50);
/// Cost of a change between letters and digits.
const CHANGE: Cost = 30;
/// Factor in percent by which the tokens of a text are above its cost, for pages of rare words.
const MARGIN: Cost = 107;
/// Costs of a byte of a character outside ASCII: of two bytes, and of more.
const BYTE: [Cost; 2] = [95, 89];

/// The kinds of characters that form runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Blank,
    Newline,
    Other,
    Wide,
}

fn class(byte: u8) -> Class {
    match byte {
        b'a'..=b'z' => Class::Lower,
        b'A'..=b'Z' => Class::Upper,
        b'0'..=b'9' => Class::Digit,
        b' ' | b'\t' => Class::Blank,
        b'\n' | b'\r' => Class::Newline,
        0x80.. => Class::Wide,
        _ => Class::Other,
    }
}

/// The estimate of a text in hundredths. The sum over its lines is at least that of the text.
pub fn cost(text: &str) -> Cost {
    let bytes = text.as_bytes();
    let mut sum = 0;
    let mut at = 0;
    let mut previous = None;
    while at < bytes.len() {
        let start = at;
        let mut of = class(bytes[at]);
        at += 1;
        // A capital belongs to the word after it.
        if of == Class::Upper && bytes.get(at).is_some_and(|b| class(*b) == Class::Lower) {
            of = Class::Lower;
        }
        while at < bytes.len() && class(bytes[at]) == of {
            at += 1;
        }
        sum += run_cost(of, &bytes[start..at]);
        let letters = [Class::Lower, Class::Upper];
        let changes = match (previous, of) {
            (Some(Class::Digit), of) => letters.contains(&of),
            (Some(last), Class::Digit) => letters.contains(&last),
            _ => false,
        };
        sum += if changes { CHANGE } else { 0 };
        previous = Some(of);
    }
    sum
}

fn run_cost(of: Class, run: &[u8]) -> Cost {
    let length = run.len();
    let many = length as Cost;
    match of {
        Class::Lower => match WORDS.iter().find(|(longest, _)| length <= *longest) {
            Some((_, cost)) => *cost,
            None => LONG_WORD.0 + LONG_WORD.1 * (many - 13),
        },
        Class::Upper if length == 1 => WORDS[0].1,
        Class::Upper => CAPITALS.0 + CAPITALS.1 * (many - 1),
        Class::Digit => DIGITS * many.div_ceil(3),
        Class::Blank if length == 1 && run[0] == b'\t' => TAB,
        Class::Blank if length == 1 => 0,
        Class::Blank => BLANKS.0 + BLANKS.1 * (many / 16),
        Class::Newline => NEWLINE,
        Class::Other => PUNCTUATION[length.min(3) - 1] + PUNCTUATION[3] * many.saturating_sub(3),
        Class::Wide => many * BYTE[usize::from(run[0] >= 0xe0)],
    }
}

/// The estimate of a text in tokens, rounded up.
pub fn tokens(text: &str) -> u32 {
    to_tokens(cost(text))
}

/// The tokens of a cost with the margin, rounded up.
pub fn to_tokens(cost: Cost) -> u32 {
    u32::try_from((cost * MARGIN).div_ceil(10_000)).unwrap_or(u32::MAX)
}

/// The greatest cost that counts as at most this many tokens.
pub fn limit(tokens: u32) -> Cost {
    Cost::from(tokens) * 10_000 / MARGIN
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn runs_have_the_cost_of_their_class() {
        assert_eq!(cost(""), 0);
        assert_eq!(cost("fn main() {\n"), 121 + 85 + 88 + 73 + 113);
        assert_eq!(cost("HTTPServer x1"), 60 + 35 * 4 + 96 + 74 + 203 + 30);
        assert_eq!(tokens("a"), 1);
        assert_eq!((to_tokens(0), to_tokens(93), to_tokens(94)), (0, 1, 2));
        for tokens in [0, 1, 7, 200, 100_000] {
            assert!(to_tokens(limit(tokens)) <= tokens && to_tokens(limit(tokens) + 2) > tokens);
        }
    }

    proptest! {
        #[test]
        fn estimate_of_lines_covers_the_text(lines in prop::collection::vec("[ -~\t日é]{0,40}", 0..20)) {
            let text: String = lines.iter().map(|l| format!("{l}\n")).collect();
            let sum: Cost = lines.iter().map(|l| cost(&format!("{l}\n"))).sum();
            prop_assert!(sum >= cost(&text));
        }
    }

    /// The text files below a folder, sorted by path.
    fn texts(folder: &Path, all: &mut Vec<String>) {
        let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::path);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            if path.is_dir() && name != "target" && name != "node_modules" && name != ".git" {
                texts(&path, all);
            } else if path.is_file() && entry.metadata().unwrap().len() < 200_000 {
                // A list of rare words, one on a line, is no page of an answer.
                if path.extension().is_some_and(|e| e == "txt") {
                    continue;
                }
                all.extend(std::fs::read_to_string(&path));
            }
        }
    }

    #[test]
    fn pages_of_real_text_have_at_most_the_estimated_tokens() {
        let tokenizers = [tiktoken_rs::cl100k_base().unwrap(), tiktoken_rs::o200k_base().unwrap()];
        let mut all = Vec::new();
        texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs"), &mut all);
        texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../daemon/crates"), &mut all);
        let lines: Vec<&str> = all.iter().flat_map(|t| t.lines().step_by(7)).collect();
        let (mut pages, mut estimated, mut counted) = (0, 0, 0);
        // Every 5th of the pages, since counting is slow without optimisation.
        for page in lines.chunks(60).step_by(5) {
            let text: String =
                page.iter().flat_map(|l| l.chars().take(200).chain(['\n'])).collect();
            let real = tokenizers.iter().map(|t| t.encode_ordinary(&text).len()).max().unwrap();
            let estimate = tokens(&text) as usize;
            assert!(estimate >= real, "{estimate} < {real}: {text}");
            (pages, estimated, counted) = (pages + 1, estimated + estimate, counted + real);
        }
        assert!(pages > 50 && estimated * 100 < counted * 130, "{pages} {estimated} {counted}");
    }
}
