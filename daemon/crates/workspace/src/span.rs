//! Reading a bounded range of lines, without more of the file in memory than the range.

use std::{fs::File, io::Read as _};

use cairn_protocol::content::{MAX_SPAN_BYTES, MAX_SPAN_LINES, Span, SpanParams};
use sha2::{Digest as _, Sha256};

use crate::{
    RangeError, WorkspaceError,
    root::{Root, failure},
};

/// Largest file for which a span contains a hash, in bytes.
pub const MAX_HASHED_BYTES: u64 = 8 * 1024 * 1024;
/// Most bytes that are read to find a line; a range further in is rejected.
pub const MAX_SCANNED_BYTES: u64 = 2 * 1024 * 1024 * 1024;

const MAX_CONTEXT: u32 = 50;
const BLOCK: usize = 64 * 1024;

/// Returns lines `start` to `end` of a file, with `context` lines around them. Lines retain their
/// own terminators (`\n`, `\r\n`); a range past the end is empty and contains the number of lines.
/// Works for every file of the root, indexed or not.
///
/// # Errors
/// `InvalidParams` for an invalid range, `TooLarge` for one further in than [`MAX_SCANNED_BYTES`],
/// and errors of [`Root::open_file`].
pub fn read_span(root: &Root, rel: &str, params: &SpanParams) -> Result<Span, WorkspaceError> {
    check_range(params)?;
    let context = params.context.unwrap_or(0);
    let mut file = root.open_file(rel)?;
    let size = file.metadata().map_err(|e| failure(e, rel))?.len();
    let first = params.start.saturating_sub(context).max(1);
    let last = params.end.saturating_add(context);
    let mut scan = Scan::new(first, last.min(first.saturating_add(MAX_SPAN_LINES - 1)));
    let mut hash = (size <= MAX_HASHED_BYTES).then(Sha256::new);
    let end = scan_file(&mut file, rel, &mut scan, &mut hash)?;

    let reached =
        first.saturating_add(u32::try_from(scan.lines.len()).unwrap_or(0)).saturating_sub(1);
    let text: String = scan.lines.concat();
    let total_lines = end.then_some(scan.total());
    // Truncated when a limit ended the range before its own end or the file's end.
    let available_end = total_lines.map_or(last, |t| last.min(t));
    let truncated = scan.cut || reached < available_end && first <= available_end;
    let content_hash = hash.filter(|_| end).map(|h| hex::encode(h.finalize()));
    let changed = match (&params.content_hash, &content_hash) {
        (Some(given), Some(now)) => Some(!given.eq_ignore_ascii_case(now)),
        _ => None,
    };
    Ok(Span {
        path: rel.to_owned(),
        start_line: first,
        end_line: reached,
        total_lines,
        text,
        truncated,
        content_hash,
        changed,
    })
}

fn check_range(params: &SpanParams) -> Result<(), RangeError> {
    if params.start == 0 {
        return Err(RangeError::StartIsZero);
    }
    if params.start > params.end {
        return Err(RangeError::Reversed { start: params.start, end: params.end });
    }
    match params.context {
        Some(context) if context > MAX_CONTEXT => {
            Err(RangeError::Context { context, limit: MAX_CONTEXT })
        }
        _ => Ok(()),
    }
}

/// Feeds the file to `scan` until it is complete (with a hash to compute: to the end). Returns true
/// at the file's end.
fn scan_file(
    file: &mut File,
    rel: &str,
    scan: &mut Scan,
    hash: &mut Option<Sha256>,
) -> Result<bool, WorkspaceError> {
    let mut block = vec![0; BLOCK];
    let mut seen = 0_u64;
    loop {
        let n = match file.read(&mut block) {
            Ok(0) => {
                scan.finish();
                return Ok(true);
            }
            Ok(n) => n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(failure(e, rel)),
        };
        seen += n as u64;
        // A file that grows while it is read must not extend the hash for ever.
        if hash.is_some() && seen > MAX_HASHED_BYTES {
            *hash = None;
        }
        if let Some(hash) = hash {
            hash.update(&block[..n]);
        }
        scan.feed(&block[..n]);
        if scan.done && hash.is_none() {
            return Ok(false);
        }
        if seen > MAX_SCANNED_BYTES {
            return Err(WorkspaceError::LineTooFar { path: rel.to_owned(), line: scan.first });
        }
    }
}

/// Collects the lines of a range from blocks of bytes.
struct Scan {
    first: u32,
    last: u32,
    /// Number of line ends so far.
    ends: u32,
    /// True if the current line has a byte.
    open: bool,
    line: Vec<u8>,
    lines: Vec<String>,
    bytes: usize,
    /// True if a limit on bytes truncated the range.
    cut: bool,
    /// True if no further bytes are needed.
    done: bool,
}

impl Scan {
    fn new(first: u32, last: u32) -> Self {
        Self {
            first,
            last,
            ends: 0,
            open: false,
            line: vec![],
            lines: vec![],
            bytes: 0,
            cut: false,
            done: false,
        }
    }

    fn total(&self) -> u32 {
        self.ends.saturating_add(u32::from(self.open))
    }

    fn feed(&mut self, mut block: &[u8]) {
        while !block.is_empty() {
            let end = block.iter().position(|b| *b == b'\n').map(|at| at + 1);
            let (part, rest) = block.split_at(end.unwrap_or(block.len()));
            block = rest;
            self.open = end.is_none();
            let number = self.ends.saturating_add(1);
            if number >= self.first && number <= self.last && !self.done {
                // One byte more than fits shows that the line was truncated.
                let room = (MAX_SPAN_BYTES + 1).saturating_sub(self.line.len());
                self.line.extend_from_slice(&part[..part.len().min(room)]);
                if end.is_some() || self.line.len() > MAX_SPAN_BYTES {
                    self.take_line();
                }
            }
            if end.is_some() {
                self.ends = number;
                self.done |= number >= self.last;
            }
        }
    }

    fn finish(&mut self) {
        if !self.line.is_empty() {
            self.take_line();
        }
    }

    fn take_line(&mut self) {
        let text = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        let room = MAX_SPAN_BYTES - self.bytes;
        if text.len() > room {
            self.cut = true;
            self.done = true;
            // A partial line only if the result would be empty without it.
            if self.lines.is_empty() {
                let at = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                self.lines.push(text[..at].to_owned());
            }
            return;
        }
        self.bytes += text.len();
        self.lines.push(text);
    }
}
