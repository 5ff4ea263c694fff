//! `cairn refs` and `cairn impact`: the uses, callers and callees of a definition, and the files that
//! depend on a file.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use cairn_protocol::{
    calls::{CallItem, CallsAnswer, CallsParams},
    search::{
        ImpactAnswer, ImpactParams, ReferenceConfidence, ReferenceUse, ReferencesAnswer,
        ReferencesParams, SymbolItem,
    },
};
use clap::Args;
use console::style;

use crate::{
    app::App,
    exit::{FAILED, Failure, OK},
    render::output::{self, plain},
    scope::{self, Location, Stage},
};

/// Arguments of `cairn refs`.
#[derive(Debug, Clone, Args)]
pub struct RefsArgs {
    /// The name of a definition, as in 'parse' or 'Parser.parse', or FILE:LINE of one
    #[arg(value_name = "NAME|FILE:LINE",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    symbol: String,
    /// The definition in this file, if several have the name
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
    /// Only calls
    #[arg(long)]
    calls: bool,
    /// The definitions that call it, instead of its uses
    #[arg(long, conflicts_with = "calls")]
    callers: bool,
    /// The definitions that it calls, instead of its uses
    #[arg(long, conflicts_with_all = ["calls", "callers"])]
    callees: bool,
    /// Steps of calls that --callers and --callees follow
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=5))]
    depth: u32,
    /// Number of references
    #[arg(short, value_name = "N", default_value_t = 200,
        value_parser = clap::value_parser!(u32).range(1..=2000))]
    k: u32,
    /// Another root: its id or a folder
    #[arg(long, value_name = "ROOT")]
    root: Option<String>,
}

/// Arguments of `cairn impact`.
#[derive(Debug, Clone, Args)]
pub struct ImpactArgs {
    /// The file that would change
    file: String,
    /// Steps of imports that are followed
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    depth: u32,
    /// Number of files
    #[arg(short, value_name = "N", default_value_t = 200,
        value_parser = clap::value_parser!(u32).range(1..=2000))]
    k: u32,
    /// Another root: its id or a folder
    #[arg(long, value_name = "ROOT")]
    root: Option<String>,
}

/// Runs `cairn refs`.
pub async fn refs(app: &App<'_>, args: RefsArgs) -> Result<u8, Failure> {
    let (client, here) = app.connect_here().await?;
    let (file, line) = match args.symbol.rsplit_once(':') {
        Some((file, line)) if line.parse::<u32>().is_ok() => (Some(file), line.parse().ok()),
        _ => (args.file.as_deref(), None),
    };
    let path = match file {
        Some(file) if args.root.is_none() => Some(scope::utf8(&app.canonical(&here.join(file))?)?),
        file => file.map(str::to_owned),
    };
    let at = match (&args.root, &path) {
        (Some(root), _) => Location::Root(root),
        (None, Some(file)) => Location::Around(Path::new(file)),
        (None, None) => Location::Around(&here),
    };
    let root = scope::root(app, &client, at, Stage::Complete).await?;
    let symbol = line.is_none().then(|| args.symbol.clone());
    if args.callers || args.callees {
        let method = if args.callers { "search.callers" } else { "search.callees" };
        let id = Some(root.root.to_string());
        let params = CallsParams { root: id, symbol, path, line, depth: args.depth, k: args.k };
        let Some(answer) = app.answer::<CallsAnswer>(&client, method, &params).await? else {
            return Ok(OK);
        };
        note_partial(app, answer.complete);
        output::print(&calls(&answer, args.callers, &root.path, &here))?;
        return Ok(if answer.items.is_empty() { FAILED } else { OK });
    }
    let params = ReferencesParams {
        root: Some(root.root.to_string()),
        symbol,
        path,
        line,
        kinds: if args.calls { vec![ReferenceUse::Call] } else { vec![] },
        k: args.k,
    };
    let Some(answer) =
        app.answer::<ReferencesAnswer>(&client, "search.references", &params).await?
    else {
        return Ok(OK);
    };
    note_partial(app, answer.complete);
    output::print(&text(&answer, &root.path, &here))?;
    Ok(if answer.items.is_empty() { FAILED } else { OK })
}

/// Renders the definition that an answer is about.
fn head(definition: &SymbolItem, root: &str, here: &Path) -> String {
    let location = scope::relative_display(root, &definition.path, here);
    format!(
        "{} {}  {}:{}\n",
        definition.kind,
        style(plain(&definition.name)).bold(),
        style(location).green(),
        definition.start_line
    )
}

fn certainty(confidence: ReferenceConfidence) -> &'static str {
    match confidence {
        ReferenceConfidence::Exact => "",
        ReferenceConfidence::Likely => "  likely",
        ReferenceConfidence::Ambiguous => "  ambiguous",
    }
}

/// Renders callers or callees as a tree.
fn calls(answer: &CallsAnswer, are_callers: bool, root: &str, here: &Path) -> String {
    let mut out = head(&answer.definition, root, here);
    let mut children: BTreeMap<Option<u32>, Vec<(u32, &CallItem)>> = BTreeMap::new();
    for (at, item) in (0..).zip(&answer.items) {
        children.entry(item.via).or_default().push((at, item));
    }
    let next = |via| children.get(&via).into_iter().flatten().rev().copied();
    let mut pending: Vec<(u32, &CallItem)> = next(None).collect();
    while let Some((at, item)) = pending.pop() {
        let indent = "  ".repeat(item.steps as usize);
        let path = scope::relative_display(root, &item.path, here);
        let name = match &item.container {
            Some(container) => format!("{}.{}", plain(container), plain(&item.name)),
            None => plain(&item.name).to_string(),
        };
        let lines: Vec<String> = item.lines.iter().map(u32::to_string).collect();
        let plural = if lines.len() == 1 { "" } else { "s" };
        let note = format!("  line{plural} {}{}", lines.join(", "), certainty(item.confidence));
        let _infallible = writeln!(
            out,
            "{indent}{name}  {}:{}{}",
            style(path).green(),
            item.line,
            style(note).dim()
        );
        pending.extend(next(Some(at)));
    }
    let is_unread = answer.items.is_empty() && answer.truncated && !are_callers;
    if is_unread {
        out.push_str("  its calls cannot be read: too large, or a language without scopes here\n");
    } else if answer.items.is_empty() {
        let side = if are_callers { "callers" } else { "callees" };
        let _infallible = writeln!(out, "  no {side} were found");
    }
    if answer.truncated && !is_unread {
        out.push_str("\nthere are more; see -k\n");
    }
    if answer.unresolved > 0 {
        let _infallible = writeln!(
            out,
            "\n{} more calls lead out of the repository, or to any of many definitions",
            answer.unresolved
        );
    }
    others(&mut out, &answer.others, root, here);
    out
}

/// Renders the references by file.
fn text(answer: &ReferencesAnswer, root: &str, here: &Path) -> String {
    let mut out = head(&answer.definition, root, here);
    let mut files: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, item) in answer.items.iter().enumerate() {
        files.entry(&item.path).or_default().push(at);
    }
    for (path, items) in files {
        let _infallible =
            writeln!(out, "\n{}", style(scope::relative_display(root, path, here)).green());
        for item in items.iter().filter_map(|at| answer.items.get(*at)) {
            let certainty = certainty(item.confidence);
            let within = item
                .enclosing
                .as_ref()
                .map_or_else(String::new, |e| format!("  in {}", plain(&e.name)));
            let note = style(format!("{within}{certainty}")).dim();
            let kind = item.kind.as_str();
            let _infallible =
                writeln!(out, "{:>5}  {kind:<10} {}{note}", item.line, plain(&item.text));
        }
    }
    if answer.truncated {
        out.push_str("\nthere are more; see -k\n");
    }
    others(&mut out, &answer.others, root, here);
    out
}

fn others(out: &mut String, others: &[SymbolItem], root: &str, here: &Path) {
    if others.is_empty() {
        return;
    }
    let _infallible = writeln!(
        out,
        "\n{} more definitions have this name; choose one with FILE:LINE:",
        others.len()
    );
    for other in others.iter().take(5) {
        let path = scope::relative_display(root, &other.path, here);
        let _infallible = writeln!(out, "  {path}:{}  {}", other.start_line, other.kind);
    }
}

/// Runs `cairn impact`.
pub async fn impact(app: &App<'_>, args: ImpactArgs) -> Result<u8, Failure> {
    let (client, here) = app.connect_here().await?;
    let path = match &args.root {
        None => scope::utf8(&app.canonical(&here.join(&args.file))?)?,
        Some(_) => args.file.clone(),
    };
    let at = args.root.as_deref().map_or(Location::Around(Path::new(&path)), Location::Root);
    let root = scope::root(app, &client, at, Stage::Complete).await?;
    let params = ImpactParams {
        root: Some(root.root.to_string()),
        path: path.clone(),
        depth: args.depth,
        k: args.k,
    };
    let Some(answer) = app.answer::<ImpactAnswer>(&client, "search.impact", &params).await? else {
        return Ok(OK);
    };
    note_partial(app, answer.complete);
    let mut out = String::new();
    for item in &answer.items {
        let path = scope::relative_display(&root.path, &item.path, &here);
        let _infallible = writeln!(out, "{:>3}  {}", item.steps, style(path).green());
    }
    let more = if answer.truncated { ", and more; see -k" } else { "" };
    let _infallible =
        writeln!(out, "{} files within {} steps{more}", answer.items.len(), args.depth);
    output::print(&out)?;
    Ok(OK)
}

fn note_partial(app: &App<'_>, is_complete: bool) {
    if !is_complete {
        app.info("the symbols are not complete yet; 'cairn index status' shows their progress");
    }
}
