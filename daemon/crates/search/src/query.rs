//! A search with the data that all of its steps read.

use std::sync::Arc;

use cairn_index_base::{CancelFlag, FileSet, FileTable};
use cairn_protocol::error::Failure;
use cairn_protocol::search::SearchParams;
use cairn_text_index::Snapshot;
use cairn_tokenizer::words::{Stem, query_stems};

use crate::filters::Filters;
use crate::lexical::{self, Term};
use crate::rank::{Mode, Ranker};
use crate::root_index::RootIndex;

/// A search over some roots. It does not change while the search runs; each step reads it and maps
/// one value to the next: candidates, ranking, result items.
pub struct Query<'a> {
    pub params: &'a SearchParams,
    pub mode: Mode,
    pub filters: Filters,
    pub roots: Vec<QueryRoot>,
    /// Terms of each root.
    pub terms: Vec<Vec<Term>>,
    /// The query's vector; empty for a lexical search.
    pub vector: Vec<f32>,
    /// The query's vector by the static table, if a transformer computed the vectors of the index.
    pub by_table: Option<Vec<f32>>,
    pub cancel: CancelFlag,
}

/// The state of one root that the search reads.
pub struct QueryRoot {
    pub index: Arc<RootIndex>,
    pub snapshot: Arc<Snapshot>,
    pub table: Arc<FileTable>,
    /// The files that the filters and the visibility rules allow; `None` for all.
    pub files: Option<FileSet>,
}

impl<'a> Query<'a> {
    /// Reads the query's words and vector, and the present state of each root.
    ///
    /// # Errors
    /// `cancelled`, the error of an index that could not be opened, or a storage failure.
    pub fn new(
        params: &'a SearchParams,
        mode: Mode,
        filters: Filters,
        indexes: &[Arc<RootIndex>],
        cancel: CancelFlag,
    ) -> Result<Self, Failure> {
        let roots = indexes
            .iter()
            .map(|index| QueryRoot::open(index, &filters))
            .collect::<Result<Vec<_>, _>>()?;
        cancel.check()?;
        let stems = query_stems(&params.query);
        let terms = roots.iter().map(|root| lexical::terms(&root.snapshot, &stems)).collect();
        let mut query = Self {
            params,
            mode,
            filters,
            roots,
            terms,
            vector: Vec::new(),
            by_table: None,
            cancel,
        };
        if let Some(index) = indexes.first().filter(|_| mode != Mode::Lexical) {
            let (embedder, text) = (&index.opts.embedder, [params.query.as_bytes()]);
            query.vector = embedder.embed(&text)?;
            query.by_table = embedder.is_transformer().then(|| embedder.table().embed(&text));
        }
        Ok(query)
    }

    pub fn ranker(&self) -> Ranker<'_> {
        Ranker::new(&self.params.query, &self.terms, self.mode)
    }

    /// True if a stem is a word of the query.
    pub fn has_stem(&self, stem: &Stem) -> bool {
        self.terms.iter().flatten().any(|t| t.stem == *stem)
    }
}

impl QueryRoot {
    fn open(index: &Arc<RootIndex>, filters: &Filters) -> Result<Self, Failure> {
        let conn = match index.readers.get() {
            Ok(conn) => conn,
            // The progress has the reason if the index could not be opened.
            Err(error) => return Err(index.progress().error.unwrap_or_else(|| error.into())),
        };
        let table = index.files(&conn)?;
        let files = filters.files(&table, &index.root.view());
        Ok(Self { index: Arc::clone(index), snapshot: index.postings.snapshot(), table, files })
    }
}
