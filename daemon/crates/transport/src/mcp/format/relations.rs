//! Formatting of uses, callers, callees and dependent files. Paths are relative to their root.

use std::fmt::Write as _;

use cairn_protocol::{
    calls::CallsAnswer,
    search::{ImpactAnswer, ReferenceConfidence, ReferenceItem, ReferencesAnswer, SymbolItem},
};

use super::{Budget, Page, incomplete, line, short};

/// Other definitions of a name that an answer lists.
const MAX_OTHERS: usize = 5;

fn head(definition: &SymbolItem) -> String {
    let SymbolItem { kind, name, path, start_line, end_line, .. } = definition;
    format!("{}:{start_line}-{end_line} {kind} {}", line(path), line(name))
}

fn certainty(confidence: ReferenceConfidence) -> &'static str {
    match confidence {
        ReferenceConfidence::Exact => "",
        ReferenceConfidence::Likely => "  (likely)",
        ReferenceConfidence::Ambiguous => "  (ambiguous)",
    }
}

/// Appends the notes at the end of an answer.
fn notes(out: &mut String, is_cut: bool, others: &[SymbolItem], complete: bool) {
    if is_cut {
        out.push_str("[there are more: raise k or maxTokens]\n");
    }
    if !others.is_empty() {
        let _ok =
            writeln!(out, "[{} more definitions have this name; choose by path:", others.len());
        for other in others.iter().take(MAX_OTHERS) {
            let _ok = writeln!(out, "  {}:{} {}", line(&other.path), other.start_line, other.kind);
        }
        out.push_str("]\n");
    }
    incomplete(out, complete);
}

/// Formats the uses of a definition.
pub fn references(answer: &ReferencesAnswer, budget: Budget) -> String {
    let mut page = Page::new(budget);
    page.add(&head(&answer.definition));
    let mut is_cut = answer.truncated;
    for item in &answer.items {
        let ReferenceItem { path, line: number, text, kind, confidence, enclosing, .. } = item;
        let inside =
            enclosing.as_ref().map_or_else(String::new, |e| format!(" in {}", line(&e.name)));
        let entry = format!(
            "{}:{number} {}{inside}{}: {}",
            line(path),
            kind.as_str(),
            certainty(*confidence),
            short(text)
        );
        if !page.add(&entry) {
            is_cut = true;
            break;
        }
    }
    let mut out = page.text;
    if answer.items.is_empty() {
        out.push_str("no uses were found\n");
    }
    notes(&mut out, is_cut, &answer.others, answer.complete);
    out
}

/// Formats callers or callees.
pub fn calls(answer: &CallsAnswer, budget: Budget) -> String {
    let mut page = Page::new(budget);
    page.add(&head(&answer.definition));
    let mut is_cut = answer.truncated;
    for item in &answer.items {
        let via = item.via.and_then(|at| answer.items.get(at as usize));
        let via = via.map_or_else(String::new, |via| format!("  via {}", line(&via.name)));
        let inside =
            item.container.as_deref().map_or_else(String::new, |c| format!(" in {}", line(c)));
        let lines: Vec<String> = item.lines.iter().map(u32::to_string).collect();
        let steps = if item.steps > 1 { format!("  step {}", item.steps) } else { String::new() };
        let entry = format!(
            "{}:{} {} {}{inside}{via}  calls at {}{}{steps}",
            line(&item.path),
            item.line,
            item.kind,
            line(&item.name),
            lines.join(", "),
            certainty(item.confidence)
        );
        if !page.add(&entry) {
            is_cut = true;
            break;
        }
    }
    let mut out = page.text;
    if answer.items.is_empty() {
        out.push_str("none were found\n");
    }
    if answer.unresolved > 0 {
        let _ok = writeln!(
            out,
            "[{} more calls lead out of the repository, or to any of many definitions]",
            answer.unresolved
        );
    }
    notes(&mut out, is_cut, &answer.others, answer.complete);
    out
}

/// Formats the files that depend on a file.
pub fn impact(answer: &ImpactAnswer, budget: Budget) -> String {
    let mut page = Page::new(budget);
    let mut is_cut = answer.truncated;
    for item in &answer.items {
        if !page.add(&format!("{}  step {}", line(&item.path), item.steps)) {
            is_cut = true;
            break;
        }
    }
    let mut out = page.text;
    if answer.items.is_empty() {
        let _ok = writeln!(out, "no file imports {}", line(&answer.path));
    }
    notes(&mut out, is_cut, &[], answer.complete);
    out
}
