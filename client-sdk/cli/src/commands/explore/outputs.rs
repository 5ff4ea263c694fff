//! Forms of the summary: the page of the terminal, or documents in files and on standard output.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use cairn_explore_report::{agents, markdown};
use cairn_protocol::{explore::ExploreSummary, id::SessionId};
use clap::Args;

use crate::{
    app::App,
    exit::Failure,
    render::{explore_page, explore_summary, output},
};

/// The name of standard output among files.
const STDOUT: &str = "-";

/// Flags that choose the form of the summary.
#[derive(Debug, Clone, Default, Args)]
pub struct OutputArgs {
    /// Print everything instead of one page
    #[arg(long, conflicts_with_all = ["html", "markdown", "agents_md"])]
    full: bool,
    /// Write one HTML page with a diagram that needs no network; - prints it
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write Markdown with a Mermaid diagram, such as ARCHITECTURE.md; without a file, print it
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STDOUT)]
    markdown: Option<PathBuf>,
    /// Write a draft of AGENTS.md: commands, layout, conventions; without a file, print it
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STDOUT)]
    agents_md: Option<PathBuf>,
    /// Overwrite files that exist
    #[arg(long)]
    force: bool,
}

/// A document and its destination.
struct Output<'a> {
    form: Form,
    path: &'a Path,
}

/// Form of a document.
#[derive(Clone, Copy)]
enum Form {
    Html,
    Markdown,
    AgentsMd,
}

impl Output<'_> {
    fn flag(&self) -> &'static str {
        match self.form {
            Form::Html => "--html",
            Form::Markdown => "--markdown",
            Form::AgentsMd => "--agents-md",
        }
    }

    fn render(&self, summary: &ExploreSummary) -> String {
        match self.form {
            Form::Html => explore_page::page(summary),
            Form::Markdown => markdown::document(summary),
            Form::AgentsMd => agents::draft(summary),
        }
    }

    fn is_stdout(&self) -> bool {
        self.path == Path::new(STDOUT)
    }
}

impl OutputArgs {
    fn outputs(&self) -> Vec<Output<'_>> {
        let html = self.html.as_deref().map(|path| Output { form: Form::Html, path });
        let markdown = self.markdown.as_deref().map(|path| Output { form: Form::Markdown, path });
        let agents = self.agents_md.as_deref().map(|path| Output { form: Form::AgentsMd, path });
        [html, markdown, agents].into_iter().flatten().collect()
    }

    /// Checks the flags and the files before anything is explored.
    pub fn check(&self, json: bool) -> Result<(), Failure> {
        let outputs = self.outputs();
        let flag = if self.full { Some("--full") } else { outputs.first().map(Output::flag) };
        if let (true, Some(flag)) = (json, flag) {
            let message = format!("{flag} cannot be used with --json, which prints every event");
            return Err(Failure::usage(message));
        }
        let has_file = outputs.iter().any(|output| !output.is_stdout());
        if self.force && !has_file {
            return Err(Failure::usage("--force requires --html, --markdown or --agents-md FILE"));
        }
        for (at, output) in outputs.iter().enumerate() {
            if let Some(other) = outputs[..at].iter().find(|other| other.path == output.path) {
                let target = if output.is_stdout() { "standard output" } else { "the same file" };
                return Err(Failure::usage(format!(
                    "{} and {} both write to {target}",
                    other.flag(),
                    output.flag()
                )));
            }
            self.check_file(output)?;
        }
        Ok(())
    }

    fn check_file(&self, output: &Output<'_>) -> Result<(), Failure> {
        if output.is_stdout() {
            return Ok(());
        }
        if output.path.is_dir() {
            let message = format!("{} {}: is a folder", output.flag(), output.path.display());
            let hint =
                format!("name a file, or put the folder to explore before {}", output.flag());
            return Err(Failure::usage(message).hint(hint));
        }
        if output.path.symlink_metadata().is_ok() && !self.force {
            return Err(exists(output.path));
        }
        let parent = output.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent
            && !parent.is_dir()
        {
            let message = format!(
                "{} cannot be written: the folder {} does not exist",
                output.path.display(),
                parent.display()
            );
            return Err(Failure::refused(message));
        }
        Ok(())
    }

    /// Prints or writes the summary.
    pub fn emit(
        &self,
        app: &App<'_>,
        summary: &ExploreSummary,
        session: &SessionId,
    ) -> Result<(), Failure> {
        let outputs = self.outputs();
        if outputs.is_empty() {
            let columns = explore_summary::terminal_columns();
            let text = match self.full {
                true => explore_summary::full(summary, session, columns),
                false => explore_summary::page(summary, session, columns),
            };
            output::print(&text)?;
        }
        for output in outputs {
            let text = output.render(summary);
            if output.is_stdout() {
                output::print(&text)?;
            } else {
                write(output.path, &text, self.force)?;
                app.info(&format!("wrote {}", output.path.display()));
            }
        }
        Ok(())
    }
}

fn exists(path: &Path) -> Failure {
    Failure::refused(format!("{} exists", path.display())).hint("--force overwrites it")
}

fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true);
    // Another program may have created the file since the check.
    let opened = match force {
        true => options.create(true).truncate(true).open(path),
        false => options.create_new(true).open(path),
    };
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => Failure::refused(format!("{} cannot be written: {error}", path.display())),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        outputs: OutputArgs,
    }

    fn parse(flags: &[&str]) -> Result<OutputArgs, clap::Error> {
        let arguments = std::iter::once("x").chain(flags.iter().copied());
        Flags::try_parse_from(arguments).map(|flags| flags.outputs)
    }

    #[test]
    fn flags_that_exclude_each_other_are_refused() {
        for flags in [
            &["--full", "--html", "a"][..],
            &["--full", "--markdown"],
            &["--full", "--agents-md"],
            &["--html"],
        ] {
            assert!(parse(flags).is_err(), "{flags:?}");
        }
        for (flags, json, expected) in [
            (&["--html", "a"][..], true, "--html cannot be used with --json"),
            (&["--full"], true, "--full cannot be used with --json"),
            (&["--force"], false, "--force requires"),
            (&["--markdown", "--force"], false, "--force requires"),
            (&["--markdown", "--agents-md"], false, "both write to standard output"),
            (&["--html", "a", "--markdown", "a"], false, "both write to the same file"),
            (&["--html", "/"], false, "--html /: is a folder"),
            (&["--html", "/no/such/a"], false, "the folder /no/such does not exist"),
        ] {
            let failure = parse(flags).unwrap().check(json).unwrap_err().text();
            assert!(failure.contains(expected), "{flags:?}: {failure}");
        }
        for flags in [&["--full"][..], &["--html", "-"], &["--markdown"], &["--html", "a.html"]] {
            assert!(parse(flags).unwrap().check(false).is_ok(), "{flags:?}");
        }
    }

    #[test]
    fn an_existing_file_is_overwritten_only_by_force() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.md");
        write(&file, "first and long", false).unwrap();
        let path = file.to_str().unwrap();
        let failure = parse(&["--markdown", path]).unwrap().check(false).unwrap_err().text();
        assert!(failure.contains(path) && failure.contains("--force"), "{failure}");
        assert!(write(&file, "second", false).unwrap_err().text().contains(path));
        assert!(parse(&["--markdown", path, "--force"]).unwrap().check(false).is_ok());
        write(&file, "second", true).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "second");
        let missing = dir.path().join("b/c");
        assert!(write(&missing, "", false).unwrap_err().text().contains("b/c cannot be written"));
    }
}
