//! `cairn map`: the most relevant files and definitions of a repository, within a number of tokens.

use std::{fmt::Write as _, path::Path};

use cairn_protocol::map::{MAX_BUDGET, MapAnswer, MapDefinition, MapFile, MapParams};
use clap::Args;
use console::style;

use crate::{
    app::App,
    exit::{Failure, OK},
    render::output::{self, number, plain},
    scope::{self, Location, Stage},
};

const EXAMPLES: &str = "\
Examples:
  cairn map
  cairn map --tokens 4000 --query 'resume a session'
  cairn map --file src/server.rs --file src/session.rs
  cairn --json map | jq -r '.files[].path'

A token is estimated as four bytes. Paths are relative to the root; below each file are the lines and signatures of its
definitions.";

/// Arguments of `cairn map`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct MapArgs {
    /// Maximum tokens of the map
    #[arg(long, short, value_name = "N", default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_BUDGET)))]
    tokens: u32,
    /// The task at hand, in words or names; its search results come first
    #[arg(long, value_name = "QUERY", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    query: Option<String>,
    /// A file being worked on, whose references come first; may be given several times
    #[arg(long, value_name = "FILE")]
    file: Vec<String>,
    /// Another root: its id or a folder
    #[arg(long, value_name = "ROOT")]
    root: Option<String>,
}

pub async fn run(app: &App<'_>, args: MapArgs) -> Result<u8, Failure> {
    let (client, here) = app.connect_here().await?;
    let mut files = args.file;
    if args.root.is_none() {
        for file in &mut files {
            let path = app.canonical(&here.join(&*file))?;
            if path.is_dir() {
                return Err(Failure::usage(format!("'{}' is a folder", plain(file)))
                    .hint("--file takes a file; 'cairn map' without it maps the whole root"));
            }
            *file = scope::utf8(&path)?;
        }
    }
    let at = match (&args.root, files.first()) {
        (Some(root), _) => Location::Root(root),
        (None, Some(file)) => Location::Around(Path::new(file)),
        (None, None) => Location::Around(&here),
    };
    let root = scope::root(app, &client, at, Stage::Complete).await?;
    let params = MapParams {
        roots: vec![root.root.to_string()],
        budget: args.tokens,
        files,
        query: args.query,
    };
    let Some(answer) = app.answer::<MapAnswer>(&client, "search.map", &params).await? else {
        return Ok(OK);
    };
    output::print(&render(&answer.files))?;
    let definitions: usize = answer.files.iter().map(|f| f.definitions.len()).sum();
    let files = number(answer.files.len() as u64);
    let definitions = number(definitions as u64);
    app.info(&format!(
        "{files} files, {definitions} definitions, {} tokens",
        number(answer.tokens.into())
    ));
    if !answer.complete {
        app.info("not all definitions are known yet; 'cairn index status' shows their progress");
    }
    Ok(OK)
}

/// Renders the lines of the map in colours.
fn render(files: &[MapFile]) -> String {
    let mut out = String::new();
    for file in files {
        let _infallible = writeln!(out, "{}", style(plain(&file.path)).green());
        for definition in &file.definitions {
            let line = style(definition.line).dim();
            let _infallible = writeln!(out, " {line} {}", label(definition));
        }
    }
    out
}

/// The signature of a definition with its name in bold, or its kind and name.
fn label(definition: &MapDefinition) -> String {
    let name = plain(&definition.name);
    let bold = style(&name).bold();
    let Some(signature) = &definition.signature else {
        return format!("{} {bold}", plain(&definition.kind));
    };
    let signature = plain(signature);
    match signature.split_once(&*name) {
        Some((before, after)) => format!("{before}{bold}{after}"),
        None => signature,
    }
}

#[cfg(test)]
mod tests {
    use cairn_protocol::id::RootId;

    use super::*;

    #[test]
    fn map_has_one_line_per_entry() {
        console::set_colors_enabled(false);
        let definition = |name: &str, line| MapDefinition {
            name: name.into(),
            kind: "function".into(),
            line,
            signature: (line == 3).then(|| format!("pub fn {name}(path: &Path)")),
        };
        let file = |path: &str, definitions| MapFile {
            path: path.into(),
            root: RootId("root_1".into()),
            score: 0.5,
            definitions,
        };
        let files = [
            file("src/a.rs", vec![definition("open", 3), definition("close", 40)]),
            file("b\u{1b}.rs", vec![definition("run", 1)]),
        ];
        let expected = "src/a.rs\n 3 pub fn open(path: &Path)\n 40 function close\nb\\u{1b}.rs\n 1 function run\n";
        assert_eq!(render(&files), expected);
    }
}
