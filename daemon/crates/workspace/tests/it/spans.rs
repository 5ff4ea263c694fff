//! Spans of files.

use cairn_protocol::{
    content::{MAX_SPAN_BYTES, Span, SpanParams},
    error::Reason,
};
use cairn_workspace::{Root, read_span};
use proptest::prelude::*;

use crate::{put, root};

fn params(start: u32, end: u32) -> SpanParams {
    SpanParams { path: "f".into(), root: None, start, end, context: None, content_hash: None }
}

fn span(root: &Root, start: u32, end: u32) -> Span {
    read_span(root, "f", &params(start, end)).unwrap()
}

#[test]
fn ranges_are_validated() {
    let (dir, root) = root();
    // (text, start, end, wanted text, first, last, total)
    for (text, start, end, want, last, total) in [
        ("a\nb\nc\n", 1, 3, "a\nb\nc\n", 3, 3),
        ("a\nb\nc", 2, 3, "b\nc", 3, 3),
        ("a\nb\nc", 3, 900, "c", 3, 3),
        ("a\nb\n", 3, 4, "", 2, 2),
        ("a\nb\n", 9, 9, "", 8, 2),
        ("", 1, 1, "", 0, 0),
        ("\n\n", 2, 2, "\n", 2, 2),
        ("a\r\nb\r\n", 2, 2, "b\r\n", 2, 2),
    ] {
        put(dir.path(), "f", text);
        let got = span(&root, start, end);
        assert_eq!(
            (got.text.as_str(), got.end_line, got.total_lines),
            (want, last, Some(total)),
            "{text:?} {start}-{end}"
        );
        assert_eq!(got.start_line, start);
        assert!(!got.truncated, "{text:?}");
    }
    put(dir.path(), "f", "1\n2\n3\n4\n5\n");
    let mut with = params(3, 3);
    with.context = Some(1);
    with.content_hash = Some("00".into());
    let got = read_span(&root, "f", &with).unwrap();
    assert_eq!(
        (got.text.as_str(), got.start_line, got.end_line, got.changed),
        ("2\n3\n4\n", 2, 4, Some(true))
    );
    with.content_hash = got.content_hash;
    assert_eq!(read_span(&root, "f", &with).unwrap().changed, Some(false));
    with.context = Some(51);
    for bad in [params(0, 1), params(2, 1), with] {
        assert_eq!(read_span(&root, "f", &bad).unwrap_err().reason(), Reason::InvalidParams);
    }
}

#[test]
fn span_limits_are_enforced() {
    let (dir, root) = root();
    put(dir.path(), "f", &"x\n".repeat(5000));
    let got = span(&root, 10, 4000);
    assert_eq!((got.end_line, got.truncated, got.total_lines), (2009, true, Some(5000)));
    put(dir.path(), "f", &"ä".repeat(MAX_SPAN_BYTES));
    let got = span(&root, 1, 1);
    assert!(
        got.truncated && got.text.len() <= MAX_SPAN_BYTES && got.text.len() > MAX_SPAN_BYTES - 4
    );
    assert_eq!((got.end_line, got.total_lines), (1, Some(1)));
    std::fs::write(dir.path().join("f"), vec![0xff_u8; MAX_SPAN_BYTES]).unwrap();
    let got = span(&root, 1, 1);
    assert!(got.truncated && got.text.len() <= MAX_SPAN_BYTES && got.text.starts_with('\u{fffd}'));
    let long = format!("{}\n", "y".repeat(1000)).repeat(1000);
    put(dir.path(), "f", &long);
    let got = span(&root, 1, 1000);
    assert!(got.truncated && got.text.ends_with('\n') && got.text.len() <= MAX_SPAN_BYTES);
    assert_eq!(got.end_line as usize, got.text.lines().count());
}

#[test]
fn huge_file_is_not_read_completely() {
    let (dir, root) = root();
    put(dir.path(), "f", "first\n");
    std::fs::OpenOptions::new()
        .write(true)
        .open(dir.path().join("f"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let start = std::time::Instant::now();
    let got = span(&root, 1, 1);
    assert_eq!((got.text.as_str(), got.total_lines, got.content_hash), ("first\n", None, None));
    assert!(span(&root, 1, 5).truncated);
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
}

proptest! {
    #[test]
    fn span_returns_requested_lines(lines in prop::collection::vec("[a-zä]{0,6}", 0..40), open in any::<bool>(), start in 1_u32..45, len in 0_u32..45) {
        let (dir, root) = root();
        let mut text: String = lines.iter().map(|l| format!("{l}\n")).collect();
        if open { text.push('z'); }
        put(dir.path(), "f", &text);
        let got = span(&root, start, start + len);
        let want: String = text.split_inclusive('\n').skip(start as usize - 1).take(len as usize + 1).collect();
        prop_assert_eq!(got.text, want);
        prop_assert_eq!(got.total_lines, Some(text.split_inclusive('\n').count() as u32));
        prop_assert!(!got.truncated);
    }
}
