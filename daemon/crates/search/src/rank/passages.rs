//! The second step: a good window is read and its definitions are judged by their own words, meaning and names, beside
//! the window itself.

use super::page::Page;
use super::windows::{Base, K1, Ranker};
use super::{Features, Mode};
use crate::bulk;
use crate::chunk;
use crate::embed::Table;
use crate::gather::{Candidate, Span};
use crate::lexical::Term;
use crate::packed::WindowContext;
use crate::words;

/// BM25's length normalisation of a passage, and the length it compares with, in words.
const B: f32 = 0.5;
const LENGTH: f32 = 80.0;

/// Lines up to which a definition that answers is told whole, beyond the window that was found.
const MAX_COMPLETE: u32 = 60;
/// Words up to which two passages may be alike by chance.
const SHORT: u32 = 10;
/// Share of the query from which on a line is taken for what was asked.
const QUOTED: f32 = 0.6;
/// Lines from which on length does not count.
const LONG: u32 = 10;

/// Lines of a candidate that may be an answer.
#[derive(Debug, Clone)]
pub struct Passage {
    /// The candidate it lies in, by index.
    pub candidate: usize,
    /// Its definition among the candidate's spans; none for the window itself.
    pub span: Option<usize>,
    /// Its lines within the window.
    pub lines: (u32, u32),
    /// Of its text within the window: two that are equal say the same. None for a text so short that it may be another's
    /// by chance.
    pub print: Option<u64>,
    /// The line within the window that covers most of the query; 0 when it is not known.
    pub best_line: u32,
    /// What speaks for it.
    pub features: Features,
}

/// A candidate whose text is not looked at, as one passage.
pub fn window_passage(ranker: &Ranker<'_>, at: usize, c: &Candidate, base: &Base) -> Passage {
    let mut features = base.features[at];
    features.size = size((c.start_line, c.end_line));
    if ranker.mode != Mode::Semantic {
        let counts: Vec<u32> = c.counts.iter().map(|n| n[0].into()).collect();
        features.words = own_words(&counts, c.tokens, ranker.terms(c)) / ranker.total(c);
    }
    let lines = (c.start_line, c.end_line);
    let print = (c.tokens > SHORT).then_some(c.fingerprint);
    Passage { candidate: at, span: None, lines, print, best_line: 0, features }
}

/// How the meaning of parts of a window is judged.
pub struct SemanticContext<'a> {
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
    text: &WindowContext,
    base: &Base,
    semantics: &SemanticContext<'_>,
) -> Vec<Passage> {
    let counted = if ranker.mode == Mode::Semantic { &[] } else { ranker.terms(c) };
    let page = Page::new(c, text, counted);
    let mut all = vec![window_passage(ranker, at, c, base)];
    if ranker.mode != Mode::Semantic {
        let (share, line) = page.best_line((c.start_line, c.end_line));
        (all[0].features.line, all[0].best_line) = (line_coverage(share / ranker.total(c)), line);
    }
    let path = c.path.replace('/', " ");
    let dot = |pieces: &[&[u8]]| {
        let made = bulk::embed(semantics.table, pieces);
        made.iter().zip(semantics.vector).map(|(a, b)| a * b).sum::<f32>()
    };
    let judged = !semantics.vector.is_empty();
    let window_similarity = if semantics.relative && base.cosines.is_some() {
        dot(&[path.as_bytes(), b" ", text.window_text()])
    } else {
        0.0
    };
    let mut best_name = 0f32;
    for (n, span) in spans.iter().enumerate() {
        let Named { covered, share, exact } = named(ranker, c, span);
        if span.start_line >= c.start_line {
            best_name = best_name.max(covered * (0.5 + 0.5 * share));
            all[0].features.exact = all[0].features.exact.max(exact);
        }
        if contains_another(span, spans) {
            continue;
        }
        let lines = (span.start_line.max(c.start_line), span.end_line.min(c.end_line));
        let (piece, counts, tokens) = page.section(lines);
        let mut features = Features { definition: 1.0, ..base.features[at] };
        let mut best_line = 0;
        if ranker.mode != Mode::Semantic {
            features.words = own_words(&counts, tokens, ranker.terms(c)) / ranker.total(c);
            (features.name, features.exact) = (share, exact);
            let best = page.best_line(lines);
            (features.line, best_line) = (line_coverage(best.0 / ranker.total(c)), best.1);
        }
        let told = if is_shown_complete(span) { (span.start_line, span.end_line) } else { lines };
        features.size = size(told).max(exact);
        features.container = if is_container(&span.kind) { 1.0 - exact } else { 0.0 };
        if judged {
            if let Some((low, range)) = base.cosines {
                let [before, own, behind] = page.extended_text(told);
                let own = dot(&[path.as_bytes(), b" ", before, own, behind]);
                let (zero, from) =
                    if semantics.relative { (window_similarity, features.meaning) } else { (low, 0.0) };
                features.meaning = from + (own - zero) / range;
            }
            features.name_meaning = dot(&[span.name.as_bytes()]);
        }
        let print = is_long(piece).then(|| chunk::fingerprint(piece) as u64);
        all.push(Passage { candidate: at, span: Some(n), lines, print, best_line, features });
    }
    if ranker.mode != Mode::Semantic {
        all.iter_mut().for_each(|p| p.features.window_names = best_name / ranker.total(c));
    } else {
        all[0].features.exact = 0.0;
    }
    all
}

/// Whether a definition has another of the list inside it.
fn contains_another(span: &Span, spans: &[Span]) -> bool {
    let range = |s: &Span| (s.start_line, s.end_line);
    spans
        .iter()
        .any(|s| s.start_line >= span.start_line && s.end_line <= span.end_line && range(s) != range(span))
}

/// Whether a definition is told whole, beyond the window that was found.
pub fn is_shown_complete(span: &Span) -> bool {
    span.end_line - span.start_line < MAX_COMPLETE
}

/// Whether a text has more words than two may have in common by chance.
fn is_long(text: &[u8]) -> bool {
    let words = text.chunk_by(|a, b| a.is_ascii_alphanumeric() == b.is_ascii_alphanumeric());
    words.filter(|w| w[0].is_ascii_alphanumeric()).nth(SHORT as usize).is_some()
}

/// Whether a kind of definition is there for what is inside it.
fn is_container(kind: &str) -> bool {
    const KINDS: [&str; 10] =
        ["class", "struct", "enum", "trait", "interface", "protocol", "record", "union", "type", "module"];
    KINDS.contains(&kind)
}

/// By the share of the query that a line covers: see [`Features::line`].
fn line_coverage(share: f32) -> f32 {
    (share - QUOTED).max(0.0) / (1.0 - QUOTED)
}

/// By lines: see [`Features::size`].
fn size((from, to): (u32, u32)) -> f32 {
    ((1 + (to - from + 1).min(LONG)) as f32).ln() / ((1 + LONG) as f32).ln()
}

/// A name beside the query.
struct Named {
    /// How much of the query (by rarity) it covers.
    covered: f32,
    /// How much of it is in the query.
    share: f32,
    /// 1 when it is one of the query's identifiers.
    exact: f32,
}

fn named(ranker: &Ranker<'_>, c: &Candidate, span: &Span) -> Named {
    let mut stems = words::query_stems(&span.name);
    stems.retain(|s| s.len() > 1);
    let hits = ranker.terms(c).iter().filter(|t| stems.contains(&t.stem));
    let (covered, hit) = hits.fold((0.0, 0.0), |(sum, n), t| (sum + t.rarity, n + 1.0));
    let exact = ranker.names.iter().any(|n| n.eq_ignore_ascii_case(&span.name));
    Named { covered, share: hit / stems.len().max(1) as f32, exact: f32::from(u8::from(exact)) }
}

/// BM25 of a text by the counts of the terms and its length.
fn own_words(counts: &[u32], tokens: u32, terms: &[Term]) -> f32 {
    let length = 1.0 - B + B * tokens as f32 / LENGTH;
    let section = |(n, term): (&u32, &Term)| {
        let n = *n as f32;
        term.rarity * n * (K1 + 1.0) / (n + K1 * length)
    };
    counts.iter().zip(terms).map(section).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(name: &str, start_line: u32, end_line: u32) -> Span {
        Span { name: name.into(), kind: "function".into(), start_line, end_line }
    }

    #[test]
    fn only_innermost_definitions_answer() {
        let all = [span("a", 1, 20), span("b", 3, 5), span("c", 3, 5), span("d", 18, 30)];
        let inner: Vec<&str> = all.iter().filter(|s| !contains_another(s, &all)).map(|s| &*s.name).collect();
        assert_eq!(inner, ["b", "c", "d"]);
    }
}
