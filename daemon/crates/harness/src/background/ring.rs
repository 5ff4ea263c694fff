//! The end of an output, with positions that count from its beginning.

use std::collections::VecDeque;

/// Most bytes that are stored of one command's output.
const CAPACITY: usize = 256 * 1024;

/// The last bytes of an output.
#[derive(Debug, Default)]
pub(super) struct Ring {
    bytes: VecDeque<u8>,
    /// Bytes that were written in total.
    total: u64,
}

/// A part of the output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub text: String,
    pub cursor: u64,
    pub dropped: u64,
    pub more: bool,
}

impl Ring {
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(CAPACITY)..];
        let over = (self.bytes.len() + bytes.len()).saturating_sub(CAPACITY);
        self.bytes.drain(..over);
        self.bytes.extend(bytes);
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns at most `most` bytes from a position on, without a character that is cut at the end.
    pub fn read(&self, cursor: u64, most: usize) -> Piece {
        let first = self.total - self.bytes.len() as u64;
        let start = cursor.clamp(first, self.total);
        let skipped = usize::try_from(start - first).unwrap_or(usize::MAX);
        let bytes: Vec<u8> = self.bytes.iter().skip(skipped).take(most).copied().collect();
        let end = match std::str::from_utf8(&bytes) {
            Err(e) if e.error_len().is_none() && e.valid_up_to() > 0 => e.valid_up_to(),
            _ => bytes.len(),
        };
        let cursor_after = start + end as u64;
        Piece {
            text: String::from_utf8_lossy(&bytes[..end]).into_owned(),
            cursor: cursor_after,
            dropped: start.saturating_sub(cursor),
            more: cursor_after < self.total && end == bytes.len(),
        }
    }

    /// Returns the last lines, at most `lines` of them and `most` bytes.
    pub fn tail(&self, lines: usize, most: usize) -> String {
        let skipped = self.bytes.len().saturating_sub(most);
        let bytes: Vec<u8> = self.bytes.iter().skip(skipped).copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let all: Vec<&str> = text.trim_end().lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reader_learns_what_was_dropped() {
        let mut ring = Ring::default();
        ring.push(b"one\n");
        let piece = ring.read(0, 100);
        assert_eq!(piece, Piece { text: "one\n".into(), cursor: 4, dropped: 0, more: false });
        ring.push(&vec![b'x'; CAPACITY + 10]);
        let piece = ring.read(piece.cursor, 5);
        assert_eq!((piece.text.as_str(), piece.dropped, piece.more), ("xxxxx", 10, true));
        assert_eq!(ring.read(u64::MAX, 5).text, "");
        assert_eq!(ring.total(), 14 + CAPACITY as u64);
        assert!(ring.bytes.len() <= CAPACITY && ring.bytes.capacity() <= 4 * CAPACITY);
    }

    #[test]
    fn tail_has_last_lines() {
        let mut ring = Ring::default();
        ring.push("a\nb\nü\n".as_bytes());
        assert_eq!(ring.tail(2, 100), "b\nü");
        assert_eq!(ring.read(4, 1).text, "\u{fffd}");
    }
}
