//! Measures extracting the definitions of trees compared with parsing alone, and whether reducing
//! the text changes them.
//!
//! `cargo run --release -p cairn-code-search --example symbols -- FOLDER... [--differ] [--names]`;
//! `--names` measures queries for names among 400,000 derived from those found.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use cairn_search::symbols::names::Names;
use cairn_symbols::extract::{self, Extracted, ParseInput};
use cairn_symbols::languages::grammar;
use cairn_workspace::language_of;

/// Larger files are generated, and an index skips them.
const MAX_BYTES: u64 = 1024 * 1024;

/// Passes over everything; the fastest counts.
const PASSES: usize = 3;

type Files = Vec<(String, Vec<u8>)>;

#[expect(clippy::print_stdout, reason = "it is a tool for a terminal")]
fn main() {
    let (flags, folders): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.starts_with("--"));
    let mut all: BTreeMap<&str, Files> = BTreeMap::new();
    for folder in &folders {
        visit(Path::new(folder), &mut |path, lang, text| {
            all.entry(lang).or_default().push((path.to_owned(), text));
        });
    }
    println!(
        "{:<12}{:>7}{:>8}{:>9}{:>12}{:>12}{:>12}{:>9}{:>8}{:>8}",
        "language",
        "files",
        "MB",
        "symbols",
        "parse MB/s",
        "complete MB/s",
        "short MB/s",
        "ratio",
        "broken",
        "differ"
    );
    for (lang, files) in &all {
        let bytes: usize = files.iter().map(|f| f.1.len()).sum();
        let parse_only_time =
            fastest(|| files.iter().for_each(|(_, text)| drop(parse(lang, text))));
        let complete =
            fastest(|| files.iter().for_each(|f| drop(find(ParseInput::Complete, lang, f))));
        let short = fastest(|| files.iter().for_each(|f| drop(find(ParseInput::Reduced, lang, f))));
        let speed = |seconds: f64| bytes as f64 / 1e6 / seconds.max(1e-9);
        let (mut symbols, mut broken, mut differ) = (0, 0, Vec::new());
        for file in files {
            let of_short = find(ParseInput::Reduced, lang, file);
            symbols += of_short.symbols.len();
            let is_broken = parse(lang, &file.1).is_some_and(|t| t.root_node().has_error());
            broken += usize::from(is_broken);
            if let Some(first) = difference(&find(ParseInput::Complete, lang, file), &of_short) {
                differ.push(format!(
                    "{lang} {}{}: {first}",
                    file.0,
                    if is_broken { " (broken)" } else { "" }
                ));
            }
        }
        println!(
            "{lang:<12}{:>7}{:>8.2}{symbols:>9}{:>12.1}{:>12.1}{:>12.1}{:>9.2}{broken:>8}{:>8}",
            files.len(),
            bytes as f64 / 1e6,
            speed(parse_only_time),
            speed(complete),
            speed(short),
            parse_only_time / short.max(1e-9),
            differ.len(),
        );
        if flags.iter().any(|f| f == "--differ") {
            differ.iter().for_each(|line| println!("{line}"));
        }
    }
    if flags.iter().any(|f| f == "--names") {
        measure_names(&all);
    }
}

/// Measures queries among many names.
#[expect(clippy::print_stdout, reason = "it is a tool for a terminal")]
fn measure_names(all: &BTreeMap<&str, Files>) {
    let of = |lang: &&str, files: &Files| -> Vec<String> {
        let symbols = files.iter().flat_map(|f| find(ParseInput::Reduced, lang, f).symbols);
        symbols.map(|s| s.name).collect()
    };
    let found: Vec<String> = all.iter().flat_map(|(lang, files)| of(lang, files)).collect();
    let mut names = Names::default();
    let start = cpu();
    for round in 0.. {
        for name in &found {
            names.add(&if round == 0 { name.clone() } else { format!("{name}{}", round * 37) });
        }
        if names.len() >= 400_000 || found.is_empty() {
            break;
        }
    }
    println!("{} names added, {:.0} ms", names.len(), (cpu() - start) * 1e3);
    for query in
        ["parse_header", "parseHead", "get", "server", "raxInsret", "nothing_like_this", "e"]
    {
        let mut count = 0;
        let each =
            fastest(|| (0..10).for_each(|_| count = names.find_similar(query, None, 2000).len()))
                / 10.0;
        println!("{query:<20}{count:>7} names{:>9.2} ms", each * 1e3);
    }
}

fn fastest(mut work: impl FnMut()) -> f64 {
    let mut once = || {
        let start = cpu();
        work();
        cpu() - start
    };
    (0..PASSES).map(|_| once()).fold(f64::MAX, f64::min)
}

fn find(extent: ParseInput, lang: &str, (path, text): &(String, Vec<u8>)) -> Extracted {
    extract::extract_from(extent, lang, path, text, &AtomicBool::new(false)).unwrap_or_default()
}

fn parse(lang: &str, text: &[u8]) -> Option<tree_sitter::Tree> {
    thread_local!(static PARSER: RefCell<tree_sitter::Parser> = RefCell::new(cairn_parsing::parser()));
    PARSER.with_borrow_mut(|parser| {
        parser.set_language(&grammar(lang)?.language).ok()?;
        parser.parse(text, None)
    })
}

fn visit(folder: &Path, each: &mut dyn FnMut(&str, &'static str, Vec<u8>)) {
    let mut waiting: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(meta) = path.symlink_metadata() else { continue };
        if meta.is_dir() && path.file_name().is_none_or(|n| n != ".git") {
            waiting
                .extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|e| e.path()));
        } else if meta.is_file() && meta.len() <= MAX_BYTES {
            let name = path.to_string_lossy();
            if let Some(lang) = language_of(&name).filter(|l| extract::has_definitions(l))
                && let Ok(text) = std::fs::read(&path)
            {
                each(&name, lang, text);
            }
        }
    }
}

fn difference(complete: &Extracted, short: &Extracted) -> Option<String> {
    let pair = complete.symbols.iter().zip(&short.symbols).find(|(a, b)| a != b);
    match pair {
        Some((a, b)) => Some(format!("{a:?} / {b:?}")),
        None if complete.symbols.len() != short.symbols.len() => {
            let more = if complete.symbols.len() > short.symbols.len() { complete } else { short };
            let fewer = complete.symbols.len().min(short.symbols.len());
            Some(format!(
                "{} / {}: {:?}",
                complete.symbols.len(),
                short.symbols.len(),
                more.symbols[fewer]
            ))
        }
        None => None,
    }
}

/// CPU seconds of this thread.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}
