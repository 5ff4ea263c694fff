//! Search: requests and answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::RootId;

mod kind;
mod packed;
mod partial;

pub use kind::QueryKind;
pub use packed::{Omitted, PackedLines, PackedText};
pub use partial::{Corpus, GrepCorpus, GrepPartial, SearchPartial};

/// Maximum results of one search.
pub const MAX_K: u32 = 200;
/// Least and most tokens of an answer that `maxTokens` limits.
pub const TOKEN_LIMITS: (u32, u32) = (200, 100_000);
/// Maximum lines of one grep answer.
pub const MAX_GREP_K: u32 = 10_000;

/// Parameters of `search.lexical`, `search.semantic` and `search.hybrid`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchParams {
    /// Words, an identifier, a path, a question or the text of an issue; at most 64 KiB.
    pub query: String,
    /// Maximum number of results, 1 to 200.
    #[serde(default = "default_k")]
    pub k: u32,
    /// Filters that restrict the scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<SearchFilters>,
    /// Returns the text of each item.
    #[serde(default)]
    pub include_text: bool,
    /// Lines of context around the text, at most 50.
    #[serde(default)]
    pub context_lines: u32,
    /// Fusion of the two lists of a hybrid search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fusion: Option<Fusion>,
    /// True reduces each further result of a file by a fifth, instead of by 6 % (8 % for the text
    /// of an issue) up to three times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diversify: Option<bool>,
    /// Weight of maximal marginal relevance: 0 is diversity only, 1 relevance only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mmr: Option<f64>,
    /// Returns the kind of the query, and the contribution of each feature to the score of each
    /// item.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub explain: bool,
    /// Packs the answer into at most this many tokens, 200 to 100,000: `packed` has the text, and
    /// `items` those results that it names, without a text of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Number of best results to skip, which continues an answer; `offset` + `k` is at most 200.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: u32,
    /// Name for `search.partial` notifications; none are sent when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl SearchParams {
    /// Creates a query with default options.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            k: default_k(),
            filters: None,
            include_text: false,
            context_lines: 0,
            fusion: None,
            diversify: None,
            mmr: None,
            explain: false,
            max_tokens: None,
            offset: 0,
            request_id: None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn default_k() -> u32 {
    20
}

fn default_grep_k() -> u32 {
    200
}

/// Method that fuses two ranked lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fusion {
    /// Reciprocal rank fusion (RRF) of both lists.
    Rrf,
    /// Sum of scores scaled to 0..1 within each list.
    Minmax,
}

/// Filters of a search; a result must match all that are given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchFilters {
    /// Language names as in `index.status` (`rust`, `python`, …), extensions (`js`) or other names
    /// (`c++`); a result matches any of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<String>,
    /// Path prefix relative to the root, compared by complete components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// Glob patterns, of which a file matches any; a leading `!` excludes matching files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub globs: Vec<String>,
    /// Root ids or absolute root paths to search; all declared roots when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// Symbol kinds (`function`, `class`, …): only results inside such a symbol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// True adds hidden files (`.github/…`, `.eslintrc`), by the same ignore rules; `.git` stays
    /// left out. The first such request of a root indexes them. Not for `search.symbols`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

/// Answer of a search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchAnswer {
    /// Results of the search, best first.
    pub items: Vec<SearchItem>,
    /// True if the index currently covers the complete scope.
    pub complete: bool,
    /// Missing or late parts (`vectors`, `symbols`, `indexing`, `rerank`, `script`); empty when the
    /// answer is complete. `script`: the embedding table does not know the script of some words of
    /// the query, so that these are compared as words only, and not at all by a semantic search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<String>,
    /// Time spent, in microseconds.
    pub took_us: u64,
    /// True if rules hide some of the requested paths, which are omitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restricted: bool,
    /// Kind of the query, which selects the weights. Only with `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<QueryKind>,
    /// True if the items are the nearest ones but none of them contains much of the query, so that
    /// they probably do not answer it. Never set for a semantic search.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weak: bool,
    /// Text of the answer within `maxTokens`, if that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packed: Option<PackedText>,
    /// Results that did not fit into `maxTokens`, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Omitted>,
}

/// One result: a range of lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchItem {
    /// Path relative to its root, with `/` between components.
    pub path: String,
    /// Id of the root.
    pub root: RootId,
    /// First line, starting at 1.
    pub start_line: u32,
    /// Last line of the range, inclusive.
    pub end_line: u32,
    /// Score, higher is better; comparable within one answer only.
    pub score: f64,
    /// Contribution of each feature to the score, largest first; the contributions add up to the
    /// score. Only with `explain`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explain: Vec<Share>,
    /// Language of the file, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    /// Definition that contains the result, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<SymbolRef>,
    /// Text of the result, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Line number of the first line of `text`, if context moved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_start_line: Option<u32>,
    /// Byte ranges in `text` that match words of the query.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub highlights: Vec<[u32; 2]>,
    /// SHA-256 (hex) of the file as indexed.
    pub content_hash: String,
    /// Index clock of the root when the file was indexed.
    pub clock: u64,
    /// True when the file on disk differs from the indexed one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
}

/// Contribution of one feature to a score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Share {
    /// Name of the feature. `windowWords`, `fileWords`, `path`, `windowNames`, `words`, `name` and
    /// `exact` match words of the query in the window, its file, its path, the names in it, the
    /// result itself and its name; `fileName` is set if the complete name of the file (of its
    /// folder for `mod`, `index`, `main` and the like) is in the query; `fileMeaning`, `meaning`
    /// and `nameMeaning` are the similarity of the file's best window, the result and its name;
    /// `line` is the part of the query, or of a line that it quotes, that one line covers, from
    /// six tenths on; `definitionOf` marks the definition of the query's only name, and `literal`
    /// a window that contains that name; `fileNames` counts the definitions of its file whose
    /// names are in the query; `namedPath` is set if the file's path is in the query; `document`
    /// marks a document; `definition`
    /// marks a result that is a definition; `container` marks a type or module that contains
    /// others; `size` is the length, up to ten lines; `rerank` is the similarity by the
    /// re-scoring model; `repeat` is the reduction of a further result of the same file, with
    /// the factor as its value; `prior` is the factor of the path when it is below 1, without
    /// a share of its own.
    pub feature: String,
    /// Value of the feature, mostly 0 to 1.
    pub value: f64,
    /// Part of the score: the value times its weight, times the factor of the path.
    pub share: f64,
}

/// Name and kind of a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SymbolRef {
    /// Name of the definition.
    pub name: String,
    /// Kind of definition: `function`, `method`, `class`, `struct`, …
    pub kind: String,
}

/// Parameters of the method `search.grep`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrepParams {
    /// Text, or a regular expression with `isRegex`; at most 4 KiB.
    pub pattern: String,
    /// Restricts the search to files under this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// True if `pattern` is a regular expression.
    #[serde(default)]
    pub is_regex: bool,
    /// Flags of the search: `ignore_case` (`i`), `smart_case` (`S`), `word` (`w`), `multiline`
    /// (`U`), `dot_all` (`s`), `invert` (`v`, lines that do not match). With `files` and
    /// `countOnly` nothing is searched: `counts` has each file of the scope, with 0 lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Maximum number of lines, 1 to 10,000.
    #[serde(default = "default_grep_k")]
    pub k: u32,
    /// Further filters; `kinds` does not apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<SearchFilters>,
    /// Counts only: `items` stays empty and `counts` has the lines per file.
    #[serde(default)]
    pub count_only: bool,
    /// Lines of context around each match, at most 100.
    #[serde(default)]
    pub context_lines: u32,
    /// Cursor from the `nextCursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Name for `search.partial` notifications, each with the next lines; none are sent when
    /// omitted or with `countOnly`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Answer of the method `search.grep`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrepAnswer {
    /// Matching lines sorted by path, then by line.
    pub items: Vec<GrepItem>,
    /// Matching lines per file, in count mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<GrepCount>,
    /// Number of matching lines seen (all of them in count mode).
    pub total: u64,
    /// Number of files searched.
    pub files_searched: u64,
    /// True when `k` cut the answer; continue with `nextCursor`.
    pub truncated: bool,
    /// Cursor of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// True if the file list currently covers the complete scope.
    pub complete: bool,
    /// Paths of files that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
    /// Time spent, in microseconds.
    pub took_us: u64,
    /// True if rules hide some of the requested paths, which are omitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restricted: bool,
}

/// One matching line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrepItem {
    /// Path relative to its root.
    pub path: String,
    /// Id of the root.
    pub root: RootId,
    /// Line number, starting at 1.
    pub line: u32,
    /// Text of the line without its terminator, at most 2 KiB, invalid UTF-8 replaced.
    pub text: String,
    /// Byte ranges of the matches in `text`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<[u32; 2]>,
    /// Lines of context before the match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// Lines of context after the match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

/// Number of matching lines of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrepCount {
    /// Path relative to its root.
    pub path: String,
    /// Id of the root.
    pub root: RootId,
    /// Number of matching lines.
    pub lines: u64,
}

/// Parameters of `search.symbols`: definitions by name, or the outline of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SymbolsParams {
    /// A name to search for; omit it and set `path` for the outline of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// File to outline, relative to the root or absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Matching of names; the best of all three when omitted.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub matching: Option<NameMatch>,
    /// Maximum number of results, 1 to 200 (for an outline up to 2,000).
    #[serde(default = "default_k")]
    pub k: u32,
    /// Filters that restrict the scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<SearchFilters>,
}

/// Parameters of the method `search.references`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReferencesParams {
    /// Root to search: its id or path; needed when several roots are declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Name of the definition, as `name` or `Type.name`; with `path` the one in that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// File with the definition, relative to the root or absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Line of the definition in `path`, starting at 1; the innermost definition around it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Kinds of references to return; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<ReferenceUse>,
    /// Maximum number of references, 1 to 2,000.
    #[serde(default = "default_references")]
    pub k: u32,
}

fn default_references() -> u32 {
    200
}

/// Use that a reference makes of a definition.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceUse {
    /// The definition itself, or a declaration of it.
    Definition,
    /// A statement that imports it.
    Import,
    /// A call of it.
    Call,
    /// A use as a type.
    Type,
    /// An assignment to it.
    Write,
    /// Any other use, such as passing it on.
    Read,
}

impl ReferenceUse {
    /// The name for people: as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::Import => "import",
            Self::Call => "call",
            Self::Type => "type",
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

/// Certainty that a reference means the definition.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceConfidence {
    /// Scopes and imports lead to it.
    Exact,
    /// Types that are written in the file, or the only definition of the name, lead to it.
    Likely,
    /// A member of a value whose type is not known.
    Ambiguous,
}

/// A reference to a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReferenceItem {
    /// Path relative to the root.
    pub path: String,
    /// Line of the reference, starting at 1.
    pub line: u32,
    /// Column in bytes, starting at 0.
    pub column: u32,
    /// Text of the line, shortened to 300 characters.
    pub text: String,
    /// Use that it makes of the definition.
    pub kind: ReferenceUse,
    /// Certainty that the definition is meant.
    pub confidence: ReferenceConfidence,
    /// Definition that contains the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enclosing: Option<SymbolRef>,
}

/// Answer of the method `search.references`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReferencesAnswer {
    /// Definition whose references these are.
    pub definition: SymbolItem,
    /// Other definitions of the name, which `path` and `line` can select.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<SymbolItem>,
    /// References by path, then by line.
    pub items: Vec<ReferenceItem>,
    /// True if there are more than `k`, or more candidate files than were read.
    pub truncated: bool,
    /// True if imports and symbols are currently indexed for the root.
    pub complete: bool,
    /// Time spent, in microseconds.
    pub took_us: u64,
}

/// Parameters of the method `search.impact`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImpactParams {
    /// Root to search: its id or path; needed when several roots are declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// File whose dependents are requested, relative to the root or absolute.
    pub path: String,
    /// Steps of imports that are followed, 1 to 20.
    #[serde(default = "default_depth")]
    pub depth: u32,
    /// Maximum number of files, 1 to 2,000.
    #[serde(default = "default_references")]
    pub k: u32,
}

fn default_depth() -> u32 {
    3
}

/// Answer of the method `search.impact`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImpactAnswer {
    /// Path of the file, relative to the root.
    pub path: String,
    /// Files that import it, directly or by others, nearest first.
    pub items: Vec<ImpactItem>,
    /// True if there are more than `k`.
    pub truncated: bool,
    /// True if imports are currently indexed for the root.
    pub complete: bool,
    /// Time spent, in microseconds.
    pub took_us: u64,
}

/// A file that depends on another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImpactItem {
    /// Path relative to the root.
    pub path: String,
    /// Number of imports between the two, 1 for a direct one.
    pub steps: u32,
}

/// Method that matches names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NameMatch {
    /// The name equals the query.
    Exact,
    /// The name begins with the query.
    Prefix,
    /// The name is similar to the query.
    Fuzzy,
}

/// Answer of the method `search.symbols`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SymbolsAnswer {
    /// Definitions found, best first; those of an outline by line.
    pub items: Vec<SymbolItem>,
    /// True if symbols are currently indexed for the complete scope.
    pub complete: bool,
    /// Time spent, in microseconds.
    pub took_us: u64,
    /// True if rules hide some of the requested paths, which are omitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restricted: bool,
}

/// A definition found in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SymbolItem {
    /// Name of the definition.
    pub name: String,
    /// Kind of definition: `function`, `method`, `class`, `struct`, `enum`, `interface`, `type`,
    /// `constant`, `module`, `macro`, …
    pub kind: String,
    /// Name of the enclosing definition, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Path relative to its root.
    pub path: String,
    /// Id of the root.
    pub root: RootId,
    /// First line, starting at 1.
    pub start_line: u32,
    /// Last line of the range, inclusive.
    pub end_line: u32,
    /// Language of the file.
    pub lang: String,
    /// Match quality of the name, 0 to 1.
    pub score: f64,
}
