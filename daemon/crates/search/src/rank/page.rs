//! The text of a window, indexed by line.

use super::windows::Quote;
use crate::candidates::Candidate;
use crate::lexical::Term;
use cairn_text_index::packed::WindowContext;
use cairn_tokenizer::words;

/// The text of a window with the positions of query words by line.
pub(super) struct Page<'a> {
    text: &'a [u8],
    /// The text before and after the window in its frame.
    surrounding: (&'a [u8], &'a [u8]),
    first_line: u32,
    /// Start offset of each line, and the end.
    starts: Vec<usize>,
    /// Number of words before each line, and in total; all zero without terms.
    words_before: Vec<u32>,
    /// Line and term of each occurrence of a query word.
    hits: Vec<(u32, u16)>,
    terms: &'a [Term],
}

impl<'a> Page<'a> {
    /// Indexes a window; words are only counted if there are terms.
    pub(super) fn new(c: &Candidate, context: &'a WindowContext, terms: &'a [Term]) -> Self {
        let text = context.window_text();
        let surrounding =
            (&context.text[..context.window.start], &context.text[context.window.end..]);
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text).map(|at| at + 1));
        if starts.last() != Some(&text.len()) {
            starts.push(text.len());
        }
        let (mut words_before, mut hits) = (vec![0; starts.len()], Vec::new());
        if terms.is_empty() {
            return Self {
                text,
                surrounding,
                first_line: c.start_line,
                starts,
                words_before,
                hits,
                terms,
            };
        }
        let (mut line, mut tokens) = (0, 0);
        words::each_lexical(text, |stem, start, _| {
            while starts.get(line + 1).is_some_and(|next| *next <= start) {
                line += 1;
                words_before[line] = tokens;
            }
            tokens += 1;
            if let Some(term) = terms.iter().position(|t| t.stem == stem) {
                hits.push((line as u32, term as u16));
            }
        });
        words_before[line + 1..].fill(tokens);
        Self { text, surrounding, first_line: c.start_line, starts, words_before, hits, terms }
    }

    /// The line of a range that covers most of one of the quoted lines, preceded by the share by
    /// rarity.
    pub(super) fn best_line(&self, lines: (u32, u32), quotes: &[Quote]) -> (f32, u32) {
        let best = quotes.iter().map(|quote| self.best_line_of(lines, quote));
        best.reduce(|a, b| if b.0 > a.0 { b } else { a }).unwrap_or((0.0, 0))
    }

    fn best_line_of(&self, (from, to): (u32, u32), quote: &Quote) -> (f32, u32) {
        let (mut best, mut covered) = ((0.0, 0), 0.0);
        // The last line of each term; lines are in order.
        let (mut seen, mut line) = (vec![u32::MAX; self.terms.len()], u32::MAX);
        let is_in = |(at, term): &&(u32, u16)| {
            quote.terms[*term as usize] && (from..=to).contains(&(self.first_line + at))
        };
        for (at, term) in self.hits.iter().filter(is_in) {
            if *at != line {
                line = *at;
                covered = 0.0;
            }
            if std::mem::replace(&mut seen[*term as usize], *at) != *at {
                covered += self.terms[*term as usize].rarity;
            }
            if covered > best.0 {
                best = (covered, self.first_line + at);
            }
        }
        (best.0 / quote.total, best.1)
    }

    /// The text of a range that overlaps the window, in parts, as far as its frame contains it.
    pub(super) fn extended_text(&self, (from, to): (u32, u32)) -> [&'a [u8]; 3] {
        let last = self.first_line + self.starts.len().saturating_sub(2) as u32;
        let (a, b) = self.bounds((from.max(self.first_line), to.min(last)));
        let window = &self.text[self.starts[a]..self.starts[b]];
        let words_before = self.first_line.saturating_sub(from) as usize;
        let behind = to.saturating_sub(last) as usize;
        let (before_window, after) = self.surrounding;
        let start = match words_before {
            0 => before_window.len(),
            // The window starts after the line break of the preceding line.
            _ => {
                memchr::memrchr_iter(b'\n', before_window).nth(words_before).map_or(0, |at| at + 1)
            }
        };
        let end = match behind {
            0 => 0,
            _ => memchr::memchr_iter(b'\n', after).nth(behind - 1).map_or(after.len(), |at| at + 1),
        };
        [&before_window[start..], window, &after[..end]]
    }

    /// The line positions of a range within the window.
    fn bounds(&self, (from, to): (u32, u32)) -> (usize, usize) {
        let last = self.starts.len() - 1;
        let a = ((from - self.first_line) as usize).min(last);
        (a, ((to + 1 - self.first_line) as usize).clamp(a, last))
    }

    /// The text of a range, the counts of the terms in it, and its number of words.
    pub(super) fn section(&self, (from, to): (u32, u32)) -> (&'a [u8], Vec<u32>, u32) {
        let (a, b) = self.bounds((from, to));
        let mut counts = vec![0; self.terms.len()];
        for (line, term) in &self.hits {
            if (a..b).contains(&(*line as usize)) {
                counts[*term as usize] += 1;
            }
        }
        (
            &self.text[self.starts[a]..self.starts[b]],
            counts,
            self.words_before[b] - self.words_before[a],
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn page_returns_sections_and_text_beyond_the_window() {
        let text = b"one\ntwo\nalpha beta\n\nbeta\nbeta gamma\nthree\nfour";
        let context = WindowContext { text: text.to_vec(), window: 8..36 };
        let text = context.window_text();
        let c = Candidate {
            root: 0,
            chunk: 1,
            file: 1,
            path: Arc::from("a"),
            start_line: 11,
            end_line: 14,
            fingerprint: 0,
            tokens: 5,
            spans: Vec::new(),
            counts: Vec::new(),
            cosine: None,
            named: false,
        };
        let term = |word: &[u8]| Term { stem: words::stemmed(word), chunks: 1, rarity: 1.0 };
        let terms = [term(b"beta"), term(b"gamma")];
        let page = Page::new(&c, &context, &terms);
        let quotes = [Quote { terms: vec![true, true], total: 2.0 }];
        let best_line = |lines| page.best_line(lines, &quotes);
        assert_eq!([best_line((11, 14)), best_line((11, 13))], [(1.0, 14), (0.5, 11)]);
        let two = [Quote { terms: vec![false, true], total: 1.0 }];
        assert_eq!(page.best_line((11, 13), &two), (0.0, 0));
        assert_eq!(page.section((11, 14)), (text, vec![3, 1], 5));
        assert_eq!(page.section((11, 12)), (&b"alpha beta\n\n"[..], vec![1, 0], 2));
        assert_eq!(page.section((13, 13)), (&b"beta\n"[..], vec![1, 0], 1));
        assert_eq!(page.section((14, 99)), (&b"beta gamma\n"[..], vec![1, 1], 2));
        let extended_text = |from, to| {
            page.extended_text((from, to)).map(|section| str::from_utf8(section).unwrap())
        };
        assert_eq!(extended_text(10, 11), ["two\n", "alpha beta\n", ""]);
        assert_eq!(extended_text(14, 15), ["", "beta gamma\n", "three\n"]);
        assert_eq!(
            extended_text(9, 16),
            ["one\ntwo\n", "alpha beta\n\nbeta\nbeta gamma\n", "three\nfour"]
        );
        assert_eq!(
            extended_text(1, 99),
            ["one\ntwo\n", "alpha beta\n\nbeta\nbeta gamma\n", "three\nfour"]
        );
        assert_eq!(extended_text(12, 13), ["", "\nbeta\n", ""]);
    }
}
