//! Shared by the tests of several crates: seeded random numbers, threads that stop with their test,
//! and an engine in a temporary folder (feature `engine`).

#[cfg(feature = "engine")]
pub mod engine;

use std::sync::atomic::{AtomicBool, Ordering};

pub use fastrand::Rng;

/// Creates a generator whose seed is printed; the variable `CAIRN_SEED` repeats a run.
///
/// # Panics
/// If `CAIRN_SEED` is not a number.
#[expect(clippy::print_stderr, reason = "a run is repeated by its seed")]
pub fn random(purpose: &str) -> Rng {
    let seed = match std::env::var("CAIRN_SEED") {
        Ok(seed) => seed.parse().unwrap_or_else(|_| panic!("CAIRN_SEED={seed} is no number")),
        Err(_) => fastrand::u64(..),
    };
    eprintln!("note: {purpose}: CAIRN_SEED={seed}");
    Rng::with_seed(seed)
}

/// Sets a flag when it is dropped. Threads of a scope that run until the flag is set then also stop
/// when the test fails; without it the scope waits for them forever.
#[derive(Debug)]
pub struct StopOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
