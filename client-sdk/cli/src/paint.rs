//! Colours for source code: what each piece of a line is, told by the syntaxes that editors use.
//!
//! Oniguruma runs them: it has the expressions of a language ready in 1 to 3 ms, where the engine written in Rust takes
//! 13 to 54 ms, more than a search.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use console::Style;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// Bytes of a line up to which it is coloured.
const MAX_LINE: usize = 500;
/// Lines before the shown ones that are read too, as one of them may open a comment or a string.
const LEAD: usize = 12;

/// Scopes and what they look like, the more particular before those they are part of.
const LOOKS: &[(&str, Look)] = &[
    ("comment", Look::Comment),
    ("string", Look::Text),
    ("constant.character", Look::Text),
    ("constant", Look::Constant),
    ("keyword.operator", Look::Plain),
    ("keyword", Look::Keyword),
    ("storage", Look::Keyword),
    ("entity.name.function", Look::Function),
    ("support.function", Look::Function),
    ("variable.function", Look::Function),
    ("entity.name.tag", Look::Keyword),
    ("entity.name", Look::Type),
    ("entity.other.inherited-class", Look::Type),
    ("support.type", Look::Type),
    ("support.class", Look::Type),
    ("markup.heading", Look::Type),
    ("markup.raw", Look::Text),
    // Code inside a string.
    ("meta.interpolation", Look::Plain),
    ("meta.template.expression", Look::Plain),
    ("source", Look::Plain),
];

/// What a piece of code looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    Plain,
    Comment,
    Text,
    Constant,
    Keyword,
    Function,
    Type,
}

impl Look {
    /// Its colours, of the sixteen that every terminal's own theme has.
    pub fn style(self) -> Style {
        let style = Style::new();
        match self {
            Self::Plain => style,
            Self::Comment => style.black().bright(),
            Self::Text => style.green(),
            Self::Constant => style.cyan(),
            Self::Keyword => style.magenta(),
            Self::Function => style.blue(),
            Self::Type => style.yellow(),
        }
    }
}

/// A piece of a line: its bytes, and what it looks like.
pub type Piece = (Range<usize>, Look);

/// Where a text that comes line by line stands.
pub struct Code {
    state: ParseState,
    stack: ScopeStack,
    left: Duration,
}

/// Knows the syntaxes. Loading it takes some milliseconds, so that it is made only for a terminal that shows colours.
pub struct Painter {
    syntaxes: SyntaxSet,
    looks: Vec<(Scope, Look)>,
    /// Time that is left; code behind it stays plain.
    left: Duration,
}

impl Painter {
    /// A painter that works for at most `within`.
    pub fn load(within: Duration) -> Self {
        let looks = LOOKS.iter().filter_map(|(name, look)| Some((Scope::new(name).ok()?, *look))).collect();
        Self { syntaxes: two_face::syntax::extra_newlines(), looks, left: within }
    }

    /// The pieces of each of the `shown` lines. A line without pieces is plain.
    pub fn paint(&mut self, path: &str, lines: &[&str], shown: Range<usize>) -> Vec<Vec<Piece>> {
        let began = Instant::now();
        let mut painted = vec![Vec::new(); shown.len()];
        let Some(syntax) = self.syntax(path) else { return painted };
        let (mut state, mut stack) = (ParseState::new(syntax), ScopeStack::new());
        let from = shown.start.saturating_sub(LEAD);
        for (at, line) in lines.iter().enumerate().take(shown.end).skip(from) {
            if began.elapsed() > self.left || line.len() > MAX_LINE {
                break;
            }
            let Some(pieces) = self.line(line, &mut state, &mut stack) else { break };
            if let Some(slot) = at.checked_sub(shown.start).and_then(|n| painted.get_mut(n)) {
                *slot = pieces;
            }
        }
        self.left = self.left.saturating_sub(began.elapsed());
        painted
    }

    /// Code that is painted line by line as it comes; `None` for a language that is not known by that name.
    pub fn begin(&self, language: &str) -> Option<Code> {
        let syntax = self.syntaxes.find_syntax_by_token(language).filter(|_| !language.is_empty())?;
        Some(Code { state: ParseState::new(syntax), stack: ScopeStack::new(), left: self.left })
    }

    /// The pieces of the next line of `code`; none once its time is over.
    pub fn next(&self, code: &mut Code, line: &str) -> Vec<Piece> {
        let began = Instant::now();
        if code.left.is_zero() || line.len() > MAX_LINE {
            return Vec::new();
        }
        let pieces = self.line(line, &mut code.state, &mut code.stack).unwrap_or_default();
        code.left = code.left.saturating_sub(began.elapsed());
        pieces
    }

    /// The syntax of a file, by its ending or its whole name.
    fn syntax(&self, path: &str) -> Option<&SyntaxReference> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let by = |name| self.syntaxes.find_syntax_by_extension(name);
        by(name).or_else(|| by(name.rsplit_once('.')?.1))
    }

    fn line(&self, line: &str, state: &mut ParseState, stack: &mut ScopeStack) -> Option<Vec<Piece>> {
        let changes = state.parse_line(&format!("{line}\n"), &self.syntaxes).ok()?;
        let mut pieces: Vec<Piece> = Vec::new();
        let mut from = 0;
        let mut push = |to: usize, look: Look| {
            let to = to.min(line.len());
            match pieces.last_mut() {
                Some((range, last)) if *last == look && range.end == from => range.end = to,
                _ if to > from => pieces.push((from..to, look)),
                _ => {}
            }
            from = from.max(to);
        };
        for (at, change) in changes {
            push(at, self.look(stack));
            stack.apply(&change).ok()?;
        }
        push(line.len(), self.look(stack));
        Some(pieces)
    }

    /// What the innermost scope that has a look has.
    fn look(&self, stack: &ScopeStack) -> Look {
        let of = |scope: &Scope| self.looks.iter().find(|(known, _)| known.is_prefix_of(*scope));
        stack.as_slice().iter().rev().find_map(of).map_or(Look::Plain, |(_, look)| *look)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(path: &str, text: &str) -> Vec<String> {
        let lines: Vec<&str> = text.split('\n').collect();
        let pieces = Painter::load(Duration::MAX).paint(path, &lines, 0..lines.len());
        let show = |line: &str, pieces: &[Piece]| {
            let named = pieces.iter().filter(|(_, look)| *look != Look::Plain);
            let named = named.map(|(range, look)| format!("{look:?}:{}", line[range.clone()].trim()));
            named.collect::<Vec<_>>().join(" ")
        };
        lines.iter().zip(&pieces).map(|(line, pieces)| show(line, pieces)).collect()
    }

    #[test]
    fn pieces_are_told_in_many_languages() {
        for (path, text, want) in [
            ("a.rs", "// é\nfn add(n: u32) -> &str { \"é\" }", "Comment:// é|Function:add"),
            (
                "a.py",
                "def add(n):  # note\n    return 'x'",
                "Function:add Comment:# note|Keyword:return Text:'x'",
            ),
            ("a.ts", "const n: number = 1;", "Keyword:const"),
            ("a.go", "func add() int { return 1 }", "Function:add"),
            ("a.toml", "a = \"b\"", "Text:\"b\""),
            ("Makefile", "all:\n\techo # x", "Function:all"),
            ("a.unknown", "fn add() {}", ""),
        ] {
            let got = painted(path, text);
            for (got, want) in got.iter().zip(want.split('|')) {
                let all = want.split(' ').all(|word| got.contains(word));
                assert!(all && got.is_empty() == want.is_empty(), "{path}: {got}, not {want}");
            }
        }
    }

    #[test]
    fn pieces_cover_their_line_in_order() {
        let text = "/* a\n b */ let é = \"x\\n\"; // ü\n\n\tmatch x {";
        let lines: Vec<&str> = text.split('\n').collect();
        for (line, pieces) in lines.iter().zip(Painter::load(Duration::MAX).paint("a.rs", &lines, 0..4)) {
            let whole: String = pieces.iter().map(|(range, _)| &line[range.clone()]).collect();
            assert_eq!(whole, *line);
        }
    }

    #[test]
    fn what_comes_before_counts_and_time_is_bounded() {
        let lines: Vec<&str> = "/* a\nb\nc */".split('\n').collect();
        let only = Painter::load(Duration::MAX).paint("a.rs", &lines, 1..2);
        assert_eq!(only, [vec![(0..1, Look::Comment)]]);
        assert!(Painter::load(Duration::ZERO).paint("a.rs", &lines, 0..3).iter().all(Vec::is_empty));
        let long = "x".repeat(MAX_LINE + 1);
        assert!(Painter::load(Duration::MAX).paint("a.rs", &[&long], 0..1)[0].is_empty());
    }
}
