//! A search with the data that all of its steps read.

use std::sync::Arc;

use cairn_index_base::{CancelFlag, FileSet, FileTable};
use cairn_protocol::error::Failure;
use cairn_protocol::search::SearchParams;
use cairn_text_index::Snapshot;
use cairn_tokenizer::words::Stem;

use crate::filters::Filters;
use crate::lexical::{self, Term};
use crate::named::Named;
use crate::parsed::{ParsedQuery, QueryKind};
use crate::rank::{Mode, Ranker};
use crate::root_index::RootIndex;

/// A search over some roots. It does not change while the search runs; each step reads it and maps
/// one value to the next: candidates, ranking, result items.
pub struct Query<'a> {
    pub params: &'a SearchParams,
    pub mode: Mode,
    pub filters: Filters,
    pub roots: Vec<QueryRoot>,
    pub parsed: ParsedQuery,
    /// The files and windows of each root that the query names; empty for a semantic search.
    pub named: Vec<Named>,
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
        let parsed = ParsedQuery::new(&params.query);
        let terms =
            roots.iter().map(|root| lexical::terms(&root.snapshot, &parsed.words)).collect();
        let named = match mode {
            Mode::Semantic => roots.iter().map(|_| Named::default()).collect(),
            _ => roots
                .iter()
                .map(|root| Named::find(root, &parsed))
                .collect::<Result<Vec<_>, _>>()?,
        };
        let mut query = Self {
            params,
            mode,
            filters,
            roots,
            parsed,
            named,
            terms,
            vector: Vec::new(),
            by_table: None,
            cancel,
        };
        if let Some(index) = indexes.first().filter(|_| mode != Mode::Lexical) {
            let (embedder, text) = (&index.opts.embedder, [query.parsed.embedded.as_bytes()]);
            let vector = embedder.embed(&text)?;
            let by_table = embedder.is_transformer().then(|| embedder.table().embed(&text));
            (query.vector, query.by_table) = (vector, by_table);
        }
        Ok(query)
    }

    pub fn ranker(&self) -> Ranker<'_> {
        Ranker::new(&self.parsed, &self.terms, &self.named, self.mode)
    }

    /// The terms of each line that the text of an issue quotes.
    pub fn quoted_terms(&self, root: usize) -> Vec<Vec<Term>> {
        if self.parsed.kind != QueryKind::Issue {
            return Vec::new();
        }
        let terms = |stems: &Vec<Stem>| {
            let all = self.terms[root].iter();
            all.filter(|t| stems.contains(&t.stem)).cloned().collect()
        };
        self.parsed.quotes.iter().map(terms).collect()
    }

    /// The words that are compared, of all roots.
    pub fn stems(&self) -> Vec<Stem> {
        let mut stems: Vec<Stem> = Vec::new();
        for term in self.terms.iter().flatten() {
            if !stems.contains(&term.stem) {
                stems.push(term.stem);
            }
        }
        stems
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
