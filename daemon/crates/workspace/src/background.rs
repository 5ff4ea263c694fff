//! Background threads, which yield to all others.

/// Niceness of background threads, as `nice` counts it.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Lowers the priority of the calling thread and of those it starts from now on: work that a client
/// waits for precedes work in advance. Has no effect on systems where a priority applies to the
/// whole process.
pub fn background_thread() {
    // Linux has a priority per thread; `None` is the calling one. It may always be lowered.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "priority of a background thread was not lowered");
    }
}
