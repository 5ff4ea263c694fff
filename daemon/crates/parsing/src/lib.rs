//! Parsers with a bound on memory and stack. A text that is made for it drives a tree-sitter parser to gigabytes, or to a recursion
//! as deep as the text is long, within the time that a parse may take; neither can be stopped from the parser's own callback.
//!
//! Parsers run on threads of their own with a large stack. The allocator counts for each thread. A parse that passes its limit is
//! given up by its callback ([`is_over`]), and one that passes it by half between two callbacks loses its memory and its thread.

mod allocator;
mod worker;

pub use allocator::is_over;
pub use worker::bounded;

/// A parser whose memory is counted. It is the only way to make one: the allocator must be set before the first.
pub fn parser() -> tree_sitter::Parser {
    allocator::install();
    #[expect(clippy::disallowed_methods, reason = "the one place that makes parsers")]
    tree_sitter::Parser::new()
}
