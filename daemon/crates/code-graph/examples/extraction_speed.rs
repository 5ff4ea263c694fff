//! Measures the extraction of imports against that of symbols, by language: FOLDER...
#![expect(clippy::print_stdout, reason = "the output is the product")]

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use cairn_code_graph::extract_imports;
use cairn_symbols::extract::extract;

/// Rounds of each, of which the fastest counts.
const ROUNDS: usize = 3;

type Sample = (String, Vec<u8>);

fn files(root: &str) -> Result<Vec<Sample>, Box<dyn std::error::Error>> {
    let listed = Command::new("git").args(["-C", root, "ls-files", "-z"]).output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let read = |path: &str| Some((path.to_owned(), std::fs::read(format!("{root}/{path}")).ok()?));
    Ok(listed.split('\0').filter_map(read).collect())
}

fn fastest(mut work: impl FnMut()) -> Duration {
    let round = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..ROUNDS).map(round).min().unwrap_or_default()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut by_lang: BTreeMap<&str, Vec<Sample>> = BTreeMap::new();
    for root in std::env::args().skip(1) {
        for (path, text) in files(&root)? {
            let lang = match path.rsplit_once('.').map_or("", |(_, e)| e) {
                "rs" => "rust",
                "py" => "python",
                "js" | "mjs" | "cjs" => "javascript",
                "ts" => "typescript",
                "tsx" => "tsx",
                "go" => "go",
                "c" | "h" => "c",
                "cc" | "cpp" => "cpp",
                "java" => "java",
                "rb" => "ruby",
                _ => continue,
            };
            by_lang.entry(lang).or_default().push((path, text));
        }
    }
    println!(
        "{:12} {:>8} {:>14} {:>14} {:>7} {:>8}",
        "language", "MB", "imports MB/s", "symbols MB/s", "share", "B/file"
    );
    let stop = AtomicBool::new(false);
    for (lang, samples) in by_lang {
        let bytes: usize = samples.iter().map(|(_, text)| text.len()).sum();
        let imports = fastest(|| {
            for (path, text) in &samples {
                std::hint::black_box(extract_imports(lang, path, text));
            }
        });
        let symbols = fastest(|| {
            for (path, text) in &samples {
                std::hint::black_box(extract(lang, path, text, &stop));
            }
        });
        let stored: usize = samples
            .iter()
            .map(|(path, text)| extract_imports(lang, path, text).encode().len())
            .sum();
        let speed = |time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();
        let share = imports.as_secs_f64() / symbols.as_secs_f64();
        println!(
            "{lang:12} {:8.2} {:14.0} {:14.1} {:6.1}% {:8}",
            bytes as f64 / 1e6,
            speed(imports),
            speed(symbols),
            share * 100.0,
            stored / samples.len()
        );
    }
    Ok(())
}
