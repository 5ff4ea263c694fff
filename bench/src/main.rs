//! Measures Cairn beside its limits and peers, in one run:
//! `cargo run --release -p cairn-bench -- FOLDER [index|search|grep|start|saved|wire|fanout|remote|mcp|log|turns|gate]...`
//!
//! Needs `target/release/cairn` for what is measured through the daemon, and `rg` for grep. Each line ends with the floor it is held to.

mod daemon;
mod fanout;
mod gate;
mod grep;
mod index;
mod log;
mod mcp;
mod meter;
#[cfg(feature = "peers")]
mod peers;
mod remote;
mod saved;
mod search;
mod start;
mod turns;
mod wire;

use std::path::PathBuf;

fn main() {
    let mut args = std::env::args().skip(1);
    if let Some([port, bytes]) = raw_peer() {
        return fanout::peer(u16::try_from(port).expect("a port"), bytes);
    }
    let Some(folder) = args.next().map(PathBuf::from).filter(|f| f.is_dir()) else {
        meter::say(
            "usage: cairn-bench FOLDER [index|search|grep|start|saved|wire|fanout|remote|mcp|log|turns|gate]...",
        );
        std::process::exit(2);
    };
    let wanted: Vec<String> = args.collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    if let Some(missing) = missing(&wants) {
        meter::say(missing);
        std::process::exit(2);
    }
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let built = scratch.path().join("index");
    if wants("index") || wants("search") {
        let (indexes, root) = index::run(&folder, &built);
        if wants("search") {
            search::run(&indexes, &root, &built);
        }
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        if wants("grep") || wants("start") {
            let home = scratch.path().join("home");
            let mut daemon = daemon::Daemon::start(&home);
            daemon.index(&folder).await;
            if wants("grep") {
                grep::run(&mut daemon, &folder).await;
            }
            if wants("start") {
                start::run(daemon, &home).await;
            }
        }
        if wants("saved") {
            saved::run(&folder, &scratch.path().join("saved")).await;
        }
        if wants("wire") {
            wire::run(&scratch.path().join("wire")).await;
        }
        if wants("fanout") {
            fanout::run(&scratch.path().join("fanout")).await;
        }
        if wants("remote") {
            remote::run(&scratch.path().join("remote")).await;
        }
        if wants("mcp") {
            mcp::run(&folder, &scratch.path().join("mcp")).await;
        }
        if wants("turns") {
            turns::run().await;
        }
        if wants("gate") {
            gate::run(&scratch.path().join("gate")).await;
        }
        if wants("log") {
            log::run(&scratch.path().join("trace.db")).await;
        }
    });
}

/// What is not there of what the measures need, and the way to it.
fn missing(wants: &dyn Fn(&str) -> bool) -> Option<String> {
    let any = |names: &[&str]| names.iter().any(|name| wants(name));
    let binary = daemon::binary();
    if any(&["grep", "start", "saved", "wire", "fanout", "remote", "mcp", "gate"]) && !binary.is_file() {
        return Some(format!("{} is missing: cargo build --release -p cairn-daemon", binary.display()));
    }
    let rg = std::process::Command::new("rg").arg("--version").output();
    (wants("grep") && rg.is_err())
        .then(|| "rg is missing: install ripgrep, or name the measures without grep".into())
}

/// What the raw peer of the fan-out is told, if this is it.
fn raw_peer() -> Option<[usize; 2]> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [word, port, bytes] if word == fanout::PEER => Some([port.parse().ok()?, bytes.parse().ok()?]),
        _ => None,
    }
}
