//! Measures an index of a folder: `measure FOLDER INDEX_DIR [QUERIES]`. Prints times, sizes and
//! latencies.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring program")]

use std::path::Path;
use std::time::Instant;

use cairn_protocol::search::{GrepParams, SearchParams};
use cairn_search::{CancelFlag, Embedder, IndexOptions, Indexes, Until};
use cairn_workspace::Roots;

/// Processor seconds of this process so far.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

/// A line of `/proc/self/status` in MB.
fn memory(key: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap();
    entries
        .map(|e| e.unwrap().path())
        .map(|p| if p.is_dir() { size(&p) } else { p.metadata().unwrap().len() })
        .sum()
}

fn quantiles(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |q: f64| times[((times.len() - 1) as f64 * q) as usize];
    println!("{name:9} p50 {:7.2} ms  p95 {:7.2} ms  max {:7.2} ms", at(0.5), at(0.95), at(1.0));
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let root = Roots::new(Vec::new()).declare(Path::new(&args[1])).unwrap();
    let id = root.id.clone();
    let mut opts = IndexOptions::new(Embedder::builtin().unwrap()).unwrap();
    opts.watch = false;
    let indexes = Indexes::open(args[2].clone().into(), opts, None);
    let (start, cpu_start) = (Instant::now(), cpu());
    indexes.add_root(root).unwrap();
    let cancel = CancelFlag::new();
    for until in [Until::Lexical, Until::Vectors, Until::Everything] {
        let status = indexes.build_and_wait(&id, until, &cancel).unwrap();
        let (wall, spent, mb) =
            (start.elapsed().as_secs_f64(), cpu() - cpu_start, status.bytes as f64 / 1e6);
        println!(
            "{until:?}: {} files {mb:.1} MB {} chunks, {wall:.2} s, {spent:.2} cpu-s, {:.1} MB/cpu-s, anonymous {:.0} MB, peak {:.0} MB",
            status.files,
            status.chunks,
            mb / spent,
            memory("RssAnon"),
            memory("VmHWM")
        );
    }
    let status = indexes.status(Some(&id)).unwrap().remove(0);
    println!(
        "{} symbols, skipped {:?}, index / text {:.2}",
        status.symbols,
        status.skipped,
        size(Path::new(&args[2])) as f64 / status.bytes as f64
    );
    let (start, cpu_start) = (Instant::now(), cpu());
    indexes.build_and_wait(&id, Until::Everything, &cancel).unwrap();
    println!(
        "second build: {:.0} ms, {:.0} ms cpu",
        start.elapsed().as_secs_f64() * 1e3,
        (cpu() - cpu_start) * 1e3
    );
    let queries = std::fs::read_to_string(args.get(3).map_or("/dev/null", String::as_str)).unwrap();
    measure_searches(&indexes, &queries);
    measure_greps(&indexes);
    println!("idle: anonymous {:.0} MB, resident {:.0} MB", memory("RssAnon"), memory("VmRSS"));
    let start = Instant::now();
    indexes.close();
    println!("closed in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
}

fn measure_searches(indexes: &Indexes, queries: &str) {
    let cancel = CancelFlag::new();
    for (name, mode) in [("lexical", 0), ("semantic", 1), ("hybrid", 2)] {
        let mut times = Vec::new();
        for query in queries.lines().filter(|q| !q.trim().is_empty()) {
            let params: SearchParams =
                serde_json::from_value(serde_json::json!({"query": query, "k": 20})).unwrap();
            let start = Instant::now();
            let answer = match mode {
                0 => indexes.lexical(&params, &cancel, &|_| {}),
                1 => indexes.semantic(&params, &cancel, &|_| {}),
                _ => indexes.hybrid(&params, &cancel, &|_| {}),
            };
            answer.unwrap();
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        if !times.is_empty() {
            quantiles(name, times);
        }
    }
}

fn measure_greps(indexes: &Indexes) {
    let cancel = CancelFlag::new();
    for pattern in [
        "vmalloc_to_pfn",
        "return",
        "error",
        r"fn\s+\w+_with_\w+",
        "[A-Z]{3,}_[0-9]{2,}",
        "(?i)mutex",
        "absent_literal_x",
    ] {
        let params: GrepParams = serde_json::from_value(
            serde_json::json!({"pattern": pattern, "isRegex": true, "countOnly": true}),
        )
        .unwrap();
        let (start, cpu_start) = (Instant::now(), cpu());
        let answer = indexes.grep(&params, &cancel).unwrap();
        println!(
            "grep {pattern:20} {:8} lines {:6.0} ms {:6.0} ms cpu",
            answer.total,
            start.elapsed().as_secs_f64() * 1e3,
            (cpu() - cpu_start) * 1e3
        );
    }
}
