//! Threads that let others go first.

/// How much later than others a background thread gets the processor, as `nice` counts it.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Makes the calling thread, and those it starts from now on, give way to the others: what somebody waits for comes
/// before what is made in advance. On systems where a priority is the whole process's, nothing changes.
pub fn background_thread() {
    // Linux keeps a priority for each thread; `None` is the calling one. It may always be lowered.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "priority of a background thread was not lowered");
    }
}
