//! Elixir: definitions are calls of macros, with a body between `do` and `end` or after `do:`.

use super::Outline;
use super::lexer::{Kind, Token};

/// The macros that define, with the kind of the definition.
const MACROS: [(&str, &str); 14] = [
    ("defmodule", "module"),
    ("defprotocol", "protocol"),
    ("defimpl", "module"),
    ("def", "function"),
    ("defp", "function"),
    ("defdelegate", "function"),
    ("defmacro", "macro"),
    ("defmacrop", "macro"),
    ("defguard", "macro"),
    ("defguardp", "macro"),
    ("defrecord", "record"),
    ("defrecordp", "record"),
    ("defn", "function"),
    ("defnp", "function"),
];
/// The attributes that define, with the kind of the definition.
const ATTRIBUTES: [(&str, &str); 5] = [
    ("type", "type"),
    ("typep", "type"),
    ("opaque", "type"),
    ("callback", "method"),
    ("macrocallback", "macro"),
];

/// A block up to its `end`.
struct Block {
    symbol: Option<usize>,
    /// The name of a module.
    module: Option<String>,
}

/// A definition whose block was not found yet.
struct Pending {
    block: Block,
    depth: usize,
    column: u32,
}

struct Reader<'a, 't> {
    outline: &'a mut Outline<'t>,
    tokens: &'a [Token],
    blocks: Vec<Block>,
    /// Names of the modules among the open blocks, outermost first.
    modules: Vec<String>,
    pending: Option<Pending>,
    /// Number of open brackets.
    depth: usize,
}

pub fn read(outline: &mut Outline<'_>, tokens: &[Token]) {
    let mut reader = Reader {
        outline,
        tokens,
        blocks: Vec::new(),
        modules: Vec::new(),
        pending: None,
        depth: 0,
    };
    for at in 0..tokens.len() {
        reader.token(at);
        if reader.outline.is_full() {
            break;
        }
    }
    let last = tokens.last().map_or(1, |t| t.last_line);
    reader.end_pending(last);
    for block in reader.blocks {
        reader.outline.close(block.symbol, last);
    }
}

impl Reader<'_, '_> {
    fn token(&mut self, at: usize) {
        let token = self.tokens[at];
        if token.is_first
            && let Some(pending) = &self.pending
            && pending.depth == self.depth
            && token.column <= pending.column
            && !matches!(token.kind, Kind::Punct(b')' | b']' | b'}'))
        {
            self.end_pending(self.tokens[at - 1].last_line);
        }
        match token.kind {
            Kind::Punct(b'(' | b'[' | b'{') => self.depth += 1,
            Kind::Punct(b')' | b']' | b'}') => self.depth = self.depth.saturating_sub(1),
            Kind::Word => self.word(at),
            _ => {}
        }
    }

    fn end_pending(&mut self, line: u32) {
        if let Some(pending) = self.pending.take() {
            self.outline.close(pending.block.symbol, line);
        }
    }

    fn is_punct(&self, at: usize, punct: u8) -> bool {
        self.tokens.get(at).is_some_and(|t| t.is(punct))
    }

    /// True for a key (`do:`), an atom (`:end`) or a member (`a.end`).
    fn is_name(&self, at: usize) -> bool {
        let token = &self.tokens[at];
        let is_key = self.is_punct(at + 1, b':')
            && self.tokens[at + 1].start == token.end
            && !self.is_punct(at + 2, b':');
        let is_member = at.checked_sub(1).is_some_and(|before| {
            let before = &self.tokens[before];
            before.end == token.start && matches!(before.kind, Kind::Punct(b':' | b'.' | b'&'))
        });
        is_key || is_member
    }

    fn word(&mut self, at: usize) {
        if self.is_name(at) {
            return;
        }
        let token = self.tokens[at];
        let word = self.outline.word(&token).to_owned();
        match word.as_str() {
            "do" => {
                let pending = self.pending.take_if(|p| p.depth == self.depth);
                let block = pending.map_or(Block { symbol: None, module: None }, |p| p.block);
                self.modules.extend(block.module.clone());
                self.blocks.push(block);
            }
            "fn" => self.blocks.push(Block { symbol: None, module: None }),
            "end" => {
                if let Some(block) = self.blocks.pop() {
                    self.outline.close(block.symbol, token.line);
                    if block.module.is_some() {
                        self.modules.pop();
                    }
                }
            }
            "test" if token.is_first && self.test_name(at + 1).is_some() => {
                let name = self.test_name(at + 1).unwrap_or_default();
                self.begin(at, "function", name, None);
            }
            _ if token.is_first => {
                if let Some((_, kind)) = MACROS.iter().find(|(name, _)| *name == word) {
                    self.define(at, kind);
                }
            }
            _ => {
                let is_attribute =
                    at > 0 && self.is_punct(at - 1, b'@') && self.tokens[at - 1].is_first;
                let found = ATTRIBUTES.iter().find(|(name, _)| *name == word);
                if let Some((_, kind)) = found.filter(|_| is_attribute) {
                    self.define(at, kind);
                }
            }
        }
    }

    /// A definition by the macro or attribute at `at`.
    fn define(&mut self, at: usize, kind: &'static str) {
        let first = at + 1 + usize::from(self.is_punct(at + 1, b'('));
        let Some(name_token) = self.tokens.get(first) else { return };
        let is_atom = name_token.is(b':');
        let Some(name_token) =
            self.tokens.get(first + usize::from(is_atom)).filter(|t| t.is_word())
        else {
            return;
        };
        // `Ecto.Query` is `Query` of `Ecto`, as a nested module would be.
        let mut name_token = *name_token;
        let start = name_token.start;
        let mut next = first + 1 + usize::from(is_atom);
        let is_module = matches!(kind, "module" | "protocol");
        while is_module && self.is_punct(next, b'.') {
            let Some(part) = self.tokens.get(next + 1).filter(|t| t.is_word()) else { break };
            name_token = *part;
            next += 2;
        }
        let qualifier = (name_token.start > start)
            .then(|| self.outline.word(&Token { start, end: name_token.start - 1, ..name_token }))
            .map(str::to_owned);
        let name = match self.operator(next).filter(|_| !is_module) {
            Some(operator) => operator,
            None => self.outline.word(&name_token).to_owned(),
        };
        // The name of a generated function or module is not in the text.
        let is_variable = is_module && name.starts_with(char::is_lowercase);
        if name == "unquote" || name == "__MODULE__" || is_variable {
            return;
        }
        self.begin(at, kind, name, qualifier);
    }

    /// Adds a definition that starts at `at`; its block follows.
    fn begin(&mut self, at: usize, kind: &'static str, name: String, qualifier: Option<String>) {
        let token = self.tokens[at];
        self.end_pending(token.line.saturating_sub(1));
        let container = qualifier.or_else(|| self.modules.last().cloned());
        let symbol = self.outline.define(kind, &name, container.as_deref(), token.line);
        let module = matches!(kind, "module" | "protocol").then_some(name);
        let column = if token.is_first { token.column } else { self.tokens[at - 1].column };
        let block = Block { symbol, module };
        self.pending = Some(Pending { block, depth: self.depth, column });
    }

    /// The text that names a test (`test "is empty" do`).
    fn test_name(&self, at: usize) -> Option<String> {
        let name = self.tokens.get(at).filter(|t| t.kind == Kind::Literal && !t.is_first)?;
        let end = self.tokens.get(at + 1).map_or(name.end, |next| next.start);
        let text = self.outline.word(&Token { end, ..*name });
        let (name, _) = text.strip_prefix('"')?.split_once('"')?;
        (!name.contains(['\n', '\\']) && !name.contains("#{")).then(|| name.to_owned())
    }

    /// The operator at `at`, as in `def left == right`.
    fn operator(&self, at: usize) -> Option<String> {
        if self.outline.is_any(self.tokens, at, &["and", "or", "in"]) {
            return self.tokens.get(at).map(|t| self.outline.word(t).to_owned());
        }
        let is_sign = |t: &&Token| matches!(t.kind, Kind::Punct(b) if b"=!<>+-*/|&^~".contains(&b));
        let first = self.tokens.get(at).filter(is_sign)?;
        let mut end = first.end;
        for sign in self.tokens[at + 1..].iter().take_while(is_sign) {
            if sign.start != end {
                break;
            }
            end = sign.end;
        }
        Some(self.outline.word(&Token { end, ..*first }).to_owned())
    }
}
