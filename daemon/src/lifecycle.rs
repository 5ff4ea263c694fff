//! The end of a daemon: its reasons, and notifications for the service manager.

use std::time::{Duration, Instant};

use cairn_api::Api;
use cairn_engine::Engine;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The reason why the daemon stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// SIGTERM or SIGINT was received.
    Signal,
    /// A client requested it, such as `cairn stop`.
    Requested,
    /// The idle time is over.
    Idle,
}

/// Maximum interval between idleness checks.
const IDLE_TICK: Duration = Duration::from_secs(5);

/// Handlers for the daemon's signals; signals that arrive before `wait` are queued.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Installs the handlers. This must happen before clients can find the daemon, so that a client
    /// can stop it at once.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn catch() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

/// Waits for a reason to stop. `reload` runs at each SIGHUP.
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
    let tidy = trim_when_idle(api, engine);
    tokio::pin!(tidy);
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => return End::Signal,
            _ = signals.interrupt.recv() => return End::Signal,
            _ = signals.hangup.recv() => reload(),
            () = engine.stop_token().cancelled() => return End::Requested,
            () = &mut idle => return End::Idle,
            () = &mut watchdog => {}
            () = &mut tidy => {}
        }
    }
}

/// Resolves once there was no client and no work for `limit`.
async fn idle(api: &Api, engine: &Engine, limit: Option<Duration>) {
    let Some(limit) = limit else { return std::future::pending().await };
    let tick = (limit / 4).clamp(Duration::from_millis(50), IDLE_TICK);
    let mut clock = IdleClock { since: Instant::now(), calls: api.calls() };
    loop {
        tokio::time::sleep(tick).await;
        let is_busy = api.connections() > 0 || !engine.is_idle() || engine.has_schedules();
        if clock.observe(Instant::now(), is_busy, api.calls()) >= limit {
            return;
        }
    }
}

/// The time without work. Work between two looks is seen by the number of calls, since a short call
/// leaves no open connection behind.
struct IdleClock {
    since: Instant,
    calls: u64,
}

impl IdleClock {
    /// Returns how long there was no work.
    fn observe(&mut self, now: Instant, is_busy: bool, calls: u64) -> Duration {
        if is_busy || calls != self.calls {
            *self = Self { since: now, calls };
        }
        now.duration_since(self.since)
    }
}

/// Returns freed memory to the system after each burst of work or calls.
async fn trim_when_idle(api: &Api, engine: &Engine) {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    let mut worked = true;
    let mut seen = 0;
    loop {
        tick.tick().await;
        let calls = api.calls();
        let idle = engine.is_idle() && calls == seen;
        if idle && worked && tokio::task::spawn_blocking(crate::memory::trim).await.is_err() {
            tracing::warn!("memory could not be trimmed");
        }
        worked = !idle;
        seen = calls;
    }
}

/// Notifies systemd twice per watchdog interval that the runtime is alive.
async fn watchdog() {
    let Some(every) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    let mut tick = tokio::time::interval(every / 2);
    loop {
        tick.tick().await;
        notify(sd_notify::NotifyState::Watchdog);
    }
}

/// Notifies the service manager, if there is one.
pub fn notify(state: sd_notify::NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "the service manager was not notified");
    }
}

/// Notifies systemd that a reload has started; the message needs the monotonic clock.
pub fn reloading() {
    match sd_notify::NotifyState::monotonic_usec_now() {
        Ok(now) => {
            if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Reloading, now]) {
                tracing::debug!(%error, "the service manager was not notified");
            }
        }
        Err(error) => tracing::debug!(%error, "no monotonic clock"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_calls_between_looks_are_work() {
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let mut clock = IdleClock { since: begin, calls: 0 };
        let idle: Vec<u64> = [(5, false, 1), (10, false, 2), (15, false, 2), (20, true, 2)]
            .into_iter()
            .chain([(25, false, 2), (30, false, 2), (35, false, 3)])
            .map(|(second, is_busy, calls)| clock.observe(at(second), is_busy, calls).as_secs())
            .collect();
        assert_eq!(idle, [0, 0, 5, 0, 5, 10, 0]);
    }
}
