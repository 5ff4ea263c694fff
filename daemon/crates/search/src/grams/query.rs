//! A pattern as a question to the trigrams: every file in which it matches has an answer of yes, others may have one.
//!
//! For each part of a pattern it is known either which few texts it matches exactly, or with which few bytes a match
//! begins and ends and which trigrams are inside. Letters of ASCII are folded from the start. Case folds beyond ASCII
//! (`k` and the Kelvin sign) are in the parsed pattern as classes, so that both spellings are asked for.

use std::collections::BTreeSet;

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::segment::{Damaged, Segment};
use super::{FOLD, Gram};

/// Texts of a set, their bytes together, and characters of a class that is taken apart.
const MAX_SET: usize = 256;
const MAX_SET_BYTES: usize = 16 * 1024;
const MAX_CLASS: usize = 64;
/// Characters of a class before they are folded.
const MAX_CHARS: u32 = 512;
/// Trigrams asked for one text, and for a whole pattern.
const MAX_OF_TEXT: usize = 64;
const MAX_GRAMS: usize = 2048;
/// Repetitions that are written out.
const MAX_REPEATS: u32 = 4;
/// As in the matcher.
pub const NEST_LIMIT: u32 = 250;

/// How a pattern is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flags {
    /// Case does not matter, or may not.
    pub any_case: bool,
    pub dot_all: bool,
}

/// What a file must have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Query {
    /// Nothing: every file may match.
    All,
    Gram(Gram),
    And(Vec<Query>),
    /// One of these; of none, no file.
    Or(Vec<Query>),
}

impl Query {
    /// Of a regular expression. What cannot be read asks for nothing: the matcher is to say why.
    pub fn of(pattern: &str, flags: Flags) -> Self {
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

    /// The documents of a segment that may match, a bit each; dead ones too.
    pub fn documents(&self, segment: &Segment) -> Result<Vec<u64>, Damaged> {
        let words = segment.docs().div_ceil(64) as usize;
        match self {
            Self::All => Ok(vec![!0; words]),
            Self::Gram(gram) => {
                let mut found = vec![0; words];
                if let Some(list) = segment.list(*gram)? {
                    mark(&list, &mut found)?;
                }
                Ok(found)
            }
            Self::Or(parts) => {
                let mut found = vec![0; words];
                for part in parts {
                    part.documents(segment)?.iter().zip(&mut found).for_each(|(new, all)| *all |= new);
                }
                Ok(found)
            }
            Self::And(parts) => all_of(parts, segment, words),
        }
    }

    /// Whether a text with these trigrams may match.
    #[cfg(test)]
    pub fn admits(&self, has: &dyn Fn(Gram) -> bool) -> bool {
        match self {
            Self::All => true,
            Self::Gram(gram) => has(*gram),
            Self::And(parts) => parts.iter().all(|p| p.admits(has)),
            Self::Or(parts) => parts.iter().any(|p| p.admits(has)),
        }
    }

    /// Trigrams in it.
    fn size(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Gram(_) => 1,
            Self::And(parts) | Self::Or(parts) => parts.iter().map(Self::size).sum::<usize>().max(1),
        }
    }

    fn and(self, other: Self) -> Self {
        let too_much = self.size() + other.size() > MAX_GRAMS;
        match (self, other) {
            (Self::All, one) | (one, Self::All) => one,
            // Either alone is a weaker question with the same answers and more.
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

/// The rarest trigram first: the others only thin it out.
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
    let mut thin = |other: &[u64]| {
        found.iter_mut().zip(other).for_each(|(all, one)| *all &= one);
        found.iter().any(|word| *word != 0)
    };
    let mut one = vec![0; words];
    for list in &lists {
        one.fill(0);
        mark(list, &mut one)?;
        if !thin(&one) {
            return Ok(found);
        }
    }
    for part in parts.iter().filter(|p| !matches!(p, Query::Gram(_))) {
        if !thin(&part.documents(segment)?) {
            break;
        }
    }
    Ok(found)
}

fn mark(list: &super::segment::List<'_>, found: &mut [u64]) -> Result<(), Damaged> {
    list.each(|doc| {
        if let Some(word) = found.get_mut(doc as usize / 64) {
            *word |= 1 << (doc % 64);
        }
    })
}

type Texts = BTreeSet<Vec<u8>>;

/// What is known of a part of a pattern.
enum Part {
    /// It matches one of these texts and nothing else.
    Exact(Texts),
    /// A match begins with one of `first` and ends with one of `last`, each of two bytes at most, and has what `inside`
    /// asks for.
    Wide { first: Texts, last: Texts, inside: Query },
}

impl Part {
    fn empty() -> Self {
        Self::Exact(Texts::from([Vec::new()]))
    }

    /// Nothing is known.
    fn any() -> Self {
        let nothing = || Texts::from([Vec::new()]);
        Self::Wide { first: nothing(), last: nothing(), inside: Query::All }
    }

    fn query(self) -> Query {
        match self {
            Self::Exact(texts) => grams(&texts),
            Self::Wide { inside, .. } => inside,
        }
    }

    /// The same, known by its ends.
    fn widen(self) -> (Texts, Texts, Query) {
        match self {
            Self::Exact(texts) => (ends(&texts, head), ends(&texts, tail), grams(&texts)),
            Self::Wide { first, last, inside } => (first, last, inside),
        }
    }

    fn wide((first, last, inside): (Texts, Texts, Query)) -> Self {
        Self::Wide { first, last, inside }
    }

    fn then(self, next: Self) -> Self {
        let (left, right) = match (&self, &next) {
            (Self::Exact(a) | Self::Wide { last: a, .. }, Self::Exact(b) | Self::Wide { first: b, .. }) => {
                (a, b)
            }
        };
        let seam = cross(left, right);
        if let (Self::Exact(_), Self::Exact(_), Some(texts)) = (&self, &next, &seam) {
            return Self::Exact(texts.clone());
        }
        let across = match &seam {
            Some(texts) => grams(texts),
            None => narrow_seam(left, right),
        };
        let first = match (&self, &seam) {
            (Self::Exact(_), Some(texts)) => Some(ends(texts, head)),
            _ => None,
        };
        let last = match (&next, &seam) {
            (Self::Exact(_), Some(texts)) => Some(ends(texts, tail)),
            _ => None,
        };
        let ((own_first, _, a), (_, own_last, b)) = (self.widen(), next.widen());
        let inside = a.and(b).and(across);
        Self::Wide { first: first.unwrap_or(own_first), last: last.unwrap_or(own_last), inside }
    }

    fn either(all: Vec<Self>) -> Self {
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
            let (a, b, query) = part.widen();
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
        HirKind::Class(class) => self::class(class).map_or_else(Part::any, exact),
        HirKind::Capture(capture) => part(&capture.sub),
        HirKind::Concat(parts) => parts.iter().map(part).reduce(Part::then).unwrap_or_else(Part::empty),
        HirKind::Alternation(parts) => Part::either(parts.iter().map(part).collect()),
        HirKind::Repetition(repetition) => repeated(repetition),
    }
}

fn repeated(repetition: &Repetition) -> Part {
    let (min, max) = (repetition.min, repetition.max);
    match (min, max) {
        (_, Some(0)) => Part::empty(),
        (0, Some(1)) => Part::either(vec![part(&repetition.sub), Part::empty()]),
        (0, _) => Part::any(),
        _ => {
            let written = min.min(MAX_REPEATS);
            let mut whole = part(&repetition.sub);
            for _ in 1..written {
                whole = whole.then(part(&repetition.sub));
            }
            // More of the same between a beginning and an end that stay what they are.
            if max == Some(written) { whole } else { Part::wide(whole.widen()) }
        }
    }
}

fn exact(texts: Texts) -> Part {
    if is_small(&texts) { Part::Exact(texts) } else { Part::wide(Part::Exact(texts).widen()) }
}

fn folded(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|b| FOLD[usize::from(*b)]).collect()
}

/// The few texts of a class; `None` for a large one.
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

/// Every text of the left before every one of the right, when they are few.
fn cross(left: &Texts, right: &Texts) -> Option<Texts> {
    let bytes = |texts: &Texts| texts.iter().map(Vec::len).sum::<usize>();
    let fits = left.len() * right.len() <= MAX_SET
        && bytes(left) * right.len() + bytes(right) * left.len() <= MAX_SET_BYTES;
    fits.then(|| left.iter().flat_map(|a| right.iter().map(|b| [a.as_slice(), b].concat())).collect())
}

/// What is sure around a seam whose sides are too many: two bytes of one and one of the other.
fn narrow_seam(left: &Texts, right: &Texts) -> Query {
    let cut = |texts: &Texts, n: usize, end: End| -> Texts { texts.iter().map(|t| end(t, n)).collect() };
    let mut sure = Query::All;
    for (before, after) in [(2, 1), (1, 2)] {
        if let Some(texts) = cross(&cut(left, before, tail), &cut(right, after, head)) {
            sure = sure.and(grams(&texts));
        }
    }
    sure
}

type End = fn(&[u8], usize) -> Vec<u8>;

fn head(text: &[u8], n: usize) -> Vec<u8> {
    text[..text.len().min(n)].to_vec()
}

fn tail(text: &[u8], n: usize) -> Vec<u8> {
    text[text.len().saturating_sub(n)..].to_vec()
}

/// Two bytes of each text, or one when that is too many.
fn ends(texts: &Texts, end: End) -> Texts {
    let two: Texts = texts.iter().map(|t| end(t, 2)).collect();
    if is_small(&two) { two } else { texts.iter().map(|t| end(t, 1)).collect() }
}

/// What every text of the set makes sure of. A line's end is in no trigram.
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
