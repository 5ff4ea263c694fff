//! Parsing of entire files within limits of time and memory.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use cairn_symbols::languages::grammar;
use tree_sitter::{ParseOptions, Parser, Tree};

/// Time limit for one file, parsing and search together.
const MAX_TIME: Duration = Duration::from_secs(3);
/// Memory limit of a parser as a multiple of the text's bytes, within the following bounds.
const MEMORY_FACTOR: usize = 256;
const MIN_MEMORY: usize = 4 * 1024 * 1024;
const MAX_MEMORY: usize = 64 * 1024 * 1024;

/// Runs `work` with the tree of `text` and the time by which it must return.
pub fn with_tree<T: Send + 'static>(
    lang: &str,
    text: &[u8],
    stop: &AtomicBool,
    work: impl FnOnce(&Tree, &[u8], Instant) -> T + Send + 'static,
) -> Option<T> {
    thread_local!(static PARSER: RefCell<Parser> = RefCell::new(cairn_parsing::parser()));
    let grammar = grammar(lang)?;
    let text = text.to_vec();
    let limit = text.len().saturating_mul(MEMORY_FACTOR).clamp(MIN_MEMORY, MAX_MEMORY);
    let task = move || {
        let until = Instant::now() + MAX_TIME;
        let tree = PARSER.with_borrow_mut(|parser| {
            parser.set_language(&grammar.language).ok()?;
            let mut check = |_: &tree_sitter::ParseState| {
                if cairn_parsing::is_over(limit) || Instant::now() > until {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            let options = ParseOptions::new().progress_callback(&mut check);
            let mut chunk = |at: usize, _| text.get(at..).unwrap_or(&[]);
            let tree = parser.parse_with_options(&mut chunk, None, Some(options));
            // An aborted parse retains its memory until the reset.
            parser.reset();
            tree
        })?;
        Some(work(&tree, &text, until))
    };
    // A file without a parser counts like one above the limits: the answer says it is incomplete.
    cairn_parsing::bounded(limit, stop, task).ok()??
}
