//! Preparation of a chat: from flags and settings to a session.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
    time::Duration,
};

use cairn_client_sdk::Client;
use cairn_config::{ChatMode, Config, DiskFiles, ShellMode};
use cairn_protocol::{
    index::IndexStatusParams,
    prompt::PromptSetParams,
    session::{Session, SessionCreateParams, WorktreeUse},
    tool::ToolsMode as WireMode,
    turn::{ExecutionMode, ExecutionPolicy, ProviderSetParams, SandboxUse},
};

use tokio::signal::unix::{SignalKind, signal};

use super::{
    Chat, ChatArgs,
    custom_commands::CustomCommands,
    editor::Sources,
    local,
    log::Log,
    offer::Offer,
    screen::{Screen, TerminalCapabilities},
    turn::Interrupts,
    view::DisplayOptions,
};
use crate::{
    app::{App, current_dir},
    commands::trust,
    exit::Failure,
    render::{output::plain, theme::Theme},
    scope,
};

/// Time limit of creating a session, whose work tree may have a set-up command.
const CREATE_TIMEOUT: Duration = Duration::from_secs(900);

/// Returns the folder that the flags name.
async fn named_folder(app: &App<'_>, client: &Client, args: &ChatArgs) -> Result<PathBuf, Failure> {
    if !app.is_remote() {
        return local_folder(args);
    }
    let here = app.location(client).await?;
    app.canonical(&args.sandbox.as_ref().map_or_else(|| here.clone(), |dir| here.join(dir)))
}

/// Reports the work tree of a chat, and a set-up that failed: the chat starts nevertheless, so that
/// the user can repair it.
fn report_worktree(app: &App<'_>, session: &Session) {
    let Some(tree) = &session.worktree else { return };
    let path = plain(&tree.path);
    app.info(&format!("working in {path}, on the branch {}", plain(&tree.branch)));
    app.info(&format!("'cairn worktrees apply {path}' brings the changes back"));
    if let Some(setup) = tree.setup.as_ref().filter(|setup| !setup.succeeded()) {
        let cause = setup
            .error
            .clone()
            .unwrap_or_else(|| format!("exit status {}", setup.exit_code.unwrap_or_default()));
        let command = plain(&setup.command);
        app.info(&format!("warning: the set-up '{command}' failed: {}", plain(&cause)));
    }
}

/// Returns a folder of this machine.
fn local_folder(args: &ChatArgs) -> Result<PathBuf, Failure> {
    let location = scope::canonical(args.sandbox.as_deref().unwrap_or(&current_dir()?))?;
    if !location.is_dir() {
        return Err(Failure::usage(format!("{} is not a folder", location.display())));
    }
    Ok(location)
}

/// Loads the settings of the terminal's own part.
pub fn settings(app: &App<'_>, args: &ChatArgs) -> Result<Config, Failure> {
    // The terminal is local even if the daemon is remote.
    let location = if app.is_remote() { current_dir()? } else { local_folder(args)? };
    let project = scope::project_root(&location, app.env.home.as_deref()).unwrap_or(location);
    let inputs = app.host.config_inputs(&app.globals, Some(project));
    let loaded =
        cairn_config::load(&inputs, &DiskFiles).map_err(|e| Failure::usage(e.to_string()))?;
    if !loaded.config.ui.color {
        console::set_colors_enabled(false);
        console::set_colors_enabled_stderr(false);
    }
    Ok(loaded.config)
}

fn display_options(
    app: &App<'_>,
    args: &ChatArgs,
    config: &Config,
    interactive: bool,
) -> DisplayOptions {
    let (ui, quiet) = (&config.ui, app.globals.quiet);
    DisplayOptions {
        figures: ui.show_token_usage,
        calls: ui.show_tool_calls,
        stream: ui.stream_responses,
        progress: shows_progress(args, config),
        verbose: args.verbose,
        quiet,
        unfold: interactive && !quiet,
    }
}

/// Returns the session that the flags name, or a new one.
async fn session(
    app: &App<'_>,
    client: &Client,
    args: &ChatArgs,
    location: &Path,
) -> Result<Session, Failure> {
    if let Some(name) = &args.session {
        let id = name.resolve(client).await?;
        return Ok(client.session_get(&Client::session(&id)).await?);
    }
    if args.go_on {
        let local_file = local::path(app.data_root()?.path(), location);
        return continued_session(client, &local_file, location).await;
    }
    create_session(app, client, args, location).await
}

fn capabilities(app: &App<'_>, config: &Config, interactive: bool) -> TerminalCapabilities {
    let mut capabilities = TerminalCapabilities::of_process(app.globals.quiet);
    if interactive && capabilities.rich {
        capabilities.theme = Theme::detect(config.chat.theme);
    }
    capabilities
}

/// Opens the chat that the flags describe.
pub async fn chat<'a>(
    app: &'a App<'a>,
    client: Client,
    args: &ChatArgs,
    config: &Config,
    interactive: bool,
) -> Result<Chat<'a>, Failure> {
    let mut location = named_folder(app, &client, args).await?;
    if args.go_on && app.is_remote() {
        return Err(Failure::usage(
            "--continue reads this machine's folder: omit --host and --address",
        ));
    }
    let data_root = app.data_root()?;
    let session = session(app, &client, args, &location).await?;
    if let Some(tree) = &session.worktree {
        location = PathBuf::from(&tree.path);
    }
    let local_file = local::path(data_root.path(), &location);
    let log = args.log_file.as_deref().map(|path| Log::open(path, args.verbose)).transpose()?;
    let display = display_options(app, args, config, interactive);
    let offer = offer(app, args, config)?;
    let mut chat = Chat {
        app,
        policy: policy(app, &client, &offer, (args, config)).await?,
        offer,
        client,
        session: session.session_id.clone(),
        reported: vec![],
        folder: session.root.as_ref().map_or_else(|| location.clone(), PathBuf::from),
        seq: session.head_seq,
        follow: None,
        display,
        screen: Screen::new(capabilities(app, config, interactive)),
        interactive,
        local: (!args.no_local_session && !args.show_system_prompt && !app.is_remote())
            .then_some(local_file),
        log,
        turns: vec![],
        unsent: String::new(),
        is_unsent: false,
        is_leaving: false,
        queued: std::collections::VecDeque::new(),
        signals: signal(SignalKind::interrupt())
            .map_err(|e| Failure::failed(format!("interrupts cannot be handled: {e}")))?,
        interrupts: Interrupts::default(),
        quit: false,
        shell: None,
        model: String::new(),
        usage: None,
        cost_micro_usd: None,
        pictures: vec![],
        sources: Sources::default(),
        folded: None,
        notify: config.chat.notify,
    };
    if interactive {
        let is_trusted = chat.ask_trust().await?;
        chat.prepare_prompt(config, is_trusted);
    }
    if args.shell || config.ui.shell {
        chat.shell = Some(chat.new_shell());
    }
    chat.prepare(args).await?;
    if (args.go_on || args.session.is_some()) && interactive {
        chat.print_last_turn().await?;
    }
    Ok(chat)
}

impl Chat<'_> {
    /// Asks about what the folder brings if that was never decided; returns true if it is trusted.
    async fn ask_trust(&self) -> Result<bool, Failure> {
        if self.app.is_remote() {
            return Ok(false);
        }
        let folder = self.folder.to_string_lossy().into_owned();
        trust::ask_first(self.app, &self.client, folder).await
    }

    /// Shows what the folder brings and asks about what is open.
    pub(super) async fn review_trust(&mut self) -> Result<(), Failure> {
        if self.app.is_remote() {
            return Err(Failure::usage("the folder is not on this machine"));
        }
        let folder = self.folder.to_string_lossy().into_owned();
        let is_trusted = trust::review(self.app, &self.client, folder).await?;
        if is_trusted && self.sources.commands.untrusted > 0 {
            // The editor's menu has its own copy of them.
            self.app.info("the commands of this folder can be used from the next chat on");
        }
        Ok(())
    }

    /// Reads the custom commands, and connects the completions.
    fn prepare_prompt(&mut self, config: &Config, is_trusted: bool) {
        let user = self.app.env.config_dir();
        let project = (!self.app.is_remote()).then_some(self.folder.as_path());
        let is_trusted = is_trusted || config.trust.covers(&self.folder);
        let plugins = &config.agent_plugins.folders;
        let commands = CustomCommands::read(user.as_deref(), plugins, project, is_trusted);
        if commands.untrusted > 0 {
            self.app.info(&format!(
                "{} commands of this folder are not used, because the folder is not trusted; \
                 'cairn trust' shows and trusts it",
                commands.untrusted
            ));
        }
        self.sources.commands = Arc::new(commands);
        *self.sources.folder.lock().unwrap_or_else(PoisonError::into_inner) = self.folder.clone();
        self.connect_files();
    }

    /// Applies model, system text and summary from the flags.
    async fn prepare(&mut self, args: &ChatArgs) -> Result<(), Failure> {
        let mut params = ProviderSetParams {
            session_id: self.session.clone(),
            provider: args.provider.clone(),
            model: args.model.clone(),
            endpoint: args.endpoint.clone(),
        };
        self.app.overrides()?.choose_model(&mut params);
        if params.model.is_some() || params.provider.is_some() || params.endpoint.is_some() {
            for warning in self.client.provider_set(&params).await?.warnings {
                self.app.info(&format!("warning: {}", plain(&warning)));
            }
        }
        if let Some(text) = &args.system {
            let params =
                PromptSetParams { session_id: self.session.clone(), system: Some(text.clone()) };
            self.client.prompt_set(&params).await?;
        }
        if args.compress {
            let summary = self.compress().await?;
            self.app.info(&summary);
        }
        Ok(())
    }
}

impl Chat<'_> {
    /// Replaces the conversation by a summary, if it is long enough.
    pub async fn compress(&self) -> Result<String, Failure> {
        match self.client.session_compress(&Client::session(&self.session)).await {
            Ok(done) if done.tokens_before == done.tokens_after => {
                Ok(format!("there is nothing to summarize: {} tokens", done.tokens_before))
            }
            Ok(done) => Ok(format!(
                "summarized: {} tokens became {}",
                done.tokens_before, done.tokens_after
            )),
            Err(error) if error.reason() == Some("context_overflow") => {
                Ok(format!("there is nothing to summarize: {}", plain(&error.to_string())))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the session in the folder's file.
async fn continued_session(
    client: &Client,
    file: &Path,
    folder: &Path,
) -> Result<Session, Failure> {
    let stored = local::read(file, folder)?;
    client.session_get(&Client::session(&stored.session_id)).await.map_err(|error| {
        let deleted = error.reason() == Some("session_not_found");
        let failure = Failure::from(error);
        if deleted {
            failure.hint("it was deleted; start a new chat without --continue")
        } else {
            failure
        }
    })
}

async fn create_session(
    app: &App<'_>,
    client: &Client,
    args: &ChatArgs,
    location: &Path,
) -> Result<Session, Failure> {
    let root = declared_root(app, client, location, args.sandbox.is_some()).await?;
    let params = SessionCreateParams {
        // The daemon names it after its first request.
        title: None,
        root: Some(root),
        worktree: args.worktree.is_some().then_some(WorktreeUse::New),
        branch: args.worktree.clone().filter(|branch| !branch.is_empty()),
        base: args.base.clone(),
        request_id: None,
    };
    let session = client.call_within("session.create", &params, CREATE_TIMEOUT).await?;
    report_worktree(app, &session);
    Ok(session)
}

/// Returns the root that contains a folder, declaring one if necessary. The chat can start before
/// its index is complete.
pub async fn declared_root(
    app: &App<'_>,
    client: &Client,
    location: &Path,
    exactly: bool,
) -> Result<String, Failure> {
    let roots = client.index_status(&IndexStatusParams::default()).await?.roots;
    let known_root = if exactly {
        roots.iter().find(|r| Path::new(&r.path) == location)
    } else {
        scope::enclosing_root(&roots, location)
    };
    if let Some(root) = known_root {
        return Ok(root.path.clone());
    }
    if app.is_remote() && !exactly {
        return Err(scope::ambiguous_root(&roots));
    }
    let folder = if exactly {
        location.to_owned()
    } else {
        scope::project_root(location, app.env.home.as_deref())?
    };
    scope::declare(app, client, &folder).await
}

/// Returns the choice of tools for the chat's turns.
fn offer(app: &App<'_>, args: &ChatArgs, config: &Config) -> Result<Offer, Failure> {
    let shell = config.tools.builtin.get("run_shell");
    let configured = shell.is_some_and(|s| s.enabled && s.mode != Some(ShellMode::Off));
    let flags = args.withheld(configured || config.ui.shell);
    let mut withheld: Vec<String> = flags.into_iter().map(str::to_owned).collect();
    withheld.extend(app.overrides()?.switched_off());
    let tools_mode = args.tools_mode.as_deref().map(|mode| match mode {
        "unified" => WireMode::Unified,
        "both" => WireMode::Both,
        _ => WireMode::Split,
    });
    Ok(Offer { withheld, tools_mode, commits: config.git.auto_commit })
}

/// Builds the policy of the chat's turns.
async fn policy(
    app: &App<'_>,
    client: &Client,
    offer: &Offer,
    (args, config): (&ChatArgs, &Config),
) -> Result<ExecutionPolicy, Failure> {
    let mut policy = ExecutionPolicy {
        // The user chose the model in their own configuration, which must allow external models as
        // well.
        allow_external_llms: true,
        ops: offer.ops(client, Some(mode(args, config))).await?,
        mode: Some(mode(args, config)),
        dry_run: args.dry_run,
        prompt_progress: (!shows_progress(args, config)).then_some(false),
        sandbox: args.no_sandbox.then_some(SandboxUse::Off),
        tools_mode: offer.tools_mode,
        ..ExecutionPolicy::default()
    };
    app.overrides()?.apply(&mut policy);
    Ok(policy)
}

fn shows_progress(args: &ChatArgs, config: &Config) -> bool {
    config.chat.prompt_progress && !args.no_prompt_progress
}

/// Returns the mode of the flags, else the configured one.
fn mode(args: &ChatArgs, config: &Config) -> ExecutionMode {
    let configured = match config.chat.mode {
        ChatMode::Plan => ExecutionMode::Plan,
        ChatMode::Ask => ExecutionMode::Ask,
        ChatMode::AcceptEdits => ExecutionMode::AcceptEdits,
        ChatMode::Auto => ExecutionMode::Auto,
    };
    args.mode.as_deref().and_then(ExecutionMode::from_name).unwrap_or(configured)
}
