//! Fuzzes the parsers for crashes and hangs: samples of every language are mutated and parsed in
//! child processes, because the scanners of grammars are written in C.
//!
//! `cargo run --release -p cairn-symbols --example fuzz -- SECONDS [LANGUAGE...]` prints a line per
//! language. It exits with 1 if a parser crashed or hung, after writing the text to the temporary
//! folder.

use std::{
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use cairn_symbols::extract::{self, ParseInput};
use cairn_workspace::language_of;

/// Time after which a parser counts as hung: the limit of one file, with a margin for slow
/// machines.
const HANG: Duration = Duration::from_secs(20);
/// Number of texts per process.
const ROUND: u64 = 400;
/// Maximum bytes of a text.
const MAX_BYTES: usize = 64 * 1024;

/// Tokens that the scanners of grammars handle.
const PIECES: &[&str] = &[
    "\"",
    "'",
    "`",
    "\"\"\"",
    "'''",
    "<<EOF\n",
    "<<-'A'\n",
    "<<~B\n",
    "EOF\n",
    "A\n",
    "%w(",
    "%{",
    "#{",
    "${",
    "$(",
    "{{",
    "}}",
    "r#\"",
    "#\"",
    "R\"x(",
    ")x\"",
    "@\"",
    "$\"",
    "/*",
    "*/",
    "//",
    "--[==[",
    "]==]",
    "<?php",
    "?>",
    "<!--",
    "</",
    "/>",
    "=begin\n",
    "=end\n",
    "__END__\n",
    "\\\n",
    "\r\n",
    "\0",
    "\u{feff}",
    "\t\t\t",
    "\n    \n  ",
    ":\n",
    "=>",
    "->",
    "&&",
    "<<<X\n",
    "X;\n",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    "é",
    "\u{202e}",
    "𝕏",
    "\\u{",
    "0x",
    "#if\n",
    "#endif\n",
    "async ",
    "func ",
    "def ",
    "class ",
];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n.max(1)
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [child, lang, path, seed] = args.as_slice()
        && child == "--child"
    {
        return parse_many(lang, Path::new(path), seed.parse().unwrap_or(0));
    }
    let Some(seconds) = args.first().and_then(|s| s.parse().ok()) else {
        print("how many seconds?");
        return ExitCode::from(2);
    };
    let mut any_failed = false;
    for (lang, path) in
        samples().into_iter().filter(|(lang, _)| args.len() == 1 || args.contains(lang))
    {
        any_failed |= !try_language(&lang, &path, Duration::from_secs(seconds));
    }
    ExitCode::from(u8::from(any_failed))
}

#[expect(clippy::print_stdout, reason = "it is a tool for a terminal")]
fn print(text: &str) {
    println!("{text}");
}

fn samples() -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/symbols");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    let mut all: Vec<(String, PathBuf)> =
        files.filter_map(|p| Some((language_of(p.to_str()?)?.to_owned(), p.clone()))).collect();
    all.sort();
    all
}

/// Parses mutated texts for the given time; returns true if there was no failure.
fn try_language(lang: &str, path: &Path, time: Duration) -> bool {
    let (started, mut seed, mut parsed) = (Instant::now(), 1_u64, 0);
    while started.elapsed() < time {
        match run_process(lang, path, seed) {
            Ok(()) => parsed += ROUND,
            Err(what) => {
                print(&format!("{lang:<12} {parsed:>8} texts, then {what}"));
                return false;
            }
        }
        seed += 1;
    }
    print(&format!("{lang:<12} {parsed:>8} texts, nothing crashed or hung"));
    true
}

/// Runs one process, which prints the number of each text before parsing it.
fn run_process(lang: &str, path: &Path, seed: u64) -> Result<(), String> {
    let spawn_error = |e: std::io::Error| format!("a process could not be started: {e}");
    let mut child = Command::new(std::env::current_exe().map_err(spawn_error)?)
        .args(["--child", lang])
        .arg(path)
        .arg(seed.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(spawn_error)?;
    let mut out = child.stdout.take().ok_or("no output")?;
    let (numbers, received) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut byte = [0; 8];
        while out.read_exact(&mut byte).is_ok() && numbers.send(u64::from_le_bytes(byte)).is_ok() {}
    });
    let mut last = 0;
    loop {
        match received.recv_timeout(HANG) {
            Ok(number) => last = number,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                kill(&mut child);
                return Err(format!(
                    "text {last} of seed {seed} hung: {}",
                    write_text(lang, path, seed, last)
                ));
            }
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        status => Err(format!(
            "text {last} of seed {seed} crashed ({status:?}): {}",
            write_text(lang, path, seed, last)
        )),
    }
}

fn kill(child: &mut Child) {
    let _gone = child.kill();
    let _status = child.wait();
}

/// Writes a text to a file and returns its path.
fn write_text(lang: &str, path: &Path, seed: u64, number: u64) -> String {
    let file = std::env::temp_dir().join(format!("cairn-fuzz-{lang}-{seed}-{number}"));
    let sample = std::fs::read(path).unwrap_or_default();
    match std::fs::write(&file, mutate(&sample, seed, number)) {
        Ok(()) => file.display().to_string(),
        Err(e) => e.to_string(),
    }
}

fn parse_many(lang: &str, path: &Path, seed: u64) -> ExitCode {
    let Ok(sample) = std::fs::read(path) else { return ExitCode::from(2) };
    let (stop, name) = (AtomicBool::new(false), path.to_string_lossy());
    for number in 0..ROUND {
        let mut out = std::io::stdout().lock();
        if out.write_all(&number.to_le_bytes()).and_then(|()| out.flush()).is_err() {
            return ExitCode::from(2);
        }
        let text = mutate(&sample, seed, number);
        for extent in [ParseInput::Reduced, ParseInput::Complete] {
            let _found = extract::extract_from(extent, lang, &name, &text, &stop);
        }
    }
    ExitCode::SUCCESS
}

/// Mutates the sample reproducibly.
fn mutate(sample: &[u8], seed: u64, number: u64) -> Vec<u8> {
    let mut dice =
        Dice((seed.wrapping_mul(1_000_003) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut text = sample.to_vec();
    for _ in 0..=dice.roll(24) {
        let at = dice.roll(text.len() + 1);
        match dice.roll(8) {
            0 => text.truncate(at),
            1 => drop(text.drain(at..(at + dice.roll(40)).min(text.len()))),
            2 => text
                .splice(at..at, (0..dice.roll(12)).map(|_| 0).collect::<Vec<u8>>())
                .for_each(drop),
            3 => {
                let most = if dice.roll(20) == 0 { 3000 } else { 6 };
                let times = 1 + dice.roll(most);
                let piece = PIECES[dice.roll(PIECES.len())].repeat(times);
                text.splice(at..at, piece.into_bytes()).for_each(drop);
            }
            4 => {
                let to = (at + dice.roll(400)).min(text.len());
                let part = text[at..to].to_vec();
                text.splice(at..at, part).for_each(drop);
            }
            5 if at < text.len() => text[at] = dice.roll(256) as u8,
            _ => text.splice(at..at, PIECES[dice.roll(PIECES.len())].bytes()).for_each(drop),
        }
        text.truncate(MAX_BYTES);
    }
    text
}
