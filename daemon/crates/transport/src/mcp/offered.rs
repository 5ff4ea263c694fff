//! The tools that a client is offered: the default ones, all, or those that its user names.

use std::collections::BTreeSet;

/// The word for the tools of [`super::builtin_tools`].
const DEFAULT: &str = "default";
/// The word for every tool.
const ALL: &str = "all";
/// Maximum number of names in a list.
const MAX_NAMES: usize = 256;

/// Tools, registered or of an earlier version, that a default tool replaces. They are offered only
/// by name.
const REPLACED: &[(&str, &str)] = &[
    ("edit_file", "edit"),
    ("impact", "references"),
    ("read_file", "read"),
    ("read_span", "read"),
    ("repo_map", "map"),
    ("run_shell", "run"),
    ("search_code", "search"),
    ("search_files", "grep"),
    ("search_lines", "grep"),
    ("write_file", "write"),
];

/// Returns the default tool that does the same as `name`.
pub fn replacement(name: &str) -> Option<&'static str> {
    REPLACED.iter().find(|(replaced, _)| *replaced == name).map(|(_, by)| *by)
}

/// A selection of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTools {
    defaults: bool,
    all: bool,
    names: BTreeSet<String>,
}

impl Default for OfferedTools {
    fn default() -> Self {
        Self { defaults: true, all: false, names: BTreeSet::new() }
    }
}

impl OfferedTools {
    /// Selects by words: `default`, `all`, and names of tools. Without a word, the default tools.
    pub fn of<'w>(words: impl IntoIterator<Item = &'w str>) -> Self {
        let mut selection = Self { defaults: false, all: false, names: BTreeSet::new() };
        let words = words.into_iter().map(str::trim).filter(|word| !word.is_empty());
        for word in words.take(MAX_NAMES) {
            match word {
                DEFAULT => selection.defaults = true,
                ALL => selection.all = true,
                name => drop(selection.names.insert(name.to_owned())),
            }
        }
        if selection.all || !selection.names.is_empty() || selection.defaults {
            selection
        } else {
            Self::default()
        }
    }

    /// Selects by a query `tools=…`, a list with commas; `None` if the query has none.
    pub fn of_query(query: Option<&str>) -> Option<Self> {
        let mut pairs = url::form_urlencoded::parse(query?.as_bytes());
        let (_, list) = pairs.find(|(name, _)| name == "tools")?;
        Some(Self::of(list.split(',')))
    }

    /// Returns true if a tool of this server is offered.
    pub fn has_builtin(&self, name: &str) -> bool {
        self.defaults || self.all || self.names.contains(name)
    }

    /// Returns true if a registered tool is offered under its own name.
    pub fn has_registered(&self, name: &str) -> bool {
        self.names.contains(name) || self.all && replacement(name).is_none()
    }

    /// Returns true if a tool is selected by its name.
    pub fn names(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns the list with which `name` would be offered as well.
    pub fn with(&self, name: &str) -> String {
        let words = [(self.all, ALL), (self.defaults, DEFAULT)];
        let words = words.iter().filter(|(on, _)| *on).map(|(_, word)| *word);
        let names = self.names.iter().map(String::as_str);
        words.chain(names).chain([name]).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_selected_by_words_and_names() {
        let of = |list: &str| OfferedTools::of(list.split(','));
        assert_eq!(of(""), OfferedTools::default());
        assert!(of("default").has_builtin("search") && !of("default").has_registered("git_log"));
        assert!(of("all").has_registered("git_log") && of("all").has_builtin("run"));
        assert!(!of("all").has_registered("read_file"), "the twin of read is listed");
        let few = of(" search , read_file");
        assert!(few.has_builtin("search") && !few.has_builtin("grep"));
        assert!(few.has_registered("read_file") && !few.has_registered("git_log"));
        assert_eq!(few.with("git_log"), "read_file,search,git_log");
        assert_eq!(of("default").with("git_log"), "default,git_log");
    }

    #[test]
    fn query_names_the_tools() {
        assert_eq!(OfferedTools::of_query(None), None);
        assert_eq!(OfferedTools::of_query(Some("root=/a")), None);
        let named = OfferedTools::of_query(Some("root=%2Fa&tools=search%2Cgit_log")).unwrap();
        assert!(named.has_registered("git_log") && !named.has_builtin("run"));
        assert_eq!(OfferedTools::of_query(Some("tools=")), Some(OfferedTools::default()));
    }

    #[test]
    fn list_of_names_is_bounded() {
        let names: Vec<String> = (0..1000).map(|n| format!("t{n}")).collect();
        let selection = OfferedTools::of(names.iter().map(String::as_str));
        assert_eq!(selection.names.len(), MAX_NAMES);
    }
}
