//! Memory trimming: the allocator retains the memory of an indexing burst until it is trimmed.
#![expect(unsafe_code, reason = "two calls of the C library's allocator that have no safe form")]

/// Number of allocator arenas: each retains memory of its own, and our threads rarely contend.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAX_ARENAS: libc::c_int = 4;

/// Size in bytes above which a freed block returns to the system at once. By default glibc raises
/// this to 32 MB after such blocks are freed, and then retains the memory of index merges between
/// small blocks: 100 MB after a gigabyte of text.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MMAP_THRESHOLD: libc::c_int = 1 << 20;

/// Limits the memory that the allocator retains. Must be called once, before threads are started.
pub fn limit_allocator() {
    // SAFETY: mallopt takes two integers and may be called at any time; no other thread runs yet.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, MAX_ARENAS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
    }
}

/// Returns free memory to the system, which takes some milliseconds.
pub fn trim() {
    // SAFETY: malloc_trim takes the number of bytes to retain and is safe to call from any thread
    // (glibc manual, 3.2.3).
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}
