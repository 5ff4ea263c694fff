//! Messages of the Language Server Protocol on a stream of bytes: a header with the length, then
//! JSON.

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// Longest header of a message, in bytes.
const MAX_HEADER: usize = 4096;
/// Longest body of a message, in bytes.
const MAX_BODY: usize = 32 << 20;
/// End of a header.
const SEPARATOR: &[u8] = b"\r\n\r\n";

/// Reason why a stream has no further messages.
#[derive(Debug, PartialEq, Eq)]
pub enum FrameError {
    HeaderTooLong,
    NoLength,
    BodyTooLong(usize),
    InvalidJson,
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::HeaderTooLong => write!(f, "its header has more than {MAX_HEADER} bytes"),
            Self::NoLength => f.write_str("a header has no valid Content-Length"),
            Self::BodyTooLong(length) => {
                write!(f, "a message of {length} bytes exceeds the limit of {MAX_BODY}")
            }
            Self::InvalidJson => f.write_str("a message is not valid JSON-RPC"),
        }
    }
}

/// A message from a server. Numbers and texts of ids are not interpreted.
#[derive(Debug, Deserialize)]
pub struct Incoming {
    #[serde(default)]
    pub id: Option<Value>,
    #[serde(default)]
    pub method: Option<String>,
    #[serde(default)]
    pub params: Option<Box<RawValue>>,
    #[serde(default)]
    pub result: Option<Box<RawValue>>,
    #[serde(default)]
    pub error: Option<RpcError>,
}

/// Error of a request.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct RpcError {
    pub code: i64,
    #[serde(default)]
    pub message: String,
}

/// Splits a stream into messages.
#[derive(Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Length of the body that is being read.
    expected: Option<usize>,
    /// Bytes of the buffer in which no separator begins.
    searched: usize,
}

impl Decoder {
    /// Adds bytes and calls `receive` for each complete message.
    ///
    /// # Errors
    /// The stream is invalid; no later bytes are read.
    pub fn push(
        &mut self,
        bytes: &[u8],
        mut receive: impl FnMut(Incoming),
    ) -> Result<(), FrameError> {
        self.buffer.extend_from_slice(bytes);
        while let Some(body) = self.next_body()? {
            receive(serde_json::from_slice(&body).map_err(|_| FrameError::InvalidJson)?);
        }
        Ok(())
    }

    fn next_body(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let length = match self.expected {
            Some(length) => length,
            None => match self.next_length()? {
                Some(length) => length,
                None => return Ok(None),
            },
        };
        if self.buffer.len() < length {
            self.expected = Some(length);
            return Ok(None);
        }
        self.expected = None;
        let rest = self.buffer.split_off(length);
        Ok(Some(std::mem::replace(&mut self.buffer, rest)))
    }

    /// Removes a complete header and returns the length that it names.
    fn next_length(&mut self) -> Result<Option<usize>, FrameError> {
        let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
        let found = unsearched.windows(SEPARATOR.len()).position(|window| window == SEPARATOR);
        let Some(at) = found.map(|at| at + self.searched) else {
            self.searched = self.buffer.len().saturating_sub(SEPARATOR.len() - 1);
            let too_long = self.buffer.len() > MAX_HEADER;
            return if too_long { Err(FrameError::HeaderTooLong) } else { Ok(None) };
        };
        if at > MAX_HEADER {
            return Err(FrameError::HeaderTooLong);
        }
        let header =
            String::from_utf8_lossy(self.buffer.get(..at).unwrap_or_default()).into_owned();
        self.buffer.drain(..at + SEPARATOR.len());
        self.searched = 0;
        let fields = header.lines().filter_map(|line| line.split_once(':'));
        let mut lengths = fields
            .filter(|(name, _)| name.trim().eq_ignore_ascii_case("content-length"))
            .map(|(_, value)| value.trim().parse::<usize>());
        match lengths.next() {
            Some(Ok(length)) if length > MAX_BODY => Err(FrameError::BodyTooLong(length)),
            Some(Ok(length)) => Ok(Some(length)),
            Some(Err(_)) | None => Err(FrameError::NoLength),
        }
    }
}

/// Returns a message with its header.
pub fn encode(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decode(pieces: &[&[u8]]) -> Result<Vec<String>, FrameError> {
        let mut decoder = Decoder::default();
        let mut methods = Vec::new();
        for piece in pieces {
            decoder.push(piece, |message| methods.push(message.method.unwrap_or_default()))?;
        }
        Ok(methods)
    }

    #[test]
    fn messages_are_read_from_any_pieces() {
        let mut stream = encode(&json!({"method": "a"}));
        let body = br#"{"method":"b"}"#;
        stream.extend(format!("content-type: x\r\nCONTENT-LENGTH:{}\r\n\r\n", body.len()).bytes());
        stream.extend(body);
        assert_eq!(decode(&[&stream]).unwrap(), ["a", "b"]);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(decode(&bytes).unwrap(), ["a", "b"]);
        for at in 0..stream.len() {
            let (head, tail) = stream.split_at(at);
            assert_eq!(decode(&[head, tail]).unwrap(), ["a", "b"], "{at}");
        }
    }

    #[test]
    fn invalid_streams_end_without_memory() {
        let cases: [(&[u8], FrameError); 6] = [
            (b"Content-Length: 1073741824\r\n\r\n", FrameError::BodyTooLong(1 << 30)),
            (b"Content-Length: -1\r\n\r\n", FrameError::NoLength),
            (b"Content-Length: 99999999999999999999999\r\n\r\n", FrameError::NoLength),
            (b"X: 1\r\n\r\n{}", FrameError::NoLength),
            (b"Content-Length: 3\r\n\r\n{]}", FrameError::InvalidJson),
            (b"Content-Length: 1\r\n\r\n3", FrameError::InvalidJson),
        ];
        for (stream, expected) in cases {
            assert_eq!(decode(&[stream]), Err(expected), "{}", String::from_utf8_lossy(stream));
        }
        let endless = vec![b'x'; MAX_HEADER + 1];
        assert_eq!(decode(&[&endless]), Err(FrameError::HeaderTooLong));
        let late = [vec![b'x'; MAX_HEADER + 1], SEPARATOR.to_vec()].concat();
        assert_eq!(decode(&[&late]), Err(FrameError::HeaderTooLong));
    }
}
