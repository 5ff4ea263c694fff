//! Grep through the daemon, compared with `rg` on the same tree: counts with counts, lines with
//! lines.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    daemon::Daemon,
    meter::{bytes_ending, quantile, report, value},
};

/// Repetitions; the median is reported.
const REPEAT: usize = 5;

/// Lines per page, the maximum of one call.
const PAGE: u32 = 10_000;

/// The pattern with a limit of its own.
const RARE_PATTERN: &str = "rare literal";

/// Name, pattern, flags of Cairn, flags of rg.
const PATTERNS: &[(&str, &str, &[&str], &[&str])] = &[
    (RARE_PATTERN, "vmalloc_to_pfn", &[], &[]),
    ("two rare literals", "vmalloc_to_pfn|ReplicaFetcherManager", &[], &[]),
    ("absent literal", "zzyzx_never_there", &[], &[]),
    ("common literal", "return", &[], &[]),
    ("every line that is not empty", ".", &[], &[]),
    ("alternation", "TODO|FIXME|XXX", &[], &[]),
    ("class", "[A-Z]{3,}_[0-9]{2,}", &[], &[]),
    ("words", r"fn\s+\w+_with_\w+", &[], &[]),
    ("any case", "mutex", &["ignore_case"], &["-i"]),
    ("no trigram", r"\w{30,}", &[], &[]),
];

pub async fn run(daemon: &mut Daemon, folder: &Path) {
    let root = folder.canonicalize().expect("a folder");
    let index = bytes_ending(&daemon.home, "tri") as f64 / 1e6;
    let text = bytes_ending(folder, "") as f64 / 1e6;
    report(format!(
        "grep: trigrams                    {index:.1} MB = {:.3} x all files  floor <= 0.2 x",
        index / text
    ));
    let Some(client) = &mut daemon.client else { return };
    let mut worst: (f64, &str) = (0.0, "");
    for (name, pattern, flags, rg_flags) in PATTERNS {
        let params = |key: &str, value: Value| {
            let mut params = json!({
                "pattern": pattern, "isRegex": true, "flags": flags, "filters": {"roots": [root]},
            });
            params[key] = value;
            params
        };
        let [mut counts, mut first, mut lines, mut rg_counts, mut rg_lines] =
            [const { Vec::new() }; 5];
        let mut ours = 0;
        let mut theirs = 0;
        for _ in 0..REPEAT {
            let start = std::time::Instant::now();
            let answer = client.call("search.grep", params("countOnly", json!(true))).await;
            counts.push(start.elapsed().as_secs_f64() * 1000.0);
            ours = answer["total"].as_u64().unwrap_or(0);
            let start = std::time::Instant::now();
            client.call("search.grep", params("k", json!(PAGE))).await;
            first.push(start.elapsed().as_secs_f64() * 1000.0);
            let start = std::time::Instant::now();
            let end = client.streamed("search.grepStream", params("requestId", json!("r"))).await;
            lines.push(start.elapsed().as_secs_f64() * 1000.0);
            assert_eq!(end["total"], ours, "{name}: lines streamed and lines counted");
            let (total, ms) = rg(&root, pattern, &[rg_flags, &["-c"][..]].concat(), true);
            theirs = total;
            rg_counts.push(ms);
            rg_lines.push(rg(&root, pattern, &[rg_flags, &["-n"][..]].concat(), false).1);
        }
        let [a, f, b, c, d] = [&mut counts, &mut first, &mut lines, &mut rg_counts, &mut rg_lines]
            .map(|v| quantile(v, 0.5));
        worst = [worst, (a / c, name), (b / d, name)]
            .into_iter()
            .max_by(|x, y| x.0.total_cmp(&y.0))
            .unwrap_or(worst);
        value(&format!("grep: {name}, beside rg -c ratio"), a / c);
        value(&format!("grep: {name}, all lines, beside rg -n ratio"), b / d);
        let floor = if *name == RARE_PATTERN { "0.05" } else { "1.0" };
        let same = if ours == theirs { "as many".to_owned() } else { format!("ours {ours}") };
        report(format!(
            "grep: {name:28} count {a:8.1} ms, rg -c {c:8.1} ms = {:.2} x; a page of {PAGE} {f:8.1} ms, all lines {b:8.1} ms, rg -n {d:8.1} ms = {:.2} x; {theirs} lines, {same}  floor <= {floor} x",
            a / c,
            b / d
        ));
    }
    report(format!(
        "grep: slowest of all patterns     {:.2} x rg ({})  floor <= 1.0 x",
        worst.0, worst.1
    ));
}

/// Runs rg and returns the sum of its counts and its wall time.
fn rg(root: &Path, pattern: &str, flags: &[&str], count: bool) -> (u64, f64) {
    let start = std::time::Instant::now();
    let out = Command::new("rg")
        .args(flags)
        .arg("-e")
        .arg(pattern)
        .arg(root)
        .stdin(Stdio::null())
        .output()
        .expect("rg is installed");
    let ms = start.elapsed().as_secs_f64() * 1000.0;
    let text =
        if count { String::from_utf8_lossy(&out.stdout).into_owned() } else { String::new() };
    (text.lines().filter_map(|l| l.rsplit(':').next()?.parse::<u64>().ok()).sum(), ms)
}
