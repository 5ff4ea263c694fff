//! Giving memory back: the system's allocator keeps what a burst of indexing used until it is told.
#![expect(unsafe_code, reason = "two calls of the C library's allocator that have no safe form")]

/// Arenas of the allocator: each keeps memory of its own, and a thread of ours seldom waits for another.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: libc::c_int = 4;

/// Bytes from which a piece of memory is the system's again as soon as it is free. Left alone, the allocator raises this to 32 MB
/// when such pieces are freed, and then keeps between small ones what merging an index took: 100 MB after a gigabyte of text.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: libc::c_int = 1 << 20;

/// Bounds what the allocator keeps. Called once, before there are threads.
pub fn bound() {
    // SAFETY: mallopt takes two integers and may be called at any time; no other thread runs yet.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}

/// Returns free memory to the system. Takes some milliseconds; nothing else changes.
pub fn give_back() {
    // SAFETY: malloc_trim takes a number of bytes to keep and is safe to call from any thread (glibc manual, 3.2.3).
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}
