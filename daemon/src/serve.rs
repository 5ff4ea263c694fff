//! `cairn serve`: claim, listen, open, serve, drain.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use cairn_api::{Api, HostInfo};
use cairn_config::{Config, Discovery};
use cairn_engine::Engine;
use cairn_pairing::Pin;
use cairn_protocol::{
    daemon::Limits,
    error::Failure,
    location::{DataRoot, Env},
};
use cairn_transport::{Guard, Listeners, OfferedTools};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    advertise,
    audit_output::AuditOutput,
    compose,
    config_source::EffectiveConfig,
    extensions::Extensions,
    fleet::{self, Member},
    instance::{Instance, InstanceError},
    lifecycle, listen,
    logging::Levels,
    notifications,
    reload::Reload,
    remote,
    root_config::{self, RootConfigs},
    settings,
    telemetry::Telemetry,
};

/// Version of this build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The way in which this daemon was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// By a client; the daemon exits when it is idle.
    OnDemand,
    /// By a service manager.
    Service,
    /// By the user, in a terminal.
    Foreground,
}

/// Options of the command line.
#[derive(Debug, Clone)]
pub struct Options {
    pub mode: Mode,
    /// Configuration file and values of flags.
    pub flags: settings::Flags,
    /// Address for paired devices, overriding the configuration; the configured port if none is
    /// given.
    pub lan: Option<(IpAddr, Option<u16>)>,
    /// An address for the local network, without TLS: for tests.
    pub insecure_lan: Option<IpAddr>,
    /// The name in the Bonjour record.
    pub label: Option<String>,
    /// Seconds of idleness before the daemon exits, overriding the configuration.
    pub idle_exit: Option<u64>,
    /// Set if the audit is printed to standard output.
    pub audit_stdout: bool,
    /// Set if the process was given a log filter, which overrides the configuration.
    pub log_given: bool,
    /// `None` if the log goes to standard error.
    pub log_file: Option<PathBuf>,
}

/// The reason why serving failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// There is another daemon, or the data root cannot be used.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] cairn_config::ConfigErrors),
    /// A store or index cannot be opened.
    #[error(transparent)]
    Open(#[from] Failure),
    /// No listener could be opened.
    #[error("cannot listen on {0}")]
    Listen(std::io::Error),
    /// Signals, or serving itself.
    #[error("{0}")]
    Run(String),
}

/// Runs the daemon until it stops.
///
/// # Errors
/// The reason why it could not start.
pub async fn serve(
    env: &Env,
    root: DataRoot,
    options: Options,
    levels: Levels,
) -> Result<lifecycle::End, ServeError> {
    let loaded = settings::load(env, &options.flags, None)?;
    loaded.warnings.iter().for_each(|w| tracing::warn!("config: {w}"));
    let config = &loaded.config;
    let levels = Arc::new(levels);
    let reload = Arc::new(Reload::new(&loaded, options.clone(), root.clone(), Arc::clone(&levels)));
    let instance = Instance::claim(&root)?;
    let signals = lifecycle::Signals::catch()
        .map_err(|e| ServeError::Run(format!("signals cannot be caught: {e}")))?;
    let (sockets, mut addresses) = sockets(config, &options)?;
    let control = remote::open(&root, config, &options, &instance.id)?;
    addresses.extend(control.address.map(|at| at.to_string()));
    let layers = root_config::guarded(env, &options.flags);
    let trust = settings::trust_store(env, &options.flags, &root);
    let configs = RootConfigs::new(env, options.flags.clone(), Arc::clone(&trust));
    let roots = config.roots.clone();
    let engine =
        compose::engine(&root, config, roots, env.config_dir(), layers, Arc::clone(&trust)).await?;
    let audit_output = audit_output(&options, &engine).await?;
    let known = engine.clone();
    trust.set_repositories(Arc::new(move |folder| known.repository_folder(folder)));
    engine.set_root_config(configs.reader());
    engine.set_trust(Arc::clone(&trust) as Arc<dyn cairn_engine::Trust>);
    let extensions =
        Extensions::open(env, &root, config, &engine, trust).await.map_err(ServeError::Run)?;
    let idle_exit = idle_exit(config, &options, control.address.is_some());
    let idle_exit_seconds = idle_exit.map(|d| d.as_secs());
    let host = host_info(env, &root, &options, &instance, &addresses, idle_exit_seconds);
    let limits = Limits { max_connections: config.resources.max_connections, ..Limits::default() };
    let api = Api::new(engine.clone(), host, limits);
    api.set_remote(control.remote.clone());
    api.set_mcp(extensions.mcp_servers());
    api.set_config(Arc::new(EffectiveConfig {
        engine: engine.clone(),
        extensions: extensions.clone(),
        reload: Arc::clone(&reload),
        roots: configs,
    }));
    let fleet = fleet::start(config, &root, &api, &instance.id).await;
    let telemetry = Telemetry::start(&config.telemetry, &api, instance.id.as_str(), levels);
    let shutdown = CancellationToken::new();
    let key = control.remote.key();
    let lan = control.listener.map(|listener| (listener, control.remote)).into_iter().collect();
    let listeners = Listeners { local: sockets, lan };
    let guard = guard(config, &options, &instance.token);
    let offered = OfferedTools::of(config.mcp.tools.iter().map(String::as_str));
    let following = tokio::spawn(extensions.clone().follow(engine.clone(), shutdown.clone()));
    let watching =
        tokio::spawn(Arc::clone(&reload).follow(env.clone(), engine.clone(), extensions.clone()));
    let serving = cairn_transport::serve(listeners, api.clone(), guard, offered, shutdown.clone());
    let serving = tokio::spawn(serving);
    let background = background(config, &engine);
    instance.publish(&addresses, VERSION, env.config_dir())?;
    let advert = announce(config, &options, &instance, control.address, key, &addresses);
    tracing::info!(?addresses, instance = %instance.id, version = VERSION, mode = mode_name(options.mode), "ready");
    lifecycle::notify(sd_notify::NotifyState::Ready);
    let reload = || drop(reload.run(env, &engine, &extensions));
    let end = lifecycle::wait(signals, &api, &engine, idle_exit, reload).await;
    tracing::info!(?end, "stopping");
    lifecycle::notify(sd_notify::NotifyState::Stopping);
    drop(advert);
    instance.retract();
    close(&fleet, &engine, &extensions).await;
    shutdown.cancel();
    watching.abort();
    background.iter().for_each(JoinHandle::abort);
    drain(following, serving, telemetry, audit_output).await;
    tracing::info!("stopped");
    Ok(end)
}

/// Ends the work of others before the engine's, and both before the servers that tools need.
async fn close(fleet: &Member, engine: &Engine, extensions: &Extensions) {
    fleet.close().await;
    engine.close().await;
    extensions.close().await;
}

/// Starts what the daemon does by itself: the removal of old sessions, notifications, schedules,
/// and the unattended runs that its last stop interrupted.
fn background(config: &Config, engine: &Engine) -> Vec<JoinHandle<()>> {
    // Notifications come first: the resumed runs publish events.
    let mut tasks = notifications::start(&config.notifications, engine);
    let (collecting, runs) = (engine.clone(), engine.clone());
    tasks.push(tokio::spawn(async move { collecting.keep_log_small().await }));
    tasks.push(tokio::spawn(async move {
        runs.resume_unattended().await;
        runs.run_schedules().await;
    }));
    tasks
}

async fn audit_output(options: &Options, engine: &Engine) -> Result<Option<AuditOutput>, Failure> {
    if !options.audit_stdout {
        return Ok(None);
    }
    Ok(Some(AuditOutput::start(engine.trace()).await?))
}

/// Waits for stopped work to finish.
async fn drain(
    following: JoinHandle<()>,
    serving: JoinHandle<Result<(), cairn_transport::ServeError>>,
    telemetry: Option<Telemetry>,
    audit_output: Option<AuditOutput>,
) {
    if let Err(error) = following.await {
        tracing::error!(%error, "watching the tools folder failed");
    }
    match serving.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "serving failed"),
        Err(error) => tracing::error!(%error, "serving failed"),
    }
    if let Some(telemetry) = telemetry {
        telemetry.end().await;
    }
    if let Some(output) = audit_output {
        output.close().await;
    }
}

fn host_info(
    env: &Env,
    root: &DataRoot,
    options: &Options,
    instance: &Instance,
    addresses: &[String],
    idle_exit_seconds: Option<u64>,
) -> HostInfo {
    HostInfo {
        version: VERSION.into(),
        instance_id: instance.id.clone(),
        started_at: instance.started_at,
        addresses: addresses.to_vec(),
        data_root: root.path().to_owned(),
        log_file: options.log_file.clone(),
        config: env.config(),
        mode: mode_name(options.mode).into(),
        idle_exit_seconds,
    }
}

fn sockets(
    config: &Config,
    options: &Options,
) -> Result<(Vec<std::net::TcpListener>, Vec<String>), ServeError> {
    let bad = |what: String| ServeError::Run(format!("listen.address: {what}"));
    let address: IpAddr = config
        .listen
        .address
        .parse()
        .map_err(|_| bad(format!("'{}' is not an address", config.listen.address)))?;
    if !address.is_loopback() && options.insecure_lan.is_none() {
        let text = "it has no TLS; for paired devices set listen.lan or use --lan, for tests in a closed network --insecure-lan";
        return Err(bad(format!("{address} can be reached from the network: {text}")));
    }
    let addresses =
        listen::ListenAddresses { address, port: config.listen.port, lan: options.insecure_lan };
    let sockets = listen::listeners(&addresses).map_err(ServeError::Listen)?;
    let addresses =
        sockets.iter().filter_map(|s| s.local_addr().ok()).map(|a| a.to_string()).collect();
    Ok((sockets, addresses))
}

fn guard(config: &Config, options: &Options, token: &str) -> Guard {
    let mut allowed_hosts = config.listen.allowed_hosts.clone();
    allowed_hosts.extend(options.insecure_lan.map(|ip| ip.to_string()));
    Guard {
        token: token.to_owned(),
        allowed_origins: config.listen.allowed_origins.clone(),
        allowed_hosts,
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::OnDemand => "on_demand",
        Mode::Service => "service",
        Mode::Foreground => "foreground",
    }
}

/// Idle time before the daemon exits. One that devices or other daemons may want to reach stays.
fn idle_exit(config: &Config, options: &Options, is_remote: bool) -> Option<Duration> {
    if is_remote || config.fleet.server.is_some() {
        return None;
    }
    let seconds = match (options.idle_exit, options.mode) {
        (Some(seconds), _) => seconds,
        (None, Mode::OnDemand) => config.daemon.idle_exit_seconds,
        (None, _) => 0,
    };
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// Announces the daemon if it can be reached from the network and the user allows it.
fn announce(
    config: &Config,
    options: &Options,
    instance: &Instance,
    lan: Option<SocketAddr>,
    key: Option<Pin>,
    addresses: &[String],
) -> Option<advertise::Advertisement> {
    if config.discovery != Discovery::Auto {
        return None;
    }
    let insecure =
        |ip| addresses.iter().filter_map(|a| a.parse::<SocketAddr>().ok()).find(|a| a.ip() == ip);
    let at = lan.or_else(|| options.insecure_lan.and_then(insecure))?;
    let hint = key.filter(|_| lan.is_some()).map(|key| key.hint());
    let label = options.label.as_deref();
    let record =
        advertise::record(&instance.id, label, VERSION, at.ip(), at.port(), hint.as_deref());
    match record.and_then(advertise::advertise) {
        Ok(advert) => Some(advert),
        Err(error) => {
            tracing::warn!(%error, "the daemon is not announced");
            None
        }
    }
}
