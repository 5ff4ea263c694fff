//! Draws the charts of `docs/benchmarks.md` from the records: `cargo run --release -p cairn-bench
//! -- charts`.

use std::path::{Path, PathBuf};

use plotters::prelude::*;

use crate::history::{self, Run};

/// Width and height of a chart in pixels.
const SIZE: (u32, u32) = (720, 360);

/// Colours of series, readable on white for people who see few colours.
const COLOURS: [RGBColor; 3] = [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115)];

/// A series: its label and its points.
type Series = (&'static str, Vec<(f64, f64)>);

/// Draws every chart and returns their files.
pub fn run() -> Vec<PathBuf> {
    let runs = history::read();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/charts");
    std::fs::create_dir_all(&folder).expect("a folder");
    let growth = folder.join("growth.svg");
    let by_size = |name: &str| points(&runs, name, |_, run| run.megabytes);
    let searches = [
        ("lexical", by_size("search: lexical p50 ms")),
        ("semantic", by_size("search: semantic p50 ms")),
        ("hybrid", by_size("search: hybrid p50 ms")),
    ];
    lines(&growth, "A search by the size of the tree", "MB of text", "p50, ms", &searches);
    let peers = folder.join("peers.svg");
    bars(&peers, "Time beside a peer in the same run (1 = the peer)", &ratios(&runs));
    let commits = folder.join("commits.svg");
    let by_run = |name: &str| points(&runs, name, |at, _| at as f64 + 1.0);
    let costs = [
        ("gate, added to a durable call", by_run("gate: added to a call us")),
        ("round trip", by_run("wire: round trip p50 us")),
    ];
    lines(&commits, "Costs of a call over the recorded runs", "run", "µs", &costs);
    vec![growth, peers, commits]
}

/// The points of a value over all runs that have it, in the order of their x.
fn points(runs: &[Run], name: &str, x: impl Fn(usize, &Run) -> f64) -> Vec<(f64, f64)> {
    let of = |(at, run): (usize, &Run)| Some((x(at, run), *run.values.get(name)?));
    let mut points: Vec<(f64, f64)> = runs.iter().enumerate().filter_map(of).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// The latest value of each ratio beside a peer, with its label.
fn ratios(runs: &[Run]) -> Vec<(String, f64)> {
    let mut latest = std::collections::BTreeMap::new();
    for run in runs {
        for (name, value) in &run.values {
            if let Some((label, _)) = name.rsplit_once(" ratio") {
                latest.insert(label.to_owned(), *value);
            }
        }
    }
    latest.into_iter().collect()
}

fn maximum(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max).max(f64::MIN_POSITIVE)
}

fn lines(path: &Path, title: &str, x: &str, y: &str, series: &[Series]) {
    let all = || series.iter().flat_map(|(_, points)| points);
    let (right, top) = (maximum(all().map(|p| p.0)), maximum(all().map(|p| p.1)));
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE).expect("a chart");
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..right * 1.05, 0.0..top * 1.15)
        .expect("a chart");
    chart.configure_mesh().x_desc(x).y_desc(y).light_line_style(WHITE).draw().expect("a chart");
    for ((label, points), colour) in series.iter().zip(COLOURS) {
        let drawn = chart
            .draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)).point_size(3));
        drawn
            .expect("a chart")
            .label(*label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE)
        .draw()
        .expect("a chart");
    area.present().expect("the chart can be written");
}

fn bars(path: &Path, title: &str, values: &[(String, f64)]) {
    let height = 70 + 26 * values.len() as u32;
    let area = SVGBackend::new(path, (SIZE.0, height)).into_drawing_area();
    area.fill(&WHITE).expect("a chart");
    let right = maximum(values.iter().map(|(_, value)| *value)).max(1.0) * 1.1;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(24)
        .y_label_area_size(270)
        .build_cartesian_2d(0.0..right, (0..values.len().max(1)).into_segmented())
        .expect("a chart");
    let label = |segment: &SegmentValue<usize>| match segment {
        SegmentValue::CenterOf(at) => {
            values.get(*at).map(|(name, _)| name.clone()).unwrap_or_default()
        }
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(WHITE)
        .y_labels(values.len() + 1)
        .y_label_formatter(&label)
        .draw()
        .expect("a chart");
    let bar = |(at, (_, value)): (usize, &(String, f64))| {
        let corners = [(0.0, SegmentValue::Exact(at)), (*value, SegmentValue::Exact(at + 1))];
        let mut bar = Rectangle::new(corners, COLOURS[0].filled());
        bar.set_margin(4, 4, 0, 0);
        bar
    };
    chart.draw_series(values.iter().enumerate().map(bar)).expect("a chart");
    let line = [(1.0, SegmentValue::Exact(0)), (1.0, SegmentValue::Exact(values.len()))];
    chart.draw_series([PathElement::new(line, BLACK.stroke_width(1))]).expect("a chart");
    area.present().expect("the chart can be written");
}
