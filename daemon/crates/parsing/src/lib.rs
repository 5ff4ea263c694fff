//! Parsers with limits on memory and stack. A malicious text can drive a tree-sitter parser to
//! gigabytes of memory, or to a recursion as deep as the text is long, within the time limit of a
//! parse; the parser's own callback can stop neither.
//!
//! Parsers run on separate threads with a large stack, and the allocator counts per thread. A parse
//! that exceeds its limit is aborted by its callback ([`is_over`]); one that exceeds it by half
//! between two callbacks loses its memory and its thread.

mod allocator;
mod unavailable;
mod worker;

pub use allocator::is_over;
pub use unavailable::Unavailable;
pub use worker::bounded;

/// Creates a parser whose memory is counted. All parsers must be created here, because the
/// allocator must be installed before the first one.
pub fn parser() -> tree_sitter::Parser {
    allocator::install();
    #[expect(clippy::disallowed_methods, reason = "the only place that creates parsers")]
    tree_sitter::Parser::new()
}
