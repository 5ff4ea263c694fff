//! Answers of bounded size: reads the lines of the results and packs them into a number of tokens.

mod page;

use std::sync::Arc;

use cairn_index_base::CancelFlag;
use cairn_protocol::error::Failure;
use cairn_protocol::search::{
    Omitted, PackedLines, PackedText, SearchItem, SearchParams, TOKEN_LIMITS,
};
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, OptionalExtension};
use cairn_tokenizer::words::{Stem, each_lexical};

use crate::filters::invalid;
use crate::parsed::QueryKind;
use crate::query::Query;
use crate::root_index::RootIndex;
use page::{HEAD, Line, Page, Passage, Source};

/// Lines of a definition up to which all of them may be printed, beyond those of the result.
const MAX_DEFINITION: u32 = 240;
/// Lines above a definition in which its comment is looked for.
const MAX_COMMENT: u32 = 12;
/// Bytes of a line that are compared with the query.
const MAX_COMPARED: usize = 400;

/// Checks the range of `maxTokens`.
///
/// # Errors
/// `invalid_params`.
pub fn check(params: &SearchParams) -> Result<(), Failure> {
    let (least, most) = TOKEN_LIMITS;
    match params.max_tokens {
        Some(tokens) if !(least..=most).contains(&tokens) => {
            Err(invalid("maxTokens", format_args!("{tokens} is not between {least} and {most}")))
        }
        _ => Ok(()),
    }
}

/// An answer with its text.
pub struct Packed {
    /// Results that the text names.
    pub items: Vec<SearchItem>,
    pub text: PackedText,
    pub omitted: Option<Omitted>,
}

/// Minimum share of the best score of results that are packed when the query is one name. Its
/// definitions have far higher scores than its uses, which would fill the rest of the tokens.
const NAMED_SHARE: f64 = 0.6;

/// Number of the results to pack: all, or those of similar score as the definition of the query's
/// only name. The answer continues with the others.
fn pack_count(kind: QueryKind, offset: u32, items: &[SearchItem]) -> usize {
    let Some(best) = items.first().filter(|_| kind == QueryKind::Identifier && offset == 0) else {
        return items.len();
    };
    items.iter().take_while(|item| item.score >= NAMED_SHARE * best.score).count()
}

/// Packs `items`, best first, into `tokens`. Locations are absolute unless `is_relative`.
///
/// # Errors
/// `cancelled`, or when a database cannot be read.
pub fn pack(
    query: &Query<'_>,
    indexes: &[Arc<RootIndex>],
    mut items: Vec<SearchItem>,
    tokens: u32,
    cancel: &CancelFlag,
) -> Result<Packed, Failure> {
    let params = query.params;
    let is_relative = params.filters.as_ref().is_some_and(|f| f.roots.len() == 1);
    let stems = query.stems();
    let packed = &items[..pack_count(query.parsed.kind, params.offset, &items)];
    let mut sources = ItemSources { items: packed, indexes, stems, is_relative, cancel };
    let page = Page::pack(&mut sources, tokens)?;
    let named = page.named.min(items.len());
    let left_out = u32::try_from(items.len() - named).unwrap_or(u32::MAX);
    items.truncate(named);
    items.iter_mut().for_each(|item| {
        item.text = None;
        item.text_start_line = None;
        item.highlights.clear();
    });
    let lines = page.ranges.iter().map(|(item, (start_line, end_line))| PackedLines {
        item: u32::try_from(*item).unwrap_or(u32::MAX),
        start_line: *start_line,
        end_line: *end_line,
    });
    let omitted = (left_out > 0 || page.folded_lines > 0).then(|| {
        let next_offset = (left_out > 0).then(|| params.offset + named as u32);
        omitted(left_out, page.folded_lines, next_offset)
    });
    let text = PackedText { lines: lines.collect(), tokens: page.tokens, text: page.text };
    Ok(Packed { items, text, omitted })
}

fn omitted(items: u32, lines: u32, next_offset: Option<u32>) -> Omitted {
    let hint = match next_offset {
        Some(offset) => {
            format!("search with offset {offset} or a larger maxTokens, or read the path:line")
        }
        None => "read the path:line, or search with a larger maxTokens".to_owned(),
    };
    Omitted { items, lines, next_offset, hint }
}

/// Reads the passages of results when the page needs them.
struct ItemSources<'a> {
    items: &'a [SearchItem],
    indexes: &'a [Arc<RootIndex>],
    stems: Vec<Stem>,
    is_relative: bool,
    cancel: &'a CancelFlag,
}

impl Source for ItemSources<'_> {
    fn count(&self) -> usize {
        self.items.len()
    }

    fn file(&self, at: usize) -> usize {
        let item = &self.items[at];
        let is_same = |other: &SearchItem| other.root == item.root && other.path == item.path;
        self.items.iter().position(is_same).unwrap_or(at)
    }

    fn location(&self, at: usize, lines: Option<(u32, u32)>) -> String {
        let item = &self.items[at];
        let (start, end) = lines.unwrap_or((item.start_line, item.end_line));
        let index = self.indexes.iter().find(|i| i.root.id == item.root);
        let path = match index.filter(|_| !self.is_relative) {
            Some(index) => index.root.path.join(&item.path).to_string_lossy().into_owned(),
            None => item.path.clone(),
        };
        let mut text = format!("{path}:{start}-{end}");
        if let Some(symbol) = &item.symbol {
            text.push_str(&format!(" {} {}", symbol.kind, symbol.name));
        }
        if item.changed {
            text.push_str(" (changed since indexing)");
        }
        text
    }

    fn passage(&mut self, at: usize) -> Result<Passage, Failure> {
        self.cancel.check()?;
        let item = &self.items[at];
        for index in self.indexes.iter().filter(|i| i.root.id == item.root) {
            let conn = index.readers.get()?;
            let table = index.files(&conn)?;
            let by_path = table.files.binary_search_by(|f| (*f.path).cmp(&*item.path));
            let Ok(entry) = by_path.map(|at| &table.files[at]) else { continue };
            let definition = definition_around(&conn, entry.id, item)?;
            let Some(bytes) = index.read_file(&item.path) else { break };
            return Ok(passage(&String::from_utf8_lossy(&bytes), item, definition, &self.stems));
        }
        Ok(Passage::default())
    }
}

/// The lines of the innermost definition that contains a result.
fn definition_around(
    conn: &Connection,
    file: u32,
    item: &SearchItem,
) -> Result<Option<(u32, u32)>, StoreError> {
    let mut get = conn.prepare_cached(
        "SELECT start_line, end_line FROM symbol
         WHERE file_id = ? AND start_line <= ? AND end_line >= ?
         ORDER BY start_line DESC, end_line LIMIT 1",
    )?;
    let row = |r: &cairn_store::rusqlite::Row<'_>| Ok((r.get(0)?, r.get(1)?));
    Ok(get.query_row((file, item.start_line, item.end_line), row).optional()?)
}

/// Selects the lines of a file that may be printed for a result, and ranks them.
fn passage(
    text: &str,
    item: &SearchItem,
    definition: Option<(u32, u32)>,
    stems: &[Stem],
) -> Passage {
    let lines: Vec<&str> = text.lines().collect();
    let line = |number: u32| lines.get(number as usize - 1).copied();
    let result = (item.start_line.max(1), item.end_line);
    let mut numbers: Vec<u32> = Vec::new();
    let mut heads: Vec<u32> = Vec::new();
    if let Some((start, end)) = definition.filter(|(start, _)| *start >= 1) {
        let comment = (1..start).rev().take(MAX_COMMENT as usize);
        let comment = comment.take_while(|n| line(*n).is_some_and(is_comment)).last();
        heads.extend(comment.into_iter().chain([start]));
        match end - start < MAX_DEFINITION {
            true => numbers.extend(comment.unwrap_or(start)..=end),
            false => numbers.extend(heads.iter().copied()),
        }
    }
    numbers.extend(result.0..=result.1);
    numbers.sort_unstable();
    numbers.dedup();
    let lines = numbers.into_iter().filter_map(|number| {
        let text = line(number)?;
        let is_inside = (result.0..=result.1).contains(&number);
        let hits = matches(text, stems) as f32;
        // The head is the part of a definition that names it; the result's own lines come next.
        let score = if heads.contains(&number) { HEAD } else { 0.0 };
        let score = score + hits + if is_inside { 1.5 } else { 0.0 };
        Some(Line { number, text: text.to_owned(), score })
    });
    Passage { lines: lines.collect() }
}

/// True for a line of a comment or an attribute, in most languages.
fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    let starts = ["//", "/*", "*", "#", "--", ";;", "@", "'''", "\"\"\""];
    starts.iter().any(|start| line.starts_with(start)) && !line.starts_with("#include")
}

/// Number of distinct words of the query in a line.
fn matches(line: &str, stems: &[Stem]) -> usize {
    let bytes = line.as_bytes();
    let mut found = vec![false; stems.len()];
    each_lexical(&bytes[..bytes.len().min(MAX_COMPARED)], |stem, _, _| {
        if let Some(at) = stems.iter().position(|s| *s == stem) {
            found[at] = true;
        }
    });
    found.into_iter().filter(|is_found| *is_found).count()
}
