//! The tokenizer: one pass over the bytes yields the words of lexical search and those of the
//! embedding table.
//!
//! Embedding words are the matches of `[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+` in ASCII text,
//! lower-cased (the definition of the model card). Lexical words are the same parts if they have at
//! least two bytes, stemmed; in addition each run that mixes letters and digits (`utf8`, `h2`),
//! unsplit words of other scripts, and pairs of characters of scripts without spaces.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::scripts::{self, Part};
use crate::simd;

/// Maximum bytes of a word; longer ones are cut. No word of a table is longer.
pub const MAX_WORD: usize = 64;
/// Maximum bytes of a mixed run of letters and digits that is a word by itself.
const MAX_MIXED: usize = 16;

const SEPARATOR: u8 = 0;
const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 3;
const NON_ASCII: u8 = 4;

const CLASS: [u8; 256] = {
    let mut table = [SEPARATOR; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            128.. => NON_ASCII,
            _ => SEPARATOR,
        };
        byte += 1;
    }
    table
};

/// True if a byte belongs to a run: a letter, a digit, or part of a non-ASCII character.
#[inline]
pub fn is_letter_or_digit(byte: u8) -> bool {
    CLASS[byte as usize] != SEPARATOR
}

/// A receiver of words, which are lower-cased and cut to [`MAX_WORD`] bytes.
pub trait Sink {
    /// Receives a word of lexical search, not yet stemmed, with its byte range in the text.
    fn lexical(&mut self, word: &[u8], start: usize, end: usize);
    /// Receives the first and last character of a run of a script without spaces. They are words
    /// of a text, so that a query with one character of the run finds it, but not of a query.
    fn edge(&mut self, _word: &[u8], _start: usize, _end: usize) {}
    /// Receives a word for the embedding table.
    fn embed(&mut self, word: &[u8]);
}

/// Splits `text` into words. Invalid UTF-8 separates words.
pub fn scan(text: &[u8], sink: &mut impl Sink) {
    spans(text, |start, end| {
        let run = &text[start..end];
        let classes = run.iter().fold(0u8, |classes, b| classes | 1 << CLASS[*b as usize]);
        if classes & (1 << NON_ASCII) == 0 {
            ascii_run(run, start, classes, sink, true);
        } else {
            unicode_run(run, start, sink);
        }
    });
}

/// Calls `each` with every run of letters, digits and non-ASCII bytes, and its [`key`]. The words
/// that [`each_lexical`] yields for a text are those of its runs in sequence.
#[inline]
pub fn runs<'a>(text: &'a [u8], mut each: impl FnMut(&'a [u8], u128)) {
    spans(text, |start, end| each(&text[start..end], key(text, start, end - start)));
}

/// Calls `each` with the start and end of every run.
#[inline]
fn spans(text: &[u8], mut each: impl FnMut(usize, usize)) {
    let (blocks, rest) = text.as_chunks::<64>();
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    // The last block is padded with separators, so that every run ends.
    let (mut start, mut previous, mut offset_base) = (0, 0, 0);
    for block in blocks.iter().chain(std::iter::once(&last)) {
        let letters = simd::letters(block);
        let mut edges = letters ^ (letters << 1 | previous);
        previous = letters >> 63;
        while edges != 0 {
            let bit = edges.trailing_zeros();
            edges &= edges - 1;
            if letters >> bit & 1 == 1 {
                start = offset_base + bit as usize;
            } else {
                each(start, offset_base + bit as usize);
            }
        }
        offset_base += 64;
    }
}

/// The first sixteen bytes of `text[start..][..len]` as a number, padded with zeros.
#[inline]
fn key(text: &[u8], start: usize, len: usize) -> u128 {
    let key_bytes = match text[start..].first_chunk::<16>() {
        Some(bytes) => u128::from_le_bytes(*bytes),
        None => {
            let mut bytes = [0; 16];
            let rest = &text[start..];
            bytes[..rest.len()].copy_from_slice(rest);
            u128::from_le_bytes(bytes)
        }
    };
    if len >= 16 { key_bytes } else { key_bytes & ((1 << (8 * len)) - 1) }
}

/// Splits a run of ASCII letters and digits; its parts are embedding words too if `with_embedding`.
fn ascii_run(
    run: &[u8],
    offset_base: usize,
    classes: u8,
    sink: &mut impl Sink,
    with_embedding: bool,
) {
    let mut buffer = [0u8; MAX_WORD];
    let mixed = classes & (1 << DIGIT) != 0 && classes & ((1 << LOWER) | (1 << UPPER)) != 0;
    if mixed && run.len() <= MAX_MIXED {
        // First, so that words are ordered by their start.
        sink.lexical(lower(run, &mut buffer), offset_base, offset_base + run.len());
    }
    parts(run, |start, end| {
        let word = lower(&run[start..end], &mut buffer);
        if word.len() > 1 {
            sink.lexical(word, offset_base + start, offset_base + end);
        }
        if with_embedding {
            sink.embed(word);
        }
    });
}

/// Splits a run with non-ASCII bytes: its ASCII pieces are embedding words, its Unicode words
/// lexical words.
fn unicode_run(run: &[u8], offset_base: usize, sink: &mut impl Sink) {
    let mut buffer = [0u8; MAX_WORD];
    for piece in run.split(|b| !b.is_ascii()) {
        parts(piece, |start, end| sink.embed(lower(&piece[start..end], &mut buffer)));
    }
    let mut offset = offset_base;
    for piece in run.utf8_chunks() {
        let text = piece.valid();
        let mut rest = text.char_indices().peekable();
        while let Some((start, first)) = rest.next() {
            let Some(is_spaced) = is_spaced_letter(first) else { continue };
            let mut end = start + first.len_utf8();
            while let Some((_, c)) = rest.next_if(|(_, c)| is_spaced_letter(*c) == Some(is_spaced))
            {
                end += c.len_utf8();
            }
            let word = &text[start..end];
            if is_spaced {
                unicode_word(word, offset + start, sink);
            } else {
                unsegmented_run(word, offset + start, sink);
            }
        }
        offset += text.len() + piece.invalid().len();
    }
}

/// True for a letter or digit of a script with spaces between words, false for one of a script
/// without; `None` for other characters.
#[inline]
fn is_spaced_letter(c: char) -> Option<bool> {
    if scripts::is_unsegmented(c) { Some(false) } else { c.is_alphanumeric().then_some(true) }
}

fn unsegmented_run(run: &str, offset_base: usize, sink: &mut impl Sink) {
    scripts::parts_of(run, |part| match part {
        Part::Word(from, to) => {
            sink.lexical(&run.as_bytes()[from..to], offset_base + from, offset_base + to);
        }
        Part::Edge(from, to) => {
            sink.edge(&run.as_bytes()[from..to], offset_base + from, offset_base + to);
        }
    });
}

fn unicode_word(word: &str, offset_base: usize, sink: &mut impl Sink) {
    if word.is_ascii() {
        let classes = word.bytes().fold(0, |classes, b| classes | 1 << CLASS[b as usize]);
        return ascii_run(word.as_bytes(), offset_base, classes, sink, false);
    }
    let mut small = word.to_lowercase();
    let mut cut = small.len().min(MAX_WORD);
    while !small.is_char_boundary(cut) {
        cut -= 1;
    }
    small.truncate(cut);
    sink.lexical(small.as_bytes(), offset_base, offset_base + word.len());
}

/// Splits an identifier into parts; the last letter of an upper-case run belongs to lower-case
/// letters after it.
fn parts(run: &[u8], mut part: impl FnMut(usize, usize)) {
    let class = |i: usize| run.get(i).map_or(SEPARATOR, |b| CLASS[*b as usize]);
    let mut at = 0;
    while at < run.len() {
        let start = at;
        let first = class(at);
        while class(at) == first {
            at += 1;
        }
        if first == UPPER && class(at) == LOWER {
            let head = at - 1;
            if head > start {
                part(start, head);
            }
            while class(at) == LOWER {
                at += 1;
            }
            part(head, at);
        } else {
            part(start, at);
        }
    }
}

fn lower<'a>(word: &[u8], buffer: &'a mut [u8; MAX_WORD]) -> &'a [u8] {
    let len = word.len().min(MAX_WORD);
    for (to, from) in buffer.iter_mut().zip(word) {
        *to = from.to_ascii_lowercase();
    }
    &buffer[..len]
}

/// Calls `each` with the stem and byte range of every lexical word of `text`.
pub fn each_lexical(text: &[u8], each: impl FnMut(Stem, usize, usize)) {
    struct Each<F>(F);
    impl<F: FnMut(Stem, usize, usize)> Sink for Each<F> {
        fn lexical(&mut self, word: &[u8], start: usize, end: usize) {
            (self.0)(stemmed(word), start, end);
        }
        fn edge(&mut self, word: &[u8], start: usize, end: usize) {
            (self.0)(stemmed(word), start, end);
        }
        fn embed(&mut self, _: &[u8]) {}
    }
    scan(text, &mut Each(each));
}

/// Calls `each` with the stem of every word of a query: as [`each_lexical`], without the single
/// characters at the edges of runs in scripts without spaces.
pub fn each_query_word(query: &str, each: impl FnMut(Stem)) {
    struct Each<F>(F);
    impl<F: FnMut(Stem)> Sink for Each<F> {
        fn lexical(&mut self, word: &[u8], _: usize, _: usize) {
            (self.0)(stemmed(word));
        }
        fn embed(&mut self, _: &[u8]) {}
    }
    scan(query.as_bytes(), &mut Each(each));
}

/// Distinct stems of a query, in order.
pub fn query_stems(query: &str) -> Vec<Stem> {
    let mut stems: Vec<Stem> = Vec::new();
    let mut seen: HashSet<Stem> = HashSet::new();
    each_query_word(query, |stem| {
        if seen.insert(stem) {
            stems.push(stem);
        }
    });
    stems
}

/// True if `text` has a word of another script than Latin, without a letter or digit of ASCII. The
/// embedding table knows no part of such a word.
pub fn has_unknown_script(text: &str) -> bool {
    let is_latin = |c: char| c < '\u{370}' || ('\u{1E00}'..='\u{1EFF}').contains(&c);
    text.split(|c: char| is_spaced_letter(c).is_none())
        .any(|word| !word.chars().any(|c| c.is_ascii()) && !word.chars().all(is_latin))
}

/// A stem, stored inline.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stem {
    bytes: [u8; MAX_WORD],
    len: u8,
}

impl std::ops::Deref for Stem {
    type Target = str;
    fn deref(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len as usize]).unwrap_or("")
    }
}

impl std::fmt::Debug for Stem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_char('"')?;
        f.write_str(self)?;
        f.write_char('"')
    }
}

/// The stem of a lower-case word. Plural endings, `-ed`, `-ing`, a final `e` and some noun endings
/// are removed, so that `parse`, `parses`, `parsing` and `parsed` have the same stem. Words with
/// other than ASCII letters are not changed.
pub fn stemmed(word: &[u8]) -> Stem {
    let mut stem = Stem { bytes: [0; MAX_WORD], len: word.len().min(MAX_WORD) as u8 };
    stem.bytes[..stem.len as usize].copy_from_slice(&word[..stem.len as usize]);
    if word.len() < 4 || !word[word.len() - 1].is_ascii_lowercase() || !word.is_ascii() {
        return stem;
    }
    plural(&mut stem);
    for (ending, with) in [("ization", "ize"), ("izer", "ize"), ("ation", "ate"), ("ator", "ate")] {
        if stem.cut(ending, 3) {
            stem.push(with);
            break;
        }
    }
    if !stem.cut_if_vowel("ing") {
        stem.cut_if_vowel("ed");
    }
    if stem.len > 3 && stem.ends(b"e") {
        stem.len -= 1;
    }
    if stem.len > 3 && stem.ends(b"y") {
        stem.bytes[stem.len as usize - 1] = b'i';
    }
    stem
}

fn plural(stem: &mut Stem) {
    let ies = stem.ends(b"ies") && stem.len > 4;
    if ies || ["sses", "xes", "ches", "shes"].iter().any(|e| stem.ends(e.as_bytes())) {
        stem.len -= 2;
    } else if stem.ends(b"s") && !stem.ends(b"ss") && !stem.ends(b"us") && !stem.ends(b"is") {
        stem.len -= 1;
    }
}

impl Stem {
    fn ends(&self, ending: &[u8]) -> bool {
        self.bytes[..self.len as usize].ends_with(ending)
    }

    fn cut(&mut self, ending: &str, min_stem: usize) -> bool {
        let fits = self.len as usize >= ending.len() + min_stem && self.ends(ending.as_bytes());
        if fits {
            self.len -= ending.len() as u8;
        }
        fits
    }

    fn push(&mut self, text: &str) {
        for byte in text.bytes() {
            self.bytes[self.len as usize] = byte;
            self.len += 1;
        }
    }

    /// Removes `ending` if a vowel precedes it; a doubled consonant before it is reduced to one.
    fn cut_if_vowel(&mut self, ending: &str) -> bool {
        let Some(rest) = (self.len as usize).checked_sub(ending.len()) else { return false };
        let vowel = self.bytes[..rest].iter().any(|b| b"aeiouy".contains(b));
        if !vowel || rest < 3 || !self.cut(ending, 3) {
            return false;
        }
        let (last, before) = (self.bytes[rest - 1], self.bytes[rest - 2]);
        if last == before && !b"aeioulsz".contains(&last) {
            self.len -= 1;
        }
        true
    }
}

/// Stems of the most common English words, which do not discriminate; sorted.
const STOP_WORDS: [&str; 67] = [
    "about", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by",
    "can", "do", "doe", "each", "for", "from", "ha", "has", "hav", "have", "how", "if", "in",
    "into", "is", "it", "its", "no", "not", "of", "on", "one", "or", "other", "out", "should",
    "so", "som", "some", "such", "that", "the", "thei", "their", "them", "then", "ther", "there",
    "thes", "they", "this", "to", "was", "we", "what", "when", "wher", "where", "which", "will",
    "with", "would", "you", "your",
];

/// True for a stem of the most common English words.
pub fn is_stop_word(stem: &str) -> bool {
    STOP_WORDS.binary_search(&stem).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexical_and_embedding_words(text: &str) -> (Vec<String>, Vec<String>) {
        struct Two(Vec<String>, Vec<String>);
        impl Sink for Two {
            fn lexical(&mut self, word: &[u8], _: usize, _: usize) {
                self.0.push(String::from_utf8(word.to_vec()).unwrap());
            }
            fn embed(&mut self, word: &[u8]) {
                self.1.push(String::from_utf8(word.to_vec()).unwrap());
            }
        }
        let mut two = Two(vec![], vec![]);
        scan(text.as_bytes(), &mut two);
        (two.0, two.1)
    }

    #[test]
    fn embedding_words_match_the_model_card() {
        for (text, words) in [
            ("ABCd", "ab cd"),
            ("FOObar", "fo obar"),
            ("ABß", "ab"),
            ("a1B2", "a 1 b 2"),
            ("HTTPServer2_main", "http server 2 main"),
            ("naïveCase x", "na ve case x"),
            ("", ""),
        ] {
            assert_eq!(lexical_and_embedding_words(text).1.join(" "), words, "{text}");
        }
    }

    #[test]
    fn lexical_words_include_other_scripts_and_mixed_runs() {
        for (text, words) in [
            ("readFile", "read file"),
            ("utf8 h2 x", "utf8 utf h2"),
            ("Größe der naïveCase", "größe der naïvecase"),
            ("don’t—fooBar", "don foo bar"),
            ("日本 語", "日本 語"),
            ("関係データベース", "関係 係デ デー ータ タベ ベー ース"),
            ("配置API参数v2说明", "配置 api 参数 v2 说明"),
            ("사용자 설정을", "사용 용자 설정 정을"),
            ("Привет κόσμε ΑΒΓ", "привет κόσμε αβγ"),
            ("größe日本", "größe 日本"),
        ] {
            assert_eq!(lexical_and_embedding_words(text).0.join(" "), words, "{text}");
        }
    }

    #[test]
    fn part_of_an_unsegmented_run_has_only_words_of_the_text() {
        let text = "読み込み設定を変更する（第3章：ログ）。ตั้งค่าที่อยู่ 한국어문서 utf8编码";
        let mut words_of_text = Vec::new();
        each_lexical(text.as_bytes(), |stem, start, end| {
            assert!(text.is_char_boundary(start) && text.is_char_boundary(end));
            words_of_text.push(stem);
        });
        let chars: Vec<char> = text.chars().collect();
        for length in 2..=4 {
            for part in chars.windows(length) {
                let part: String = part.iter().collect();
                // A part of a word with spaces is no word.
                let is_cut = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
                if is_cut(part.chars().next()) || is_cut(part.chars().last()) {
                    continue;
                }
                let stems = query_stems(&part);
                assert!(!stems.is_empty() || part.chars().all(|c| is_spaced_letter(c).is_none()));
                assert!(stems.iter().all(|stem| words_of_text.contains(stem)), "{part} {stems:?}");
            }
        }
    }

    #[test]
    fn unknown_scripts_are_words_without_ascii() {
        for (text, is_unknown) in [
            ("read file", false),
            ("naïve größe à", false),
            ("关系", true),
            ("parse 関係", true),
            ("конфигурация", true),
            ("?! — 。", false),
            ("", false),
        ] {
            assert_eq!(has_unknown_script(text), is_unknown, "{text}");
        }
    }

    #[test]
    fn forms_of_a_word_share_a_stem() {
        for forms in [
            vec!["parse", "parses", "parsed", "parsing"],
            vec!["index", "indexes", "indexing", "indexed"],
            vec!["query", "queries"],
            vec!["run", "runs", "running"],
            vec!["tokenize", "tokenizer", "tokenization"],
            vec!["match", "matches", "matching"],
        ] {
            let stems: Vec<_> = forms.iter().map(|f| stemmed(f.as_bytes()).to_string()).collect();
            assert!(stems.iter().all(|s| *s == stems[0]), "{stems:?}");
        }
        assert_eq!(&*stemmed(b"class"), "class");
        assert_eq!(&*stemmed(b"bus"), "bus");
    }

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
        assert!(is_stop_word("the") && !is_stop_word("parse"));
    }

    proptest::proptest! {
        #[test]
        fn words_of_arbitrary_bytes_have_ascending_ranges_within_the_text(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            let mut before = 0;
            each_lexical(&bytes, |stem, start, end| {
                assert!(before <= start);
                before = start;
                assert!(start < end && end <= bytes.len() && !stem.is_empty());
            });
            let mut split = bytes.split(|b| !is_letter_or_digit(*b)).filter(|run| !run.is_empty());
            runs(&bytes, |run, _| assert_eq!(Some(run), split.next()));
            assert_eq!(split.next(), None);
            let (mut by_text, mut by_run) = (Vec::new(), Vec::new());
            each_lexical(&bytes, |stem, _, _| by_text.push(stem));
            runs(&bytes, |run, key| {
                let mut start = [0; 16];
                start[..run.len().min(16)].copy_from_slice(&run[..run.len().min(16)]);
                assert_eq!(key, u128::from_le_bytes(start));
                each_lexical(run, |stem, _, _| by_run.push(stem));
            });
            assert_eq!(by_text, by_run);
        }
    }
}
