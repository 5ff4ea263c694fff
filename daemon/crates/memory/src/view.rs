//! The entries that one project reads and changes.

use std::collections::BTreeSet;

use cairn_protocol::{
    memory::{
        MemoryChange, MemoryEntry, MemoryKeyword, MemoryKeywordsParams, MemoryListParams, MemoryOp,
        MemorySearchParams, MemoryText,
    },
    session::Page,
};
use serde_json::Value;

use crate::{
    MemoryError, Name, Store, rank,
    store::{KEYWORD_PAGE, LIST_PAGE, RESULT_PAGE, change, joined, page, to_json},
    vocabulary,
};

/// A project's own entries and the general ones. An own entry hides a general one of its name, and
/// changes are made to own entries alone.
#[derive(Debug, Clone)]
pub struct MemoryView {
    pub(crate) own: Option<Store>,
    pub(crate) general: Option<Store>,
}

impl MemoryView {
    /// Applies one operation. This blocks on file I/O.
    ///
    /// # Errors
    /// `invalid_params` for bad keywords, a bad cursor, a fixed or a general entry;
    /// `path_not_found` for a missing entry; `no_roots` for a change without a project;
    /// `too_large`; `storage_failed`.
    pub fn apply(&self, op: MemoryOp) -> Result<Value, MemoryError> {
        match op {
            MemoryOp::Search(params) => to_json(&self.search(&params)?),
            MemoryOp::List(params) => to_json(&self.list(&params)?),
            MemoryOp::Keywords(params) => to_json(&self.keywords(&params)?),
            MemoryOp::Load(entry) => to_json(&self.load(&entry.keywords)?),
            MemoryOp::Save(params) => to_json(&self.save(&params.keywords, &params.content)?),
            MemoryOp::Append(params) => to_json(&self.append(&params.keywords, &params.content)?),
            MemoryOp::Delete(entry) => to_json(&self.delete(&entry.keywords)?),
        }
    }

    /// Finds entries for a query, best first.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn search(&self, params: &MemorySearchParams) -> Result<Page<MemoryEntry>, MemoryError> {
        let entries = self.entries()?;
        let texts = entries.iter().map(|e| e.store.read(&e.file.name).unwrap_or_default());
        let hits = rank::rank(&params.query, entries.iter().map(|e| &e.file.name).zip(texts))?;
        let one = |hit: rank::Hit| MemoryEntry {
            excerpt: Some(hit.excerpt),
            ..entries[hit.index].to_entry()
        };
        let found = hits.into_iter().map(one).collect();
        page(found, params.limit, RESULT_PAGE, params.cursor.as_deref())
    }

    /// Lists entries by name.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn list(&self, params: &MemoryListParams) -> Result<Page<MemoryEntry>, MemoryError> {
        let entries = self.entries()?.iter().map(StoredEntry::to_entry).collect();
        page(entries, params.limit, LIST_PAGE, params.cursor.as_deref())
    }

    /// Lists keywords, most used first.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn keywords(
        &self,
        params: &MemoryKeywordsParams,
    ) -> Result<Page<MemoryKeyword>, MemoryError> {
        let mut data = vocabulary::count_keywords(self.entries()?.iter().map(|e| &e.file.name));
        data.truncate(params.limit.unwrap_or(KEYWORD_PAGE.0).clamp(1, KEYWORD_PAGE.1));
        Ok(Page { data, next_cursor: None })
    }

    /// Reads an entry: the own one, or the general one.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn load(&self, keywords: &str) -> Result<MemoryText, MemoryError> {
        let name = Name::of(keywords)?;
        // Without an entry the error is that of reading one.
        let store = self.stores().find(|store| store.exists(&name)).or(self.stores().next());
        let store = store.ok_or(MemoryError::NoProject)?;
        let content = store.read(&name)?;
        let general = store.is_general();
        Ok(MemoryText { name: name.to_string(), content, fixed: name.is_fixed(), general })
    }

    /// Creates or replaces an own entry.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn save(&self, keywords: &str, content: &str) -> Result<MemoryChange, MemoryError> {
        let own = self.require_own()?;
        let name = self.require_changeable(keywords, "changed")?;
        let _guard = own.lock();
        let existed = own.exists(&name);
        own.write(&name, content.trim_end())?;
        let bytes = content.trim_end().len();
        let what = if existed { "replaced" } else { "created" };
        Ok(change(&name, bytes, format!("{what} \"{}\" ({bytes} bytes)", name.file())))
    }

    /// Appends to an own entry, or creates it. To a general entry is appended in a copy of the
    /// project, so that its text is not hidden by the new one.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn append(&self, keywords: &str, content: &str) -> Result<MemoryChange, MemoryError> {
        let own = self.require_own()?;
        let name = self.require_changeable(keywords, "appended to")?;
        let more = content.trim_end();
        let _guard = own.lock();
        let Some(store) = self.stores().find(|store| store.exists(&name)) else {
            own.write(&name, more)?;
            let text = format!("created \"{}\" ({} bytes)", name.file(), more.len());
            return Ok(change(&name, more.len(), text));
        };
        let content_after = joined(&store.read(&name)?, more);
        own.write(&name, &content_after)?;
        let text = format!(
            "updated \"{}\" (+{} B → {} B total)",
            name.file(),
            more.len(),
            content_after.len()
        );
        Ok(change(&name, content_after.len(), text))
    }

    /// Deletes an own entry.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn delete(&self, keywords: &str) -> Result<MemoryChange, MemoryError> {
        let own = self.require_own()?;
        let name = self.require_changeable(keywords, "deleted")?;
        let _guard = own.lock();
        if !own.exists(&name) && self.general.as_ref().is_some_and(|store| store.exists(&name)) {
            return Err(MemoryError::General { file: name.file() });
        }
        own.remove(&name)?;
        Ok(change(&name, 0, format!("deleted \"{}\"", name.file())))
    }

    /// Renders the keywords as one line for the system text. The names are cached: without a change
    /// they cost one `stat` of each folder, and equal entries give equal bytes.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn vocabulary(&self) -> Result<String, MemoryError> {
        let names = self.stores().map(Store::names).collect::<Result<Vec<_>, _>>()?;
        let distinct: BTreeSet<&Name> = names.iter().flat_map(|names| names.iter()).collect();
        let keywords = vocabulary::count_keywords(distinct.into_iter());
        Ok(vocabulary::render_line(&keywords, KEYWORD_PAGE.0))
    }

    /// The stores that are read; an entry of the first hides those of its name in the others.
    fn stores(&self) -> impl Iterator<Item = &Store> {
        self.own.iter().chain(&self.general)
    }

    fn entries(&self) -> Result<Vec<StoredEntry<'_>>, MemoryError> {
        let mut all: Vec<StoredEntry<'_>> = Vec::new();
        for store in self.stores() {
            all.extend(store.files()?.into_iter().map(|file| StoredEntry { file, store }));
        }
        // The sort is stable, so that the entry of the first store stays.
        all.sort_by(|a, b| a.file.name.cmp(&b.file.name));
        all.dedup_by(|later, first| later.file.name == first.file.name);
        Ok(all)
    }

    fn require_own(&self) -> Result<&Store, MemoryError> {
        self.own.as_ref().ok_or(MemoryError::NoProject)
    }

    /// Returns the name of an entry that may be changed. A fixed entry of the user may not be hidden
    /// by one of a project either.
    fn require_changeable(
        &self,
        keywords: &str,
        change: &'static str,
    ) -> Result<Name, MemoryError> {
        let name = Name::of(keywords)?;
        if name.is_fixed() && self.stores().any(|store| store.exists(&name)) {
            return Err(MemoryError::Immutable { file: name.file(), change });
        }
        Ok(name)
    }
}

/// An entry and the store that has it.
struct StoredEntry<'a> {
    file: crate::store::EntryFile,
    store: &'a Store,
}

impl StoredEntry<'_> {
    fn to_entry(&self) -> MemoryEntry {
        MemoryEntry { general: self.store.is_general(), ..self.file.to_entry() }
    }
}
