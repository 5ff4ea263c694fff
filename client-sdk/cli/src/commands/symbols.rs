//! `cairn symbols`: definitions by name, or the outline of a file.

use std::{fmt::Write as _, path::Path};

use cairn_protocol::search::{NameMatch, SearchFilters, SymbolsAnswer, SymbolsParams};
use clap::Args;
use console::style;

use crate::{
    app::App,
    exit::{FAILED, Failure, OK},
    render::output::{self, plain},
    scope::{self, Location, Stage},
};

/// Maximum results of an outline.
const OUTLINE: u32 = 2_000;

/// Arguments of `cairn symbols`.
#[derive(Debug, Clone, Args)]
pub struct SymbolsArgs {
    /// A name, or a part of one
    #[arg(required_unless_present = "file",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    query: Option<String>,
    /// List the definitions of this file
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
    /// Only this kind, as in 'function'; may be given several times
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Only this language; may be given several times
    #[arg(long, short, value_name = "NAME")]
    lang: Vec<String>,
    /// Exactly this name
    #[arg(long, conflicts_with_all = ["prefix", "fuzzy"])]
    exact: bool,
    /// Names that start with it
    #[arg(long, conflicts_with = "fuzzy")]
    prefix: bool,
    /// Similar names
    #[arg(long)]
    fuzzy: bool,
    /// Number of results
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2000))]
    k: Option<u32>,
    /// Another root: its id or a folder
    #[arg(long, value_name = "ROOT")]
    root: Option<String>,
}

pub async fn run(app: &App<'_>, args: SymbolsArgs) -> Result<u8, Failure> {
    let (client, here) = app.connect_here().await?;
    let file = match &args.file {
        Some(file) if args.root.is_none() => Some(scope::utf8(&app.canonical(&here.join(file))?)?),
        other => other.clone(),
    };
    let at = match (&args.root, &file) {
        (Some(root), _) => Location::Root(root),
        (None, Some(file)) => Location::Around(Path::new(file)),
        (None, None) => Location::Around(&here),
    };
    let root = scope::root(app, &client, at, Stage::Complete).await?;
    let matching = match (args.exact, args.prefix, args.fuzzy) {
        (true, ..) => Some(NameMatch::Exact),
        (_, true, _) => Some(NameMatch::Prefix),
        (.., true) => Some(NameMatch::Fuzzy),
        _ => None,
    };
    let outline = args.query.is_none();
    let params = SymbolsParams {
        query: args.query,
        path: file,
        matching,
        k: args.k.unwrap_or(if outline { OUTLINE } else { 20 }),
        filters: Some(SearchFilters {
            roots: vec![root.root.to_string()],
            kinds: args.kind,
            languages: args.lang,
            ..SearchFilters::default()
        }),
    };
    let Some(answer) = app.answer::<SymbolsAnswer>(&client, "search.symbols", &params).await?
    else {
        return Ok(OK);
    };
    if !answer.complete {
        app.info("the symbols are not complete yet; 'cairn index status' shows their progress");
    }
    if answer.items.is_empty() {
        app.info(if outline {
            "no definitions are known in this file; 'cairn search' and 'cairn grep' read its text"
        } else {
            "no definition has such a name; 'cairn search' finds by words and meaning"
        });
    }
    let mut out = String::new();
    for item in &answer.items {
        let path = scope::relative_display(&root.path, &item.path, &here);
        let within =
            item.container.as_ref().map_or_else(String::new, |c| format!("  in {}", plain(c)));
        let name = style(plain(&item.name)).bold();
        let location = format!("{}:{}-{}", style(path).green(), item.start_line, item.end_line);
        let _infallible =
            writeln!(out, "{:<10} {name}{}  {location}", item.kind, style(within).dim());
    }
    output::print(&out)?;
    Ok(if answer.items.is_empty() { FAILED } else { OK })
}
