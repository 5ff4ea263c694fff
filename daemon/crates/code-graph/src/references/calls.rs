//! The calls inside of a definition, and the definitions that they mean.

use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rustc_hash::FxHashSet;
use tree_sitter::{Node, Tree};

use super::pass::{Occurrence, Pass};
use super::tables::{self, Table};
use super::{Confidence, ReferenceKind, Target, View, decide, parse};

/// Maximum calls of one definition.
const MAX_CALLS: usize = 5_000;

/// A call, by the name of its callee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callee {
    pub name: String,
    /// The expression before the name, on one line.
    pub receiver: Option<String>,
    /// The line, counted from 1.
    pub line: u32,
    /// The column in bytes, counted from 0.
    pub column: u32,
}

/// The calls on the given lines, in file order. `None` as for [`super::references_in`].
pub fn calls_in(
    lang: &str,
    path: &str,
    text: &[u8],
    lines: RangeInclusive<u32>,
    stop: &AtomicBool,
) -> Option<Vec<Callee>> {
    let (lang, text) = cairn_symbols::extract::parsed_as(lang, path, text);
    let table = tables::table(lang)?;
    parse::with_tree(lang, &text, stop, move |tree, text, until| {
        collect(tree, text, table, &lines, until)
    })?
}

/// A use of one of several definitions inside of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TargetUse {
    /// The line, counted from 1.
    pub line: u32,
    /// The column in bytes, counted from 0.
    pub column: u32,
    /// Index of the definition among the requested ones.
    pub target: usize,
    pub confidence: Confidence,
    /// True for a call; false for a function or method that is passed on.
    pub is_call: bool,
}

/// The calls on the given lines, and the uses of `targets` there, both in file order. Each target
/// comes with the names under which the file sees it. `None` as for [`super::references_in`].
pub fn target_uses_in(
    lang: &str,
    path: &str,
    text: &[u8],
    lines: RangeInclusive<u32>,
    targets: Vec<(Target, View)>,
    stop: &AtomicBool,
) -> Option<(Vec<Callee>, Vec<TargetUse>)> {
    let (lang, text) = cairn_symbols::extract::parsed_as(lang, path, text);
    let table = tables::table(lang)?;
    parse::with_tree(lang, &text, stop, move |tree, text, until| {
        let calls = collect(tree, text, table, &lines, until)?;
        let names: Vec<FxHashSet<&str>> = targets.iter().map(|(t, v)| names_of(t, v)).collect();
        let all: FxHashSet<&str> = names.iter().flatten().copied().collect();
        let all: Vec<&str> = all.into_iter().collect();
        let mut pass = Pass::new(text, table, &all, until);
        pass.run(tree)?;
        let is_inside = |o: &Occurrence| {
            u32::try_from(o.row + 1).is_ok_and(|line| lines.contains(&line))
                && matches!(o.kind, ReferenceKind::Call | ReferenceKind::Read)
        };
        pass.occurrences.retain(|o| o.is_binding || is_inside(o));
        let mut uses = Vec::new();
        for (at, (target, view)) in targets.iter().enumerate() {
            if Instant::now() > until {
                return None;
            }
            let is_named = |o: &Occurrence| names[at].contains(&*o.name);
            for found in decide::decide_among(&pass, target, view, &is_named) {
                let is_call = found.kind == ReferenceKind::Call;
                if (is_call || found.kind == ReferenceKind::Read) && lines.contains(&found.line) {
                    let (line, column) = (found.line, found.column);
                    let confidence = found.confidence;
                    uses.push(TargetUse { line, column, target: at, confidence, is_call });
                }
            }
        }
        uses.sort_unstable();
        Some((calls, uses))
    })?
}

/// The names under which a file may refer to a target.
fn names_of<'a>(target: &'a Target, view: &'a View) -> FxHashSet<&'a str> {
    let mut names = FxHashSet::from_iter([target.name.as_str()]);
    if !target.is_member() {
        names.extend(view.names.iter().map(String::as_str));
        names.extend(view.modules.iter().map(|(_, name)| name.as_str()));
    }
    names
}

fn collect(
    tree: &Tree,
    text: &[u8],
    table: &Table,
    lines: &RangeInclusive<u32>,
    until: Instant,
) -> Option<Vec<Callee>> {
    let mut calls = Vec::new();
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let first = node.start_position().row as u32 + 1;
        let last = node.end_position().row as u32 + 1;
        let overlaps = first <= *lines.end() && last >= *lines.start();
        if overlaps
            && let Some(callee) = callee(&node, text, table)
            && lines.contains(&callee.line)
            && calls.len() < MAX_CALLS
        {
            calls.push(callee);
        }
        if overlaps && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                calls.sort_by_key(|c| (c.line, c.column));
                return Some(calls);
            }
        }
        if Instant::now() > until {
            return None;
        }
    }
}

fn callee(node: &Node<'_>, text: &[u8], table: &Table) -> Option<Callee> {
    let (_, field) = table.calls.iter().find(|(kind, _)| *kind == node.kind())?;
    let mut name =
        if field.is_empty() { node.named_child(0)? } else { node.child_by_field_name(field)? };
    let slice =
        |n: &Node<'_>| std::str::from_utf8(text.get(n.byte_range())?).ok().map(str::to_owned);
    let mut receiver = node.child_by_field_name("object");
    if let Some((_, object, member)) = table.members.iter().find(|m| m.0 == name.kind())
        && !member.is_empty()
    {
        receiver = name.child_by_field_name(object);
        name = name.child_by_field_name(member)?;
    }
    if !table.names.contains(&name.kind()) {
        return None;
    }
    let start = name.start_position();
    Some(Callee {
        name: slice(&name)?,
        receiver: receiver
            .and_then(|r| slice(&r))
            .map(|r| r.lines().next().unwrap_or_default().to_owned()),
        line: start.row as u32 + 1,
        column: start.column as u32,
    })
}
