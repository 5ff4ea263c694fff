//! `cairn setup`: finds a model, writes the configuration, tries it, and offers the next steps.

use std::{fs, path::Path, time::Duration};

use cairn_client_sdk::{Client, Item};
use cairn_config::{DiskFiles, Files};
use cairn_protocol::{
    event::AgentEvt,
    id::SessionId,
    index::{AddRootParams, RootRef},
    session::{Empty, SessionCreateParams},
    turn::{ExecutionPolicy, Input, RunResult, RunStartParams, TurnRef},
};
use clap::Args;
use console::style;
use jsonc_parser::{ParseOptions, cst::CstInputValue, cst::CstRootNode};

use crate::{
    app::{App, current_dir},
    chat,
    commands::config,
    confirm,
    exit::{Failure, OK, hint_for_people},
    render::output::{self, plain},
    scope,
};

mod providers;

use providers::{Found, Location};

/// The request that tries a model.
const TRIAL: &str = "Answer with one word: ready";
/// Time limit of the trial. A large local model is loaded first.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest wait for the end of a trial that was cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

const HELP: &str = "\
Model servers on this machine (Ollama, LM Studio, llama.cpp, vLLM, Jan) and keys in the environment (ANTHROPIC_API_KEY,
OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY) are found. Nothing is sent to another machine before you choose it.
Search, explore and MCP need no model.

  cairn setup                                            choose from what is found
  cairn setup --provider ollama --model qwen3            without questions
  cairn setup --provider openai-compatible --endpoint http://localhost:8080/v1 --model local
  cairn setup --dry-run                                  print what is found and what would be written

Exit codes: 0 done, 1 the model does not answer, 2 invalid usage, 4 no daemon.";

/// Arguments of `cairn setup`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HELP)]
pub struct SetupArgs {
    /// Use this provider; 'cairn models' lists them
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Use this model; the provider's default if not given
    #[arg(long, value_name = "NAME", requires = "provider")]
    model: Option<String>,
    /// Address of the provider's server
    #[arg(long, value_name = "URL", requires = "provider")]
    endpoint: Option<String>,
    /// Write the configuration without trying the model
    #[arg(long)]
    no_try: bool,
    /// Change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command. It runs other commands in turn, each with a runtime of its own.
pub fn run(app: &App<'_>, args: &SetupArgs) -> Result<u8, Failure> {
    let file = config_file(app)?;
    let choice = match &args.provider {
        Some(provider) => Some(Found {
            location: match providers::is_outside(provider, args.endpoint.as_deref()) {
                true => Location::Outside,
                false => Location::Local,
            },
            label: provider.clone(),
            provider: provider.clone(),
            endpoint: args.endpoint.clone(),
            model: args.model.clone(),
        }),
        None => choose(app, args)?,
    };
    if let Some(choice) = &choice {
        crate::wait_for(check_provider(app, choice))?;
        let settings = choice.settings();
        if args.dry_run {
            let text = with_settings("", &settings).map_err(Failure::failed)?;
            output::print(&format!("{} would get:\n{text}", file.display()))?;
            return Ok(OK);
        }
        write(app, &file, &settings)?;
        output::line(&format!("{} {}", style("wrote").green(), file.display()))?;
        crate::wait(config::apply(app))?;
        if !args.no_try {
            crate::wait_for(try_model(app, choice))?;
        }
    }
    if !args.dry_run {
        next_steps(app)?;
    }
    Ok(OK)
}

/// Returns the user's configuration file.
fn config_file(app: &App<'_>) -> Result<std::path::PathBuf, Failure> {
    let folder = app.env.config_dir();
    let folder =
        folder.ok_or_else(|| Failure::usage("there is no home folder: HOME is not set"))?;
    Ok(folder.join("config.json"))
}

/// Prints what is found, and lets the user choose at a terminal.
fn choose(app: &App<'_>, args: &SetupArgs) -> Result<Option<Found>, Failure> {
    app.info("looking for model servers on this machine and keys in the environment");
    let found = providers::find();
    let rows: Vec<String> = found.iter().map(Found::row).collect();
    if !chat::has_keyboard() || args.dry_run {
        for (found, row) in found.iter().zip(&rows) {
            output::line(&format!("{row}\n    {}", found.command()))?;
        }
        if found.is_empty() {
            output::line("no model was found; search, explore and MCP work without one")?;
            output::line("a free local model: https://ollama.com, then 'ollama pull qwen3'")?;
        }
        return Ok(None);
    }
    let mut rows = rows;
    rows.push("no model: search, explore and MCP only".to_owned());
    let chosen = crate::wait_for(chat::choose("the model for chats", rows))?;
    Ok(chosen.and_then(|at| found.into_iter().nth(at)))
}

/// The files of the disk, one of them with another text.
struct Changed<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Files for Changed<'_> {
    fn read(&self, path: &Path) -> std::io::Result<Option<String>> {
        if path == self.file { Ok(Some(self.text.to_owned())) } else { DiskFiles.read(path) }
    }
}

/// Writes settings into a JSON file, whose other settings and layout remain. Nothing is written if
/// the configuration would be invalid.
fn write(
    app: &App<'_>,
    file: &Path,
    settings: &[(String, serde_json::Value)],
) -> Result<(), Failure> {
    let io = |error: std::io::Error| Failure::path(file, &error);
    let before = DiskFiles.read(file).map_err(io)?.unwrap_or_default();
    let text = with_settings(&before, settings)
        .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    let inputs = app.host.config_inputs(&app.globals, Some(current_dir()?));
    cairn_config::load(&inputs, &Changed { file, text: &text })
        .map_err(|error| Failure::usage(format!("the configuration was not changed: {error}")))?;
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(io)?;
    // A file is complete or not there; the permissions of an existing one remain.
    let mut new = tempfile::NamedTempFile::new_in(folder).map_err(io)?;
    std::io::Write::write_all(&mut new, text.as_bytes()).map_err(io)?;
    if let Ok(about) = fs::metadata(file) {
        new.as_file().set_permissions(about.permissions()).map_err(io)?;
    }
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    new.persist(&target).map(drop).map_err(|error| io(error.error))
}

/// Returns the text of a configuration file with other values of some settings.
fn with_settings(text: &str, settings: &[(String, serde_json::Value)]) -> Result<String, String> {
    let base = if text.trim().is_empty() { "{}\n" } else { text };
    let root = CstRootNode::parse(base, &ParseOptions::default())
        .map_err(|e| format!("it is not JSON: {e}"))?;
    let top = root.object_value_or_create().ok_or("it is not an object")?;
    for (key, value) in settings {
        let Some((section, name)) = key.split_once('.') else { continue };
        let section = top
            .object_value_or_create(section)
            .ok_or_else(|| format!("its '{section}' is not an object"))?;
        let property = section.get(name);
        let value = match value {
            serde_json::Value::Null => {
                property.into_iter().for_each(|property| property.remove());
                continue;
            }
            serde_json::Value::Bool(value) => CstInputValue::Bool(*value),
            value => CstInputValue::String(value.as_str().unwrap_or_default().to_owned()),
        };
        match property {
            Some(property) => property.set_value(value),
            None => drop(section.append(name, value)),
        }
    }
    let mut out = root.to_string();
    if !out.ends_with('\n') {
        out.push('\n');
    }
    Ok(out)
}

/// Requests one short answer in a folder without files. Nothing of it remains.
async fn try_model(app: &App<'_>, choice: &Found) -> Result<(), Failure> {
    app.info(&format!("trying {}: '{TRIAL}'", choice.label));
    let folder = tempfile::tempdir().map_err(|e| Failure::failed(format!("no folder: {e}")))?;
    let client = app.connect().await?;
    let path = scope::utf8(&scope::canonical(folder.path())?)?;
    let root = AddRootParams { path: path.clone(), request_id: None };
    client.index_add_root(&root).await?;
    let title = Some("trial of a model".to_owned());
    let params =
        SessionCreateParams { title, root: Some(path.clone()), ..SessionCreateParams::default() };
    let session = client.session_create(&params).await?.session_id;
    let outcome = tokio::time::timeout(TRIAL_TIMEOUT, answer(&client, &session)).await;
    if outcome.is_err() {
        // A session whose run is active cannot be deleted.
        let turn = TurnRef { session_id: session.clone(), turn_id: None };
        client.run_cancel(&turn).await?;
        let _late = tokio::time::timeout(CANCEL_TIMEOUT, completed(&client, &session)).await;
    }
    client.session_delete(&Client::session(&session)).await?;
    client.index_remove_root(&RootRef { root: path, request_id: None }).await?;
    let why = match outcome {
        Ok(Ok(answer)) => {
            output::line(&format!("{} {}", style("answered:").green(), plain(answer.trim())))?;
            return Ok(());
        }
        Ok(Err(failure)) => failure,
        Err(_) => Failure::failed("no answer within two minutes"),
    };
    Err(why.in_context("the configuration is written, but the model does not answer"))
}

/// Runs one turn and returns its answer.
async fn answer(client: &Client, session: &SessionId) -> Result<String, Failure> {
    let policy = ExecutionPolicy { allow_external_llms: true, ..ExecutionPolicy::default() };
    let params = RunStartParams {
        session_id: session.clone(),
        turn_id: uuid::Uuid::now_v7().to_string(),
        input: Input::Text(TRIAL.to_owned()),
        context: None,
        policy: Some(policy),
        metadata: std::collections::BTreeMap::new(),
    };
    client.run_start(&params).await?;
    let result = completed(client, session).await?;
    match result.error {
        None => Ok(result.final_output.unwrap_or_default()),
        Some(error) => {
            let hint = hint_for_people(&error.reason).unwrap_or(&error.hint);
            Err(Failure::with_reason(&error.reason, error.message.clone()).hint(hint))
        }
    }
}

/// Waits for the end of the session's run.
async fn completed(client: &Client, session: &SessionId) -> Result<RunResult, Failure> {
    let mut follow = client.follow(session, 0);
    loop {
        let Item::Event(record) = follow.next().await? else { continue };
        let Ok(envelope) = record.envelope() else { continue };
        if let Some(AgentEvt::RunCompleted { result }) = envelope.body.evt() {
            return Ok((**result).clone());
        }
    }
}

/// Refuses a provider that the daemon does not know, before anything is written.
async fn check_provider(app: &App<'_>, choice: &Found) -> Result<(), Failure> {
    let known = app.connect().await?.provider_list(&Empty {}).await?.data;
    if known.iter().any(|provider| provider.name == choice.provider) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(|provider| provider.name.as_str()).collect();
    let text = format!("there is no provider '{}'", plain(&choice.provider));
    Err(Failure::usage(text).hint(format!("the providers are {}", names.join(", "))))
}

/// Offers to connect other agents and to start the daemon with the machine.
fn next_steps(app: &App<'_>) -> Result<(), Failure> {
    if !confirm::is_possible() {
        output::line("next: 'cairn mcp install' for other agents, 'cairn service install'")?;
        return Ok(());
    }
    let home = app.env.home.clone().unwrap_or_default();
    for (client, folder) in providers::AGENTS {
        if !home.join(folder).is_dir() {
            continue;
        }
        let question = format!("Give {client} Cairn's tools in this folder? [y/N] ");
        if confirm::prompt(&question)? {
            report(crate::dispatch(app, &["cairn", "mcp", "install", client, "--write"]));
        }
    }
    if confirm::prompt("Start the daemon when you log in? [y/N] ")? {
        report(crate::dispatch(app, &["cairn", "service", "install"]));
    }
    output::line(&format!(
        "ready: {} in a project, or {}",
        style("cairn chat").cyan(),
        style("cairn explore .").cyan()
    ))?;
    Ok(())
}

/// Prints the failure of a step after which the next one is still useful.
fn report(outcome: Result<u8, Failure>) {
    if let Err(failure) = outcome {
        let _closed = output::line(&plain(&failure.text()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_merged_and_comments_remain() {
        let settings = vec![
            ("llm.provider".to_owned(), json!("ollama")),
            ("llm.endpoint".to_owned(), json!(null)),
            ("models.allowExternal".to_owned(), json!(true)),
        ];
        let before = "{\n  // mine\n  \"llm\": {\"provider\": \"openai\", \"endpoint\": \"x\"},\n  \"ann\": true\n}\n";
        let after = with_settings(before, &settings).unwrap();
        assert!(after.contains("// mine") && after.contains("\"ann\": true"), "{after}");
        let root = CstRootNode::parse(&after, &ParseOptions::default()).unwrap();
        let value = root.to_serde_value().unwrap();
        assert_eq!(value["llm"], json!({"provider": "ollama"}));
        assert_eq!(value["models"], json!({"allowExternal": true}));
        let alone = with_settings("", &settings).unwrap();
        assert!(alone.contains("\"ollama\""), "{alone}");
        for text in ["[]", "{", "{\"llm\": 3}"] {
            assert!(with_settings(text, &settings).is_err(), "{text}");
        }
    }
}
