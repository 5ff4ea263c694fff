//! Why a daemon ends, and telling its service manager how it does.

use std::time::{Duration, Instant};

use cairn_api::Api;
use cairn_engine::Engine;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Why the daemon ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// SIGTERM or SIGINT.
    Signal,
    /// `cairn stop`.
    Asked,
    /// Nobody needed it for a while.
    Idle,
}

/// How often idleness is looked at, at most.
const IDLE_TICK: Duration = Duration::from_secs(5);

/// The signals a daemon acts on; those that come before it waits for them are kept.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Catches them from now on. To be called before anybody can know of the daemon: one who stops it as soon as it is there
    /// must not find it without.
    ///
    /// # Errors
    /// When signals cannot be caught.
    pub fn catch() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

/// Waits for the reason to end. `reload` runs at each SIGHUP.
pub async fn wait(
    mut signals: Signals,
    api: &Api,
    engine: &Engine,
    idle_exit: Option<Duration>,
    mut reload: impl FnMut(),
) -> End {
    let idle = idle(api, engine, idle_exit);
    tokio::pin!(idle);
    let watchdog = watchdog();
    tokio::pin!(watchdog);
    let tidy = give_back_when_idle(api, engine);
    tokio::pin!(tidy);
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => return End::Signal,
            _ = signals.interrupt.recv() => return End::Signal,
            _ = signals.hangup.recv() => reload(),
            () = engine.stop_asked().cancelled() => return End::Asked,
            () = &mut idle => return End::Idle,
            () = &mut watchdog => {}
            () = &mut tidy => {}
        }
    }
}

/// Ends once there was no client and no work for `limit`.
async fn idle(api: &Api, engine: &Engine, limit: Option<Duration>) {
    let Some(limit) = limit else { return std::future::pending().await };
    let tick = (limit / 4).clamp(Duration::from_millis(50), IDLE_TICK);
    let mut since = Instant::now();
    loop {
        tokio::time::sleep(tick).await;
        if api.connections() > 0 || !engine.is_idle() {
            since = Instant::now();
        } else if since.elapsed() >= limit {
            return;
        }
    }
}

/// After each burst of work or calls, gives the memory it used back to the system.
async fn give_back_when_idle(api: &Api, engine: &Engine) {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    let (mut worked, mut seen) = (true, 0);
    loop {
        tick.tick().await;
        let calls = api.calls();
        let idle = engine.is_idle() && calls == seen;
        if idle && worked && tokio::task::spawn_blocking(crate::memory::give_back).await.is_err() {
            tracing::warn!("memory was not given back");
        }
        (worked, seen) = (!idle, calls);
    }
}

/// Tells systemd twice in each watchdog interval that the runtime still turns.
async fn watchdog() {
    let Some(every) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    let mut tick = tokio::time::interval(every / 2);
    loop {
        tick.tick().await;
        tell(sd_notify::NotifyState::Watchdog);
    }
}

/// Tells the service manager, if there is one.
pub fn tell(state: sd_notify::NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "the service manager was not told");
    }
}

/// Tells systemd that a reload began (it wants the monotonic clock with it).
pub fn reloading() {
    match sd_notify::NotifyState::monotonic_usec_now() {
        Ok(now) => {
            if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Reloading, now]) {
                tracing::debug!(%error, "the service manager was not told");
            }
        }
        Err(error) => tracing::debug!(%error, "no monotonic clock"),
    }
}
