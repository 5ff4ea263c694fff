//! Line input and output on separate threads, because a blocking read must not prevent the program
//! from ending.

use std::io::{self, BufRead, BufWriter, Write};

use cairn_protocol::error::{Failure, Reason};
use tokio::sync::{mpsc, oneshot};

use super::QUEUE_CAPACITY;

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A message to send.
    Text(String),
    /// The answer to a line that cannot be a message.
    Refused(String),
}

/// Reads the lines of standard input to its end, at most `limit` bytes each.
pub fn read(limit: usize) -> mpsc::Receiver<Line> {
    let (lines, out) = mpsc::channel(QUEUE_CAPACITY);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        // A read error counts as the end of the input.
        while let Ok(Some(line)) = next(&mut input, limit) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    out
}

/// Reads the next non-empty line. A longer one is consumed to its end and discarded.
fn next(input: &mut impl BufRead, limit: usize) -> io::Result<Option<Line>> {
    loop {
        let mut line = Vec::new();
        let mut over = false;
        let mut any = false;
        loop {
            let bytes = match input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let (part, used, line_complete) = match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => (&bytes[..at], at + 1, true),
                None => (bytes, bytes.len(), bytes.is_empty()),
            };
            any |= used > 0;
            if line.len() + part.len() > limit {
                over = true;
                line = Vec::new();
            }
            if !over {
                line.extend_from_slice(part);
            }
            input.consume(used);
            if line_complete {
                break;
            }
        }
        if over {
            let text = format!("the line is over limits.maxMessageBytes, {limit} bytes");
            return Ok(Some(refusal(Reason::TooLarge, text)));
        }
        match String::from_utf8(line) {
            Err(_) => return Ok(Some(refusal(Reason::ParseError, "the line is not utf-8".into()))),
            Ok(text) if !text.trim().is_empty() => return Ok(Some(Line::Text(text))),
            Ok(_) if !any => return Ok(None),
            Ok(_) => {}
        }
    }
}

fn refusal(reason: Reason, message: String) -> Line {
    let failure = Failure::new(reason, message);
    let error = serde_json::json!({"code": reason.code(), "message": failure.message, "data": failure.data()});
    Line::Refused(serde_json::json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string())
}

/// Writes lines to standard output. The second value resolves when all are written or the reader is
/// gone.
pub fn write() -> (mpsc::Sender<String>, oneshot::Receiver<()>) {
    let (lines, out) = mpsc::channel(QUEUE_CAPACITY);
    let (done, written) = oneshot::channel();
    std::thread::spawn(move || {
        // If the reader is gone, the closed channel ends the bridge.
        let _closed = write_all(out, &mut BufWriter::new(io::stdout().lock()));
        let _receiver_dropped = done.send(());
    });
    (lines, written)
}

fn write_all(mut lines: mpsc::Receiver<String>, out: &mut impl Write) -> io::Result<()> {
    while let Some(first) = lines.blocking_recv() {
        let mut next = Some(first);
        while let Some(line) = next {
            // JSON contains line breaks only between tokens, where a space is equivalent.
            for (at, part) in line.split(['\n', '\r']).enumerate() {
                if at > 0 {
                    out.write_all(b" ")?;
                }
                out.write_all(part.as_bytes())?;
            }
            out.write_all(b"\n")?;
            next = lines.try_recv().ok();
        }
        out.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8], capacity: usize, limit: usize) -> Vec<Line> {
        let mut input = BufReader::with_capacity(capacity, bytes);
        let mut lines = Vec::new();
        while let Some(line) = next(&mut input, limit).unwrap() {
            lines.push(line);
        }
        lines
    }

    fn text(text: &str) -> Line {
        Line::Text(text.into())
    }

    fn code(line: &Line) -> i64 {
        let Line::Refused(answer) = line else { return 0 };
        serde_json::from_str::<serde_json::Value>(answer).unwrap()["error"]["code"]
            .as_i64()
            .unwrap()
    }

    #[test]
    fn lines_are_messages_and_last_needs_no_terminator() {
        assert_eq!(all(b"", 4, 9), []);
        assert_eq!(all(b"\n\r\n  \n", 4, 9), []);
        assert_eq!(all(b"{}\n\n[1]\r\nhalf", 3, 9), [text("{}"), text("[1]\r"), text("half")]);
    }

    #[test]
    fn invalid_line_is_refused_and_reading_continues() {
        let lines = all(b"0123456789\nok\n\xff\nok2\n0123456789", 4, 9);
        assert_eq!(lines.iter().map(code).collect::<Vec<_>>(), [1005, 0, -32700, 0, 1005]);
        assert_eq!((&lines[1], &lines[3]), (&text("ok"), &text("ok2")));
        assert_eq!(all(b"012345678\n", 4, 9), [text("012345678")]);
    }

    #[test]
    fn line_breaks_within_a_message_become_spaces() {
        let (lines, out) = mpsc::channel(4);
        for line in ["{\n\"a\": 1}", "[]"] {
            lines.try_send(line.to_owned()).unwrap();
        }
        drop(lines);
        let mut written = Vec::new();
        write_all(out, &mut written).unwrap();
        assert_eq!(written, b"{ \"a\": 1}\n[]\n");
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_chunking(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'x'), any::<u8>()], 0..64),
            capacity in 1_usize..16,
        ) {
            prop_assert_eq!(all(&bytes, capacity, 9), all(&bytes, 4096, 9));
        }
    }
}
