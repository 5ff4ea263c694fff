//! Policies that grep and read.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Stdio},
};

use cairn_search_metrics::ResultSpan;

use super::{EXCLUDED, Transcript};

/// Words of a question that are tried.
const MAX_WORDS: usize = 8;
/// Matching lines that one call prints.
const MAX_LINES: usize = 50;
/// Characters of a printed line.
const MAX_LINE: usize = 200;
/// Lines of a file that one call reads.
const MAX_READ: u32 = 2_000;
/// Files that the naive policy reads for each word, and regions that the skilled one reads in each
/// round.
const READS: usize = 3;
/// Lines that are read before and after a hit.
const AROUND: u32 = 20;
/// Words that say nothing about code.
const STOP_WORDS: &str = " a an and are as at be by can do does for from how i if in into is it its \
    my not of on or so that the there this to use used using was what when where which who why \
    will with you your ";

/// A line that a pattern matches.
struct Hit {
    path: String,
    line: u32,
    text: String,
}

/// Runs `rg` and returns its output; no match is no error.
fn rg(top: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("rg")
        .current_dir(top)
        .args(["--sort", "path", "--glob", &format!("!{EXCLUDED}"), "--max-filesize", "1M"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("rg: {e}; install ripgrep"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The matching lines of a pattern, ignoring case.
fn hits(top: &Path, pattern: &str, files: &[&str]) -> Result<Vec<Hit>, String> {
    let fixed = ["-n", "--no-heading", "--with-filename", "-i", "-e", pattern, "--"];
    let output = rg(top, &[&fixed[..], if files.is_empty() { &["."] } else { files }].concat())?;
    let hit = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let path = parts.next()?;
        let path = path.strip_prefix("./").unwrap_or(path).to_owned();
        let number = parts.next()?.parse().ok()?;
        Some(Hit { path, line: number, text: parts.next()?.chars().take(MAX_LINE).collect() })
    };
    Ok(output.lines().filter_map(hit).collect())
}

/// Adds a page of matching lines to the transcript, as a tool would print it.
fn print_hits(hits: &[Hit], transcript: &mut Transcript<'_>) -> bool {
    let page = &hits[..hits.len().min(MAX_LINES)];
    let text: String =
        page.iter().map(|hit| format!("{}:{}:{}\n", hit.path, hit.line, hit.text)).collect();
    let span = |hit: &Hit| ResultSpan { path: hit.path.clone(), lines: (hit.line, hit.line) };
    transcript.add(&text, page.iter().map(span))
}

/// Reads lines of a file into the transcript.
pub fn read(top: &Path, path: &str, from: u32, to: u32, transcript: &mut Transcript<'_>) -> bool {
    let bytes = std::fs::read(top.join(path)).unwrap_or_default();
    let source = String::from_utf8_lossy(&bytes);
    let lines = source.lines().zip(1u32..).filter(|(_, n)| (from..=to).contains(n));
    let text: String = lines
        .map(|(line, n)| {
            format!("{n}\t{}\n", line.chars().take(MAX_READ as usize).collect::<String>())
        })
        .collect();
    transcript.add(&text, [ResultSpan { path: path.to_owned(), lines: (from.max(1), to) }])
}

/// The selective words of a question, as they are written.
fn words(query: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut all: Vec<String> = Vec::new();
    for word in query.split(|c| !is_word(c)) {
        let lower = word.to_lowercase();
        let is_selective = word.chars().count() > 2 && !STOP_WORDS.contains(&format!(" {lower} "));
        if is_selective && !all.iter().any(|known| known.to_lowercase() == lower) {
            all.push(word.to_owned());
        }
    }
    all
}

/// Files with the number of their hits, those with most hits first.
fn by_hits(hits: &[Hit]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for hit in hits {
        *counts.entry(&hit.path).or_default() += 1;
    }
    let mut files: Vec<(&str, usize)> = counts.into_iter().collect();
    files.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    files.into_iter().map(|(path, _)| path.to_owned()).collect()
}

/// Greps the longest words one after another, and reads the files with most hits completely.
pub fn naive(top: &Path, query: &str, transcript: &mut Transcript<'_>) -> Result<(), String> {
    let mut words = words(query);
    words.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
    let mut known: Vec<String> = Vec::new();
    for word in words.iter().take(MAX_WORDS) {
        let hits = hits(top, word, &[])?;
        if print_hits(&hits, transcript) {
            return Ok(());
        }
        let unread: Vec<String> =
            by_hits(&hits).into_iter().filter(|path| !known.contains(path)).take(READS).collect();
        for path in unread {
            if read(top, &path, 1, MAX_READ, transcript) {
                return Ok(());
            }
            known.push(path);
        }
    }
    Ok(())
}

/// Counts the files of each word, then tries definitions of the rarest ones, the files that have
/// both, and all lines of the rarest; each round reads around its best hits.
pub fn skilled(top: &Path, query: &str, transcript: &mut Transcript<'_>) -> Result<(), String> {
    let mut counted: Vec<(usize, String)> = Vec::new();
    for word in words(query).into_iter().take(MAX_WORDS) {
        let files = rg(top, &["-l", "-i", "-e", &word, "--", "."])?.lines().count();
        counted.push((files, word));
    }
    let counts: String = counted.iter().map(|(n, word)| format!("{word}: {n} files\n")).collect();
    transcript.add(&counts, []);
    counted.retain(|(files, _)| *files > 0);
    counted.sort();
    let rare: Vec<String> = counted.iter().map(|(_, word)| word.clone()).collect();
    let Some(first) = rare.first() else { return Ok(()) };
    let mut rounds = Vec::new();
    let definition = |word: &String| {
        format!(
            r"\b(fn|def|class|func|function|struct|enum|interface|trait|type|module|const|let|var|static|void|int)\b[^=]*\b\w*{word}\w*"
        )
    };
    let definitions: Vec<String> = rare.iter().take(2).map(definition).collect();
    rounds.push(hits(top, &definitions.join("|"), &[])?);
    if let Some(second) = rare.get(1) {
        let both = rg(top, &["-l", "-i", "-e", first, "--", "."])?;
        let both: Vec<&str> = both.lines().collect();
        let of = |hit: &Hit| format!("./{}", hit.path);
        let with_second = hits(top, second, &[])?;
        let files: Vec<&str> = both
            .into_iter()
            .filter(|path| with_second.iter().any(|hit| of(hit) == **path))
            .collect();
        let in_both = if files.is_empty() { Vec::new() } else { hits(top, first, &files)? };
        rounds.push(in_both);
    }
    rounds.push(hits(top, first, &[])?);
    let mut regions: Vec<(String, u32)> = Vec::new();
    for hits in rounds {
        if print_hits(&hits, transcript) {
            return Ok(());
        }
        for (path, line) in best_regions(&hits, &regions) {
            let from = line.saturating_sub(AROUND).max(1);
            if read(top, &path, from, line + AROUND, transcript) {
                return Ok(());
            }
            regions.push((path, line));
        }
    }
    Ok(())
}

/// The first hits, in the files with most of them, that are not in a region that was read.
fn best_regions(hits: &[Hit], known: &[(String, u32)]) -> Vec<(String, u32)> {
    let is_read = |hit: &Hit| {
        known.iter().any(|(path, line)| *path == hit.path && line.abs_diff(hit.line) <= AROUND)
    };
    let first = |path: &String| hits.iter().find(|hit| hit.path == *path && !is_read(hit));
    let regions = by_hits(hits);
    regions.iter().filter_map(first).take(READS).map(|h| (h.path.clone(), h.line)).collect()
}
