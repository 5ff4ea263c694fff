//! Reads the best windows of a search: their text, the definitions in it and the features of each.
//! Beside the scan this is the slowest part of a search, so that a second thread helps.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use cairn_protocol::error::Failure;

use crate::candidates::{Candidate, Span, spans};
use crate::db::Transaction;
use crate::query::Query;
use crate::rank::{self, Base, Passage, Ranker, SemanticContext};
use cairn_text_index::packed::window_context;

/// A window that was read.
pub struct Window {
    /// Index of its candidate.
    pub candidate: usize,
    pub text: Vec<u8>,
    pub spans: Vec<Span>,
    pub passages: Vec<Passage>,
}

/// Reads at most `most` of the best windows, best first, without those that were removed in the
/// meantime.
///
/// # Errors
/// `cancelled`, or when the database cannot be read.
pub fn read_best(
    query: &Query<'_>,
    candidates: &[Candidate],
    ranker: &Ranker<'_>,
    base: &Base,
    most: usize,
) -> Result<Vec<Window>, Failure> {
    let best = &base.order[..base.order.len().min(most)];
    let Some(root) = query.roots.first() else { return Ok(Vec::new()) };
    let (next, done) =
        (AtomicUsize::new(0), best.iter().map(|_| OnceLock::new()).collect::<Vec<_>>());
    // Each thread claims the next window; if the helpers are busy, this thread reads all of them.
    let read_candidates = || {
        let mut open_transaction = None;
        while let n = next.fetch_add(1, Ordering::Relaxed)
            && let (Some((candidate, _)), Some(slot)) = (best.get(n), done.get(n))
        {
            let read = query.cancel.check().and_then(|()| {
                read(
                    query,
                    (*candidate, &candidates[*candidate]),
                    ranker,
                    base,
                    &mut open_transaction,
                )
            });
            let is_error = read.is_err();
            let _first = slot.set(read);
            if is_error {
                return;
            }
        }
    };
    if root.index.opts.active_passes.load(Ordering::Relaxed) == 0 {
        root.index.opts.helpers.in_place_scope(|scope| {
            scope.spawn(|_| read_candidates());
            read_candidates();
        });
    } else {
        // While indexing occupies the processors, waiting for a helper would delay the search.
        read_candidates();
    }
    let read = done.into_iter().filter_map(OnceLock::into_inner);
    read.filter_map(Result::transpose).collect()
}

/// Reads one window. `open_transaction` caches the transaction of a root, because the next window
/// is mostly of the same root.
fn read<'q>(
    query: &'q Query<'_>,
    (candidate, c): (usize, &Candidate),
    ranker: &Ranker<'_>,
    base: &Base,
    open_transaction: &mut Option<(usize, Transaction<'q>)>,
) -> Result<Option<Window>, Failure> {
    let index = &query.roots[c.root].index;
    let conn = match open_transaction.take() {
        Some((root, conn)) if root == c.root => conn,
        _ => index.readers.transaction()?,
    };
    let conn = &*open_transaction.insert((c.root, conn)).1;
    let spans = if c.spans.is_empty() { spans(conn, c)? } else { c.spans.clone() };
    let Some(text) = window_context(conn, c.chunk)? else { return Ok(None) };
    let semantics = SemanticContext {
        table: index.opts.embedder.table(),
        vector: query.by_table.as_deref().unwrap_or(&query.vector),
        relative: query.by_table.is_some(),
    };
    let passages = rank::by_definitions(ranker, (candidate, c, &spans), &text, base, &semantics);
    Ok(Some(Window { candidate, text: text.window_text().to_vec(), spans, passages }))
}
