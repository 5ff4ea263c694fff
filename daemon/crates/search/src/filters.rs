//! Validation of query parameters, and compiled filters.

use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::search::{MAX_K, SearchFilters, SearchParams};
use cairn_workspace::{View, language_named};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use cairn_index_base::FileSet;
use cairn_index_base::{FileEntry, FileTable};
use cairn_symbols::KINDS;

/// Maximum bytes of a name or pattern.
pub const MAX_QUERY: usize = 4096;
/// Maximum bytes of the query of a search, which may be the text of an issue.
const MAX_SEARCH: usize = 64 * 1024;
const MAX_CONTEXT: u32 = 50;
const MAX_FILTERS: usize = 200;

/// A failure that names the invalid field.
pub fn invalid(field: &str, what: impl std::fmt::Display) -> Failure {
    Failure::new(Reason::InvalidParams, format!("{field}: {what}"))
        .with_details(serde_json::json!({"field": field}))
}

/// Checks the parameters of a search.
///
/// # Errors
/// `invalid_params` that names the field.
pub fn check_search(params: &SearchParams) -> Result<(), Failure> {
    check_length("query", &params.query, MAX_SEARCH)?;
    check_k(params.k, MAX_K)?;
    if params.offset > MAX_K - params.k {
        return Err(invalid("offset", format_args!("offset + k is more than {MAX_K}")));
    }
    if params.context_lines > MAX_CONTEXT {
        return Err(invalid("contextLines", format_args!("must be at most {MAX_CONTEXT}")));
    }
    if params.mmr.is_some_and(|m| !(0.0..=1.0).contains(&m)) {
        return Err(invalid("mmr", "0 to 1"));
    }
    Ok(())
}

/// Checks that a query is neither empty nor too long.
///
/// # Errors
/// `invalid_params` that names the field.
pub fn check_text(field: &str, text: &str) -> Result<(), Failure> {
    check_length(field, text, MAX_QUERY)
}

fn check_length(field: &str, text: &str, most: usize) -> Result<(), Failure> {
    match text.len() {
        0 => Err(invalid(field, "must not be empty")),
        n if n > most => Err(invalid(field, format_args!("has {n} bytes; the limit is {most}"))),
        _ if text.trim().is_empty() && field == "query" => Err(invalid(field, "must not be blank")),
        _ => Ok(()),
    }
}

/// Checks the requested number of results.
///
/// # Errors
/// `invalid_params`.
pub fn check_k(k: u32, most: u32) -> Result<(), Failure> {
    if (1..=most).contains(&k) {
        Ok(())
    } else {
        Err(invalid("k", format_args!("{k} is not between 1 and {most}")))
    }
}

/// Compiled filters of one query.
#[derive(Debug, Default)]
pub struct Filters {
    languages: Vec<&'static str>,
    prefix: Option<String>,
    included: Option<GlobSet>,
    excluded: Option<GlobSet>,
    /// Symbol kinds; empty for all.
    pub kinds: Vec<String>,
    /// Ids or paths of roots; empty for all.
    pub roots: Vec<String>,
    /// True adds the hidden files.
    pub hidden: bool,
}

impl Filters {
    /// Compiles filters together with a second path prefix.
    ///
    /// # Errors
    /// `bad_pattern` for an invalid glob; `invalid_params` for too many entries, an unknown
    /// language or kind, or a prefix that leaves the root.
    pub fn new(filters: Option<&SearchFilters>, prefix: Option<&str>) -> Result<Self, Failure> {
        let filters = filters.cloned().unwrap_or_default();
        let longest = filters
            .languages
            .len()
            .max(filters.globs.len())
            .max(filters.kinds.len())
            .max(filters.roots.len());
        if longest > MAX_FILTERS {
            return Err(invalid(
                "filters",
                format_args!("has {longest} entries; the limit is {MAX_FILTERS}"),
            ));
        }
        let prefixes = [clean_prefix(filters.path_prefix.as_deref())?, clean_prefix(prefix)?];
        let prefix = match prefixes {
            // Both must match: the longer prefix if it is below the other, otherwise no path
            // matches.
            [Some(a), Some(b)] if is_under(&a, &b) => Some(a),
            [Some(a), Some(b)] if is_under(&b, &a) => Some(b),
            [Some(_), Some(_)] => Some("\0".into()),
            [a, b] => a.or(b),
        };
        let (negative, positive): (Vec<String>, Vec<String>) =
            filters.globs.into_iter().partition(|g| g.starts_with('!'));
        Ok(Self {
            languages: filters
                .languages
                .iter()
                .map(|name| language(name))
                .collect::<Result<_, _>>()?,
            prefix,
            included: glob_set(&positive)?,
            excluded: glob_set(&negative)?,
            kinds: filters.kinds.iter().map(|name| kind(name)).collect::<Result<_, _>>()?,
            roots: filters.roots,
            hidden: filters.hidden,
        })
    }

    /// True if a file matches all filters.
    pub fn matches(&self, file: &FileEntry) -> bool {
        (self.languages.is_empty() || file.lang().is_some_and(|l| self.languages.contains(&l)))
            && self.prefix.as_ref().is_none_or(|p| is_under(&file.path, p))
            && self.included.as_ref().is_none_or(|g| g.is_match(&*file.path))
            && !self.excluded.as_ref().is_some_and(|g| g.is_match(&*file.path))
    }

    /// The matching files that are visible in `view`; `None` if these are all files.
    pub fn files(&self, table: &FileTable, view: &View) -> Option<FileSet> {
        let is_unfiltered = view.is_complete()
            && self.languages.is_empty()
            && self.prefix.is_none()
            && self.included.is_none()
            && self.excluded.is_none();
        (!is_unfiltered).then(|| {
            table
                .files
                .iter()
                .filter(|f| self.matches(f) && view.shows(&f.path))
                .map(|f| f.id)
                .collect()
        })
    }
}

/// A language by one of its names. An unknown name is an error, because it would silently match
/// nothing.
fn language(name: &str) -> Result<&'static str, Failure> {
    let unknown = || {
        let name = name.escape_default();
        invalid(
            "filters.languages",
            format_args!("'{name}' is unknown; index.status lists those of a root"),
        )
    };
    language_named(name).ok_or_else(unknown)
}

fn kind(name: &str) -> Result<String, Failure> {
    let lower = name.to_lowercase();
    if KINDS.contains(&&*lower) {
        return Ok(lower);
    }
    let (name, all) = (name.escape_default(), KINDS.join(", "));
    Err(invalid("filters.kinds", format_args!("'{name}' is not one of {all}")))
}

/// True if `path` is `prefix` or below it, compared by components.
fn is_under(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn clean_prefix(prefix: Option<&str>) -> Result<Option<String>, Failure> {
    let Some(prefix) = prefix else { return Ok(None) };
    let parts: Vec<&str> = prefix.split('/').filter(|p| !p.is_empty() && *p != ".").collect();
    if prefix.starts_with('/') || parts.contains(&"..") {
        return Err(invalid("pathPrefix", "must be relative to the root and stay in it"));
    }
    Ok(Some(parts.join("/")).filter(|p| !p.is_empty()))
}

fn glob_set(globs: &[String]) -> Result<Option<GlobSet>, Failure> {
    if globs.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    let invalid_glob = |g: &str, e: &dyn std::fmt::Display| {
        Failure::new(Reason::BadPattern, format!("filters.globs: '{}': {e}", g.escape_default()))
    };
    for glob in globs {
        let bare = glob.trim_start_matches('!');
        let mut text = match bare.strip_prefix('/') {
            Some(anchored) => anchored.to_owned(),
            None if bare.trim_end_matches('/').contains('/') => bare.to_owned(),
            None => format!("**/{bare}"),
        };
        if text.ends_with('/') {
            text.push_str("**");
        }
        let built = GlobBuilder::new(&text).literal_separator(true).build();
        set.add(built.map_err(|e| invalid_glob(glob, e.kind()))?);
    }
    set.build().map(Some).map_err(|e| invalid_glob("", e.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str) -> FileEntry {
        FileEntry { id: 1, path: path.into() }
    }

    #[test]
    fn file_must_match_every_filter() {
        let filter = |f: SearchFilters, p: Option<&str>| Filters::new(Some(&f), p).unwrap();
        let globs = |g: &[&str]| SearchFilters {
            globs: g.iter().map(|s| (*s).into()).collect(),
            ..Default::default()
        };
        for (filters, path, admitted) in [
            (filter(globs(&["*.rs"]), None), "a/b.rs", true),
            (filter(globs(&["/*.rs"]), None), "a/b.rs", false),
            (filter(globs(&["a/**"]), Some("a/")), "a/c/b.rs", true),
            (filter(globs(&["!tests/"]), None), "x/tests/b.rs", false),
            (filter(globs(&["*.rs", "!b*"]), None), "b.rs", false),
            (filter(SearchFilters::default(), Some("a/b")), "a/bc.rs", false),
            (filter(SearchFilters::default(), Some("./a/b/")), "a/b/c.rs", true),
            (
                filter(
                    SearchFilters { languages: vec!["Rust".into()], ..Default::default() },
                    None,
                ),
                "a.rs",
                true,
            ),
            (
                filter(SearchFilters { languages: vec!["go".into()], ..Default::default() }, None),
                "a.rs",
                false,
            ),
            (
                filter(
                    SearchFilters { path_prefix: Some("a".into()), ..Default::default() },
                    Some("b"),
                ),
                "a/x.rs",
                false,
            ),
            (
                filter(
                    SearchFilters { path_prefix: Some("a".into()), ..Default::default() },
                    Some("a/b"),
                ),
                "a/b/x.rs",
                true,
            ),
        ] {
            assert_eq!(filters.matches(&entry(path)), admitted, "{filters:?} {path}");
        }
    }

    #[test]
    fn invalid_parameters_are_named_in_the_failure() {
        let reason = |f: SearchFilters| Filters::new(Some(&f), None).unwrap_err().reason;
        assert_eq!(
            reason(SearchFilters { globs: vec!["a[".into()], ..Default::default() }),
            Reason::BadPattern
        );
        assert_eq!(
            reason(SearchFilters { path_prefix: Some("../x".into()), ..Default::default() }),
            Reason::InvalidParams
        );
        let message = |f: SearchFilters| Filters::new(Some(&f), None).unwrap_err().message;
        let unknown = message(SearchFilters {
            languages: vec!["go".into(), "klingon".into()],
            ..Default::default()
        });
        assert!(unknown.contains("filters.languages: 'klingon'"), "{unknown}");
        let unknown = message(SearchFilters {
            kinds: vec!["Function".into(), "func".into()],
            ..Default::default()
        });
        assert!(
            unknown.contains("filters.kinds: 'func'") && unknown.contains("method"),
            "{unknown}"
        );
        assert!(
            check_k(0, 200).is_err() && check_k(201, 200).is_err() && check_k(200, 200).is_ok()
        );
        assert!(
            check_text("query", "  ").is_err() && check_text("query", &"x".repeat(5000)).is_err()
        );
    }
}
