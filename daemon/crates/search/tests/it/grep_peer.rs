//! Compares grep with `rg` on the same files: this repository and unusual files, every pattern of
//! `grep_patterns.txt`, without trigrams, with trigrams that are verified per file, and with a
//! watch.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cairn_protocol::lines::{FileLines, GrepStreamParams};
use cairn_protocol::search::{GrepAnswer, GrepItem, GrepParams};
use cairn_search::{CancelFlag, Indexes, Until};
use cairn_workspace::{Roots, WalkOptions, walk};

use crate::fixture::{
    DAMAGES, Damage, build_and_verify, open, options, options_with_watch, segments, write_file,
};

/// Age from which the change time of a file is trusted.
const OLD: Duration = Duration::from_secs(2);
/// Number of pages that are compared.
const PAGES: usize = 3;

/// Checks that `rg` exists: prints a note if not, or fails if all peers are required.
fn has_rg() -> bool {
    let is_present =
        Command::new("rg").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_present = is_present.is_ok_and(|s| s.success());
    let required = std::env::var("CAIRN_TEST_PEERS").is_ok_and(|v| v == "required");
    assert!(is_present || !required, "rg is required and missing");
    if !is_present {
        eprintln!("note: skipped: rg is missing");
    }
    is_present
}

/// Writes a copy of this repository as a walk sees it, and files that are difficult to search.
fn fill(top: &Path) {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap();
    let root = Roots::new(Vec::new()).declare(&repository).unwrap();
    walk(
        &root,
        &WalkOptions { exclude: vec!["target".into()], threads: 1, ..WalkOptions::default() },
        &|file| {
            let to = top.join("repository").join(&file.rel);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(repository.join(&file.rel), to).unwrap();
        },
    );
    for n in 0..150 {
        write_file(
            top,
            &format!("many/f{n}.rs"),
            format!("fn main{n}() {{\n    return value{n};\n}}\n"),
        );
    }
    fill_odd(top);
}

/// Writes files that are difficult to search.
fn fill_odd(top: &Path) {
    let (late, wide) = (vec![b'.'; 100_000], |text: &str, be: bool| -> Vec<u8> {
        let pair = |unit: u16| if be { unit.to_be_bytes() } else { unit.to_le_bytes() };
        text.encode_utf16().flat_map(pair).collect()
    });
    // Beyond any buffer: a NUL in the first buffer hides the entire file, and buffers grow with
    // long lines.
    let far = "a line among many, nothing in it\n".repeat(150_000).into_bytes();
    write_file(top, "odd/empty.rs", b"");
    write_file(top, "odd/newline.rs", b"\n\n\n\n");
    write_file(top, "odd/no_end.rs", b"use std::fs;\nlast line without end");
    write_file(
        top,
        "odd/crlf.rs",
        b"fn main() {\r\n}\r\n\r\nending in crlf\r\nfirst of two\r\nsecond of two\r\n",
    );
    write_file(top, "odd/two.rs", b"first of two\nsecond of two\nfoo\nbar\nfoo\\nbar\n");
    write_file(top, "odd/old_mac.txt", b"old_mac_line\rcarriage return\rbar");
    write_file(
        top,
        "odd/invalid.txt",
        b"invalid \xffutf8\n\xff\xfe here, caf\xe9t\nfine\n\xe6\x97\n",
    );
    write_file(
        top,
        "odd/unicode.txt",
        "été ÉTÉ naïve Größe straße STRASSE\nσίσυφος ΣΊΣΥΦΟΣ ὈΔΥΣΣΕΎΣ\n\u{212A}elvin kelvin Kelvin\nma\u{17F}s mask ta\u{17F}k MASS \u{17F}\u{212A}\nПРИВЕТ привет один\n日本語 😀 Å\u{30A}ngström ÅNGSTRÖM ångström\n\u{212A}ilo kilo KILO\n",
    );
    write_file(top, "odd/early.bin", b"before_the_early_nul\n\0after_the_early_nul\n");
    write_file(
        top,
        "odd/late.bin",
        [&b"before_the_late_nul\n"[..], &far, b"\n\0 after_the_late_nul\n"].concat(),
    );
    write_file(
        top,
        "odd/later.txt",
        [&b"quokka 1\n"[..], &late[..9000], b"\nquokka 2\n\0quokka_in_the_late_part\n"].concat(),
    );
    write_file(
        top,
        "odd/le.txt",
        [&b"\xff\xfe"[..], &wide("sixteen bits little\nfn main\n", false)].concat(),
    );
    write_file(
        top,
        "odd/be.txt",
        [&b"\xfe\xff"[..], &wide("sixteen bits big\nfn main\n", true)].concat(),
    );
    write_file(top, "odd/mark.txt", "\u{FEFF}behind_a_mark\nuse\n");
    write_file(
        top,
        "odd/long.js",
        [
            &b"var x = '"[..],
            &vec![b'x'; 300_000],
            b"in_a_long_line",
            &late,
            b"end_of_it';\nshort\n",
        ]
        .concat(),
    );
    write_file(top, "odd/min.min.js", "var minified_name=1;".repeat(4000));
    write_file(top, "odd/package-lock.json", b"{\"parse_header\": \"1.2.3\"}\n");
    let large = "the same line of a log, over and over, 12:34\n".repeat(50_000);
    write_file(top, "odd/large.log", format!("{large}needle_in_the_large_file\n{large}"));
    let mut rng = cairn_test_support::Rng::with_seed(7);
    let noise: Vec<u8> = (0..600_000).map(|_| rng.u8(..128) | 1).collect();
    write_file(top, "odd/noise.txt", [&noise[..], b"\nneedle_among_noise\n", &noise].concat());
    write_file(top, "odd/ünï cödé [x]{y}.rs", b"fn main() { parse_header(); }\n");
}

/// Flags and pattern of each line of the data file.
fn patterns() -> Vec<(String, String)> {
    let text = include_str!("grep_patterns.txt");
    let lines = text.lines().filter(|l| !l.starts_with("# "));
    lines.map(|l| l.split_once('\t').map(|(f, p)| (f.to_owned(), p.to_owned())).unwrap()).collect()
}

/// The results of rg: lines with text by path and number, and counts by path.
struct Expected {
    lines: BTreeMap<(String, u64), Vec<u8>>,
    counts: BTreeMap<String, u64>,
}

fn rg(top: &Path, flags: &str, pattern: &str, extra: &[&str]) -> Vec<Vec<u8>> {
    let mut command = Command::new("rg");
    command.args(["--no-config", "--no-heading", "--with-filename", "--null", "--color", "never"]);
    for flag in flags.chars().filter(|f| *f != '-') {
        match flag {
            's' => command.arg("--multiline-dotall"),
            other => command.arg(format!("-{other}")),
        };
    }
    let out = command
        .args(extra)
        .arg("-e")
        .arg(pattern)
        .arg(".")
        .current_dir(top)
        .stdin(Stdio::null())
        .output();
    let out = out.unwrap();
    assert_ne!(out.status.code(), Some(2), "{pattern}: {}", String::from_utf8_lossy(&out.stderr));
    out.stdout.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
}

impl Expected {
    fn of(top: &Path, flags: &str, pattern: &str) -> Self {
        // A line without a NUL is rg's notice about a binary file.
        let parts = |line: Vec<u8>| -> Option<(String, Vec<u8>)> {
            let at = line.iter().position(|b| *b == 0)?;
            let path = String::from_utf8(line[..at].to_vec()).unwrap();
            Some((path.trim_start_matches("./").to_owned(), line[at + 1..].to_vec()))
        };
        let mut lines = BTreeMap::new();
        for (path, rest) in rg(top, flags, pattern, &["-n"]).into_iter().filter_map(parts) {
            let colon = rest.iter().position(|b| *b == b':').unwrap();
            let number = std::str::from_utf8(&rest[..colon]).unwrap().parse().unwrap();
            lines.insert((path, number), rest[colon + 1..].to_vec());
        }
        let count = |(path, rest): (String, Vec<u8>)| {
            (path, String::from_utf8(rest).unwrap().parse().unwrap())
        };
        let counts =
            rg(top, flags, pattern, &["-c"]).into_iter().filter_map(parts).map(count).collect();
        Self { lines, counts }
    }
}

fn params(flags: &str, pattern: &str, count_only: bool) -> GrepParams {
    let own: Vec<String> = flags.chars().filter(|f| !"F-".contains(*f)).map(String::from).collect();
    serde_json::from_value(serde_json::json!({
        "pattern": pattern, "isRegex": !flags.contains('F'), "flags": own, "countOnly": count_only, "k": 10_000,
    }))
    .unwrap()
}

fn grep(indexes: &Indexes, params: &GrepParams) -> GrepAnswer {
    let answer = indexes.grep(params, &CancelFlag::new()).unwrap();
    assert_eq!(answer.unreadable, Vec::<String>::new());
    answer
}

/// The lines of the same search as they are streamed.
fn streamed(indexes: &Indexes, page: &GrepParams) -> Vec<GrepItem> {
    let params: GrepStreamParams = serde_json::from_value(serde_json::json!({
        "requestId": "r", "pattern": page.pattern, "isRegex": page.is_regex, "flags": page.flags, "withRanges": true,
    }))
    .unwrap();
    let lines_found = std::sync::Mutex::new(Vec::new());
    let collect = |files: Vec<FileLines>, _| {
        lines_found.lock().unwrap().extend(files.iter().flat_map(FileLines::items));
        true
    };
    indexes.grep_stream(&params, &CancelFlag::new(), &collect).unwrap();
    lines_found.into_inner().unwrap()
}

/// Compares the results of one pattern with those of rg.
fn compare(
    indexes: &Indexes,
    (flags, pattern): &(String, String),
    expected: &Expected,
    mode: &str,
) {
    let what = format!("{mode}: {flags} {pattern}");
    let mut page = params(flags, pattern, false);
    let (mut all, mut lines_found) = (expected.lines.iter(), Vec::new());
    for _ in 0..PAGES {
        let answer = grep(indexes, &page);
        for item in &answer.items {
            let ((path, number), text) =
                all.next().unwrap_or_else(|| panic!("{what}: {item:?} is too much"));
            assert_eq!((&item.path, u64::from(item.line)), (path, *number), "{what}");
            if let Ok(text) = str::from_utf8(text)
                && text.len() < 2000
            {
                assert_eq!(item.text, text.strip_suffix('\r').unwrap_or(text), "{what}");
            }
        }
        lines_found.extend(answer.items);
        page.cursor = answer.next_cursor;
        if page.cursor.is_none() {
            assert!(lines_found == streamed(indexes, &page), "{what}: pages and the stream");
            assert_eq!(all.next(), None, "{what}: is missing");
            break;
        }
    }
    // For multi-line patterns rg counts matches.
    if !flags.contains('U') {
        let answer = grep(indexes, &params(flags, pattern, true));
        let counts: BTreeMap<String, u64> =
            answer.counts.into_iter().map(|c| (c.path, c.lines)).collect();
        assert_eq!(counts, expected.counts, "{what}");
    }
}

/// Number of files that a grep for a rare word reads.
fn read_for_rare(indexes: &Indexes) -> u64 {
    grep(indexes, &params("F", "value149;", true)).files_searched
}

#[test]
fn grep_returns_the_same_lines_as_ripgrep() {
    if !has_rg() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (top, index) = (dir.path().join("root"), dir.path().join("index"));
    fs::create_dir(&top).unwrap();
    fill(&top);
    let started = Instant::now();
    let patterns = patterns();
    assert!(patterns.len() >= 200);
    let expected: Vec<Expected> =
        patterns.iter().map(|(flags, pattern)| Expected::of(&top, flags, pattern)).collect();
    let is_present = expected.iter().filter(|w| !w.lines.is_empty()).count();
    assert!(is_present > patterns.len() * 8 / 10, "only {is_present} patterns match anywhere");
    let all = |indexes: &Indexes, mode: &str| {
        patterns
            .iter()
            .zip(&expected)
            .for_each(|(pattern, expected)| compare(indexes, pattern, expected, mode));
    };
    // The index does not exist yet, or is built during the comparison.
    let (indexes, id) = open(&index, &top, options());
    indexes.build_and_wait(&id, Until::Lexical, &CancelFlag::new()).unwrap();
    all(&indexes, "during indexing");
    build_and_verify(&indexes, &id);
    let files = indexes.status(Some(&id)).unwrap()[0].files;
    // No tool can set the change time, so the test waits until it is trusted.
    std::thread::sleep(OLD.saturating_sub(started.elapsed()) + Duration::from_millis(100));
    indexes.rebuild(&id).unwrap();
    build_and_verify(&indexes, &id);
    let read = read_for_rare(&indexes);
    assert!(read < files / 10, "{read} of {files} files were read");
    all(&indexes, "facts verified per file");
    indexes.close();
    let (indexes, id) = open(&index, &top, options_with_watch(true));
    build_and_verify(&indexes, &id);
    assert!(read_for_rare(&indexes) <= read);
    all(&indexes, "watched");
    for path in segments(&index, &id, "tri") {
        fs::remove_file(path).unwrap();
    }
    indexes.close();
    let (indexes, _) = open(&index, &top, options());
    patterns
        .iter()
        .zip(&expected)
        .step_by(7)
        .for_each(|(one, expected)| compare(&indexes, one, expected, "lost"));
}

/// Writes a tree of small files; with `wait`, they are old enough that their times are trusted.
fn write_small_tree(top: &Path, wait: bool) {
    for n in 0..300 {
        write_file(top, &format!("d{}/f{n}.rs", n % 7), format!("fn wombat{n}() {{}}\n"));
    }
    if wait {
        std::thread::sleep(OLD + Duration::from_millis(100));
    }
}

fn paths(indexes: &Indexes, word: &str) -> Vec<String> {
    grep(indexes, &params("w", word, true)).counts.into_iter().map(|c| c.path).collect()
}

#[test]
fn damaged_missing_and_orphan_segments_are_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let (top, index) = (dir.path().join("root"), dir.path().join("index"));
    fs::create_dir(&top).unwrap();
    write_small_tree(&top, false);
    let (indexes, id) = open(&index, &top, options());
    build_and_verify(&indexes, &id);
    indexes.close();
    let empty_or_changed: [Damage; 2] = [
        |path| fs::write(path, "").unwrap(),
        |path| {
            let mut bytes = fs::read(path).unwrap();
            let at = bytes.len() - 100;
            bytes[at] ^= 1;
            fs::write(path, bytes).unwrap();
        },
    ];
    for damage in DAMAGES.into_iter().chain(empty_or_changed) {
        let before = segments(&index, &id, "tri");
        assert!(!before.is_empty());
        before.iter().for_each(|path| damage(path));
        let stranger = index.join(&*id.0).join("grams-9999.tri");
        fs::write(&stranger, "a stranger").unwrap();
        let (indexes, id) = open(&index, &top, options());
        assert_eq!(paths(&indexes, "wombat7"), ["d0/f7.rs"]);
        build_and_verify(&indexes, &id);
        assert!(!stranger.exists());
        assert!(segments(&index, &id, "tri").iter().all(|path| !before.contains(path)));
        assert_eq!(paths(&indexes, "wombat299"), ["d5/f299.rs"]);
        indexes.close();
    }
}

#[test]
fn changes_are_found_with_and_without_a_watch() {
    let dir = tempfile::tempdir().unwrap();
    let (top, index) = (dir.path().join("root"), dir.path().join("index"));
    fs::create_dir(&top).unwrap();
    write_small_tree(&top, true);
    for watch in [false, true] {
        let (indexes, id) = open(&index, &top, options_with_watch(watch));
        build_and_verify(&indexes, &id);
        assert_eq!(paths(&indexes, "wombat250"), ["d5/f250.rs"]);
        assert!(grep(&indexes, &params("w", "wombat250", true)).files_searched < 30);
        for n in 0..20 {
            // Same size and modification time: only the change time differs.
            let path = top.join(format!("d{}/f{n}.rs", n % 7));
            let (time, text) = (
                fs::metadata(&path).unwrap().modified().unwrap(),
                fs::read_to_string(&path).unwrap(),
            );
            let new = if watch { "potoroo" } else { "numbat" };
            let old = if watch { "numbat" } else { "wombat" };
            fs::write(&path, text.replace(&format!("{old}{n}()"), &format!("{new}{n}()"))).unwrap();
            fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
            // A watch reports the change after a moment; without one, facts are read for each file.
            let until = Instant::now() + Duration::from_secs(60);
            while paths(&indexes, &format!("{new}{n}")) != [format!("d{}/f{n}.rs", n % 7)] {
                assert!(watch && Instant::now() < until, "watch {watch}: {new}{n} is not found");
                std::thread::yield_now();
            }
            assert!(paths(&indexes, &format!("{old}{n}")).is_empty());
        }
        indexes.close();
    }
    let (indexes, id) = open(&index, &top, options());
    assert_eq!(paths(&indexes, "potoroo3"), ["d3/f3.rs"]);
    build_and_verify(&indexes, &id);
    assert_eq!(paths(&indexes, "potoroo3"), ["d3/f3.rs"]);
}
