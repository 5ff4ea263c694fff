//! Syntax highlighting, with the syntaxes of editors.
//!
//! Oniguruma runs them: it compiles the expressions of a language in 1 to 3 ms, where the engine
//! written in Rust takes 13 to 54 ms, longer than a search.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use super::theme::Theme;
use console::Style;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// Maximum bytes of a highlighted line.
const MAX_LINE: usize = 500;
/// Number of parsed lines before the displayed ones, one of which may open a comment or string.
const LEADING_LINES: usize = 12;

/// Scopes and their classes, most specific first.
const CLASSES: &[(&str, CodeClass)] = &[
    ("comment", CodeClass::Comment),
    ("string", CodeClass::Text),
    ("constant.character", CodeClass::Text),
    ("constant", CodeClass::Constant),
    ("keyword.operator", CodeClass::Plain),
    ("keyword", CodeClass::Keyword),
    ("storage", CodeClass::Keyword),
    ("entity.name.function", CodeClass::Function),
    ("support.function", CodeClass::Function),
    ("variable.function", CodeClass::Function),
    ("entity.name.tag", CodeClass::Keyword),
    ("entity.name", CodeClass::Type),
    ("entity.other.inherited-class", CodeClass::Type),
    ("support.type", CodeClass::Type),
    ("support.class", CodeClass::Type),
    ("markup.heading", CodeClass::Type),
    ("markup.raw", CodeClass::Text),
    // Code inside a string.
    ("meta.interpolation", CodeClass::Plain),
    ("meta.template.expression", CodeClass::Plain),
    ("source", CodeClass::Plain),
];

/// The class of a piece of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeClass {
    Plain,
    Comment,
    Text,
    Constant,
    Keyword,
    Function,
    Type,
}

impl CodeClass {
    /// Returns the colours: from the sixteen that terminal themes define if the background is
    /// unknown, else with enough contrast to it.
    pub fn style(self, theme: Theme) -> Style {
        let style = Style::new();
        let dark_light = match self {
            Self::Plain => None,
            Self::Comment => Some((245, 242)),
            Self::Text => Some((114, 28)),
            Self::Constant => Some((80, 30)),
            Self::Keyword => Some((176, 90)),
            Self::Function => Some((75, 25)),
            Self::Type => Some((179, 94)),
        };
        match (theme, dark_light) {
            (Theme::Dark, Some((dark, _))) => return style.color256(dark),
            (Theme::Light, Some((_, light))) => return style.color256(light),
            _ => {}
        }
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

/// A piece of a line: byte range and class.
pub type Piece = (Range<usize>, CodeClass);

/// The parser state of code that arrives line by line.
pub struct Code {
    state: ParseState,
    stack: ScopeStack,
    remaining: Duration,
}

/// The loaded syntaxes. Loading takes some milliseconds and happens only for terminals with
/// colours.
pub struct Painter {
    syntaxes: SyntaxSet,
    classes: Vec<(Scope, CodeClass)>,
    /// The remaining time; later code stays plain.
    remaining: Duration,
}

impl Painter {
    /// Loads a painter that works for at most `within`.
    pub fn load(within: Duration) -> Self {
        let classes = CLASSES
            .iter()
            .filter_map(|(name, class_of)| Some((Scope::new(name).ok()?, *class_of)))
            .collect();
        Self { syntaxes: two_face::syntax::extra_newlines(), classes, remaining: within }
    }

    /// Returns the pieces of each line in `range`. A line without pieces is plain.
    pub fn paint(&mut self, path: &str, lines: &[&str], range: Range<usize>) -> Vec<Vec<Piece>> {
        let began = Instant::now();
        let mut painted = vec![Vec::new(); range.len()];
        let Some(syntax) = self.syntax(path) else { return painted };
        let mut state = ParseState::new(syntax);
        let mut stack = ScopeStack::new();
        let from = range.start.saturating_sub(LEADING_LINES);
        for (at, line) in lines.iter().enumerate().take(range.end).skip(from) {
            if began.elapsed() > self.remaining || line.len() > MAX_LINE {
                break;
            }
            let Some(pieces) = self.line(line, &mut state, &mut stack) else { break };
            if let Some(slot) = at.checked_sub(range.start).and_then(|n| painted.get_mut(n)) {
                *slot = pieces;
            }
        }
        self.remaining = self.remaining.saturating_sub(began.elapsed());
        painted
    }

    /// Starts highlighting code line by line; `None` for an unknown language.
    pub fn begin(&self, language: &str) -> Option<Code> {
        let syntax =
            self.syntaxes.find_syntax_by_token(language).filter(|_| !language.is_empty())?;
        Some(Code {
            state: ParseState::new(syntax),
            stack: ScopeStack::new(),
            remaining: self.remaining,
        })
    }

    /// Starts highlighting lines of a file; `None` if its language is unknown.
    pub fn begin_file(&self, path: &str) -> Option<Code> {
        let state = ParseState::new(self.syntax(path)?);
        Some(Code { state, stack: ScopeStack::new(), remaining: self.remaining })
    }

    /// Returns the pieces of the next line; none once the time is over.
    pub fn next(&self, code: &mut Code, line: &str) -> Vec<Piece> {
        let began = Instant::now();
        if code.remaining.is_zero() || line.len() > MAX_LINE {
            return Vec::new();
        }
        let pieces = self.line(line, &mut code.state, &mut code.stack).unwrap_or_default();
        code.remaining = code.remaining.saturating_sub(began.elapsed());
        pieces
    }

    /// Finds the syntax of a file by its extension or name.
    fn syntax(&self, path: &str) -> Option<&SyntaxReference> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let by = |name| self.syntaxes.find_syntax_by_extension(name);
        by(name).or_else(|| by(name.rsplit_once('.')?.1))
    }

    fn line(
        &self,
        line: &str,
        state: &mut ParseState,
        stack: &mut ScopeStack,
    ) -> Option<Vec<Piece>> {
        let changes = state.parse_line(&format!("{line}\n"), &self.syntaxes).ok()?;
        let mut pieces: Vec<Piece> = Vec::new();
        let mut from = 0;
        let mut push = |to: usize, class_of: CodeClass| {
            let to = to.min(line.len());
            match pieces.last_mut() {
                Some((range, last)) if *last == class_of && range.end == from => range.end = to,
                _ if to > from => pieces.push((from..to, class_of)),
                _ => {}
            }
            from = from.max(to);
        };
        for (at, change) in changes {
            push(at, self.class_of(stack));
            stack.apply(&change).ok()?;
        }
        push(line.len(), self.class_of(stack));
        Some(pieces)
    }

    /// Returns the class of the innermost classified scope.
    fn class_of(&self, stack: &ScopeStack) -> CodeClass {
        let of = |scope: &Scope| self.classes.iter().find(|(known, _)| known.is_prefix_of(*scope));
        stack
            .as_slice()
            .iter()
            .rev()
            .find_map(of)
            .map_or(CodeClass::Plain, |(_, class_of)| *class_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(path: &str, text: &str) -> Vec<String> {
        let lines: Vec<&str> = text.split('\n').collect();
        let pieces = Painter::load(Duration::MAX).paint(path, &lines, 0..lines.len());
        let show = |line: &str, pieces: &[Piece]| {
            let classified = pieces.iter().filter(|(_, class_of)| *class_of != CodeClass::Plain);
            let classified = classified
                .map(|(range, class_of)| format!("{class_of:?}:{}", line[range.clone()].trim()));
            classified.collect::<Vec<_>>().join(" ")
        };
        lines.iter().zip(&pieces).map(|(line, pieces)| show(line, pieces)).collect()
    }

    #[test]
    fn pieces_are_classified_in_many_languages() {
        for (path, text, expected) in [
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
            for (got, expected) in got.iter().zip(expected.split('|')) {
                let all = expected.split(' ').all(|word| got.contains(word));
                assert!(
                    all && got.is_empty() == expected.is_empty(),
                    "{path}: {got}, not {expected}"
                );
            }
        }
    }

    #[test]
    fn pieces_cover_the_line_in_order() {
        let text = "/* a\n b */ let é = \"x\\n\"; // ü\n\n\tmatch x {";
        let lines: Vec<&str> = text.split('\n').collect();
        for (line, pieces) in
            lines.iter().zip(Painter::load(Duration::MAX).paint("a.rs", &lines, 0..4))
        {
            let joined: String = pieces.iter().map(|(range, _)| &line[range.clone()]).collect();
            assert_eq!(joined, *line);
        }
    }

    #[test]
    fn preceding_lines_matter_and_time_is_bounded() {
        let lines: Vec<&str> = "/* a\nb\nc */".split('\n').collect();
        let only = Painter::load(Duration::MAX).paint("a.rs", &lines, 1..2);
        assert_eq!(only, [vec![(0..1, CodeClass::Comment)]]);
        assert!(
            Painter::load(Duration::ZERO).paint("a.rs", &lines, 0..3).iter().all(Vec::is_empty)
        );
        let long = "x".repeat(MAX_LINE + 1);
        assert!(Painter::load(Duration::MAX).paint("a.rs", &[&long], 0..1)[0].is_empty());
    }
}
