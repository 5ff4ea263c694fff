//! Formatting of passages: the packed text of a search with the notes around it.

use std::fmt::Write as _;

use cairn_protocol::search::SearchAnswer;

use super::incomplete;

/// Formats the answer of `search`. `next` is the cursor after an answer that omits no result, if
/// there may be more.
pub fn passages(answer: &SearchAnswer, next: Option<u32>) -> String {
    let mut out = String::new();
    if answer.weak {
        out.push_str("[no good match: only the nearest; try other words, or grep]\n");
    }
    if answer.degraded.iter().any(|part| part == "script") {
        out.push_str("[this script is searched by words only, not by meaning]\n");
    }
    out.push_str(answer.packed.as_ref().map_or("", |packed| &packed.text));
    if answer.items.is_empty() {
        out.push_str("nothing was found; try other words, or grep for exact text\n");
    }
    let omitted = answer.omitted.as_ref();
    if omitted.is_some_and(|omitted| omitted.lines > 0) {
        out.push_str("[… marks lines left out: read has them]\n");
    }
    let cursor = omitted.and_then(|omitted| omitted.next_offset).or(next);
    if let Some(cursor) = cursor.filter(|_| !answer.items.is_empty()) {
        let _ok = writeln!(out, "[more results: cursor=\"{cursor}\"]");
    }
    incomplete(&mut out, answer.complete);
    out
}
