//! Measures Cairn against its limits and peers, in one run: `cargo run --release -p cairn-bench --
//! FOLDER [index|search|grep|start|saved|wire|fanout|remote|mcp|log|longlog|turns|gate|chat|commands]...`
//!
//! Measurements through the daemon need `target/release/cairn`, and those of grep need `rg`. Each
//! line ends with its limit. `--record` adds the run to `bench/history`; `cairn-bench charts` draws
//! the charts of `docs/benchmarks.md` from there. `cairn-bench mixed` runs everything at once for
//! `CAIRN_BENCH_SECONDS` seconds and fails if memory or descriptors grow or an event is missing.
//! `cairn-bench fleet` measures daemons that share a broker.
//! `cairn-bench agent` compares the tokens and calls of policies until they have seen an answer;
//! `cairn-bench tasks` runs the tasks of
//! `bench/tasks`, by their scripts or by the model of a server.

mod agent;
mod charts;
mod chat;
mod commands;
mod daemon;
mod fanout;
mod fleet;
mod gate;
mod grep;
mod history;
mod index;
mod log;
mod long_log;
mod mcp;
mod meter;
mod mixed;
#[cfg(feature = "peers")]
mod peers;
mod remote;
mod saved;
mod search;
mod start;
mod tasks;
mod turns;
mod wire;
mod worktrees;

use std::path::{Path, PathBuf};

fn main() {
    let mut args = std::env::args().skip(1);
    if let Some([port, bytes]) = raw_peer() {
        return fanout::peer(u16::try_from(port).expect("a port"), bytes);
    }
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    if std::env::args().nth(1).is_some_and(|word| is_measured_alone(&word, &arguments)) {
        return;
    }
    let Some(folder) = args.next().map(PathBuf::from).filter(|f| f.is_dir()) else {
        meter::report(
            "usage: cairn-bench FOLDER [index|search|grep|start|saved|wire|fanout|remote|mcp|log|longlog|turns|gate|chat|worktrees|commands]... [--record]
       cairn-bench mixed
       cairn-bench fleet [mirror|starts|pool|faults|cluster|many]...
       cairn-bench charts
       cairn-bench agent [QUERIES --repos FOLDER]
       cairn-bench tasks [TASK]... [--model URL NAME] [--folder FOLDER]",
        );
        std::process::exit(2);
    };
    let (options, selected): (Vec<String>, Vec<String>) =
        args.partition(|arg| arg.starts_with("--"));
    if let Some(unknown) = options.iter().find(|option| *option != "--record") {
        meter::report(format!("{unknown} is not an option"));
        std::process::exit(2);
    }
    let is_selected = |name: &str| selected.is_empty() || selected.iter().any(|w| w == name);
    if let Some(missing) = missing(&is_selected) {
        meter::report(missing);
        std::process::exit(2);
    }
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let built = scratch.path().join("index");
    if is_selected("index") || is_selected("search") {
        let (indexes, root) = index::run(&folder, &built);
        if is_selected("search") {
            search::run(&indexes, &root, &built);
        }
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure(&folder, scratch.path(), &is_selected));
    if !options.is_empty() {
        let megabytes = meter::bytes_ending(&folder, "") as f64 / 1e6;
        meter::report(history::write(megabytes, meter::values()).display().to_string());
    }
}

/// Runs a measure that needs no folder. False if `word` is none.
fn is_measured_alone(word: &str, arguments: &[String]) -> bool {
    let runtime = || tokio::runtime::Runtime::new().expect("a runtime");
    let scratch = || tempfile::tempdir().expect("a temporary folder");
    match (word, arguments) {
        ("charts", _) => {
            charts::run().iter().for_each(|path| meter::report(path.display().to_string()));
        }
        ("agent", _) => {
            let is_done = agent::run(arguments).map_err(meter::report).is_ok();
            std::process::exit(i32::from(!is_done));
        }
        ("tasks", _) => {
            let is_done = tasks::run(arguments).unwrap_or_else(|error| {
                meter::report(error);
                false
            });
            std::process::exit(i32::from(!is_done));
        }
        ("fleet", parts) => runtime().block_on(fleet::run(scratch().path(), parts)),
        ("fleet-writer", [folder, address]) => {
            runtime().block_on(fleet::write(Path::new(folder), address));
        }
        ("fleet-cost", [folder, address, rate]) => {
            let rate = rate.parse().expect("records of each second");
            runtime().block_on(fleet::cost(Path::new(folder), address, rate));
        }
        ("mixed", _) => {
            let scratch = scratch();
            let is_flat = runtime().block_on(mixed::run(scratch.path()));
            drop(scratch);
            std::process::exit(i32::from(!is_flat));
        }
        _ => return false,
    }
    true
}

/// Runs the selected measures of the daemon, the connections and the log.
async fn measure(folder: &Path, scratch: &Path, is_selected: &dyn Fn(&str) -> bool) {
    if is_selected("grep") || is_selected("start") {
        let home = scratch.join("home");
        let mut daemon = daemon::Daemon::start(&home);
        daemon.index(folder).await;
        if is_selected("grep") {
            grep::run(&mut daemon, folder).await;
        }
        if is_selected("start") {
            start::run(daemon, &home).await;
        }
    }
    if is_selected("saved") {
        saved::run(folder, &scratch.join("saved")).await;
    }
    if is_selected("wire") {
        wire::run(&scratch.join("wire")).await;
    }
    if is_selected("fanout") {
        fanout::run(&scratch.join("fanout")).await;
    }
    if is_selected("remote") {
        remote::run(&scratch.join("remote")).await;
    }
    if is_selected("mcp") {
        mcp::run(folder, &scratch.join("mcp")).await;
    }
    if is_selected("turns") {
        turns::run().await;
    }
    if is_selected("gate") {
        gate::run(&scratch.join("gate")).await;
    }
    if is_selected("chat") {
        chat::run(&scratch.join("chat"));
    }
    if is_selected("commands") {
        commands::run(folder, &scratch.join("commands"));
    }
    if is_selected("log") {
        log::run(&scratch.join("trace.db")).await;
    }
    if is_selected("longlog") {
        long_log::run(scratch).await;
    }
    if is_selected("worktrees") {
        worktrees::run(folder, scratch).await;
    }
}

/// Names a missing requirement and how to obtain it.
fn missing(is_selected: &dyn Fn(&str) -> bool) -> Option<String> {
    let any = |names: &[&str]| names.iter().any(|name| is_selected(name));
    let binary = daemon::binary();
    if any(&[
        "grep",
        "start",
        "saved",
        "wire",
        "fanout",
        "remote",
        "mcp",
        "gate",
        "chat",
        "worktrees",
        "commands",
    ]) && !binary.is_file()
    {
        return Some(format!(
            "{} is missing: cargo build --release -p cairn-daemon",
            binary.display()
        ));
    }
    let rg = std::process::Command::new("rg").arg("--version").output();
    (is_selected("grep") && rg.is_err())
        .then(|| "rg is missing: install ripgrep, or name the measures without grep".into())
}

/// Returns the arguments of the raw peer of the fan-out, if this process is it.
fn raw_peer() -> Option<[usize; 2]> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [word, port, bytes] if word == fanout::PEER_ARGUMENT => {
            Some([port.parse().ok()?, bytes.parse().ok()?])
        }
        _ => None,
    }
}
