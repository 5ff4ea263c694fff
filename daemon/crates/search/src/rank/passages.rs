//! The second step of ranking: definitions in the best windows are scored by their own words,
//! vectors and names, together with the windows.

use super::page::Page;
use super::windows::{Base, K1, Ranker};
use super::{Features, Mode};
use crate::candidates::{Candidate, Span};
use crate::lexical::Term;
use crate::parsed::{QueryKind, QueryName};
use cairn_text_index::chunk;
use cairn_text_index::packed::WindowContext;
use cairn_tokenizer::words;
use cairn_vectors::Table;
use memchr::memmem;

/// Length normalisation of BM25 for passages.
const B: f32 = 0.5;
/// Average length of a passage in words.
const LENGTH: f32 = 80.0;

/// Maximum lines of a definition that is shown completely, even beyond its window.
const MAX_COMPLETE: u32 = 60;
/// Number of words up to which two passages may be equal by chance.
const MAX_ACCIDENTAL: u32 = 10;
/// Share of the query from which a line counts as a quotation.
const MIN_COVERAGE: f32 = 0.6;
/// Factors of a name that differs in case, and of one in another container.
const OTHER_CASE: f32 = 0.7;
const OTHER_CONTAINER: f32 = 0.7;
/// Factor of [`Features::definition_of`] for such a name, which may be of something else.
const RESEMBLES: f32 = 0.6;
/// Number of lines from which the size feature is 1.
const FULL_LENGTH: u32 = 10;

/// Lines of a candidate that may become a result.
#[derive(Debug, Clone)]
pub struct Passage {
    /// Index of its candidate.
    pub candidate: usize,
    /// Index of its definition in the candidate's spans; `None` for the window itself.
    pub span: Option<usize>,
    /// Its lines within the window.
    pub lines: (u32, u32),
    /// Hash of its text within the window, for removing duplicates; `None` for a text that is
    /// short enough to be equal by chance.
    pub fingerprint: Option<u64>,
    /// The line within the window that covers most of the query; 0 if unknown.
    pub best_line: u32,
    pub features: Features,
}

/// A candidate as one passage, without reading its text.
pub fn window_passage(ranker: &Ranker<'_>, at: usize, c: &Candidate, base: &Base) -> Passage {
    let mut features = base.features[at];
    features.size = length_feature((c.start_line, c.end_line));
    if ranker.mode != Mode::Semantic {
        let counts: Vec<u32> = c.counts.iter().map(|n| n[0].into()).collect();
        features.words = passage_bm25(&counts, c.tokens, ranker.terms(c)) / ranker.total(c);
    }
    let lines = (c.start_line, c.end_line);
    let fingerprint = (c.tokens > MAX_ACCIDENTAL).then_some(c.fingerprint);
    Passage { candidate: at, span: None, lines, fingerprint, best_line: 0, features }
}

/// The data for comparing parts of a window with the query's vector.
pub struct SemanticContext<'a> {
    /// The table that embeds the parts.
    pub table: &'a Table,
    /// The query's vector by that table; empty for a lexical search.
    pub vector: &'a [f32],
    /// True if another model embedded the windows; then the table only measures how much nearer
    /// than its window a part is.
    pub relative: bool,
}

/// The window of a candidate followed by its innermost definitions, as passages.
pub fn by_definitions(
    ranker: &Ranker<'_>,
    (at, c, spans): (usize, &Candidate, &[Span]),
    text: &WindowContext,
    base: &Base,
    semantics: &SemanticContext<'_>,
) -> Vec<Passage> {
    let counted = if ranker.mode == Mode::Semantic { &[] } else { ranker.terms(c) };
    let page = Page::new(c, text, counted);
    let mut all = vec![read_window(ranker, (at, c), text, &page, base)];
    let path = c.path.replace('/', " ");
    let dot = |pieces: &[&[u8]]| {
        let vector = cairn_vectors::embed_cached(semantics.table, pieces);
        vector.iter().zip(semantics.vector).map(|(a, b)| a * b).sum::<f32>()
    };
    let has_vector = !semantics.vector.is_empty();
    let window_similarity = if semantics.relative && base.cosines.is_some() {
        dot(&[path.as_bytes(), b" ", text.window_text()])
    } else {
        0.0
    };
    let mut best_name = 0f32;
    for (n, span) in spans.iter().enumerate() {
        let NameMatch { covered, share, exact } = match_name(ranker, c, span);
        let starts_here = span.start_line >= c.start_line;
        if starts_here {
            best_name = best_name.max(covered * (0.5 + 0.5 * share));
            all[0].features.exact = all[0].features.exact.max(exact);
        }
        // Of definitions around others only the one that the query names is a result.
        if contains_another(span, spans) && !(exact > 0.0 && starts_here) {
            continue;
        }
        let lines = (span.start_line.max(c.start_line), span.end_line.min(c.end_line));
        let (piece, counts, tokens) = page.section(lines);
        let mut features = Features { definition: 1.0, ..base.features[at] };
        let mut best_line = 0;
        if ranker.mode != Mode::Semantic {
            features.words = passage_bm25(&counts, tokens, ranker.terms(c)) / ranker.total(c);
            (features.name, features.exact) = (share, exact);
            let best = page.best_line(lines, ranker.quotes(c));
            (features.line, best_line) = (line_coverage(best.0), best.1);
            if starts_here && ranker.kind == QueryKind::Identifier {
                features.definition_of = if exact < 1.0 { RESEMBLES * exact } else { exact };
            }
        }
        let visible_lines =
            if is_returned_complete(span) { (span.start_line, span.end_line) } else { lines };
        features.size = length_feature(visible_lines).max(exact);
        features.container = if is_container(&span.kind) { 1.0 - exact } else { 0.0 };
        if has_vector {
            if let Some((low, range)) = base.cosines {
                let [before, own_text, behind] = page.extended_text(visible_lines);
                let own_text = dot(&[path.as_bytes(), b" ", before, own_text, behind]);
                let (zero, from) = if semantics.relative {
                    (window_similarity, features.meaning)
                } else {
                    (low, 0.0)
                };
                features.meaning = from + (own_text - zero) / range;
            }
            features.name_meaning = dot(&[span.name.as_bytes()]);
        }
        let fingerprint = is_long(piece).then(|| chunk::fingerprint(piece) as u64);
        all.push(Passage { candidate: at, span: Some(n), lines, fingerprint, best_line, features });
    }
    if ranker.mode != Mode::Semantic {
        all.iter_mut().for_each(|p| p.features.window_names = best_name / ranker.total(c));
    } else {
        all[0].features.exact = 0.0;
    }
    all
}

/// A candidate as one passage, with the features that need its text.
fn read_window(
    ranker: &Ranker<'_>,
    (at, c): (usize, &Candidate),
    text: &WindowContext,
    page: &Page<'_>,
    base: &Base,
) -> Passage {
    let mut window = window_passage(ranker, at, c, base);
    if ranker.mode != Mode::Semantic {
        let (share, line) = page.best_line((c.start_line, c.end_line), ranker.quotes(c));
        (window.features.line, window.best_line) = (line_coverage(share), line);
    }
    if ranker.kind == QueryKind::Identifier {
        let is_in =
            |name: &QueryName| memmem::find(text.window_text(), name.name.as_bytes()).is_some();
        window.features.literal = f32::from(u8::from(ranker.names.iter().all(is_in)));
    }
    window
}

/// True if a definition contains another one of the list.
fn contains_another(span: &Span, spans: &[Span]) -> bool {
    let range = |s: &Span| (s.start_line, s.end_line);
    spans.iter().any(|s| {
        s.start_line >= span.start_line && s.end_line <= span.end_line && range(s) != range(span)
    })
}

/// True if a definition is shown completely, even beyond its window.
pub fn is_returned_complete(span: &Span) -> bool {
    span.end_line - span.start_line < MAX_COMPLETE
}

/// True if a text has more words than two texts may share by chance.
fn is_long(text: &[u8]) -> bool {
    let words = text.chunk_by(|a, b| a.is_ascii_alphanumeric() == b.is_ascii_alphanumeric());
    words.filter(|w| w[0].is_ascii_alphanumeric()).nth(MAX_ACCIDENTAL as usize).is_some()
}

/// True for kinds of definitions that contain others.
fn is_container(kind: &str) -> bool {
    const KINDS: [&str; 10] = [
        "class",
        "struct",
        "enum",
        "trait",
        "interface",
        "protocol",
        "record",
        "union",
        "type",
        "module",
    ];
    KINDS.contains(&kind)
}

/// The value of [`Features::line`] for the share of the query that a line covers.
fn line_coverage(share: f32) -> f32 {
    (share - MIN_COVERAGE).max(0.0) / (1.0 - MIN_COVERAGE)
}

/// The value of [`Features::size`] for a range of lines.
fn length_feature((from, to): (u32, u32)) -> f32 {
    ((1 + (to - from + 1).min(FULL_LENGTH)) as f32).ln() / ((1 + FULL_LENGTH) as f32).ln()
}

/// The comparison of a name with the query.
struct NameMatch {
    /// Rarity of the query words that the name covers.
    covered: f32,
    /// Share of the name's words that are in the query.
    share: f32,
    /// The weight of the query's name that it equals; less if the case or the container differ.
    exact: f32,
}

fn match_name(ranker: &Ranker<'_>, c: &Candidate, span: &Span) -> NameMatch {
    let mut stems = words::query_stems(&span.name);
    stems.retain(|s| s.len() > 1);
    let hits = ranker.terms(c).iter().filter(|t| stems.contains(&t.stem));
    let (covered, hit) = hits.fold((0.0, 0.0), |(sum, n), t| (sum + t.rarity, n + 1.0));
    let exact = ranker.names.iter().map(|name| exact_match(name, span)).fold(0.0, f32::max);
    NameMatch { covered, share: hit / stems.len().max(1) as f32, exact }
}

/// The weight of a name of the query if a definition has it.
fn exact_match(name: &QueryName, span: &Span) -> f32 {
    if !name.name.eq_ignore_ascii_case(&span.name) {
        return 0.0;
    }
    let by_case = if name.name == span.name { 1.0 } else { OTHER_CASE };
    let last = span.container.as_deref().and_then(|c| c.rsplit(['.', ':', '#', '\\']).next());
    let is_elsewhere = name.container.is_some() && name.container.as_deref() != last;
    name.weight * by_case * if is_elsewhere { OTHER_CONTAINER } else { 1.0 }
}

/// BM25 of a passage from the counts of the terms and its number of words.
fn passage_bm25(counts: &[u32], tokens: u32, terms: &[Term]) -> f32 {
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
        let kind = "function".into();
        Span { name: name.into(), kind, container: None, start_line, end_line }
    }

    #[test]
    fn only_innermost_definitions_become_passages() {
        let all = [span("a", 1, 20), span("b", 3, 5), span("c", 3, 5), span("d", 18, 30)];
        let inner: Vec<&str> =
            all.iter().filter(|s| !contains_another(s, &all)).map(|s| &*s.name).collect();
        assert_eq!(inner, ["b", "c", "d"]);
    }
}
