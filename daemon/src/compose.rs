//! The composition root: opens all crates according to the configuration.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use cairn_config::{
    Ann, BuiltinTool, Config, DefaultAction, DiagnosticsMode, RuleEntry, ToolsMode, WebBackend,
};
use cairn_engine::{
    BackgroundOptions, DomainAccess, EgressOptions, Engine, EngineDeps, EngineOptions,
    RootSettings, Rule, Rules, RuntimeSettings, TurnSettings, Verdict,
    model::{CostLimits, ModelLimits},
};
use cairn_harness::{
    CallLimits, CheckedRule, Registry, RuleError, Sandbox, WhenMissing, sandbox::Host,
};
use cairn_model_presets::Presets;
use cairn_protocol::{
    error::{Failure, Reason},
    id::RootId,
    location::DataRoot,
    turn::ModelChoice,
};
use cairn_search::{Embedder, IndexOptions, Indexes, RescoreLimits, Rescorer};
use cairn_tools::{SearchBackend, ShellMode, ShellOptions, ToolMode, WebOptions};
use cairn_trace::{Retention, Trace};
use cairn_workspace::{PathPattern, Roots};

use crate::{
    context, language_servers, launch::Agents, models, root_config::Guarded, trust::TrustStore,
};

/// Capacity of the progress channel; further progress is dropped, because only live progress
/// matters.
const PROGRESS_CAPACITY: usize = 1024;

/// Opens the stores and indexes and the engine on top of them.
///
/// # Errors
/// Problems for the user to fix: a database of a newer build, an invalid rule, an unusable
/// embedder.
pub async fn engine(
    root: &DataRoot,
    config: &Config,
    workspace_roots: Vec<PathBuf>,
    config_dir: Option<PathBuf>,
    guarded: Guarded,
    trust: Arc<TrustStore>,
) -> Result<Engine, Failure> {
    // Unfinished clones of earlier daemons are useless.
    let workspaces = root.workspaces_dir();
    let leftover = workspaces.clone();
    tokio::task::spawn_blocking(move || cairn_workspace::git::remove_partials(&leftover));
    limit_memory(config)?;
    let trace_path = root.trace_db();
    let trace = blocking(move || Ok(Trace::open(&trace_path)?)).await?;
    let mut blocked = config.safety.sandbox_blocked_paths.clone();
    // The data folder decides what the daemon does: roots, schedules, trust, the token.
    blocked.extend(root.own_entries());
    // The same holds for the user's own configuration files, which contain keys and the rules for
    // tools.
    blocked.extend(config_dir.clone());
    blocked.extend(guarded.layers);
    let mut closed = guarded.data_folders;
    closed.push(root.path().to_owned());
    let sandbox = Arc::new(sandbox(config, blocked.clone(), closed.clone()));
    let roots = Arc::new(Roots::new(blocked).closing(closed));
    let (notify, progress) = crossbeam_channel::bounded(PROGRESS_CAPACITY);
    let options = index_options(config)?;
    let indexes = Arc::new(Indexes::open(root.index_dir(), options, Some(notify)));
    let registry = Registry::default();
    let memory = cairn_memory::Memory::per_project(root.memory_dir());
    let deps = cairn_tools::Deps {
        shell: shell(config)?,
        mode: match config.tools.mode {
            ToolsMode::Split => ToolMode::Split,
            ToolsMode::Unified => ToolMode::Unified,
            ToolsMode::Both => ToolMode::Both,
        },
        web: web(config),
        after_edit: after_edit(config, root, trust),
        memory: Some(memory.clone()),
        ..cairn_tools::Deps::new(Arc::clone(&roots), Arc::clone(&indexes))
    };
    cairn_tools::register(&registry, &deps)?;
    let options = EngineOptions {
        workspaces,
        state_file: root.state_json(),
        rules: rules(config)?,
        roots: workspace_roots,
        max_runs: config.resources.max_runs,
        drain: Duration::from_secs(config.daemon.drain_seconds),
        granted_file: config_dir.as_ref().map(|dir| dir.join("permissions.json")),
        approval_timeout: Duration::from_secs(config.permissions.approval_timeout_seconds),
        turns: turn_settings(config),
        models: model_limits(config),
        egress: egress(config),
        background: background(config),
        retention: retention(config),
        timezone: cairn_schedule::system_zone(),
        rejected: Some(root.rejected_dir()),
        ..EngineOptions::default()
    };
    let engine =
        Engine::open(EngineDeps { trace, roots, indexes, progress, registry, sandbox }, options)
            .await?;
    // The id of a configured folder that is not there now is unknown.
    if config.roots.iter().all(|path| engine.is_declared(&path.to_string_lossy())) {
        remove_unused_indexes(&root.index_dir(), &engine.known_roots());
    }
    engine.set_explorer(Arc::new(cairn_agent::Explorer));
    engine.set_turn_agent(Arc::new(cairn_agent::Coder::new(context::sources(
        config_dir.map(|dir| dir.join("context")),
        memory.clone(),
    ))));
    set_knowledge(&engine, memory);
    // Folders of runs that an earlier daemon did not remove.
    let _may_not_exist = std::fs::remove_dir_all(root.agents_dir());
    set_models(&engine, config, root);
    Ok(engine)
}

/// Connects the knowledge store with the methods for it, and with the repositories of work trees.
fn set_knowledge(engine: &Engine, memory: cairn_memory::Memory) {
    memory.set_repositories(engine.repository_folders());
    engine.set_knowledge(Arc::new(move |project, op| {
        let view = match project {
            Some(folder) => memory.project(Some(folder)),
            None => memory.general(),
        };
        Ok(view.apply(op)?)
    }));
}

/// Deletes the indexes of roots that are not known any more: an earlier daemon was killed while it
/// removed them. A folder is named by the root's id, and possibly a number.
fn remove_unused_indexes(folder: &Path, known: &HashSet<RootId>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let id = name.split('.').next().unwrap_or_default();
        if id.starts_with("root_")
            && !known.contains(&RootId(id.into()))
            && let Err(error) = std::fs::remove_dir_all(entry.path())
        {
            tracing::warn!(name, %error, "the index of a removed root was not deleted");
        }
    }
}

/// Returns the steps after edits.
fn after_edit(config: &Config, root: &DataRoot, trust: Arc<TrustStore>) -> cairn_tools::AfterEdit {
    let diagnostics = &config.diagnostics;
    let has_command = matches!(diagnostics.mode, DiagnosticsMode::Auto | DiagnosticsMode::Command);
    cairn_tools::AfterEdit {
        formatters: config.format.commands.clone(),
        servers: language_servers::create(config, root.language_servers_dir(), trust),
        requires_servers: diagnostics.mode == DiagnosticsMode::Server,
        check: diagnostics.command.clone().filter(|_| has_command),
        timeout: Duration::from_secs(diagnostics.timeout_seconds.clamp(1, 600)),
    }
}

/// Sets the engine's models from the configuration.
pub fn set_models(engine: &Engine, config: &Config, root: &DataRoot) {
    let agents = Agents::new(config, engine.trace().clone(), root.agents_dir());
    let presets = Arc::new(presets(root));
    engine.set_models(Arc::new(models::ConfiguredProviders::new(
        config,
        presets,
        Arc::new(agents),
    )));
}

/// Returns the facts about models: of the user's file if there is one, else those of the program.
fn presets(root: &DataRoot) -> Presets {
    match Presets::read(&root.presets_file()) {
        Ok(Some(presets)) => presets,
        Ok(None) => Presets::bundled().clone(),
        Err(error) => {
            tracing::warn!(%error, "the presets of the program are used instead");
            Presets::bundled().clone()
        }
    }
}

/// Collects the settings that take effect without a restart.
///
/// # Errors
/// `invalid_params` that names the key of an invalid rule.
pub fn live(config: &Config) -> Result<RuntimeSettings, Failure> {
    Ok(RuntimeSettings {
        rules: rules(config)?,
        max_runs: config.resources.max_runs,
        approval_timeout: Duration::from_secs(config.permissions.approval_timeout_seconds),
        turns: turn_settings(config),
        models: model_limits(config),
        egress: egress(config),
        background: background(config),
        retention: retention(config),
    })
}

fn turn_settings(config: &Config) -> TurnSettings {
    let agent = &config.agent;
    let context = &config.context;
    TurnSettings {
        max_iterations: agent.max_iterations,
        retry_attempts: agent.retry_attempts,
        retry_backoff: Duration::from_millis(agent.retry_backoff_base_ms),
        temperature: config.llm.temperature,
        max_answer_tokens: config.llm.max_tokens,
        max_context_tokens: (context.max_tokens > 0).then(|| u64::from(context.max_tokens)),
        compaction_threshold: context.compaction_threshold,
        shown_chars: context.max_tool_output_chars,
        repo_map_tokens: context.repo_map_tokens,
        auto_commit: config.git.auto_commit.then(|| config.git.commit_message_prefix.clone()),
        domains: domain_access(config),
        listed_mcp_tools: config.mcp.listed_tools as usize,
        worktree_setup: config.worktrees.setup.clone().filter(|line| !line.trim().is_empty()),
        ..TurnSettings::default()
    }
}

/// Returns the domains that may be reached: those of the presets and the user's own.
fn domains(config: &Config) -> impl Iterator<Item = &str> {
    let presets = config.network.presets.iter().flat_map(|preset| preset.domains().iter().copied());
    presets.chain(config.network.domains.iter().map(String::as_str))
}

fn domain_access(config: &Config) -> DomainAccess {
    if domains(config).next().is_some() {
        DomainAccess::All
    } else if config.network.ask {
        DomainAccess::Commands
    } else {
        DomainAccess::Off
    }
}

fn egress(config: &Config) -> EgressOptions {
    EgressOptions {
        ask: config.network.ask,
        ask_timeout: Duration::from_secs(config.network.ask_timeout_seconds),
        ports: config.network.ports.clone(),
    }
}

fn background(config: &Config) -> BackgroundOptions {
    BackgroundOptions {
        per_session: config.sandbox.max_background as usize,
        lifetime: Duration::from_secs(config.sandbox.background_seconds),
    }
}

/// Returns the limits of the log; in the configuration, 0 stands for none.
fn retention(config: &Config) -> Retention {
    const DAY_MS: i64 = 24 * 3600 * 1000;
    let days = |days: u32| (days > 0).then(|| i64::from(days) * DAY_MS);
    let retention = &config.retention;
    Retention {
        max_age_ms: days(retention.max_age_days),
        max_bytes: Some(retention.max_bytes).filter(|bytes| *bytes > 0),
        keep: retention.keep,
        pack_after_ms: days(retention.pack_after_days),
    }
}

fn model_limits(config: &Config) -> ModelLimits {
    let models = &config.models;
    ModelLimits {
        allow_external: models.allow_external,
        providers: models.providers.clone(),
        models: models.models.clone(),
        requests_per_minute: models.max_requests_per_minute,
        tokens_per_day: models.max_tokens_per_day,
        cost: CostLimits {
            turn: models.max_usd_per_turn,
            session: models.max_usd_per_session,
            day: models.max_usd_per_day,
        },
    }
}

/// Describes the sandbox of this machine, with this binary as its helper.
pub fn sandbox(config: &Config, blocked: Vec<PathBuf>, closed: Vec<PathBuf>) -> Sandbox {
    let host = Host {
        home: std::env::var_os("HOME").map(PathBuf::from),
        path: std::env::var_os("PATH")
            .map(|p| std::env::split_paths(&p).collect())
            .unwrap_or_default(),
        lang: std::env::var("LANG").ok(),
        blocked,
        closed,
    };
    let when_missing = match config.sandbox.when_missing {
        _ if !config.safety.sandbox_enabled => WhenMissing::Off,
        cairn_config::WhenMissing::Refuse => WhenMissing::Refuse,
        cairn_config::WhenMissing::Ask => WhenMissing::Ask,
    };
    Sandbox::new(std::env::current_exe().ok()).for_host(host).when_missing(when_missing)
}

fn web(config: &Config) -> WebOptions {
    let web = &config.tools.web;
    WebOptions {
        backend: match web.backend {
            WebBackend::DuckDuckGo => SearchBackend::DuckDuckGo,
            WebBackend::Searxng => SearchBackend::Searxng,
            WebBackend::Brave => SearchBackend::Brave,
        },
        endpoint: web.endpoint.clone(),
        key: web.api_key_env.as_ref().and_then(|name| std::env::var(name).ok()),
        near: false,
    }
}

/// Reads the settings of the shell.
///
/// # Errors
/// `invalid_params` that names a prefix which is not a plain command.
fn shell(config: &Config) -> Result<ShellOptions, Failure> {
    let Some(own) = config.tools.builtin.get("run_shell") else {
        return Ok(ShellOptions::default());
    };
    let bad = |e| {
        Failure::new(Reason::InvalidParams, format!("tools.builtin.run_shell.allowedPrefixes: {e}"))
    };
    // A prefix is a rule that accepts further arguments.
    let rule = |text: &String| {
        format!("run_shell({} *)", text.trim().trim_end_matches('*').trim()).parse().map_err(bad)
    };
    let mode = match own.mode {
        _ if !own.enabled => ShellMode::Off,
        Some(cairn_config::ShellMode::Off) => ShellMode::Off,
        Some(cairn_config::ShellMode::Allowlist) => {
            ShellMode::Allowlist(own.allowed_prefixes.iter().map(rule).collect::<Result<_, _>>()?)
        }
        Some(cairn_config::ShellMode::Full) | None => ShellMode::Full,
    };
    Ok(ShellOptions {
        mode,
        timeout: own.timeout_seconds.map(std::time::Duration::from_secs),
        max_output: own.max_output_chars.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        anywhere: own.cwd == Some(cairn_config::ShellCwd::Any),
    })
}

fn index_options(config: &Config) -> Result<IndexOptions, Failure> {
    let mut options =
        IndexOptions::new(Embedder::named(&config.embedder).map_err(|e| with_key("embedder", e))?)?;
    match config.ann {
        // The index implements only exact search.
        Ann::BruteForce => {}
    }
    options.trim_memory = crate::memory::trim;
    options.exclude = config.exclusions.clone();
    options.max_file_bytes = config.resources.max_file_bytes;
    if config.resources.threads > 0 {
        options = options.with_threads(config.resources.threads)?;
    }
    options.rescorer = rescorer(config, &options)?;
    Ok(options)
}

/// Loads the reranker, which shares the embedder's model if both use the same folder.
fn rescorer(config: &Config, options: &IndexOptions) -> Result<Option<Arc<Rescorer>>, Failure> {
    let own = &config.rerank;
    let model = match own.model.as_str() {
        "" => return Ok(None),
        same if same == config.embedder => Arc::clone(&options.embedder),
        other => Arc::new(Embedder::named(other).map_err(|e| with_key("rerank.model", e))?),
    };
    let limits = RescoreLimits {
        top: own.top as usize,
        time: std::time::Duration::from_millis(own.max_ms),
        threads: options.threads,
    };
    Rescorer::new(model, limits).map(|rescorer| Some(Arc::new(rescorer)))
}

/// Adds the configuration key to the failure of a model.
fn with_key(key: &str, mut error: Failure) -> Failure {
    error.message = format!("{key}: {}", error.message);
    error
}

/// Limits the memory of the database caches.
///
/// # Errors
/// `internal` when SQLite refuses the limit.
pub fn limit_memory(config: &Config) -> Result<(), Failure> {
    cairn_store::limit_memory(config.resources.memory_mb.saturating_mul(1024 * 1024))
        .map_err(|e| Failure::new(Reason::Internal, format!("resources.memoryMb: {e}")))
}

/// Builds the rules of the gate.
///
/// # Errors
/// `invalid_params` that names the key of an invalid rule.
pub fn rules(config: &Config) -> Result<Rules, Failure> {
    let read = |name: &str, list: &[RuleEntry], verdict| -> Result<Vec<Rule>, Failure> {
        let bad =
            |e: RuleError| Failure::new(Reason::InvalidParams, format!("permissions.{name}: {e}"));
        let one = |entry: &RuleEntry| match entry {
            RuleEntry::Text(text) => text.parse(),
            RuleEntry::Checked(c) => {
                let rule = c.rule.clone();
                let matches = c.matches.clone();
                let rejects = c.rejects.clone();
                CheckedRule { rule, matches, rejects }.read(verdict)
            }
        };
        list.iter().map(|entry| one(entry).map_err(bad)).collect()
    };
    let permissions = &config.permissions;
    let overrides = read("overrides", &permissions.overrides, Verdict::Allow)?;
    let mut final_deny = read("finalDeny", &permissions.final_deny, Verdict::Deny)?;
    for command in &config.safety.blocked_commands {
        let bad = |e: RuleError| {
            Failure::new(Reason::InvalidParams, format!("safety.blockedCommands: {e}"))
        };
        final_deny.push(format!("run_shell({command})").parse().map_err(bad)?);
    }
    // No rule can allow a disabled tool.
    for (tool, _) in config.tools.builtin.iter().filter(|(_, own)| !own.enabled) {
        let bad = |e: RuleError| {
            Failure::new(Reason::InvalidParams, format!("tools.builtin.{tool}: {e}"))
        };
        final_deny.push(tool.parse().map_err(bad)?);
    }
    let mut allow = read("allow", &permissions.allow, Verdict::Allow)?;
    for domain in domains(config) {
        let bad =
            |e: RuleError| Failure::new(Reason::InvalidParams, format!("network.domains: {e}"));
        allow.push(format!("network({domain})").parse().map_err(bad)?);
    }
    if config.git.auto_commit {
        allow.push(
            "git_commit"
                .parse()
                .map_err(|e| Failure::new(Reason::Internal, format!("git_commit: {e}")))?,
        );
    }
    Ok(Rules {
        final_deny,
        overrides: overrides.into_iter().map(|rule| (rule, Verdict::Allow)).collect(),
        deny: read("deny", &permissions.deny, Verdict::Deny)?,
        allow,
        confirm: config
            .safety
            .require_confirmation
            .iter()
            .map(|tool| tool.parse())
            .collect::<Result<_, RuleError>>()
            .map_err(|e| {
                Failure::new(Reason::InvalidParams, format!("safety.requireConfirmation: {e}"))
            })?,
        default: match permissions.default_action {
            DefaultAction::Allow => Verdict::Allow,
            DefaultAction::Ask => Verdict::Ask,
            DefaultAction::Deny => Verdict::Deny,
        },
        write_paths: write_paths(config)?,
        limits: config
            .tools
            .builtin
            .iter()
            .map(|(tool, own)| (tool.clone(), limits(tool, own)))
            .collect(),
        unreadable: None,
    })
}

/// Lists the folders that tools may write to; `None` for the whole root.
fn write_paths(config: &Config) -> Result<Option<Vec<PathPattern>>, Failure> {
    let all = &config.safety.sandbox_allowed_paths;
    if all.iter().any(|path| matches!(path.as_str(), "." | "./")) {
        return Ok(None);
    }
    let bad = |why: String| {
        Failure::new(Reason::InvalidParams, format!("safety.sandboxAllowedPaths: {why}"))
    };
    let one = |path: &String| {
        let pattern = PathPattern::read(path).map_err(|why| bad(why.to_string()))?;
        let plain = pattern.prefix().is_some();
        plain.then_some(pattern).ok_or_else(|| bad(format!("'{path}' is a glob; name folders")))
    };
    all.iter().map(one).collect::<Result<_, _>>().map(Some)
}

/// Returns the limits of a tool's calls. A command's own limit ends it first, with a better
/// message.
fn limits(tool: &str, own: &BuiltinTool) -> CallLimits {
    let margin = if tool == "run_shell" { Duration::from_secs(5) } else { Duration::ZERO };
    CallLimits {
        timeout: own.timeout_seconds.map(|seconds| Duration::from_secs(seconds.max(1)) + margin),
        max_output_chars: own.max_output_chars.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
    }
}

/// Builds the settings of one root: `config` includes the file in its folder, `base` does not.
///
/// # Errors
/// As [`rules`].
pub fn root_settings(config: &Config, base: &Config) -> Result<RootSettings, Failure> {
    let mut rules = rules(config)?;
    // Paths that only this root blocks are hidden by a rule; those of the user are always closed.
    let own = config.safety.sandbox_blocked_paths.iter();
    for path in own.filter(|path| !base.safety.sandbox_blocked_paths.contains(path)) {
        let bad =
            |e| Failure::new(Reason::InvalidParams, format!("safety.sandboxBlockedPaths: {e}"));
        rules.final_deny.push(format!("*({})", path.display()).parse().map_err(bad)?);
    }
    let model = ModelChoice {
        provider: config.llm.provider.clone(),
        model: config.llm.model.clone(),
        endpoint: config.llm.endpoint.clone(),
    };
    let chosen = config.llm != base.llm;
    Ok(RootSettings { rules, turns: turn_settings(config), model: chosen.then_some(model) })
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|e| Err(Failure::new(Reason::Internal, format!("opening failed: {e}"))))
}

#[cfg(test)]
mod tests {
    use cairn_config::{NetworkConfig, NetworkPreset};

    use super::*;

    #[test]
    fn presets_and_domains_are_rules() {
        let presets = [
            NetworkPreset::Crates,
            NetworkPreset::Npm,
            NetworkPreset::Pypi,
            NetworkPreset::Go,
            NetworkPreset::Maven,
            NetworkPreset::Rubygems,
            NetworkPreset::Github,
        ];
        let network = |domains: &[&str]| Config {
            network: NetworkConfig {
                presets: presets.to_vec(),
                domains: domains.iter().map(|d| (*d).to_owned()).collect(),
                ..NetworkConfig::default()
            },
            ..Config::default()
        };
        let allow = rules(&network(&["*.example.org"])).unwrap().allow;
        let allow: Vec<String> = allow.iter().map(ToString::to_string).collect();
        for rule in ["network(static.crates.io)", "network(github.com)", "network(*.example.org)"] {
            assert!(allow.iter().any(|known| known == rule), "{rule}: {allow:?}");
        }
        for wrong in ["10.0.0.1", "http://a.b", "*", "local host"] {
            let failure = rules(&network(&[wrong])).unwrap_err();
            assert!(failure.message.starts_with("network.domains: "), "{wrong}: {failure}");
        }
    }
}
