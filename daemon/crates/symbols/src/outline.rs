//! Definitions of languages whose grammars are too large for the program, read from their tokens.
//!
//! A lexer separates comments and strings from code; a reader for each kind of language finds the
//! headers of definitions, and their ends by brackets, keywords or indentation. Time is linear in
//! the text, and no step depends on the depth of nesting.

mod elixir;
mod haskell;
mod lexer;
mod sql;
mod statements;
mod syntax;

use rustc_hash::FxHashSet;

use super::extract::{Extracted, MAX_NAME, MAX_SYMBOLS, Symbol};
use lexer::{Token, tokens};

/// A function that reads the definitions from the tokens of a text.
type Read = fn(&mut Outline<'_>, &[Token]);

/// The syntax and the reader of a language.
fn language(lang: &str) -> Option<(&'static syntax::Syntax, Read)> {
    Some(match lang {
        "kotlin" => (&syntax::KOTLIN, statements::kotlin),
        "scala" => (&syntax::SCALA, statements::scala),
        "dart" => (&syntax::DART, statements::dart),
        "elixir" => (&syntax::ELIXIR, elixir::read),
        "haskell" => (&syntax::HASKELL, haskell::read),
        "sql" => (&syntax::SQL, sql::read),
        _ => return None,
    })
}

/// True if definitions of this language are read from its tokens.
pub fn is_outlined(lang: &str) -> bool {
    language(lang).is_some()
}

/// The definitions of a text in order, and the hashes of its identifiers. `None` for a language
/// without a reader.
pub fn definitions(lang: &str, text: &[u8]) -> Option<Extracted> {
    let (syntax, read) = language(lang)?;
    let mut idents = FxHashSet::default();
    let tokens = tokens(text, syntax, &mut idents);
    let mut outline = Outline { text, symbols: Vec::new() };
    read(&mut outline, &tokens);
    let mut symbols = outline.symbols;
    for symbol in &mut symbols {
        symbol.end_line = symbol.end_line.max(symbol.start_line);
    }
    symbols.sort_by_key(|s| s.start_line);
    let mut idents: Vec<u32> = idents.into_iter().collect();
    idents.sort_unstable();
    Some(Extracted { symbols, idents })
}

/// The definitions that were found so far.
struct Outline<'a> {
    text: &'a [u8],
    symbols: Vec<Symbol>,
}

impl Outline<'_> {
    fn word(&self, token: &Token) -> &str {
        let range = token.start as usize..token.end as usize;
        self.text.get(range).and_then(|t| std::str::from_utf8(t).ok()).unwrap_or("")
    }

    /// True if the token at this index is one of these words.
    fn is_any(&self, tokens: &[Token], at: usize, words: &[&str]) -> bool {
        tokens.get(at).is_some_and(|t| t.is_word() && words.contains(&self.word(t)))
    }

    /// Adds a definition with a provisional end and returns its index; `None` beyond the limits of
    /// names and of their number.
    fn define(
        &mut self,
        kind: &'static str,
        name: &str,
        container: Option<&str>,
        line: u32,
    ) -> Option<usize> {
        debug_assert!(super::KINDS.contains(&kind), "a filter would refuse {kind}");
        let fits = !name.is_empty()
            && name.len() <= MAX_NAME
            && !name.contains(char::is_control)
            && self.symbols.len() < MAX_SYMBOLS;
        fits.then(|| {
            self.symbols.push(Symbol {
                name: name.to_owned(),
                kind,
                container: container.filter(|c| c.len() <= MAX_NAME).map(str::to_owned),
                start_line: line,
                end_line: line,
            });
            self.symbols.len() - 1
        })
    }

    /// True if no more definitions are added.
    fn is_full(&self) -> bool {
        self.symbols.len() >= MAX_SYMBOLS
    }

    fn close(&mut self, symbol: Option<usize>, line: u32) {
        if let Some(symbol) = symbol.and_then(|at| self.symbols.get_mut(at)) {
            symbol.end_line = line;
        }
    }
}
