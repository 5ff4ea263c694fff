//! Packs passages into a page of bounded cost: a pure function of the passages. Each result has at
//! most a share of the remaining budget, so that better ones have more lines; what is left over
//! goes to shortened passages, best first.

use std::collections::BTreeSet;

use cairn_protocol::error::Failure;
use cairn_tokenizer::model_tokens::{Cost, cost, limit, to_tokens};

/// Tokens that the page leaves free for the note about omitted results.
const NOTE: u32 = 40;
/// Part of the remaining budget that one passage may use, in percent.
const SHARE: Cost = 50;
/// Least cost for which lines of a passage are printed, not only its location.
const MIN_PASSAGE: Cost = 4_000;
/// Maximum characters of a printed line.
const MAX_LINE: usize = 200;
/// Decrease of a line's rank by its distance to a line with a higher score.
const DISTANCE: f32 = 0.12;

/// Score of a line that is always printed first: the head of a definition.
pub const HEAD: f32 = 100.0;

/// One line of a file with its relevance.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub number: u32,
    pub text: String,
    pub score: f32,
}

/// Lines that may be printed for a result, in order of their numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Passage {
    pub lines: Vec<Line>,
}

/// The results to pack, best first.
pub trait Source {
    fn count(&self) -> usize;
    /// The same number for results of the same file.
    fn file(&self, at: usize) -> usize;
    /// Location and name in one line, with these lines instead of those of the result.
    fn location(&self, at: usize, lines: Option<(u32, u32)>) -> String;
    /// Reads the lines of a result.
    fn passage(&mut self, at: usize) -> Result<Passage, Failure>;
}

/// A page with its measures.
#[derive(Debug, Default, PartialEq)]
pub struct Page {
    pub text: String,
    /// Estimated tokens of the text.
    pub tokens: u32,
    /// Number of first results that the text names.
    pub named: usize,
    /// Printed ranges of lines with the positions of their results.
    pub ranges: Vec<(usize, (u32, u32))>,
    /// Number of lines of named results that are not printed.
    pub folded_lines: u32,
}

/// A result as the page has it.
struct Block {
    file: usize,
    /// Location of the result, and that of its printable lines.
    location: Heading,
    heading: Heading,
    /// First and last line that the location names.
    range: (u32, u32),
    /// Printable lines that no better result of the file has, most relevant first.
    ranked: Vec<PricedLine>,
    /// Number of first lines of `ranked` that are printed.
    printed: usize,
    cost: Cost,
}

/// A line of location and name, with its cost.
#[derive(Default)]
struct Heading {
    text: String,
    cost: Cost,
}

impl Heading {
    fn new(text: &str) -> Self {
        let text = sanitised(text);
        Self { cost: cost(&text) + cost("\n"), text }
    }
}

/// A line with its cost, including its end.
struct PricedLine {
    line: Line,
    cost: Cost,
}

/// A part of a printed passage.
enum Part<'a> {
    Line(&'a PricedLine),
    /// First and last line of those left out.
    Fold(u32, u32),
}

impl Block {
    fn new(file: usize, location: &str) -> Self {
        let location = Heading::new(location);
        Self {
            file,
            cost: location.cost,
            location,
            heading: Heading::default(),
            range: (0, 0),
            ranked: Vec::new(),
            printed: 0,
        }
    }

    /// Prints the best lines of a result within `most`, or its location alone.
    fn fill(
        &mut self,
        source: &dyn Source,
        at: usize,
        mut lines: Vec<Line>,
        better: &[Self],
        most: Cost,
    ) {
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return };
        let range = (first.number, last.number);
        lines.iter_mut().for_each(|line| line.text = sanitised(&line.text));
        without_printed(&mut lines, self.file, better);
        self.heading = Heading::new(&source.location(at, Some(range)));
        self.range = range;
        self.ranked = ranked(lines);
        self.grow(most);
    }

    /// Prints as many lines as `most` allows; never fewer than before.
    fn grow(&mut self, most: Cost) {
        let fits = |n: usize| self.cost_of(n) <= most;
        let (mut low, mut high) = (self.printed, self.ranked.len());
        if low == high {
            return;
        }
        if fits(high) {
            low = high;
        }
        while high - low > 1 {
            let middle = low.midpoint(high);
            if fits(middle) { low = middle } else { high = middle }
        }
        // The cost is not monotone: a line that closes a gap removes its mark. The search ends at a
        // number that fits, if not at the greatest one.
        // A head without any line after it says no more than the location.
        let has_body = |priced: &PricedLine| priced.line.score < HEAD;
        let is_useful = low == self.ranked.len() || self.ranked[..low].iter().any(has_body);
        if low > self.printed && is_useful {
            self.cost = self.cost_of(low);
            self.printed = low;
        }
    }

    /// The first `n` ranked lines in the order of the file.
    fn in_order(&self, n: usize) -> Vec<&PricedLine> {
        let mut lines: Vec<&PricedLine> = self.ranked[..n].iter().collect();
        lines.sort_unstable_by_key(|priced| priced.line.number);
        lines
    }

    /// Passes the first `n` ranked lines, and the marks of those left out, in order.
    fn each(&self, n: usize, mut each: impl FnMut(Part<'_>)) {
        if n == 0 {
            return;
        }
        let (mut next, end) = self.range;
        for priced in self.in_order(n) {
            let number = priced.line.number;
            if number > next {
                each(Part::Fold(next, number - 1));
            }
            each(Part::Line(priced));
            next = number + 1;
        }
        if next <= end {
            each(Part::Fold(next, end));
        }
    }

    /// The cost of the block with its first `n` ranked lines.
    fn cost_of(&self, n: usize) -> Cost {
        let mut sum = if n == 0 { self.location.cost } else { self.heading.cost };
        self.each(n, |part| {
            sum += match part {
                Part::Line(priced) => priced.cost,
                Part::Fold(from, to) => cost(&fold(from, to)),
            }
        });
        sum
    }

    fn write(&self, text: &mut String) {
        let heading = if self.printed == 0 { &self.location } else { &self.heading };
        text.push_str(&heading.text);
        text.push('\n');
        self.each(self.printed, |part| match part {
            Part::Line(priced) => {
                text.push_str(&priced.line.text);
                text.push('\n');
            }
            Part::Fold(from, to) => text.push_str(&fold(from, to)),
        });
    }

    fn ranges(&self) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for priced in self.in_order(self.printed) {
            let number = priced.line.number;
            match ranges.last_mut() {
                Some(last) if last.1 + 1 == number => last.1 = number,
                _ => ranges.push((number, number)),
            }
        }
        ranges
    }
}

/// The mark of lines that are left out.
fn fold(from: u32, to: u32) -> String {
    match to - from {
        0 => format!("… 1 line ({from})\n"),
        more => format!("… {} lines ({from}-{to})\n", more + 1),
    }
}

/// A line without control characters, of bounded length.
fn sanitised(text: &str) -> String {
    let text = text.trim_end();
    let visible = text.chars().filter(|c| !c.is_control() || *c == '\t');
    let mut line: String = visible.take(MAX_LINE).collect();
    if text.chars().nth(MAX_LINE).is_some() {
        line.push('…');
    }
    line
}

/// Orders lines by relevance: the score of a line also counts for its neighbours, less by distance.
fn ranked(mut lines: Vec<Line>) -> Vec<PricedLine> {
    let spread = |lines: &mut dyn Iterator<Item = &mut Line>| {
        let mut best: Option<(f32, u32)> = None;
        for line in lines {
            let inherited = best.map_or(0.0, |(score, number)| {
                // The head of a definition lends little to the lines after it.
                let lent = if score >= HEAD { 1.5 } else { score };
                lent - DISTANCE * line.number.abs_diff(number) as f32
            });
            if line.score >= inherited {
                best = Some((line.score, line.number));
            }
            line.score = line.score.max(inherited);
        }
    };
    spread(&mut lines.iter_mut());
    spread(&mut lines.iter_mut().rev());
    lines.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.number.cmp(&b.number)));
    let end = cost("\n");
    let priced = |line: Line| PricedLine { cost: cost(&line.text) + end, line };
    lines.into_iter().map(priced).collect()
}

impl Page {
    /// Packs the results into `tokens`.
    ///
    /// # Errors
    /// The error of a passage that could not be read.
    pub fn pack(source: &mut dyn Source, tokens: u32) -> Result<Self, Failure> {
        let mut remaining = limit(tokens.saturating_sub(NOTE));
        let mut blocks: Vec<Block> = Vec::new();
        for at in 0..source.count() {
            let mut block = Block::new(source.file(at), &source.location(at, None));
            if block.cost > remaining {
                break;
            }
            let share = (remaining * SHARE / 100).max(block.cost);
            if share >= MIN_PASSAGE {
                let lines = source.passage(at)?.lines;
                block.fill(source, at, lines, &blocks, share);
            }
            remaining -= block.cost;
            blocks.push(block);
        }
        for at in 0..blocks.len() {
            let (before, rest) = blocks.split_at_mut(at);
            let Some((block, after)) = rest.split_first_mut() else { break };
            let file = block.file;
            let others: Vec<&Block> =
                before.iter().chain(after.iter()).filter(|b| b.file == file).collect();
            let printed = numbers(&others);
            let unprinted = block.ranked.split_off(block.printed);
            block
                .ranked
                .extend(unprinted.into_iter().filter(|l| !printed.contains(&l.line.number)));
            // A line that closes a gap may cost less than the mark that it removes.
            let available = remaining + block.cost;
            block.cost = block.cost_of(block.printed);
            block.grow(available);
            remaining = available - block.cost;
        }
        Ok(Self::render(&blocks))
    }

    fn render(blocks: &[Block]) -> Self {
        let mut page = Self { named: blocks.len(), ..Self::default() };
        let mut sum = 0;
        for (at, block) in blocks.iter().enumerate() {
            block.write(&mut page.text);
            sum += block.cost;
            page.ranges.extend(block.ranges().into_iter().map(|range| (at, range)));
            let folded = block.ranked.len() - block.printed;
            page.folded_lines += u32::try_from(folded).unwrap_or(u32::MAX);
        }
        page.tokens = to_tokens(sum);
        page
    }
}

/// Numbers of the lines that blocks print.
fn numbers(blocks: &[&Block]) -> BTreeSet<u32> {
    let lines = blocks.iter().flat_map(|b| &b.ranked[..b.printed]);
    lines.map(|priced| priced.line.number).collect()
}

/// Removes the lines that better results of the same file print.
fn without_printed(lines: &mut Vec<Line>, file: usize, blocks: &[Block]) {
    let same: Vec<&Block> = blocks.iter().filter(|b| b.file == file).collect();
    if !same.is_empty() {
        let printed = numbers(&same);
        lines.retain(|line| !printed.contains(&line.number));
    }
}

#[cfg(test)]
mod tests;
