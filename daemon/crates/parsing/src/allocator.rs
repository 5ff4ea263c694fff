//! The allocator of the parsers, which counts bytes per thread and frees all memory of a thread
//! that exceeds its limit.
#![expect(unsafe_code, reason = "the library of the parsers takes C functions as its allocator")]

use std::{
    alloc::{self, Layout},
    cell::{Cell, RefCell},
    ffi::c_void,
    ptr,
    sync::Once,
};

/// The header of each allocation: its size and its neighbours in the list of its thread. The size
/// of the header is a multiple of the alignment that C's `malloc` guarantees.
#[repr(C, align(16))]
struct Header {
    size: usize,
    previous: *mut Header,
    next: *mut Header,
}

const HEADER: usize = size_of::<Header>();

/// Called when a thread exceeds its limit, before it stops forever.
type OnExceeded = Box<dyn FnOnce()>;

thread_local! {
    /// Bytes that parsers of this thread have allocated.
    static USED: Cell<usize> = const { Cell::new(0) };
    /// Maximum of `USED` since a limit was set.
    static PEAK: Cell<usize> = const { Cell::new(0) };
    static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
    static FIRST: Cell<*mut Header> = const { Cell::new(ptr::null_mut()) };
    static ON_EXCEEDED: RefCell<Option<OnExceeded>> = const { RefCell::new(None) };
}

/// Installs the allocator once.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let allocator = tree_sitter::Allocator { malloc, calloc, realloc, free };
        // SAFETY: the functions behave like those of C. All parsers are created after this, so
        // there are no allocations of another allocator.
        unsafe { tree_sitter::set_allocator(Some(allocator)) };
    });
}

/// True if the parsers of this thread use more memory than `limit`.
pub fn is_over(limit: usize) -> bool {
    USED.get() > limit
}

/// Sets the limit of this thread. A parser that exceeds it never returns: its memory is freed,
/// `on_exceeded` is called and the thread stops.
pub fn set_limit(limit: usize, on_exceeded: OnExceeded) {
    PEAK.set(USED.get());
    LIMIT.set(limit);
    ON_EXCEEDED.set(Some(on_exceeded));
}

/// Removes the limit and returns the peak memory since it was set.
pub fn clear_limit() -> usize {
    LIMIT.set(usize::MAX);
    ON_EXCEEDED.set(None);
    PEAK.get()
}

/// Stops this thread. Its parser is inside a C function that requested memory; the function does
/// not return, so nothing reads the freed memory.
fn exceed() -> ! {
    let mut at = FIRST.replace(ptr::null_mut());
    while !at.is_null() {
        // SAFETY: the list contains the headers of all allocations of this thread, each of which is
        // freed once.
        unsafe {
            let next = (*at).next;
            if let Some(layout) = layout((*at).size) {
                alloc::dealloc(at.cast(), layout);
            }
            at = next;
        }
    }
    if let Some(notify) = ON_EXCEEDED.take() {
        notify();
    }
    loop {
        std::thread::park();
    }
}

fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(HEADER)?, align_of::<Header>()).ok()
}

fn check(additional: usize) -> Option<Layout> {
    if USED.get().saturating_add(additional) > LIMIT.get() {
        exceed();
    }
    layout(additional)
}

/// Adds a new block to the list and returns the address after its header.
///
/// # Safety
/// `block` is null or the start of an allocation of `size + HEADER` bytes.
unsafe fn link(block: *mut u8, size: usize) -> *mut c_void {
    if block.is_null() {
        return ptr::null_mut();
    }
    let header = block.cast::<Header>();
    let next = FIRST.replace(header);
    // SAFETY: the block starts with aligned space for a header; `next` is null or a header of this
    // thread.
    unsafe {
        header.write(Header { size, previous: ptr::null_mut(), next });
        if !next.is_null() {
            (*next).previous = header;
        }
    }
    let used = USED.get() + size;
    USED.set(used);
    PEAK.set(PEAK.get().max(used));
    // SAFETY: the block is longer than its header.
    unsafe { block.add(HEADER).cast() }
}

/// Removes a block from the list.
///
/// # Safety
/// `at` was returned by [`link`] on this thread: trees and parsers do not leave their thread.
unsafe fn unlink(at: *mut c_void) -> (*mut u8, usize) {
    // SAFETY: its header precedes it, and its neighbours are in the list.
    unsafe {
        let block = at.cast::<u8>().sub(HEADER);
        let Header { size, previous, next } = block.cast::<Header>().read();
        if previous.is_null() {
            FIRST.set(next);
        } else {
            (*previous).next = next;
        }
        if !next.is_null() {
            (*next).previous = previous;
        }
        USED.set(USED.get().saturating_sub(size));
        (block, size)
    }
}

unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    let Some(layout) = check(size) else { return ptr::null_mut() };
    // SAFETY: the layout has the header, so it is not empty.
    unsafe { link(alloc::alloc(layout), size) }
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else { return ptr::null_mut() };
    let Some(layout) = check(size) else { return ptr::null_mut() };
    // SAFETY: as in `malloc`.
    unsafe { link(alloc::alloc_zeroed(layout), size) }
}

unsafe extern "C" fn realloc(at: *mut c_void, size: usize) -> *mut c_void {
    // The old and the new block may exist at the same time.
    let Some(new) = check(size) else { return ptr::null_mut() };
    if at.is_null() {
        // SAFETY: as in `malloc`.
        return unsafe { link(alloc::alloc(new), size) };
    }
    // SAFETY: this allocator returned `at`.
    let (block, old_size) = unsafe { unlink(at) };
    let Some(old) = layout(old_size) else { return ptr::null_mut() };
    // SAFETY: the block was allocated with this layout, and is linked again at its new address.
    unsafe {
        let moved = alloc::realloc(block, old, new.size());
        if moved.is_null() {
            link(block, old_size);
            return ptr::null_mut();
        }
        link(moved, size)
    }
}

unsafe extern "C" fn free(at: *mut c_void) {
    if at.is_null() {
        return;
    }
    // SAFETY: this allocator returned `at`, and the block was allocated with this layout.
    unsafe {
        let (block, size) = unlink(at);
        if let Some(layout) = layout(size) {
            alloc::dealloc(block, layout);
        }
    }
}
