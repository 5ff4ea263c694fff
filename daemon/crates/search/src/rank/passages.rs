//! The second step: a good window is read and its definitions are judged by their own words, meaning and names, beside
//! the window itself.

use super::windows::{Base, K1, Ranker};
use super::{Features, Mode};
use crate::bulk;
use crate::chunk;
use crate::embed::Table;
use crate::gather::{Candidate, Span};
use crate::lexical::Term;
use crate::words;

/// BM25's length normalisation of a passage, and the length it compares with, in words.
const B: f32 = 0.5;
const LENGTH: f32 = 80.0;

/// Lines of a candidate that may be an answer.
#[derive(Debug, Clone)]
pub struct Passage {
    /// The candidate it lies in, by index.
    pub candidate: usize,
    /// Its definition among the candidate's spans; none for the window itself.
    pub span: Option<usize>,
    /// Its lines within the window.
    pub lines: (u32, u32),
    /// Of its text within the window, with its length in words: two that are equal say the same.
    pub print: (u64, u32),
    /// What speaks for it.
    pub features: Features,
}

/// A candidate whose text is not looked at, as one passage.
pub fn whole(ranker: &Ranker<'_>, at: usize, c: &Candidate, base: &Base) -> Passage {
    let mut features = base.features[at];
    if ranker.mode != Mode::Semantic {
        let counts: Vec<u32> = c.counts.iter().map(|n| n[0].into()).collect();
        features.words = own_words(&counts, c.tokens, ranker.terms(c)) / ranker.total(c);
    }
    let (lines, print) = ((c.start_line, c.end_line), (c.fingerprint, c.tokens));
    Passage { candidate: at, span: None, lines, print, features }
}

/// How the meaning of parts of a window is judged.
pub struct Meaning<'a> {
    /// The table that embeds them.
    pub table: &'a Table,
    /// The query's vector by it; empty when meaning does not count.
    pub vector: &'a [f32],
    /// Whether another model judged the windows: then the table tells only how much nearer than its window a part is.
    pub relative: bool,
}

/// A candidate's innermost definitions as passages, behind the window itself.
pub fn by_definitions(
    ranker: &Ranker<'_>,
    (at, c, spans): (usize, &Candidate, &[Span]),
    text: &[u8],
    base: &Base,
    meaning: &Meaning<'_>,
) -> Vec<Passage> {
    let page = Page::new(c, text, ranker.terms(c));
    let mut all = vec![whole(ranker, at, c, base)];
    let path = c.path.replace('/', " ");
    let dot = |pieces: &[&[u8]]| {
        let made = bulk::embed(meaning.table, pieces);
        made.iter().zip(meaning.vector).map(|(a, b)| a * b).sum::<f32>()
    };
    let judged = !meaning.vector.is_empty();
    let around = if judged && meaning.relative { dot(&[path.as_bytes(), b" ", text]) } else { 0.0 };
    let mut best_name = 0f32;
    for (n, span) in spans.iter().enumerate() {
        let (covered, share, exact) = name(ranker, c, span);
        if span.start_line >= c.start_line {
            best_name = best_name.max(covered * (0.5 + 0.5 * share));
            all[0].features.exact = all[0].features.exact.max(exact);
        }
        if holds_another(span, spans) {
            continue;
        }
        let lines = (span.start_line.max(c.start_line), span.end_line.min(c.end_line));
        let (piece, counts, tokens) = page.part(lines);
        let mut features = Features { definition: 1.0, ..base.features[at] };
        if ranker.mode != Mode::Semantic {
            features.words = own_words(&counts, tokens, ranker.terms(c)) / ranker.total(c);
            (features.name, features.exact) = (share, exact);
        }
        if judged {
            let (low, range) = base.cosines;
            let own = dot(&[path.as_bytes(), b" ", piece]);
            features.meaning = if meaning.relative {
                features.meaning + (own - around) / range
            } else {
                (own - low) / range
            };
            features.name_meaning = dot(&[span.name.as_bytes()]);
        }
        let print = (chunk::fingerprint(piece) as u64, tokens);
        all.push(Passage { candidate: at, span: Some(n), lines, print, features });
    }
    if ranker.mode != Mode::Semantic {
        all.iter_mut().for_each(|p| p.features.window_names = best_name / ranker.total(c));
    } else {
        all[0].features.exact = 0.0;
    }
    all
}

/// Whether a definition has another of the list inside it.
fn holds_another(span: &Span, spans: &[Span]) -> bool {
    let range = |s: &Span| (s.start_line, s.end_line);
    spans
        .iter()
        .any(|s| s.start_line >= span.start_line && s.end_line <= span.end_line && range(s) != range(span))
}

/// How much of the query (by rarity) a name covers, how much of the name is in the query, and whether it is one of the
/// query's identifiers.
fn name(ranker: &Ranker<'_>, c: &Candidate, span: &Span) -> (f32, f32, f32) {
    let mut stems = words::query_stems(&span.name);
    stems.retain(|s| s.len() > 1);
    let hits = ranker.terms(c).iter().filter(|t| stems.contains(&t.stem));
    let (covered, hit) = hits.fold((0.0, 0.0), |(sum, n), t| (sum + t.rarity, n + 1.0));
    let exact = ranker.names.iter().any(|n| n.eq_ignore_ascii_case(&span.name));
    (covered, hit / stems.len().max(1) as f32, f32::from(u8::from(exact)))
}

/// BM25 of a text by the counts of the terms and its length.
fn own_words(counts: &[u32], tokens: u32, terms: &[Term]) -> f32 {
    let length = 1.0 - B + B * tokens as f32 / LENGTH;
    let part = |(n, term): (&u32, &Term)| {
        let n = *n as f32;
        term.rarity * n * (K1 + 1.0) / (n + K1 * length)
    };
    counts.iter().zip(terms).map(part).sum()
}

/// The text of a window with the words of the query in it, by line.
struct Page<'a> {
    text: &'a [u8],
    first: u32,
    /// Where each line begins, and the end.
    starts: Vec<usize>,
    /// Words before each line, and all.
    before: Vec<u32>,
    /// Line and term of each word of the query.
    found: Vec<(u32, u16)>,
    terms: usize,
}

impl<'a> Page<'a> {
    fn new(c: &Candidate, text: &'a [u8], terms: &[Term]) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text).map(|at| at + 1));
        if starts.last() != Some(&text.len()) {
            starts.push(text.len());
        }
        let (mut before, mut found) = (vec![0; starts.len()], Vec::new());
        let (mut line, mut tokens) = (0, 0);
        words::each_lexical(text, |stem, start, _| {
            while starts.get(line + 1).is_some_and(|next| *next <= start) {
                line += 1;
                before[line] = tokens;
            }
            tokens += 1;
            if let Some(term) = terms.iter().position(|t| t.stem == stem) {
                found.push((line as u32, term as u16));
            }
        });
        before[line + 1..].fill(tokens);
        Self { text, first: c.start_line, starts, before, found, terms: terms.len() }
    }

    /// Text, counts of the terms, and words of some lines.
    fn part(&self, (from, to): (u32, u32)) -> (&'a [u8], Vec<u32>, u32) {
        let last = self.starts.len() - 1;
        let a = ((from - self.first) as usize).min(last);
        let b = ((to + 1 - self.first) as usize).clamp(a, last);
        let mut counts = vec![0; self.terms];
        for (line, term) in &self.found {
            if (a..b).contains(&(*line as usize)) {
                counts[*term as usize] += 1;
            }
        }
        (&self.text[self.starts[a]..self.starts[b]], counts, self.before[b] - self.before[a])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn span(name: &str, start_line: u32, end_line: u32) -> Span {
        Span { name: name.into(), kind: "function".into(), start_line, end_line }
    }

    #[test]
    fn a_page_knows_its_parts() {
        let text = b"alpha beta\n\nbeta\nbeta gamma";
        let c = Candidate {
            root: 0,
            chunk: 1,
            file: 1,
            path: Arc::from("a"),
            lang: None,
            start_line: 11,
            end_line: 14,
            fingerprint: 0,
            tokens: 5,
            spans: Vec::new(),
            counts: Vec::new(),
            cosine: None,
        };
        let term = |word: &[u8]| Term { stem: words::stemmed(word), chunks: 1, rarity: 1.0 };
        let page = Page::new(&c, text, &[term(b"beta"), term(b"gamma")]);
        assert_eq!(page.part((11, 14)), (&text[..], vec![3, 1], 5));
        assert_eq!(page.part((11, 12)), (&b"alpha beta\n\n"[..], vec![1, 0], 2));
        assert_eq!(page.part((13, 13)), (&b"beta\n"[..], vec![1, 0], 1));
        assert_eq!(page.part((14, 99)), (&b"beta gamma"[..], vec![1, 1], 2));
    }

    #[test]
    fn only_innermost_definitions_answer() {
        let all = [span("a", 1, 20), span("b", 3, 5), span("c", 3, 5), span("d", 18, 30)];
        let inner: Vec<&str> = all.iter().filter(|s| !holds_another(s, &all)).map(|s| &*s.name).collect();
        assert_eq!(inner, ["b", "c", "d"]);
    }
}
