//! One pass over a syntax tree: definitions with their spans, and the distinct identifiers. No recursion, so that no
//! depth of nesting can exhaust the stack; bounded in time and number.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;
use tree_sitter::{Node, ParseOptions, Parser, Tree, TreeCursor};

use super::bodies;
use super::languages::{Action, Grammar, NameBy, When, grammar};

/// Longest time for one file.
const MAX_TIME: Duration = Duration::from_millis(1500);
/// Definitions of one file.
const MAX_SYMBOLS: usize = 20_000;
/// Bytes of a name.
pub const MAX_NAME: usize = 200;

/// What a file defines and refers to.
#[derive(Debug, Default, PartialEq)]
pub struct Extracted {
    /// Definitions in the order of the file.
    pub symbols: Vec<Symbol>,
    /// Hashes of its distinct identifiers, sorted.
    pub idents: Vec<u32>,
}

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// `function`, `class`, …
    pub kind: &'static str,
    /// The definition around it.
    pub container: Option<String>,
    /// First line, from 1.
    pub start_line: u32,
    /// Last line.
    pub end_line: u32,
}

/// Whether files of this language are parsed.
pub fn is_parsed(lang: &str) -> bool {
    grammar(lang).is_some()
}

/// The hash that stands for an identifier.
pub fn ident_hash(name: &[u8]) -> u32 {
    name.iter().fold(2_166_136_261, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619))
}

/// Parses `text`. `None` when the language is not parsed, or it took too long, or `stop` was set.
pub fn extract(lang: &str, path: &str, text: &[u8], stop: &AtomicBool) -> Option<Extracted> {
    let grammar = grammar(lang)?;
    let mut seen = FxHashSet::default();
    let short = bodies::are_left_out(lang).then(|| {
        bodies::idents(text, &mut seen);
        bodies::without(lang, text)
    });
    let text = short.as_deref().unwrap_or(text);
    let tree = parse(grammar, text, stop)?;
    let mut walk = Walk { text, grammar, lang, scopes: Vec::new(), found: Extracted::default(), seen };
    walk.run(&mut tree.walk());
    let mut found = walk.found;
    found.idents = walk.seen.into_iter().collect();
    found.idents.sort_unstable();
    if found.symbols.len() == MAX_SYMBOLS {
        tracing::debug!(path, "definitions were cut at their limit");
    }
    Some(found)
}

fn parse(grammar: &Grammar, text: &[u8], stop: &AtomicBool) -> Option<Tree> {
    thread_local!(static PARSER: RefCell<Parser> = RefCell::new(Parser::new()));
    let until = Instant::now() + MAX_TIME;
    PARSER.with_borrow_mut(|parser| {
        parser.set_language(&grammar.language).ok()?;
        parser.reset();
        let mut check = |_: &tree_sitter::ParseState| {
            if stop.load(Ordering::Relaxed) || Instant::now() > until {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let options = ParseOptions::new().progress_callback(&mut check);
        parser.parse_with_options(&mut |at, _| text.get(at..).unwrap_or(&[]), None, Some(options))
    })
}

struct Scope {
    end: usize,
    name: String,
    is_type: bool,
}

struct Walk<'a> {
    text: &'a [u8],
    grammar: &'static Grammar,
    lang: &'a str,
    scopes: Vec<Scope>,
    found: Extracted,
    seen: FxHashSet<u32>,
}

impl Walk<'_> {
    fn run(&mut self, cursor: &mut TreeCursor<'_>) {
        let mut depth = 0u32;
        loop {
            let node = cursor.node();
            match self.grammar.actions.get(node.kind_id() as usize) {
                Some(Action::Ident) => {
                    let name = &self.text[node.byte_range()];
                    if (2..=MAX_NAME).contains(&name.len()) {
                        self.seen.insert(ident_hash(name));
                    }
                }
                Some(Action::Define(row)) => self.define(&node, *row, depth),
                _ => {}
            }
            if cursor.goto_first_child() {
                depth += 1;
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                depth -= 1;
            }
        }
    }

    fn define(&mut self, node: &Node<'_>, row: u8, depth: u32) {
        let (_, kind, name_by, when) = self.grammar.rows[row as usize];
        while self.scopes.last().is_some_and(|s| s.end <= node.start_byte()) {
            self.scopes.pop();
        }
        let counts = match when {
            When::Always => true,
            When::TopLevel => self.scopes.is_empty() && depth <= 3,
            When::Body => node.child_by_field_name("body").is_some(),
            When::FunctionValue => function_value(node),
        };
        let name = if counts { self.name(node, name_by) } else { None };
        let Some(name) = name else { return };
        if name_by != NameBy::Type && self.found.symbols.len() < MAX_SYMBOLS {
            let (kind, container) = self.refine(node, kind);
            self.found.symbols.push(Symbol {
                name: name.clone(),
                kind,
                container,
                start_line: node.start_position().row as u32 + 1,
                end_line: last_line(node),
            });
        }
        let is_type =
            !matches!(kind, "function" | "method" | "constructor" | "constant" | "variable" | "macro");
        self.scopes.push(Scope { end: node.end_byte(), name, is_type });
    }

    /// The kind in its surroundings, and the definition around it.
    fn refine(&self, node: &Node<'_>, kind: &'static str) -> (&'static str, Option<String>) {
        let around = self.scopes.last();
        let container = around.map(|s| s.name.clone());
        match (self.lang, kind) {
            ("rust" | "python", "function") if around.is_some_and(|s| s.is_type && !self.in_module(s)) => {
                ("method", container)
            }
            ("go", "method") => (kind, self.receiver(node).or(container)),
            ("go", "type") => {
                let inner = node.child_by_field_name("type").map_or("", |t| t.kind());
                let kind = match inner {
                    "struct_type" => "struct",
                    "interface_type" => "interface",
                    _ => kind,
                };
                (kind, container)
            }
            _ => (kind, container),
        }
    }

    /// Whether a scope is a Rust module, in which functions are no methods.
    fn in_module(&self, scope: &Scope) -> bool {
        let of = |s: &&Symbol| s.name == scope.name;
        self.found.symbols.iter().rev().find(of).is_some_and(|s| s.kind == "module")
    }

    fn receiver(&self, node: &Node<'_>) -> Option<String> {
        let text = self.slice(&node.child_by_field_name("receiver")?)?;
        let name = text.trim_matches(['(', ')']).split('[').next()?.split_whitespace().last()?;
        Some(name.trim_start_matches('*').to_owned()).filter(|n| !n.is_empty())
    }

    fn name(&self, node: &Node<'_>, by: NameBy) -> Option<String> {
        let found = match by {
            NameBy::Field => {
                node.child_by_field_name("name").or_else(|| node.child_by_field_name("property"))?
            }
            NameBy::Key => node.child_by_field_name("key")?,
            NameBy::Left => {
                let left = node.child_by_field_name("left")?;
                left.child_by_field_name("property").unwrap_or(left)
            }
            NameBy::Type => {
                let mut inner = node.child_by_field_name("type")?;
                while let Some(deeper) =
                    inner.child_by_field_name("type").or_else(|| inner.child_by_field_name("name"))
                {
                    inner = deeper;
                }
                inner
            }
            NameBy::Declarator => {
                let mut inner = node.child_by_field_name("declarator")?;
                while let Some(deeper) =
                    inner.child_by_field_name("declarator").or_else(|| inside_parentheses(&inner))
                {
                    inner = deeper;
                }
                inner
            }
        };
        let text = self.slice(&found)?.trim_matches(['"', '\'']);
        let plain = !text.is_empty()
            && text.len() <= MAX_NAME
            && !text.contains(char::is_whitespace)
            && !text.contains(['(', '[', '{']);
        plain.then(|| text.to_owned())
    }

    fn slice(&self, node: &Node<'_>) -> Option<&str> {
        std::str::from_utf8(self.text.get(node.byte_range())?).ok()
    }
}

/// `(*name)` in a C declarator has no field for what is inside.
fn inside_parentheses<'a>(node: &Node<'a>) -> Option<Node<'a>> {
    matches!(node.kind(), "parenthesized_declarator" | "attributed_declarator")
        .then(|| node.named_child(0))
        .flatten()
}

fn function_value(node: &Node<'_>) -> bool {
    let value = node.child_by_field_name("value").or_else(|| node.child_by_field_name("right"));
    value.is_some_and(|v| {
        matches!(v.kind(), "arrow_function" | "function_expression" | "generator_function" | "class")
    })
}

/// Some nodes end with the newline behind them; their last line is the one before.
fn last_line(node: &Node<'_>) -> u32 {
    let (start, end) = (node.start_position(), node.end_position());
    let row = if end.column == 0 && end.row > start.row { end.row - 1 } else { end.row };
    row as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(lang: &str, text: &str) -> String {
        let found = extract(lang, "x", text.as_bytes(), &AtomicBool::new(false)).unwrap();
        let show = |s: &Symbol| {
            let inside = s.container.as_ref().map(|c| format!("{c}.")).unwrap_or_default();
            format!("{} {inside}{} {}-{}", s.kind, s.name, s.start_line, s.end_line)
        };
        found.symbols.iter().map(show).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn each_language_has_its_definitions() {
        for (lang, text, wanted) in [
            (
                "rust",
                "pub struct A<T>(T);\nimpl<T> Tr for A<T> {\n  fn run(&self) {}\n}\nmod m {\n fn free() {}\n}\nmod other;\nmacro_rules! mac { () => {} }\ntrait Tr { fn run(&self); }\nconst MAX: u8 = 1;",
                "struct A 1-1; method A.run 3-3; module m 5-7; function m.free 6-6; macro mac 9-9; trait Tr 10-10; method Tr.run 10-10; constant MAX 11-11",
            ),
            (
                "python",
                "LIMIT = 3\nclass A:\n    @property\n    def x(self):\n        y = 1\n        return y\n\nasync def f(): pass\n",
                "constant LIMIT 1-1; class A 2-6; method A.x 4-6; function f 8-8",
            ),
            (
                "javascript",
                "class A { run() {} }\nconst f = (a) => a;\napp.use = function use() {};\nmodule.exports = { go: function () {} };\nfunction g() {}\n",
                "class A 1-1; method A.run 1-1; function f 2-2; function use 3-3; method go 4-4; function g 5-5",
            ),
            (
                "typescript",
                "export interface I { m(): void }\nexport type T = string;\nenum E { A }\nexport const f = async () => 1;\nabstract class C { abstract x(): void; private y = () => 2; }\n",
                "interface I 1-1; method I.m 1-1; type T 2-2; enum E 3-3; function f 4-4; class C 5-5; method C.x 5-5; method C.y 5-5",
            ),
            ("tsx", "export function App() { return <div/>; }\n", "function App 1-1"),
            (
                "go",
                "package p\ntype S struct{}\ntype I interface{}\nfunc (s *S) Run() {}\nfunc New() *S { return nil }\nconst Max = 1\nvar Err = 2\ntype G[T any] struct{}\nfunc (g *G[T]) Do() {}\n",
                "struct S 2-2; interface I 3-3; method S.Run 4-4; function New 5-5; constant Max 6-6; variable Err 7-7; struct G 8-8; method G.Do 9-9",
            ),
            (
                "c",
                "#define MAX 3\n#define F(x) (x)\nstruct s { int a; };\ntypedef struct { int b; } t;\nstatic int *get(struct s *p) { return 0; }\nenum e { A };\nint proto(void);\n",
                "macro MAX 1-1; macro F 2-2; struct s 3-3; type t 4-4; function get 5-5; enum e 6-6",
            ),
            (
                "java",
                "package p;\npublic class A { A() {} void run() {} interface B { int c(); } }\nenum E { X }\nrecord R(int a) {}\n",
                "class A 2-2; constructor A.A 2-2; method A.run 2-2; interface A.B 2-2; method B.c 2-2; enum E 3-3; record R 4-4",
            ),
        ] {
            assert_eq!(names(lang, text), wanted, "{lang}");
        }
    }

    #[test]
    fn identifiers_are_distinct_and_sorted() {
        let found = extract("rust", "x", b"fn aa() { bb(cc, bb); x }", &AtomicBool::new(false)).unwrap();
        assert_eq!(found.idents.len(), 3);
        assert!(found.idents.is_sorted() && found.idents.contains(&ident_hash(b"bb")));
    }

    #[test]
    fn deep_nesting_and_broken_text_are_survived() {
        let deep = "(".repeat(200_000);
        let _ = extract("javascript", "x", deep.as_bytes(), &AtomicBool::new(false));
        assert!(extract("rust", "x", b"fn ok() {} \xff\xfe fn (((", &AtomicBool::new(false)).is_some());
        assert!(extract("cobol", "x", b"", &AtomicBool::new(false)).is_none());
    }
}
