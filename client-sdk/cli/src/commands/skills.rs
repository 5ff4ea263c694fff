//! `cairn skills`: the skills that are offered to agents.

use std::fmt::Write as _;

use cairn_protocol::{
    session::{Empty, Page},
    skill::SkillInfo,
};
use clap::Args;
use console::style;

use crate::{
    app::App,
    exit::{Failure, OK},
    render::output::{self, plain},
};

const HELP: &str = "\
A skill is a folder in `skills` of the configuration's folder, with a `skill.json`:

  {\"id\": \"review\", \"version\": \"1\", \"description\": \"Reviews a change.\", \"tools\": [\"git_diff\"],
   \"policy\": {\"deny\": [\"write_file\"]}}

and its text in `prompt.md` (or as `promptBlock`). Programs in its folder `tools` are tools, described as in the tools folder.
It is enabled while one of its tools can be called; `context/tool-access.json` switches tools: {\"run_shell\": {\"enabled\": false}}.

Exit codes: 0 done, 2 invalid usage, 4 no daemon.";

/// Arguments of `cairn skills`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HELP)]
pub struct SkillsArgs {
    /// Print the text of this skill
    skill: Option<String>,
}

pub async fn run(app: &App<'_>, args: SkillsArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    let Some(id) = args.skill else {
        if let Some(page) = app.answer::<Page<SkillInfo>>(&client, "skill.list", &Empty {}).await? {
            output::print(&table(&page.data))?;
        }
        return Ok(OK);
    };
    let all = client.skill_list(&Empty {}).await?.data;
    let Some(skill) = all.iter().find(|info| info.skill.id == id) else {
        let names = all.iter().map(|info| info.skill.id.as_str()).collect::<Vec<_>>().join(", ");
        return Err(Failure::usage(format!("there is no skill '{}'", plain(&id)))
            .hint(format!("there are: {names}")));
    };
    if app.globals.json {
        output::json(skill)?;
    } else {
        output::print(skill.skill.prompt_block.as_deref().unwrap_or_default())?;
    }
    Ok(OK)
}

fn table(all: &[SkillInfo]) -> String {
    let mut out = String::new();
    for info in all {
        let mark = if info.enabled { style("●").green() } else { style("○").red() };
        let skill = &info.skill;
        let from = info.folder.as_deref().map_or_else(|| "built in".to_owned(), plain);
        let _infallible = writeln!(
            out,
            "{mark} {} {}  {}\n    {from}{}",
            style(plain(&skill.id)).bold(),
            plain(&skill.version),
            plain(&skill.description),
            info.reason.as_ref().map(|why| format!("; off: {}", plain(why))).unwrap_or_default(),
        );
    }
    out
}
