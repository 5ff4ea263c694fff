//! The shared pass of languages whose imports name packages: the names of types that a file uses
//! and declares, beside its import statements.

use super::collect::Collector;
use super::read::{Stops, is_ident, starts_word, word_at};

/// A language whose imports are found in such a pass.
pub trait Language<'a> {
    /// The bytes of interest: capitals, quotes, comments, braces, and first letters of keywords.
    fn stops(&self) -> &'static Stops;
    /// The end of the comment or string that begins at `at`, if one does.
    fn skip(&self, text: &'a [u8], at: usize) -> Option<usize>;
    /// Handles the word at `at`, outside of `depth` braces; returns the position to continue from.
    fn word(
        &mut self,
        text: &'a [u8],
        at: usize,
        word: &'a [u8],
        depth: usize,
        out: &mut Collector<'a>,
    ) -> usize;
}

/// Passes over the text once.
pub fn scan<'a>(language: &mut impl Language<'a>, text: &'a [u8], out: &mut Collector<'a>) {
    let stops = language.stops();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(stop) = stops.next(text, at) {
        at = match text[stop] {
            b'{' => {
                depth += 1;
                stop + 1
            }
            b'}' => {
                depth = depth.saturating_sub(1);
                stop + 1
            }
            byte if !is_ident(byte) => language.skip(text, stop).unwrap_or(stop + 1),
            _ if !starts_word(text, stop) => stop + 1,
            byte if byte.is_ascii_uppercase() => {
                let word = word_at(text, stop);
                out.use_type(word);
                stop + word.len()
            }
            _ => {
                let word = word_at(text, stop);
                language.word(text, stop, word, depth, out).max(stop + 1)
            }
        };
    }
}
