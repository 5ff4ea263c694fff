//! Scripts that are written without spaces between words: their runs become overlapping pairs of
//! characters, so that a part of a run is found without a dictionary.

/// Letters and marks of these scripts, as sorted ranges.
const UNSEGMENTED: [(char, char); 33] = [
    // Thai, Lao, Myanmar.
    ('\u{0E01}', '\u{0E3A}'),
    ('\u{0E40}', '\u{0E4E}'),
    ('\u{0E81}', '\u{0EBD}'),
    ('\u{0EC0}', '\u{0ECE}'),
    ('\u{0EDC}', '\u{0EDF}'),
    ('\u{1000}', '\u{103F}'),
    ('\u{1050}', '\u{109D}'),
    // Hangul letters.
    ('\u{1100}', '\u{11FF}'),
    // Khmer.
    ('\u{1780}', '\u{17D3}'),
    ('\u{17D7}', '\u{17D7}'),
    ('\u{17DC}', '\u{17DD}'),
    // Radicals, iteration marks and numerals of Han.
    ('\u{2E80}', '\u{2FD5}'),
    ('\u{3005}', '\u{3007}'),
    ('\u{3021}', '\u{3029}'),
    ('\u{3031}', '\u{3035}'),
    ('\u{3038}', '\u{303C}'),
    // Hiragana and Katakana.
    ('\u{3041}', '\u{3096}'),
    ('\u{3099}', '\u{309A}'),
    ('\u{309D}', '\u{309F}'),
    ('\u{30A1}', '\u{30FA}'),
    ('\u{30FC}', '\u{30FF}'),
    // Bopomofo, compatible Hangul letters, further Katakana.
    ('\u{3105}', '\u{312F}'),
    ('\u{3131}', '\u{318E}'),
    ('\u{31A0}', '\u{31BF}'),
    ('\u{31F0}', '\u{31FF}'),
    // Han.
    ('\u{3400}', '\u{4DBF}'),
    ('\u{4E00}', '\u{9FFF}'),
    // Hangul.
    ('\u{A960}', '\u{A97C}'),
    ('\u{AC00}', '\u{D7FB}'),
    // Compatible Han, half-width Katakana and Hangul.
    ('\u{F900}', '\u{FAFF}'),
    ('\u{FF66}', '\u{FFDC}'),
    // Historic Kana, and the planes of rare Han.
    ('\u{1AFF0}', '\u{1B16F}'),
    ('\u{20000}', '\u{3FFFD}'),
];

/// True for a letter or mark of a script without spaces between words.
pub fn is_unsegmented(c: char) -> bool {
    if c < UNSEGMENTED[0].0 {
        return false;
    }
    let at = UNSEGMENTED.partition_point(|(_, last)| *last < c);
    UNSEGMENTED.get(at).is_some_and(|(first, _)| *first <= c)
}

/// True for the pair of characters that a run of such a script is indexed by.
pub fn is_pair(word: &str) -> bool {
    let mut chars = word.chars();
    matches!((chars.next(), chars.next(), chars.next()), (Some(a), Some(b), None)
        if is_unsegmented(a) && is_unsegmented(b))
}

/// A part of a run of such a script, with its byte range in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Two adjacent characters, or the only one.
    Word(usize, usize),
    /// The first or the last of several characters: a query such as `第3` has only this one of them.
    Edge(usize, usize),
}

/// Calls `each` with the parts of a run, ordered by their start.
pub fn parts_of(run: &str, mut each: impl FnMut(Part)) {
    let mut chars = run.char_indices().map(|(at, c)| (at, at + c.len_utf8()));
    let Some(first) = chars.next() else { return };
    let mut before = first;
    for next in chars {
        if before == first {
            each(Part::Edge(first.0, first.1));
        }
        each(Part::Word(before.0, next.1));
        before = next;
    }
    each(if before == first {
        Part::Word(first.0, first.1)
    } else {
        Part::Edge(before.0, before.1)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_sorted_and_disjoint() {
        assert!(UNSEGMENTED.windows(2).all(|w| w[0].1 < w[1].0));
        assert!(UNSEGMENTED.iter().all(|(first, last)| first <= last));
    }

    #[test]
    fn scripts_without_spaces_are_recognised() {
        for c in "関係設計のカー々한글ไทยที่ລາວខ្មែរမြန်𠀀ｶﾞ".chars()
        {
            assert!(is_unsegmented(c), "{c:?}");
        }
        for c in "aZ09éßжλعא€।、。「」！１Ａ".chars() {
            assert!(!is_unsegmented(c), "{c:?}");
        }
        assert!(is_pair("関係") && !is_pair("関") && !is_pair("関係者") && !is_pair("ab"));
    }

    #[test]
    fn runs_have_pairs_and_their_edges() {
        let parts = |run: &str| {
            let mut all = Vec::new();
            parts_of(run, |part| {
                all.push(match part {
                    Part::Word(from, to) => run[from..to].to_owned(),
                    Part::Edge(from, to) => format!("({})", &run[from..to]),
                });
            });
            all.join(" ")
        };
        assert_eq!(parts("関係図"), "(関) 関係 係図 (図)");
        assert_eq!(parts("関係"), "(関) 関係 (係)");
        assert_eq!(parts("関"), "関");
        assert_eq!(parts(""), "");
    }
}
