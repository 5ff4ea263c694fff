//! Output of a running command for those who watch: bounded in size and rate.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Interval of the pieces.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);
/// Most bytes of one piece; of faster output only the end is sent.
const MAX_PIECE: usize = 8 * 1024;

/// One piece of a command's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPiece {
    pub text: String,
    /// Bytes before it that were left out.
    pub dropped: u64,
}

/// Receiver of the output of a call's command. It must not block.
#[derive(Clone)]
pub struct OutputSink(pub Arc<dyn Fn(OutputPiece) + Send + Sync>);

impl fmt::Debug for OutputSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputSink")
    }
}

/// The output since the last piece.
#[derive(Debug, Default)]
pub(crate) struct LiveOutput(Mutex<Pending>);

#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    dropped: u64,
}

impl LiveOutput {
    pub fn push(&self, bytes: &[u8]) {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = if bytes.len() > MAX_PIECE {
            let (cut, end) = bytes.split_at(bytes.len() - MAX_PIECE);
            pending.dropped += cut.len() as u64;
            end
        } else {
            bytes
        };
        let over = (pending.bytes.len() + bytes.len()).saturating_sub(MAX_PIECE);
        if over > 0 {
            pending.bytes.drain(..over);
            pending.dropped += over as u64;
        }
        pending.bytes.extend_from_slice(bytes);
    }

    /// Returns the next piece. An incomplete character at its end waits for the rest of it, unless
    /// the output is over.
    pub fn take(&self, over: bool) -> Option<OutputPiece> {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let end = match std::str::from_utf8(&pending.bytes) {
            Err(e) if e.error_len().is_none() && !over => e.valid_up_to(),
            _ => pending.bytes.len(),
        };
        if end == 0 {
            return None;
        }
        let rest = pending.bytes.split_off(end);
        let bytes = std::mem::replace(&mut pending.bytes, rest);
        let dropped = std::mem::take(&mut pending.dropped);
        Some(OutputPiece { text: String::from_utf8_lossy(&bytes).into_owned(), dropped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_output_is_reduced_to_its_end() {
        let live = LiveOutput::default();
        assert_eq!(live.take(true), None);
        live.push(b"one ");
        live.push(b"two");
        let piece = OutputPiece { text: "one two".into(), dropped: 0 };
        assert_eq!(live.take(false), Some(piece));
        live.push(&vec![b'a'; 3 * MAX_PIECE]);
        live.push(b"end");
        let piece = live.take(false).unwrap();
        assert_eq!(piece.text.len(), MAX_PIECE);
        assert!(piece.text.ends_with("end"));
        assert_eq!(piece.dropped, 2 * MAX_PIECE as u64 + 3);
    }

    #[test]
    fn characters_are_not_split() {
        let live = LiveOutput::default();
        let euro = "€".as_bytes();
        live.push(&euro[..2]);
        assert_eq!(live.take(false), None);
        live.push(&euro[2..]);
        assert_eq!(live.take(false).unwrap().text, "€");
        live.push(&euro[..1]);
        assert_eq!(live.take(true).unwrap().text, "\u{fffd}");
    }
}
