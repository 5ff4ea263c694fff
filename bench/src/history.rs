//! Records of runs: `bench/history/*.json`, one file for each, from which the charts are drawn.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use serde::{Deserialize, Serialize};

/// A run of the bench.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    /// Day of the run, as `YYYY-MM-DD` in UTC.
    pub date: String,
    /// Commit of the checkout; with `+` if files had changed.
    pub commit: String,
    /// Processor and number of cores.
    pub machine: String,
    /// Megabytes of the measured folder.
    pub megabytes: f64,
    /// Measured values by name; a name ends with its unit.
    pub values: BTreeMap<String, f64>,
}

/// The folder of the records.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("history")
}

/// Writes the values of this run and returns the file.
pub fn write(megabytes: f64, values: BTreeMap<String, f64>) -> PathBuf {
    let date = output("date", &["-u", "+%Y-%m-%d"]);
    let changed = !output("git", &["status", "--porcelain", "--untracked-files=no"]).is_empty();
    let commit = format!(
        "{}{}",
        output("git", &["rev-parse", "--short=10", "HEAD"]),
        if changed { "+" } else { "" }
    );
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map(|(_, m)| m);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let machine = format!("{}, {cores} cores", model.unwrap_or(std::env::consts::ARCH));
    let time = output("date", &["-u", "+%H%M%S"]);
    let path = folder().join(format!("{date}-{time}-{}.json", commit.trim_end_matches('+')));
    let run = Run { date, commit, machine, megabytes: megabytes.round(), values };
    std::fs::create_dir_all(folder()).expect("a folder");
    let text = serde_json::to_string_pretty(&run).expect("a run is JSON");
    std::fs::write(&path, text + "\n").expect("the record can be written");
    path
}

/// Reads all records, oldest first.
pub fn read() -> Vec<Run> {
    let entries =
        std::fs::read_dir(folder()).expect("bench/history exists; a run with --record writes it");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "json"));
    files.sort();
    let parse = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("a record");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    files.iter().map(parse).collect()
}

fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
}
