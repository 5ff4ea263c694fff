//! Captured output: the beginning and the end of a stream.

use std::collections::VecDeque;

/// Output of a process on one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The text; a line in place of an omitted part gives its size.
    pub text: String,
    /// Bytes written in total.
    pub bytes: u64,
    /// True if a part was omitted.
    pub truncated: bool,
}

/// Collects the output of one stream in bounded memory.
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    bytes: u64,
}

impl Capture {
    /// Creates a capture that stores at most `room` bytes.
    pub(super) fn new(room: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), half: room / 2, bytes: 0 }
    }

    pub(super) fn push(&mut self, mut data: &[u8]) {
        self.bytes += data.len() as u64;
        let free = self.half.saturating_sub(self.head.len());
        let (first, rest) = data.split_at(free.min(data.len()));
        self.head.extend_from_slice(first);
        data = rest;
        // Only the end of a long piece can be stored.
        let last = &data[data.len().saturating_sub(self.half)..];
        let over = (self.tail.len() + last.len()).saturating_sub(self.half);
        self.tail.drain(..over.min(self.tail.len()));
        self.tail.extend(last);
    }

    pub(super) fn finish(self) -> Captured {
        let cut = self.bytes - (self.head.len() + self.tail.len()) as u64;
        let tail: Vec<u8> = self.tail.into();
        if cut == 0 {
            let all = [self.head, tail].concat();
            return Captured {
                text: String::from_utf8_lossy(&all).into_owned(),
                bytes: self.bytes,
                truncated: false,
            };
        }
        let (head, tail) = (trim_partial_char_end(&self.head), trim_partial_char_start(&tail));
        let text = format!(
            "{}\n[… {} bytes omitted …]\n{}",
            String::from_utf8_lossy(head),
            self.bytes - (head.len() + tail.len()) as u64,
            String::from_utf8_lossy(tail)
        );
        Captured { text, bytes: self.bytes, truncated: true }
    }
}

/// Strips a character that is cut at the end.
fn trim_partial_char_end(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => &bytes[..e.valid_up_to()],
        _ => bytes,
    }
}

/// Strips the rest of a character that is cut at the start.
fn trim_partial_char_start(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|b| (**b & 0xc0) == 0x80).count();
    &bytes[rest..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capture_retains_head_and_tail() {
        let mut all = Capture::new(10);
        all.push(b"0123456789");
        assert_eq!(
            all.finish(),
            Captured { text: "0123456789".into(), bytes: 10, truncated: false }
        );
        for pieces in
            [vec!["0123456789abcdefghij"], vec!["01234", "56789abcdefghi", "j"], vec!["0"; 1]]
        {
            let input = pieces.concat();
            let mut capture = Capture::new(10);
            pieces.iter().for_each(|p| capture.push(p.as_bytes()));
            let got = capture.finish();
            assert_eq!(got.bytes, input.len() as u64);
            if input.len() > 10 {
                assert_eq!(got.text, "01234\n[… 10 bytes omitted …]\nfghij");
            }
        }
        let mut wide = Capture::new(10);
        wide.push("ééééééééé".as_bytes());
        assert_eq!(wide.finish().text, "éé\n[… 10 bytes omitted …]\néé");
    }
}
