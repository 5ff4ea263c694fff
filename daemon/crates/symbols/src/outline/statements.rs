//! Kotlin, Scala and Dart: headers of definitions with a body in braces, an expression, or none.

mod dart_members;

use super::Outline;
use super::lexer::{Kind, Token};

/// Tokens that are read for the name of a function, whose receiver and type parameters precede it.
const MAX_HEADER: usize = 96;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Kotlin,
    Scala,
    Dart,
}

/// The part of a definition that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Header,
    /// A body in braces.
    Braces,
    /// A value or a body after `=` or `=>`.
    Expression,
    /// A body by indentation (Scala 3).
    Indented,
}

struct Scope {
    symbol: Option<usize>,
    name: String,
    kind: &'static str,
    /// Number of brackets that are open around it.
    depth: usize,
    /// Column of the first token of its line.
    indent: u32,
    state: State,
    /// True while the values of an enumeration are read (Dart).
    is_in_values: bool,
}

impl Scope {
    fn is_type(&self) -> bool {
        matches!(self.kind, "class" | "interface" | "enum" | "trait" | "module")
    }
}

pub fn kotlin(outline: &mut Outline<'_>, tokens: &[Token]) {
    Reader::new(Language::Kotlin, outline, tokens).run();
}

pub fn scala(outline: &mut Outline<'_>, tokens: &[Token]) {
    Reader::new(Language::Scala, outline, tokens).run();
}

pub fn dart(outline: &mut Outline<'_>, tokens: &[Token]) {
    Reader::new(Language::Dart, outline, tokens).run();
}

struct Reader<'a, 't> {
    language: Language,
    outline: &'a mut Outline<'t>,
    tokens: &'a [Token],
    scopes: Vec<Scope>,
    brackets: Vec<u8>,
    /// Number of open brackets of each kind, so that a search for a partner always succeeds.
    open_count: [u32; 3],
    /// Column of the first token of the present line.
    indent: u32,
}

fn bracket_index(bracket: u8) -> usize {
    match bracket {
        b'(' => 0,
        b'[' => 1,
        _ => 2,
    }
}

/// A definition whose name was found.
struct Found<'n> {
    kind: &'static str,
    name: &'n str,
    container: Option<&'n str>,
}

impl<'a, 't> Reader<'a, 't> {
    fn new(language: Language, outline: &'a mut Outline<'t>, tokens: &'a [Token]) -> Self {
        let (scopes, brackets) = (Vec::new(), Vec::new());
        Self { language, outline, tokens, scopes, brackets, open_count: [0; 3], indent: 0 }
    }

    fn run(&mut self) {
        for at in 0..self.tokens.len() {
            let token = self.tokens[at];
            if self.outline.is_full() {
                break;
            }
            if token.is_first {
                self.indent = token.column;
                self.end_by_line(at);
            }
            match token.kind {
                Kind::Punct(bracket @ (b'(' | b'[' | b'{')) => self.open(at, bracket),
                Kind::Punct(b')') => self.close(at, b'('),
                Kind::Punct(b']') => self.close(at, b'['),
                Kind::Punct(b'}') => self.close(at, b'{'),
                Kind::Punct(b'=') => self.equals(at),
                Kind::Punct(b';') => self.semicolon(at),
                Kind::Word => self.word(at),
                _ => {}
            }
        }
        let last = self.tokens.last().map_or(1, |t| t.last_line);
        while let Some(scope) = self.scopes.pop() {
            self.outline.close(scope.symbol, last);
        }
    }

    fn previous(&self, at: usize) -> Option<&'a Token> {
        self.tokens.get(at.checked_sub(1)?)
    }

    fn is_punct(&self, at: usize, punct: u8) -> bool {
        self.tokens.get(at).is_some_and(|t| t.is(punct))
    }

    /// Ends headers, expressions and indented bodies before a token that starts a line.
    fn end_by_line(&mut self, at: usize) {
        if self.language == Language::Dart {
            return;
        }
        let Some(previous) = self.previous(at).copied() else { return };
        while let Some(scope) = self.scopes.last_mut() {
            if scope.state == State::Braces || scope.depth != self.brackets.len() {
                break;
            }
            let is_inner = self.tokens[at].column > scope.indent;
            if scope.state == State::Header && is_inner && previous.is(b':') && scope.is_type() {
                scope.state = State::Indented;
                break;
            }
            if is_inner || (scope.state != State::Indented && self.continues(at)) {
                break;
            }
            self.pop(previous.last_line);
        }
    }

    /// True if the statement goes on with a token that starts a line.
    fn continues(&self, at: usize) -> bool {
        let before = self.previous(at).is_some_and(|t| {
            matches!(t.kind, Kind::Punct(b'=' | b',' | b':' | b'.' | b'+' | b'&' | b'|' | b'<'))
                || self.outline.is_any(std::slice::from_ref(t), 0, &["extends", "with", "by"])
        });
        let starts_body = matches!(self.tokens[at].kind, Kind::Punct(b'{' | b'=' | b':'));
        let joins = matches!(self.tokens[at].kind, Kind::Punct(b'.' | b'?' | b'&' | b'|' | b')'));
        let is_header = self.scopes.last().is_some_and(|s| s.state == State::Header);
        let words = ["where", "extends", "with", "derives", "constructor", "else"];
        before
            || joins
            || (is_header && (starts_body || self.is_constructor(at)))
            || self.outline.is_any(self.tokens, at, &words)
    }

    /// True if annotations and modifiers of a constructor of Kotlin begin here, which belong to the
    /// header of its class.
    fn is_constructor(&self, at: usize) -> bool {
        let is_class = self.scopes.last().is_some_and(|s| s.kind == "class");
        if self.language != Language::Kotlin || !is_class {
            return false;
        }
        let others = ["class", "fun", "val", "var", "interface", "object", "typealias"];
        let stops = |n: &usize| {
            self.outline.is_any(self.tokens, *n, &others)
                || matches!(self.tokens[*n].kind, Kind::Punct(b'{' | b'}' | b'='))
        };
        let end = self.tokens.len().min(at + MAX_HEADER);
        (at..end)
            .take_while(|n| !stops(n))
            .any(|n| self.outline.is_any(self.tokens, n, &["constructor"]))
    }

    fn pop(&mut self, line: u32) {
        if let Some(scope) = self.scopes.pop() {
            self.outline.close(scope.symbol, line);
        }
    }

    fn open(&mut self, at: usize, bracket: u8) {
        if bracket == b'(' && self.language == Language::Dart {
            self.dart_function(at);
        }
        if bracket == b'{'
            && let Some(scope) = self.scopes.last_mut()
            && scope.state == State::Header
            && scope.depth == self.brackets.len()
        {
            scope.state = State::Braces;
        }
        self.open_count[bracket_index(bracket)] += 1;
        self.brackets.push(bracket);
    }

    fn close(&mut self, at: usize, bracket: u8) {
        // A bracket without a partner is ignored; those inside of the partner end with it.
        if self.open_count[bracket_index(bracket)] == 0 {
            return;
        }
        while let Some(open) = self.brackets.pop() {
            self.open_count[bracket_index(open)] -= 1;
            if open == bracket {
                break;
            }
        }
        let partner = self.brackets.len();
        let token = self.tokens[at];
        let before = self.previous(at).map_or(token.line, |t| t.last_line);
        while let Some(scope) = self.scopes.last() {
            let is_end = scope.depth == partner && scope.state == State::Braces && bracket == b'{';
            if is_end {
                self.pop(token.line);
                break;
            }
            if scope.depth <= partner {
                break;
            }
            self.pop(before);
        }
    }

    fn equals(&mut self, at: usize) {
        let is_comparison = self.previous(at).is_some_and(|t| {
            t.end == self.tokens[at].start
                && matches!(t.kind, Kind::Punct(b'=' | b'!' | b'<' | b'>'))
        }) || (self.is_punct(at + 1, b'=')
            && self.tokens[at + 1].start == self.tokens[at].end);
        if is_comparison {
            return;
        }
        if self.language == Language::Dart && self.is_member_level() {
            self.dart_value(at);
            return;
        }
        let is_arrow = self.is_punct(at + 1, b'>');
        let depth = self.brackets.len();
        if let Some(scope) = self.scopes.last_mut()
            && scope.state == State::Header
            && scope.depth == depth
        {
            // An initializer of a constructor of Dart assigns before the body.
            let is_initializer =
                self.language == Language::Dart && !is_arrow && scope.kind == "constructor";
            if !is_initializer {
                scope.state = State::Expression;
            }
        }
    }

    fn semicolon(&mut self, at: usize) {
        let depth = self.brackets.len();
        if let Some(scope) = self.scopes.last_mut()
            && scope.state == State::Braces
            && scope.depth + 1 == depth
        {
            scope.is_in_values = false;
        }
        while self.scopes.last().is_some_and(|s| {
            s.depth == depth && matches!(s.state, State::Header | State::Expression)
        }) {
            self.pop(self.tokens[at].line);
        }
    }

    /// True directly in the file or in the body of a type.
    fn is_member_level(&self) -> bool {
        let depth = self.brackets.len();
        match self.scopes.last() {
            None => depth == 0,
            Some(scope) => match scope.state {
                State::Braces => scope.is_type() && depth == scope.depth + 1,
                State::Indented => scope.is_type() && depth == scope.depth,
                State::Header | State::Expression => false,
            },
        }
    }

    fn define(&mut self, at: usize, found: &Found<'_>) {
        let enclosing =
            self.scopes.iter().rev().find(|s| s.symbol.is_some()).map(|s| s.name.clone());
        let container = found.container.map(str::to_owned).or(enclosing);
        let name = found.name.trim_matches('`');
        let line = self.tokens[at].line;
        let symbol = self.outline.define(found.kind, name, container.as_deref(), line);
        self.scopes.push(Scope {
            symbol,
            name: name.to_owned(),
            kind: found.kind,
            depth: self.brackets.len(),
            indent: self.indent,
            state: State::Header,
            is_in_values: self.language == Language::Dart && found.kind == "enum",
        });
    }

    fn word(&mut self, at: usize) {
        // A member named by a keyword: `Name::class`, `a.type`.
        if self
            .previous(at)
            .is_some_and(|t| t.is(b'.') || (t.is(b':') && self.is_punct(at - 2, b':')))
        {
            return;
        }
        let token = &self.tokens[at];
        let word = self.outline.word(token).to_owned();
        match (self.language, word.as_str()) {
            (Language::Dart, _) => self.dart_word(at, &word),
            (_, "class" | "interface" | "trait" | "object" | "enum" | "typealias") => {
                self.type_definition(at, &word);
            }
            (Language::Scala, "type") if self.is_member_level() => self.type_definition(at, &word),
            (Language::Kotlin, "fun") => self.function(at),
            (Language::Scala, "def") => self.function(at),
            (_, "val" | "var") if self.is_member_level() => self.value(at, word == "var"),
            (Language::Scala, "given") if self.is_member_level() => self.given(at),
            (Language::Kotlin, "constructor") if self.is_member_level() => {
                let name = self.scopes.last().map(|s| s.name.clone()).unwrap_or_default();
                let found = Found { kind: "constructor", name: &name, container: Some(&name) };
                if !name.is_empty() {
                    self.define(at, &found);
                }
            }
            _ => {}
        }
    }

    /// A word of the same statement just before the token at `at`.
    fn has_modifier(&self, at: usize, modifier: &str) -> bool {
        let before = self.tokens[..at].iter().rev().take(6).take_while(|t| t.is_word());
        before.into_iter().any(|t| self.outline.word(t) == modifier)
    }

    fn type_definition(&mut self, at: usize, keyword: &str) {
        let is_companion = keyword == "object" && self.has_modifier(at, "companion");
        let next = self.tokens.get(at + 1).filter(|t| t.is_word() && !t.is_first);
        let name = match next {
            Some(next) => self.outline.word(next).to_owned(),
            None if is_companion => "Companion".to_owned(),
            None => return,
        };
        // `enum class` of Kotlin and `case class` of Scala define at the second word.
        if matches!(name.as_str(), "class" | "interface" | "object" | "extends" | "fun") {
            return;
        }
        let kind = match keyword {
            "interface" => "interface",
            "trait" => "trait",
            "enum" => "enum",
            "type" | "typealias" => "type",
            "class" if self.has_modifier(at, "enum") => "enum",
            "class" if self.has_modifier(at, "annotation") => "interface",
            _ => "class",
        };
        self.define(at, &Found { kind, name: &name, container: None });
    }

    fn is_in_type(&self) -> bool {
        self.scopes.last().is_some_and(|s| s.is_type() && s.state != State::Header)
    }

    fn function(&mut self, at: usize) {
        let Some((name_at, receiver)) = self.function_name(at + 1) else { return };
        let name = self.outline.word(&self.tokens[name_at]).to_owned();
        let receiver = receiver.map(|t| self.outline.word(&self.tokens[t]).to_owned());
        let class = self.scopes.last().map(|s| s.name.clone());
        let found = match (self.language, name.as_str(), &class) {
            (_, "interface", _) => return,
            (Language::Scala, "this", Some(class)) if self.is_in_type() => {
                Found { kind: "constructor", name: class, container: Some(class) }
            }
            _ => {
                let is_method = self.is_in_type() || self.has_modifier(at, "override");
                let kind = if is_method { "method" } else { "function" };
                Found { kind, name: &name, container: receiver.as_deref() }
            }
        };
        self.define(at, &found);
    }

    /// The name of a function and its receiver (`fun <T> List<T>.name(`), which begin at `from`.
    fn function_name(&self, from: usize) -> Option<(usize, Option<usize>)> {
        if self.language == Language::Scala {
            return self.tokens.get(from)?.is_word().then_some((from, None));
        }
        let mut angles = 0_i32;
        let mut parens = 0_i32;
        let mut path = Vec::new();
        let end = self.tokens.len().min(from + MAX_HEADER);
        for at in from..end {
            let token = &self.tokens[at];
            let is_arrow = token.is(b'>') && self.is_punct(at - 1, b'-');
            match token.kind {
                Kind::Punct(b'<') => angles += 1,
                Kind::Punct(b'>') if !is_arrow => angles -= 1,
                Kind::Punct(b'(')
                    if angles == 0 && parens == 0 && at > from && self.tokens[at - 1].is_word() =>
                {
                    let name = path.pop()?;
                    return Some((name, path.pop()));
                }
                Kind::Punct(b'(') => parens += 1,
                Kind::Punct(b')') => parens -= 1,
                Kind::Punct(b'{' | b'}' | b'=' | b';') if angles == 0 && parens == 0 => {
                    return None;
                }
                Kind::Word if angles == 0 && parens == 0 => path.push(at),
                _ => {}
            }
        }
        None
    }

    /// A property; destructured ones have no name of their own.
    fn value(&mut self, at: usize, is_variable: bool) {
        let mut angles = 0_i32;
        let mut path = Vec::new();
        for token_at in at + 1..self.tokens.len().min(at + MAX_HEADER) {
            let token = &self.tokens[token_at];
            let is_by = self.outline.is_any(self.tokens, token_at, &["by", "get"]);
            match token.kind {
                Kind::Punct(b'<') => angles += 1,
                Kind::Punct(b'>') => angles -= 1,
                Kind::Punct(b'.' | b'?') | Kind::Literal => {}
                _ if angles > 0 => {}
                Kind::Word if !is_by && (path.is_empty() || self.is_punct(token_at - 1, b'.')) => {
                    path.push(token_at);
                }
                _ => break,
            }
        }
        let Some(name) = path.pop() else { return };
        let name = self.outline.word(&self.tokens[name]).to_owned();
        let receiver = path.pop().map(|t| self.outline.word(&self.tokens[t]).to_owned());
        let kind = match (self.scopes.last(), is_variable) {
            (Some(_), _) => "property",
            (None, true) => "variable",
            (None, false) => "constant",
        };
        self.define(at, &Found { kind, name: &name, container: receiver.as_deref() });
    }

    /// A named instance of Scala 3 (`given name: Type`).
    fn given(&mut self, at: usize) {
        let name = self.tokens.get(at + 1).filter(|t| t.is_word());
        if let Some(name) = name.filter(|_| self.is_punct(at + 2, b':')) {
            let name = self.outline.word(name).to_owned();
            self.define(at, &Found { kind: "constant", name: &name, container: None });
        }
    }
}
