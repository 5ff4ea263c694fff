//! Search: what can be asked and what comes back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::RootId;

/// Most results one search returns.
pub const MAX_K: u32 = 200;
/// Most lines one grep answer holds.
pub const MAX_GREP_K: u32 = 10_000;

/// Parameters of `search.lexical`, `search.semantic` and `search.hybrid`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchParams {
    /// Words, an identifier, a path or a question. At most 4 KiB.
    pub query: String,
    /// Results wanted, 1 to 200.
    #[serde(default = "default_k")]
    pub k: u32,
    /// Where to look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<SearchFilters>,
    /// Whether items carry their text.
    #[serde(default)]
    pub include_text: bool,
    /// Lines of context around the text, at most 50.
    #[serde(default)]
    pub context_lines: u32,
    /// How hybrid search fuses its two lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fusion: Option<Fusion>,
    /// Further results of a file count a fifth less each, not only 4 % and up to three times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diversify: Option<bool>,
    /// Maximal marginal relevance: 0 is all diversity, 1 all relevance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mmr: Option<f64>,
    /// Whether items tell what each feature gave to their score.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub explain: bool,
    /// Name for `search.partial` notifications; none are sent when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl SearchParams {
    /// A query with everything else as it is when left out.
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
            request_id: None,
        }
    }
}

fn default_k() -> u32 {
    20
}

fn default_grep_k() -> u32 {
    200
}

/// How two lists become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fusion {
    /// Reciprocal rank fusion.
    Rrf,
    /// Sum of scores scaled to 0..1 within each list.
    Minmax,
}

/// Filters; every one given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchFilters {
    /// Language names as in `index.status` (`rust`, `python`, …), extensions (`js`) or other names (`c++`), any of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<String>,
    /// Only files under this path, by whole components, relative to the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// Glob patterns, any of them; with `!` in front: none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub globs: Vec<String>,
    /// Root ids or absolute root paths, any of them; all declared roots when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// Symbol kinds (`function`, `class`, …): only results inside such a symbol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
}

/// Answer of a search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchAnswer {
    /// Best first.
    pub items: Vec<SearchItem>,
    /// Whether the index covers its whole scope now.
    pub complete: bool,
    /// What is missing or late, in words (`vectors`, `symbols`, `indexing`, `rerank`); empty when nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<String>,
    /// Microseconds spent.
    pub took_us: u64,
    /// Whether rules hide paths of what was asked for, which are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restricted: bool,
}

/// One result: a range of lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchItem {
    /// Path relative to its root, `/` between components.
    pub path: String,
    /// The root.
    pub root: RootId,
    /// First line.
    pub start_line: u32,
    /// Last line.
    pub end_line: u32,
    /// Higher is better; comparable within one answer only.
    pub score: f64,
    /// With `explain`: what each feature gave to the score, the most telling first; together they are the score.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explain: Vec<Share>,
    /// Language, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    /// The definition it lies in, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<SymbolRef>,
    /// The text, when asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Line number of the first line of `text`, when context moved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_start_line: Option<u32>,
    /// Byte ranges in `text` that match words of the query.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub highlights: Vec<[u32; 2]>,
    /// SHA-256 (hex) of the file as indexed.
    pub content_hash: String,
    /// Index clock of the root when this was indexed.
    pub clock: u64,
    /// True when the file on disk differs from what was indexed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
}

/// What one feature gave to a score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Share {
    /// `windowWords`, `fileWords`, `path`, `windowNames`, `words`, `name`, `exact`: words of the query in the window, its
    /// file, its path, the names in it, the answer itself and its name; `fileName`: whether its file's whole name (its
    /// folder's for `mod`, `index`, `main` and the like) is in the query; `fileMeaning`, `meaning`, `nameMeaning`: nearness
    /// of the file's best window, the answer and its name; `line`: how far one line covers the query, from six tenths on;
    /// `definition`: what an answer that is a definition must outweigh; `container`: a type or module, which holds others;
    /// `size`: its length, up to ten lines; `rerank`: nearness by the model that re-scores;
    /// `repeat`: what a further answer of a file counts less, its value the factor;
    /// `prior`: the factor of the path when it is below 1, with no share of its own.
    pub feature: String,
    /// Its value, mostly 0 to 1.
    pub value: f64,
    /// Its part of the score: the value times its weight, times the factor of the path.
    pub share: f64,
}

/// A definition's name and kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SymbolRef {
    /// Its name.
    pub name: String,
    /// `function`, `method`, `class`, `struct`, …
    pub kind: String,
}

/// Live notification `search.partial`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchPartial {
    /// The `requestId` of the search.
    pub request_id: String,
    /// Which list.
    pub corpus: Corpus,
    /// The items so far.
    pub items: Vec<SearchItem>,
    /// True on the last one.
    pub done: bool,
}

/// Live notification `search.partial` of a `search.grep`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrepPartial {
    /// The `requestId` of the search.
    pub request_id: String,
    /// Always `grep`.
    pub corpus: GrepCorpus,
    /// The lines that come after those of the partial before.
    pub items: Vec<GrepItem>,
    /// True on the last one.
    pub done: bool,
}

/// What the partials of `search.grep` come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrepCorpus {
    /// The files themselves.
    Grep,
}

/// The list a partial comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Corpus {
    /// Lexical.
    Lex,
    /// Semantic.
    Sem,
    /// Both, fused.
    Fused,
}

/// Parameters of `search.grep`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrepParams {
    /// Text, or a regular expression with `isRegex`. At most 4 KiB.
    pub pattern: String,
    /// Only files under this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// Whether `pattern` is a regular expression.
    #[serde(default)]
    pub is_regex: bool,
    /// `ignore_case` (`i`), `smart_case` (`S`), `word` (`w`), `multiline` (`U`), `dot_all` (`s`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Lines wanted, 1 to 10,000.
    #[serde(default = "default_grep_k")]
    pub k: u32,
    /// Further filters; `kinds` does not apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<SearchFilters>,
    /// Only count: `items` stays empty, `counts` has the lines by file.
    #[serde(default)]
    pub count_only: bool,
    /// Lines of context around each hit, at most 20.
    #[serde(default)]
    pub context_lines: u32,
    /// Where to go on, from `nextCursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Name for `search.partial` notifications, each with the next lines; none are sent when omitted or with `countOnly`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Answer of `search.grep`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrepAnswer {
    /// Matching lines by path, then line.
    pub items: Vec<GrepItem>,
    /// Matching lines by file, in count mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<GrepCount>,
    /// Matching lines seen (all of them in count mode).
    pub total: u64,
    /// Files looked into.
    pub files_searched: u64,
    /// True when `k` cut the answer; go on with `nextCursor`.
    pub truncated: bool,
    /// Cursor of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Whether the file list covers its whole scope now.
    pub complete: bool,
    /// Files that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
    /// Microseconds spent.
    pub took_us: u64,
    /// Whether rules hide paths of what was asked for, which are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restricted: bool,
}

/// One matching line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrepItem {
    /// Path relative to its root.
    pub path: String,
    /// The root.
    pub root: RootId,
    /// Line number.
    pub line: u32,
    /// The line without its end, at most 2 KiB; invalid UTF-8 replaced.
    pub text: String,
    /// Byte ranges of the matches in `text`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<[u32; 2]>,
    /// Lines before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// Lines after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

/// Matching lines of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrepCount {
    /// Path relative to its root.
    pub path: String,
    /// The root.
    pub root: RootId,
    /// Matching lines.
    pub lines: u64,
}

/// Parameters of `search.symbols`: definitions by name, or the outline of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SymbolsParams {
    /// A name; with `path` and no `query` the outline of that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The file of an outline, relative to the root or absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How names match; best of all three when omitted.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub matching: Option<NameMatch>,
    /// Results wanted, 1 to 200 (an outline: up to 2,000).
    #[serde(default = "default_k")]
    pub k: u32,
    /// Where to look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<SearchFilters>,
}

/// How a name matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NameMatch {
    /// Equal.
    Exact,
    /// Begins with it.
    Prefix,
    /// Close to it.
    Fuzzy,
}

/// Answer of `search.symbols`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SymbolsAnswer {
    /// Best first; an outline by line.
    pub items: Vec<SymbolItem>,
    /// Whether symbols are known for the whole scope now.
    pub complete: bool,
    /// Microseconds spent.
    pub took_us: u64,
    /// Whether rules hide paths of what was asked for, which are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restricted: bool,
}

/// A definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SymbolItem {
    /// Its name.
    pub name: String,
    /// `function`, `method`, `class`, `struct`, `enum`, `interface`, `type`, `constant`, `module`, `macro`, …
    pub kind: String,
    /// The definition it lies in, when any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Path relative to its root.
    pub path: String,
    /// The root.
    pub root: RootId,
    /// First line.
    pub start_line: u32,
    /// Last line.
    pub end_line: u32,
    /// Language.
    pub lang: String,
    /// How well the name fits, 0 to 1.
    pub score: f64,
}
