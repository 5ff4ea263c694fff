//! Settings of a single command, from `-c FILE` and `CAIRN_*` variables: they apply to the session
//! of that command, or the command is refused. The daemon never receives them, so that they cannot
//! affect other commands.

use cairn_client_sdk::Client;
use cairn_config::{DiskFiles, Row, Scope, Source, scope_of};
use cairn_protocol::{
    config::ConfigGetParams,
    location::{DaemonFile, DataRoot},
    turn::{ExecutionPolicy, ProviderSetParams, SandboxUse, TurnOverrides},
};
use serde_json::Value;

use crate::{app::App, args::Sessions, exit::Failure, render::output::plain};

/// The variable for the daemon's log filter.
const LOG_VARIABLE: &str = "CAIRN_LOG";
/// Variables for locations, and those that are set for skills and programs.
const OTHER_VARIABLES: [&str; 5] =
    ["CAIRN_HOME", "CAIRN_CONFIG", "CAIRN_TOKEN", "CAIRN_PROJECT", "CAIRN_SESSION"];

/// The settings of one command.
#[derive(Debug, Default)]
pub struct Overrides(Vec<Row>);

impl Overrides {
    /// Reads the settings of a command; problems are reported with a remedy.
    ///
    /// # Errors
    /// An unreadable file, or a value of the wrong type.
    pub fn read(app: &App<'_>) -> Result<Self, Failure> {
        let inputs = app.host.config_inputs(&app.globals, None);
        let is_setting = |(name, _): &(String, String)| !OTHER_VARIABLES.contains(&name.as_str());
        if inputs.explicit.is_none() && !inputs.env.iter().any(is_setting) {
            return Ok(Self::default());
        }
        let log =
            inputs.env.iter().find(|(name, _)| name == LOG_VARIABLE).map(|(name, value)| Row {
                key: "daemon.log".into(),
                value: value.as_str().into(),
                is_redacted: false,
                source: Source::Env(name.clone()),
            });
        let loaded = cairn_config::load(&inputs, &DiskFiles)
            .map_err(|errors| Failure::usage(errors.to_string()))?;
        let explicit = inputs.explicit.map(Source::File);
        let own =
            |source: &Source| matches!(source, Source::Env(_)) || explicit.as_ref() == Some(source);
        for warning in loaded.warnings.iter().filter(|warning| own(&warning.source)) {
            app.info(&format!("warning: {}", plain(&warning.to_string())));
        }
        let rows = cairn_config::rows(&loaded).into_iter().filter(|row| own(&row.source));
        Ok(Self(rows.chain(log).collect()))
    }

    /// Lists the settings with their sources.
    pub fn rows(&self) -> &[Row] {
        &self.0
    }

    /// Refuses settings that this command cannot apply and that are not effective in the daemon
    /// either.
    ///
    /// # Errors
    /// Names each setting, its source and a remedy.
    pub async fn check(&self, app: &App<'_>, client: &Client) -> Result<(), Failure> {
        let relevant: Vec<&Row> =
            self.0.iter().filter(|row| self.concerns_daemon(app, row)).collect();
        if relevant.is_empty() {
            return Ok(());
        }
        let in_force = client.config_get(&ConfigGetParams::default()).await?.values;
        let same = |row: &&&Row| {
            // A redacted secret cannot be compared.
            !row.is_redacted && in_force.get(&row.key).is_some_and(|known| known.value == row.value)
        };
        let refused: Vec<String> = relevant
            .iter()
            .filter(|row| !same(row))
            .map(|row| format!("{} sets {}", row.source, row.key))
            .collect();
        if refused.is_empty() {
            return Ok(());
        }
        let text = format!(
            "{}: a setting of the daemon, shared by all its clients; a single command cannot change it",
            plain(&refused.join(", "))
        );
        let folder = app.env.config_dir().unwrap_or_default();
        let hint = format!(
            "set it in {}, or start the daemon with 'cairn serve', which takes variables and --config",
            folder.join("config.json").display()
        );
        Err(Failure::usage(text).hint(hint))
    }

    fn concerns_daemon(&self, app: &App<'_>, row: &Row) -> bool {
        match (scope_of(&row.key), app.sessions) {
            (Some(Scope::Client), _) => false,
            (Some(Scope::Session), Sessions::Own) => !self.applies(row),
            // A session setting cannot matter to a command without turns.
            (Some(Scope::Session), Sessions::None) => false,
            _ => true,
        }
    }

    /// Returns true if a session can override the setting.
    fn applies(&self, row: &Row) -> bool {
        match row.key.as_str() {
            // A redacted address cannot be passed on.
            _ if row.is_redacted => false,
            // Otherwise the session's folder decides about the sandbox and disabled tools.
            "safety.sandboxEnabled" => row.value == Value::Bool(false),
            key if key.starts_with("tools.builtin.") => row.value == Value::Bool(false),
            _ => true,
        }
    }

    fn get<T: serde::de::DeserializeOwned>(&self, key: &str) -> Option<T> {
        let row = self.0.iter().find(|row| row.key == key)?;
        serde_json::from_value(row.value.clone()).ok()
    }

    /// Applies the settings to the policy of a session's turns, unless a flag overrides them.
    pub fn apply(&self, policy: &mut ExecutionPolicy) {
        policy.max_iterations = policy.max_iterations.or(self.get("agent.maxIterations"));
        policy.tools_mode = policy.tools_mode.or(self.get("tools.mode"));
        if self.get("safety.sandboxEnabled") == Some(false) {
            policy.sandbox = Some(SandboxUse::Off);
        }
        let settings = TurnOverrides {
            temperature: self.get("llm.temperature"),
            max_answer_tokens: self.get("llm.maxTokens"),
            max_context_tokens: self.get("context.maxTokens"),
            compaction_threshold: self.get("context.compactionThreshold"),
            repo_map_tokens: self.get("context.repoMapTokens"),
            max_tool_output_chars: self.get("context.maxToolOutputChars"),
        };
        policy.settings = (settings != TurnOverrides::default()).then_some(settings);
    }

    /// Lists the tools that the settings disable.
    pub fn switched_off(&self) -> Vec<String> {
        let off = |row: &Row| {
            let tool = row.key.strip_prefix("tools.builtin.")?.strip_suffix(".enabled")?;
            (row.value == Value::Bool(false)).then(|| tool.to_owned())
        };
        self.0.iter().filter_map(off).collect()
    }

    /// Applies the model settings to the choice of a session, unless a flag overrides them.
    pub fn choose_model(&self, choice: &mut ProviderSetParams) {
        choice.provider = choice.provider.take().or_else(|| self.get("llm.provider"));
        choice.model = choice.model.take().or_else(|| self.get("llm.model"));
        choice.endpoint = choice.endpoint.take().or_else(|| self.get("llm.endpoint"));
    }
}

/// Refuses a configuration folder that this command names and the running daemon does not use.
///
/// # Errors
/// `CAIRN_CONFIG` is set and the daemon uses another folder.
pub fn check_folder(app: &App<'_>) -> Result<(), Failure> {
    let Some(root) = app.env.data_root().map(DataRoot) else { return Ok(()) };
    let read = std::fs::read(root.daemon_json()).ok();
    let file = read.and_then(|bytes| serde_json::from_slice::<DaemonFile>(&bytes).ok());
    let Some((theirs, own)) = file.and_then(|file| file.config_dir).zip(app.env.config_dir())
    else {
        return Ok(());
    };
    if theirs == own {
        return Ok(());
    }
    let text = format!(
        "the running daemon reads its configuration from {}, and not from {}",
        theirs.display(),
        own.display()
    );
    let hint = "'cairn stop' stops that daemon; the next command starts one with this folder";
    if app.env.cairn_config.is_some() {
        return Err(Failure::usage(text).hint(hint));
    }
    app.info(&format!("warning: {text}\nhint: {hint}"));
    Ok(())
}
