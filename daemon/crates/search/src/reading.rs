//! Reading the best windows of a search: their text, the definitions in it, and what speaks for each. It is what a search
//! takes longest for beside the scan, so that a second thread helps.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use cairn_protocol::error::Failure;

use crate::db::Transaction;
use crate::gather::{Span, spans};
use crate::packed::window_context;
use crate::rank::{self, Base, Passage, Ranker, SemanticContext};
use crate::search::Query;

/// A window that was read.
pub struct Window {
    /// Which candidate it is.
    pub candidate: usize,
    pub text: Vec<u8>,
    pub spans: Vec<Span>,
    pub passages: Vec<Passage>,
}

impl Query<'_> {
    /// Reads the best windows, at most `most`, best first. One that is gone meanwhile is left out.
    ///
    /// # Errors
    /// `cancelled`, or when the database cannot be read.
    pub fn read_best(&self, ranker: &Ranker<'_>, base: &Base, most: usize) -> Result<Vec<Window>, Failure> {
        let best = &base.order[..base.order.len().min(most)];
        let Some(root) = self.roots.first() else { return Ok(Vec::new()) };
        let (next, done) = (AtomicUsize::new(0), best.iter().map(|_| OnceLock::new()).collect::<Vec<_>>());
        // Whoever is free takes the next one; when the helpers are busy, this thread reads them all.
        let work = || {
            let mut opened = None;
            while let n = next.fetch_add(1, Ordering::Relaxed)
                && let (Some((candidate, _)), Some(slot)) = (best.get(n), done.get(n))
            {
                let read =
                    self.cancel.check().and_then(|()| self.read(*candidate, ranker, base, &mut opened));
                let failed = read.is_err();
                let _first = slot.set(read);
                if failed {
                    return;
                }
            }
        };
        if root.opts.active_passes.load(Ordering::Relaxed) == 0 {
            root.opts.helpers.in_place_scope(|scope| {
                scope.spawn(|_| work());
                work();
            });
        } else {
            // A helper that waits for a processor beside the threads that index would be waited for.
            work();
        }
        let read = done.into_iter().filter_map(OnceLock::into_inner);
        read.filter_map(Result::transpose).collect()
    }

    /// Reads one window. `opened` keeps the database of a root for the next ones, which are mostly of the same root.
    fn read<'q>(
        &'q self,
        candidate: usize,
        ranker: &Ranker<'_>,
        base: &Base,
        opened: &mut Option<(usize, Transaction<'q>)>,
    ) -> Result<Option<Window>, Failure> {
        let c = &self.candidates[candidate];
        let index = &self.roots[c.root];
        let conn = match opened.take() {
            Some((root, conn)) if root == c.root => conn,
            _ => index.readers.transaction()?,
        };
        let conn = &*opened.insert((c.root, conn)).1;
        let spans = if c.spans.is_empty() { spans(conn, c)? } else { c.spans.clone() };
        let Some(text) = window_context(conn, c.chunk)? else { return Ok(None) };
        let semantics = SemanticContext {
            table: index.opts.embedder.table(),
            vector: self.by_table.as_deref().unwrap_or(&self.vector),
            relative: self.by_table.is_some(),
        };
        let passages = rank::by_definitions(ranker, (candidate, c, &spans), &text, base, &semantics);
        Ok(Some(Window { candidate, text: text.window_text().to_vec(), spans, passages }))
    }
}
