//! Cost of a sandbox: `/bin/true` in it and without it, `cargo run --example spawn -- HELPER
//! [ROUNDS]`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement by hand")]

use std::{path::PathBuf, time::Instant};

use cairn_sandbox::{Confined, Sandbox, Wake, WhenMissing};

fn main() {
    let mut args = std::env::args().skip(1);
    let helper = PathBuf::from(args.next().expect("the path of a cairn binary"));
    let rounds: usize = args.next().and_then(|n| n.parse().ok()).unwrap_or(200);
    let dir = tempfile::tempdir().unwrap();
    let sandboxes = [
        ("full", Sandbox::new(Some(helper.clone()))),
        (
            "weaker",
            Sandbox::new(Some(helper.clone()))
                .with_bubblewrap(None)
                .when_missing(WhenMissing::Accept),
        ),
        ("none", Sandbox::new(Some(helper)).when_missing(WhenMissing::Off)),
    ];
    println!("full: {:?}", sandboxes[0].1.probe());
    sandboxes[1].1.probe();
    let mut times: Vec<Vec<f64>> = vec![vec![]; sandboxes.len()];
    for _ in 0..rounds {
        // Alternating, so that all are measured under the same load.
        for ((_, sandbox), times) in sandboxes.iter().zip(&mut times) {
            let mut confined = Confined::program(vec!["/bin/true".into()], dir.path().to_owned());
            confined.root = Some(dir.path().to_owned());
            let started = Instant::now();
            let output = sandbox.run(&confined, &Wake::new().unwrap(), &mut |_, _| {}).unwrap();
            assert_eq!(output.exit_code, 0, "{output:?}");
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    for ((name, _), mut times) in sandboxes.iter().zip(times) {
        times.sort_by(f64::total_cmp);
        println!("{name}: p50 {:.1} ms, p95 {:.1} ms", times[rounds / 2], times[rounds * 95 / 100]);
    }
}
