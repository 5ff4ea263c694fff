//! The text of windows in the database: windows of a file that follow each other share a zstd frame, so that a window
//! is packed with what is like it. The frame lies with the first of them; `lead` says how many chunks before a chunk
//! that one is.

use std::cell::RefCell;
use std::ops::Range;

use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, OptionalExtension, Row};
use zstd::bulk::{Compressor, Decompressor};

use crate::chunk::{MAX_BYTES, Window};

/// Text of one frame, in bytes, unless a single window is longer. A frame of twice as much would be 6 % smaller, but two of
/// these fit a page of the database where one of those would.
const FRAME: usize = 8 * 1024;
/// Text of one frame at most.
const MAX_FRAME: usize = FRAME + MAX_BYTES;
/// The fastest level that finds more than lz4 does.
const LEVEL: i32 = 1;

/// A window's place in its frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Windows before it in the frame.
    pub lead: u32,
    /// The frame in the buffer it was written to, with its first window; empty with the others.
    pub frame: Range<usize>,
}

/// Packs the windows of `text`, which follow each other without a gap, into frames behind `out`.
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

/// Appends a frame. One that could not be made is empty, and then what is stored is no text.
fn append(text: &[u8], out: &mut Vec<u8>) -> Range<usize> {
    thread_local!(static PACKER: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) });
    let start = out.len();
    out.resize(start + zstd::zstd_safe::compress_bound(text.len()), 0);
    let size = PACKER.with_borrow_mut(|packer| {
        if packer.is_none() {
            *packer = Compressor::new(LEVEL).ok();
        }
        packer.as_mut().and_then(|p| p.compress_to_buffer(text, &mut out[start..]).ok()).unwrap_or(0)
    });
    out.truncate(start + size);
    start..out.len()
}

/// The text of a frame; that of a damaged one is empty.
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

/// Columns that [`Frames::piece`] reads, of `chunk`.
pub const COLUMNS: &str = "id, lead, byte_range_start, byte_range_end, text";

/// Reads windows one after the other and unpacks each frame once.
#[derive(Default)]
pub struct Frames {
    /// The chunk the frame lies with, where its text begins in the file, and the text.
    held: Option<(i64, usize, Vec<u8>)>,
}

impl Frames {
    /// The id and text of the window in a row whose columns from `at` on are [`COLUMNS`].
    ///
    /// # Errors
    /// When the frame of an earlier window is needed and cannot be read.
    pub fn piece(&mut self, conn: &Connection, row: &Row<'_>, at: usize) -> Result<(i64, &[u8]), StoreError> {
        let (id, lead): (i64, i64) = (row.get(at)?, row.get(at + 1)?);
        let (start, end): (usize, usize) = (row.get(at + 2)?, row.get(at + 3)?);
        let home = id - lead;
        if self.held.as_ref().is_none_or(|(held, _, _)| *held != home) {
            self.held = match lead {
                0 => Some((home, start, unpack(row.get_ref(at + 4)?.as_blob().unwrap_or(&[])))),
                _ => frame_of(conn, home)?.map(|(start, text)| (home, start, text)),
            };
        }
        let text = self.held.as_ref().map_or(&[][..], |(_, from, text)| {
            text.get(start.wrapping_sub(*from)..end.wrapping_sub(*from)).unwrap_or(&[])
        });
        Ok((id, text))
    }
}

/// Where the frame of a chunk begins in its file, and its text.
fn frame_of(conn: &Connection, chunk: i64) -> Result<Option<(usize, Vec<u8>)>, StoreError> {
    let mut get = conn.prepare_cached("SELECT byte_range_start, text FROM chunk WHERE id = ?")?;
    let frame = |r: &Row<'_>| Ok((r.get(0)?, unpack(r.get_ref(1)?.as_blob().unwrap_or(&[]))));
    Ok(get.query_row([chunk], frame).optional()?)
}

/// A window with what shares its frame: what stands before and behind it in its file.
#[derive(Debug)]
pub struct Around {
    /// Text of the whole frame.
    pub text: Vec<u8>,
    /// Where the window lies in it.
    pub window: Range<usize>,
}

impl Around {
    /// The text of the window.
    pub fn own(&self) -> &[u8] {
        &self.text[self.window.clone()]
    }
}

/// A window with what shares its frame; `None` when it is gone.
///
/// # Errors
/// When the database cannot be read.
pub fn around(conn: &Connection, chunk: i64) -> Result<Option<Around>, StoreError> {
    let mut get = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM chunk WHERE id = ?"))?;
    let mut rows = get.query([chunk])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let mut frames = Frames::default();
    let size = frames.piece(conn, row, 0)?.1.len();
    let (start, Some((_, from, text))) = (row.get::<_, usize>(2)?, frames.held) else { return Ok(None) };
    // The window of a damaged frame is empty.
    let at = if size == 0 { 0 } else { start - from };
    Ok(Some(Around { text, window: at..at + size }))
}

/// The text of a chunk; `None` when it is gone.
///
/// # Errors
/// When the database cannot be read.
pub fn text_of(conn: &Connection, chunk: i64) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(around(conn, chunk)?.map(|a| a.own().to_vec()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chunk::windows;

    proptest! {
        #[test]
        fn every_window_comes_back(lines in proptest::collection::vec("[a-z \u{e9}]{0,300}", 0..400)) {
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
    fn a_damaged_text_is_empty() {
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
