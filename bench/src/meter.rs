//! Clocks, counters and report lines.

use std::{collections::BTreeMap, path::Path, sync::Mutex};

static VALUES: Mutex<BTreeMap<String, f64>> = Mutex::new(BTreeMap::new());

/// Stores a value for the record of the run, under a name that ends with its unit.
pub fn value(name: &str, value: f64) {
    // Thousandths are below what differs between two runs.
    let rounded = (value * 1000.0).round() / 1000.0;
    VALUES.lock().expect("no measure panics").insert(name.to_owned(), rounded);
}

/// Returns the stored values.
pub fn values() -> BTreeMap<String, f64> {
    VALUES.lock().expect("no measure panics").clone()
}

/// Prints a line of the report.
#[expect(clippy::print_stdout, reason = "a report is what this program is for")]
pub fn report(text: impl AsRef<str>) {
    println!("{}", text.as_ref());
}

/// Returns the CPU seconds of a process; of this one when `pid` is `None`.
pub fn cpu(pid: Option<u32>) -> f64 {
    let path = pid.map_or("/proc/self/stat".into(), |p| format!("/proc/{p}/stat"));
    let stat = std::fs::read_to_string(path).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    // Ticks of 1/100 s, as Linux reports to user space.
    let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// Reads a line of `/proc/PID/status`, in units of 1,024 bytes, and returns MB.
pub fn memory(pid: Option<u32>, key: &str) -> f64 {
    let path = pid.map_or("/proc/self/status".into(), |p| format!("/proc/{p}/status"));
    let status = std::fs::read_to_string(path).unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with(key)).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|v| v.parse::<f64>().ok()).unwrap_or(0.0) * 1.024
        / 1000.0
}

/// Returns the bytes of the files below a folder with this name suffix.
pub fn bytes_ending(folder: &Path, ending: &str) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let size = |p: std::path::PathBuf| match p.symlink_metadata() {
        Ok(meta) if meta.is_dir() => bytes_ending(&p, ending),
        Ok(meta) if p.to_string_lossy().ends_with(ending) => meta.len(),
        _ => 0,
    };
    entries.flatten().map(|e| size(e.path())).sum()
}

/// Returns the quantile of the values.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(((values.len().max(1) - 1) as f64 * share) as usize).copied().unwrap_or(0.0)
}

/// Reports p50 and p95 in milliseconds.
pub fn latencies(name: &str, mut ms: Vec<f64>, floor: &str) {
    let p50 = quantile(&mut ms, 0.5);
    let p95 = quantile(&mut ms, 0.95);
    value(&format!("{name} p50 ms"), p50);
    value(&format!("{name} p95 ms"), p95);
    report(format!("{name:34} p50 {p50:9.3} ms  p95 {p95:9.3} ms  n {}  {floor}", ms.len()));
}

/// Runs a closure and returns its value and its wall time in milliseconds.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = std::time::Instant::now();
    let value = work();
    (value, start.elapsed().as_secs_f64() * 1000.0)
}
