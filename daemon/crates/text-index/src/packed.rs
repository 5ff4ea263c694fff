//! Compression of window text in the database: consecutive windows of a file share a zstd frame, so
//! that similar text is compressed together. The frame is stored with its first window; the column
//! `lead` is the distance to that window.

use std::cell::RefCell;
use std::ops::Range;

use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, OptionalExtension, Row};
use zstd::bulk::{Compressor, Decompressor};

use crate::chunk::{MAX_BYTES, Window};

/// Target bytes of text in one frame, unless a single window is longer. Frames of twice the size
/// compress 6 % better, but two compressed frames of this size fit one database page.
const FRAME: usize = 8 * 1024;
/// Maximum bytes of text in one frame.
const MAX_FRAME: usize = FRAME + MAX_BYTES;
/// The fastest level that compresses better than lz4.
const LEVEL: i32 = 1;

/// The position of a window in its frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Number of windows before it in the frame.
    pub lead: u32,
    /// Range of the frame in the output buffer for its first window; empty for the others.
    pub frame: Range<usize>,
}

/// Packs the windows of `text`, which are contiguous, into frames appended to `out`.
pub fn pack(text: &[u8], windows: &[Window], out: &mut Vec<u8>) -> Vec<Packed> {
    let mut all = Vec::with_capacity(windows.len());
    let mut rest = windows;
    while let Some(first) = rest.first() {
        let fits = |w: &&Window| w.end - first.start <= FRAME;
        let count = rest.iter().take_while(fits).count().max(1);
        let end = rest[count - 1].end;
        all.push(Packed { lead: 0, frame: append(&text[first.start..end], out) });
        all.extend((1..count).map(|n| Packed { lead: n as u32, frame: 0..0 }));
        rest = &rest[count..];
    }
    all
}

/// Appends a frame; it is empty if compression failed, and then no text is stored.
fn append(text: &[u8], out: &mut Vec<u8>) -> Range<usize> {
    thread_local!(static PACKER: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) });
    let start = out.len();
    out.resize(start + zstd::zstd_safe::compress_bound(text.len()), 0);
    let size = PACKER.with_borrow_mut(|packer| {
        if packer.is_none() {
            *packer = Compressor::new(LEVEL).ok();
        }
        packer
            .as_mut()
            .and_then(|p| p.compress_to_buffer(text, &mut out[start..]).ok())
            .unwrap_or(0)
    });
    out.truncate(start + size);
    start..out.len()
}

/// Decompresses a frame; a damaged frame yields no text.
pub fn unpack(frame: &[u8]) -> Vec<u8> {
    thread_local!(static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) });
    let size = zstd::zstd_safe::get_frame_content_size(frame).ok().flatten().unwrap_or(0);
    if size == 0 || size > MAX_FRAME as u64 {
        return Vec::new();
    }
    UNPACKER.with_borrow_mut(|unpacker| {
        if unpacker.is_none() {
            *unpacker = Decompressor::new().ok();
        }
        unpacker.as_mut().and_then(|u| u.decompress(frame, size as usize).ok()).unwrap_or_default()
    })
}

/// Columns of `chunk` that [`Frames::piece`] reads.
pub const COLUMNS: &str = "id, lead, byte_range_start, byte_range_end, text";

/// Reads windows in sequence and decompresses each frame once.
#[derive(Default)]
pub struct Frames {
    /// The first chunk of the current frame, the offset of its text in the file, and the text.
    current: Option<(i64, usize, Vec<u8>)>,
}

impl Frames {
    /// The id and text of the window in a row whose columns from `first_column` on are [`COLUMNS`].
    ///
    /// # Errors
    /// When the frame of an earlier window cannot be read.
    pub fn piece(
        &mut self,
        conn: &Connection,
        row: &Row<'_>,
        first_column: usize,
    ) -> Result<(i64, &[u8]), StoreError> {
        let (id, lead): (i64, i64) = (row.get(first_column)?, row.get(first_column + 1)?);
        let (start, end): (usize, usize) = (row.get(first_column + 2)?, row.get(first_column + 3)?);
        let frame_chunk = id - lead;
        if self.current.as_ref().is_none_or(|(current, _, _)| *current != frame_chunk) {
            self.current = match lead {
                0 => Some((
                    frame_chunk,
                    start,
                    unpack(row.get_ref(first_column + 4)?.as_blob().unwrap_or(&[])),
                )),
                _ => frame_of(conn, frame_chunk)?.map(|(start, text)| (frame_chunk, start, text)),
            };
        }
        let text = self.current.as_ref().map_or(&[][..], |(_, from, text)| {
            text.get(start.wrapping_sub(*from)..end.wrapping_sub(*from)).unwrap_or(&[])
        });
        Ok((id, text))
    }
}

/// The offset of a chunk's frame in its file, and the frame's text.
fn frame_of(conn: &Connection, chunk: i64) -> Result<Option<(usize, Vec<u8>)>, StoreError> {
    let mut get = conn.prepare_cached("SELECT byte_range_start, text FROM chunk WHERE id = ?")?;
    let frame = |r: &Row<'_>| Ok((r.get(0)?, unpack(r.get_ref(1)?.as_blob().unwrap_or(&[]))));
    Ok(get.query_row([chunk], frame).optional()?)
}

/// A window with the text of its whole frame, which surrounds it in the file.
#[derive(Debug)]
pub struct WindowContext {
    /// Text of the frame.
    pub text: Vec<u8>,
    /// Range of the window in `text`.
    pub window: Range<usize>,
}

impl WindowContext {
    pub fn window_text(&self) -> &[u8] {
        &self.text[self.window.clone()]
    }
}

/// Reads a window with its frame; `None` if the chunk does not exist any more.
///
/// # Errors
/// When the database cannot be read.
pub fn window_context(conn: &Connection, chunk: i64) -> Result<Option<WindowContext>, StoreError> {
    let mut get = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM chunk WHERE id = ?"))?;
    let mut rows = get.query([chunk])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let mut frames = Frames::default();
    let size = frames.piece(conn, row, 0)?.1.len();
    let (start, Some((_, from, text))) = (row.get::<_, usize>(2)?, frames.current) else {
        return Ok(None);
    };
    // The window of a damaged frame is empty.
    let at = if size == 0 { 0 } else { start - from };
    Ok(Some(WindowContext { text, window: at..at + size }))
}

/// The text of a chunk; `None` if it does not exist any more.
///
/// # Errors
/// When the database cannot be read.
pub fn text_of(conn: &Connection, chunk: i64) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(window_context(conn, chunk)?.map(|a| a.window_text().to_vec()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chunk::windows;

    proptest! {
        #[test]
        fn windows_round_trip_through_frames(lines in proptest::collection::vec("[a-z \u{e9}]{0,300}", 0..400)) {
            let text = lines.join("\n").into_bytes();
            let all = windows(&text);
            let mut out = b"before".to_vec();
            let packed = pack(&text, &all, &mut out);
            prop_assert_eq!(packed.len(), all.len());
            let mut frame = (0, Vec::new());
            for (n, (p, w)) in packed.iter().zip(&all).enumerate() {
                if p.lead == 0 {
                    frame = (w.start, unpack(&out[p.frame.clone()]));
                } else {
                    prop_assert!(p.frame.is_empty() && packed[n - p.lead as usize].lead == 0);
                }
                prop_assert_eq!(&frame.1[w.start - frame.0..w.end - frame.0], &text[w.start..w.end]);
            }
        }
    }

    #[test]
    fn damaged_frame_yields_no_text() {
        let mut out = Vec::new();
        let text = b"hello hello hello".repeat(20);
        let frame = append(&text, &mut out);
        assert_eq!(unpack(&out[frame.clone()]), text);
        assert!(unpack(&out[..frame.end - 1]).is_empty() && unpack(b"\xff\xff\xff\xff").is_empty());
        assert!(unpack(b"").is_empty());
        let mut large = Vec::new();
        let frame = append(&vec![0; MAX_FRAME + 1], &mut large);
        assert!(unpack(&large[frame]).is_empty());
    }
}
