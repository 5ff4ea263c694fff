//! Translates a pattern into a query over trigrams. Every file in which the pattern matches
//! satisfies the query; other files may satisfy it too.
//!
//! Each part of a pattern is analysed into either the exact set of texts that it matches, or the
//! bytes with which a match starts and ends and the trigrams inside. ASCII letters are folded from
//! the start. Case folds beyond ASCII (`k` and the Kelvin sign) are classes in the parsed pattern,
//! so that both spellings are queried.

use std::collections::BTreeSet;

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::segment::{Damaged, Segment};
use super::{FOLD, Gram};

/// Maximum number of texts in a set.
const MAX_SET: usize = 256;
/// Maximum bytes of all texts in a set.
const MAX_SET_BYTES: usize = 16 * 1024;
/// Maximum folded characters of a class that is expanded into a set.
const MAX_CLASS: usize = 64;
/// Maximum characters of a class before folding.
const MAX_CHARS: u32 = 512;
/// Maximum trigrams queried for one text.
const MAX_OF_TEXT: usize = 64;
/// Maximum trigrams queried for a pattern.
const MAX_GRAMS: usize = 2048;
/// Maximum repetitions that are expanded.
const MAX_REPEATS: u32 = 4;
/// Nesting limit of the parser, the same as in the matcher.
pub const NEST_LIMIT: u32 = 250;

/// Options of parsing a pattern.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flags {
    /// Case is ignored, or may be.
    pub any_case: bool,
    pub dot_all: bool,
}

/// A condition on the trigrams of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Query {
    /// Always true: every file may match.
    All,
    Gram(Gram),
    And(Vec<Query>),
    /// At least one of these; false if empty.
    Or(Vec<Query>),
}

impl Query {
    /// Translates a regular expression. An invalid one yields [`Query::All`]; the matcher reports
    /// the error.
    pub fn parse(pattern: &str, flags: Flags) -> Self {
        let parsed = ParserBuilder::new()
            .nest_limit(NEST_LIMIT)
            .utf8(false)
            .multi_line(true)
            .case_insensitive(flags.any_case)
            .dot_matches_new_line(flags.dot_all)
            .build()
            .parse(&format!("(?:{pattern})"));
        parsed.map_or(Self::All, |hir| part(&hir).query())
    }

    /// The documents of a segment that may match as a bitmap, dead ones included.
    pub fn documents(&self, segment: &Segment) -> Result<Vec<u64>, Damaged> {
        let words = segment.docs().div_ceil(64) as usize;
        match self {
            Self::All => Ok(vec![!0; words]),
            Self::Gram(gram) => {
                let mut found = vec![0; words];
                if let Some(list) = segment.list(*gram)? {
                    set_bits(&list, &mut found)?;
                }
                Ok(found)
            }
            Self::Or(parts) => {
                let mut found = vec![0; words];
                for part in parts {
                    part.documents(segment)?
                        .iter()
                        .zip(&mut found)
                        .for_each(|(new, all)| *all |= new);
                }
                Ok(found)
            }
            Self::And(parts) => all_of(parts, segment, words),
        }
    }

    /// True if a text with these trigrams may match.
    #[cfg(test)]
    pub fn accepts(&self, has: &dyn Fn(Gram) -> bool) -> bool {
        match self {
            Self::All => true,
            Self::Gram(gram) => has(*gram),
            Self::And(parts) => parts.iter().all(|p| p.accepts(has)),
            Self::Or(parts) => parts.iter().any(|p| p.accepts(has)),
        }
    }

    /// Number of trigrams in the query.
    fn size(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Gram(_) => 1,
            Self::And(parts) | Self::Or(parts) => {
                parts.iter().map(Self::size).sum::<usize>().max(1)
            }
        }
    }

    fn and(self, other: Self) -> Self {
        let too_much = self.size() + other.size() > MAX_GRAMS;
        match (self, other) {
            (Self::All, one) | (one, Self::All) => one,
            // Each operand alone is a weaker condition, which is still correct.
            (a, b) if too_much => {
                if a.size() <= b.size() {
                    a
                } else {
                    b
                }
            }
            (a, b) => {
                let mut parts = BTreeSet::new();
                for one in [a, b] {
                    match one {
                        Self::And(more) => parts.extend(more),
                        other => drop(parts.insert(other)),
                    }
                }
                Self::join(parts, Self::And)
            }
        }
    }

    fn or(all: impl IntoIterator<Item = Self>) -> Self {
        let (mut parts, mut size) = (BTreeSet::new(), 0);
        for one in all {
            size += one.size();
            match one {
                Self::All => return Self::All,
                Self::Or(more) => parts.extend(more),
                other => drop(parts.insert(other)),
            }
            if size > MAX_GRAMS {
                return Self::All;
            }
        }
        Self::join(parts, Self::Or)
    }

    fn join(parts: BTreeSet<Self>, of: fn(Vec<Self>) -> Self) -> Self {
        let mut parts: Vec<Self> = parts.into_iter().collect();
        if parts.len() == 1
            && let Some(one) = parts.pop()
        {
            return one;
        }
        of(parts)
    }
}

/// Intersects all parts, starting with the rarest trigram.
fn all_of(parts: &[Query], segment: &Segment, words: usize) -> Result<Vec<u64>, Damaged> {
    let mut lists = Vec::new();
    for part in parts {
        let Query::Gram(gram) = part else { continue };
        match segment.list(*gram)? {
            Some(list) => lists.push(list),
            None => return Ok(vec![0; words]),
        }
    }
    lists.sort_by_key(|list| list.count);
    let mut found = vec![!0; words];
    let mut intersect = |other: &[u64]| {
        found.iter_mut().zip(other).for_each(|(all, one)| *all &= one);
        found.iter().any(|word| *word != 0)
    };
    let mut one = vec![0; words];
    for list in &lists {
        one.fill(0);
        set_bits(list, &mut one)?;
        if !intersect(&one) {
            return Ok(found);
        }
    }
    for part in parts.iter().filter(|p| !matches!(p, Query::Gram(_))) {
        if !intersect(&part.documents(segment)?) {
            break;
        }
    }
    Ok(found)
}

fn set_bits(list: &super::segment::List<'_>, found: &mut [u64]) -> Result<(), Damaged> {
    list.each(|doc| {
        if let Some(word) = found.get_mut(doc as usize / 64) {
            *word |= 1 << (doc % 64);
        }
    })
}

type Texts = BTreeSet<Vec<u8>>;

/// The analysis of a part of a pattern.
enum Part {
    /// The part matches exactly these texts.
    Exact(Texts),
    /// A match starts with one of `first` and ends with one of `last`, each at most two bytes long,
    /// and satisfies `inside`.
    Wide { first: Texts, last: Texts, inside: Query },
}

impl Part {
    fn empty() -> Self {
        Self::Exact(Texts::from([Vec::new()]))
    }

    /// A part without any constraint.
    fn unknown() -> Self {
        let nothing = || Texts::from([Vec::new()]);
        Self::Wide { first: nothing(), last: nothing(), inside: Query::All }
    }

    fn query(self) -> Query {
        match self {
            Self::Exact(texts) => grams(&texts),
            Self::Wide { inside, .. } => inside,
        }
    }

    /// Weakens the part to its ends and the trigrams inside.
    fn into_ends(self) -> (Texts, Texts, Query) {
        match self {
            Self::Exact(texts) => (ends(&texts, head), ends(&texts, tail), grams(&texts)),
            Self::Wide { first, last, inside } => (first, last, inside),
        }
    }

    fn from_ends((first, last, inside): (Texts, Texts, Query)) -> Self {
        Self::Wide { first, last, inside }
    }

    fn concat(self, next: Self) -> Self {
        let (left, right) = match (&self, &next) {
            (
                Self::Exact(a) | Self::Wide { last: a, .. },
                Self::Exact(b) | Self::Wide { first: b, .. },
            ) => (a, b),
        };
        let seam = product(left, right);
        if let (Self::Exact(_), Self::Exact(_), Some(texts)) = (&self, &next, &seam) {
            return Self::Exact(texts.clone());
        }
        let across = match &seam {
            Some(texts) => grams(texts),
            None => partial_seam(left, right),
        };
        let first = match (&self, &seam) {
            (Self::Exact(_), Some(texts)) => Some(ends(texts, head)),
            _ => None,
        };
        let last = match (&next, &seam) {
            (Self::Exact(_), Some(texts)) => Some(ends(texts, tail)),
            _ => None,
        };
        let ((own_first, _, a), (_, own_last, b)) = (self.into_ends(), next.into_ends());
        let inside = a.and(b).and(across);
        Self::Wide { first: first.unwrap_or(own_first), last: last.unwrap_or(own_last), inside }
    }

    fn alternate(all: Vec<Self>) -> Self {
        let mut texts = Texts::new();
        let is_exact = all.iter().all(|part| match part {
            Self::Exact(own) => {
                texts.extend(own.iter().cloned());
                is_small(&texts)
            }
            Self::Wide { .. } => false,
        });
        if is_exact {
            return Self::Exact(texts);
        }
        let (mut first, mut last, mut inside) = (Texts::new(), Texts::new(), Vec::new());
        for part in all {
            let (a, b, query) = part.into_ends();
            first.extend(a);
            last.extend(b);
            inside.push(query);
        }
        Self::Wide { first: ends(&first, head), last: ends(&last, tail), inside: Query::or(inside) }
    }
}

fn part(hir: &Hir) -> Part {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Part::empty(),
        HirKind::Literal(literal) => exact(Texts::from([folded(&literal.0)])),
        HirKind::Class(class) => self::class(class).map_or_else(Part::unknown, exact),
        HirKind::Capture(capture) => part(&capture.sub),
        HirKind::Concat(parts) => {
            parts.iter().map(part).reduce(Part::concat).unwrap_or_else(Part::empty)
        }
        HirKind::Alternation(parts) => Part::alternate(parts.iter().map(part).collect()),
        HirKind::Repetition(repetition) => repeated(repetition),
    }
}

fn repeated(repetition: &Repetition) -> Part {
    let (min, max) = (repetition.min, repetition.max);
    match (min, max) {
        (_, Some(0)) => Part::empty(),
        (0, Some(1)) => Part::alternate(vec![part(&repetition.sub), Part::empty()]),
        (0, _) => Part::unknown(),
        _ => {
            let written = min.min(MAX_REPEATS);
            let mut written_out = part(&repetition.sub);
            for _ in 1..written {
                written_out = written_out.concat(part(&repetition.sub));
            }
            // Further repetitions are between the same start and end.
            if max == Some(written) {
                written_out
            } else {
                Part::from_ends(written_out.into_ends())
            }
        }
    }
}

fn exact(texts: Texts) -> Part {
    if is_small(&texts) {
        Part::Exact(texts)
    } else {
        Part::from_ends(Part::Exact(texts).into_ends())
    }
}

fn folded(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|b| FOLD[usize::from(*b)]).collect()
}

/// The texts of a class; `None` if they are too many.
fn class(class: &Class) -> Option<Texts> {
    let mut texts = Texts::new();
    match class {
        Class::Unicode(class) => {
            let count = class.iter().map(|r| u32::from(r.end()) - u32::from(r.start()) + 1);
            if count.fold(0, u32::saturating_add) > MAX_CHARS {
                return None;
            }
            let mut buffer = [0; 4];
            for char in class.iter().flat_map(|r| r.start()..=r.end()) {
                texts.insert(folded(char.encode_utf8(&mut buffer).as_bytes()));
            }
        }
        Class::Bytes(class) => {
            for byte in class.iter().flat_map(|r| r.start()..=r.end()) {
                texts.insert(folded(&[byte]));
            }
        }
    }
    (texts.len() <= MAX_CLASS).then_some(texts)
}

fn is_small(texts: &Texts) -> bool {
    texts.len() <= MAX_SET && texts.iter().map(Vec::len).sum::<usize>() <= MAX_SET_BYTES
}

/// All concatenations of a left and a right text; `None` if they are too many.
fn product(left: &Texts, right: &Texts) -> Option<Texts> {
    let bytes = |texts: &Texts| texts.iter().map(Vec::len).sum::<usize>();
    let fits = left.len() * right.len() <= MAX_SET
        && bytes(left) * right.len() + bytes(right) * left.len() <= MAX_SET_BYTES;
    fits.then(|| {
        left.iter().flat_map(|a| right.iter().map(|b| [a.as_slice(), b].concat())).collect()
    })
}

/// The trigrams across a seam with too many texts: two bytes of one side and one byte of the other.
fn partial_seam(left: &Texts, right: &Texts) -> Query {
    let cut =
        |texts: &Texts, n: usize, end: End| -> Texts { texts.iter().map(|t| end(t, n)).collect() };
    let mut query = Query::All;
    for (before, after) in [(2, 1), (1, 2)] {
        if let Some(texts) = product(&cut(left, before, tail), &cut(right, after, head)) {
            query = query.and(grams(&texts));
        }
    }
    query
}

type End = fn(&[u8], usize) -> Vec<u8>;

fn head(text: &[u8], n: usize) -> Vec<u8> {
    text[..text.len().min(n)].to_vec()
}

fn tail(text: &[u8], n: usize) -> Vec<u8> {
    text[text.len().saturating_sub(n)..].to_vec()
}

/// Two bytes of each text, or one byte if the set would be too large.
fn ends(texts: &Texts, end: End) -> Texts {
    let two: Texts = texts.iter().map(|t| end(t, 2)).collect();
    if is_small(&two) { two } else { texts.iter().map(|t| end(t, 1)).collect() }
}

/// The trigrams that at least one text of the set implies. No trigram contains a line end.
fn grams(texts: &Texts) -> Query {
    let of_text = |text: &Vec<u8>| {
        let windows = text.windows(3).filter(|w| !w.contains(&b'\n'));
        let all: BTreeSet<Gram> =
            windows.map(|w| w.iter().fold(0, |key, b| key << 8 | Gram::from(*b))).collect();
        let step = all.len().div_ceil(MAX_OF_TEXT).max(1);
        let chosen: BTreeSet<Query> = all.into_iter().step_by(step).map(Query::Gram).collect();
        if chosen.is_empty() { Query::All } else { Query::join(chosen, Query::And) }
    };
    Query::or(texts.iter().map(of_text))
}
