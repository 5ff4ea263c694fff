//! `cairn rules`: the rules that answers granted for good.

use std::{fmt::Write as _, path::PathBuf};

use cairn_client_sdk::Client;
use cairn_protocol::{
    session::{Empty, Page},
    tool::{GrantedRule, NarrowParams, RevokeParams},
};
use clap::{Args, Subcommand};
use console::style;

use crate::{
    app::App,
    exit::{Failure, OK},
    render::output::{self, plain},
};

const EXAMPLES: &str = "\
Examples:
  cairn rules
  cairn rules remove 2
  cairn rules remove 'write_file(docs/**)' --project ~/work/site
  cairn rules narrow 'run_shell(cargo *)' 'run_shell(cargo test *)'

'always' stores a rule for one project and the work trees of its repository, 'everywhere' for all. RULE is the text of
a rule, or its number in the list. Rules of the configuration ('permissions') are not in it: they are edited there.
Exit codes: 0 done, 2 invalid usage, 3 no such rule, or the new one is not narrower, 4 no daemon.";

/// Arguments of `cairn rules`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct RulesArgs {
    /// The action; lists the rules when omitted.
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// The granted rules, each with its project
    List,
    /// Remove a rule: its calls need an answer again
    Remove {
        /// The rule, or its number in the list
        #[arg(value_name = "RULE")]
        rule: String,
        /// Only the rule of this project
        #[arg(long, value_name = "DIR")]
        project: Option<PathBuf>,
    },
    /// Replace a rule by one that covers less
    Narrow {
        /// The rule, or its number in the list
        #[arg(value_name = "RULE")]
        rule: String,
        /// The rule in its place
        #[arg(value_name = "NEWRULE")]
        to: String,
        /// Only the rule of this project
        #[arg(long, value_name = "DIR")]
        project: Option<PathBuf>,
    },
}

pub async fn run(app: &App<'_>, args: RulesArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    let failed = |f: Failure| f.hint_for("invalid_params", "'cairn rules' lists them");
    match args.action.unwrap_or(Action::List) {
        Action::List => {
            let page = app.answer::<Page<GrantedRule>>(&client, "permission.list", &Empty {});
            if let Some(page) = page.await? {
                output::print(&list(&page.data))?;
            }
        }
        Action::Remove { rule, project } => {
            let project = project.map(|folder| folder_name(app, &folder)).transpose()?;
            let params = named(&client, &rule, project).await?;
            let answer = app.answer::<Empty>(&client, "permission.revoke", &params).await;
            if answer.map_err(failed)?.is_some() {
                output::line(&format!("removed {}", plain(&params.rule)))?;
            }
        }
        Action::Narrow { rule, to, project } => {
            let project = project.map(|folder| folder_name(app, &folder)).transpose()?;
            let RevokeParams { rule, project } = named(&client, &rule, project).await?;
            let text = format!("{} is now {}", plain(&rule), plain(&to));
            let params = NarrowParams { rule, to, project };
            let answer = app.answer::<Empty>(&client, "permission.narrow", &params).await;
            if answer.map_err(failed)?.is_some() {
                output::line(&text)?;
            }
        }
    }
    Ok(OK)
}

/// Returns the path of a project as the daemon stores it. The folder may be gone.
fn folder_name(app: &App<'_>, folder: &std::path::Path) -> Result<String, Failure> {
    let path = app.canonical(folder).unwrap_or_else(|_| folder.to_owned());
    Ok(path.to_string_lossy().into_owned())
}

/// Returns the rule that a text or a number of the list names.
pub async fn named(
    client: &Client,
    rule: &str,
    project: Option<String>,
) -> Result<RevokeParams, Failure> {
    let Ok(number) = rule.parse::<usize>() else {
        return Ok(RevokeParams { rule: rule.to_owned(), project });
    };
    let all = client.permission_list(&Empty {}).await?.data;
    let granted =
        number.checked_sub(1).and_then(|at| all.into_iter().nth(at)).ok_or_else(|| {
            Failure::with_reason("invalid_params", format!("the list has no rule {number}"))
                .hint("'cairn rules' lists them")
        })?;
    Ok(RevokeParams { rule: granted.rule, project: granted.project })
}

/// Renders rules, one per line with its number.
pub fn list(all: &[GrantedRule]) -> String {
    if all.is_empty() {
        return "no rule was granted\n".into();
    }
    let mut out = String::new();
    for (at, granted) in all.iter().enumerate() {
        let scope = match &granted.project {
            Some(folder) => format!("in {}", plain(folder)),
            None => "everywhere".to_owned(),
        };
        let by = format!("by {}, {}", plain(&granted.granted_by), granted.granted_at);
        let _infallible = writeln!(
            out,
            "{:>3}  {}  {scope}  {}",
            at + 1,
            style(plain(&granted.rule)).bold(),
            style(by).dim()
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use cairn_protocol::time::Timestamp;

    use super::*;

    #[test]
    fn list_names_the_project_of_each_rule() {
        let granted = |rule: &str, project: Option<&str>| GrantedRule {
            rule: rule.into(),
            project: project.map(str::to_owned),
            granted_by: "cli".into(),
            granted_at: Timestamp(0),
        };
        let all = [
            granted("write_file(src)", Some("/work/site")),
            granted("run_shell(= cat <<E\nrun_shell\nE)", None),
        ];
        let text = console::strip_ansi_codes(&list(&all)).into_owned();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.starts_with("  1  write_file(src)  in /work/site  by cli, "), "{text}");
        assert!(text.contains("  2  run_shell(= cat <<E\\nrun_shell\\nE)  everywhere  "), "{text}");
        assert_eq!(list(&[]), "no rule was granted\n");
    }
}
