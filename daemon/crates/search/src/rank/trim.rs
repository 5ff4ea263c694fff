//! Trims a window in the results to its best definitions and the line that covers most of the
//! query.

use super::Passage;

/// Maximum score below the window's best definition at which another definition is still shown, on
/// the scale of scores.
const MAX_GAP: f32 = 0.3;
/// Minimum lines of a trimmed window.
const MIN_LINES: u32 = 12;

/// Trims the windows among `passages`, each of which precedes its definitions; `scores` are in the
/// same order.
pub fn trim(passages: &mut [Passage], scores: &[f32]) {
    let mut at = 0;
    for group in passages.chunk_by_mut(|a, b| a.candidate == b.candidate) {
        let scores = &scores[at..at + group.len()];
        at += group.len();
        let [window, definitions @ ..] = group else { continue };
        if window.span.is_some() || definitions.is_empty() {
            continue;
        }
        let best = scores[1..].iter().copied().fold(f32::MIN, f32::max);
        let least = best - MAX_GAP * window.features.prior;
        let visible = definitions.iter().zip(&scores[1..]).filter(|(_, score)| **score >= least);
        let best_line =
            (window.features.line > 0.0).then_some((window.best_line, window.best_line));
        let ranges = visible.map(|(d, _)| d.lines).chain(best_line);
        let Some(range) = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else { continue };
        window.lines = widen(range, window.lines);
    }
}

/// Widens a range to at least [`MIN_LINES`] lines within the window.
fn widen((from, to): (u32, u32), (first, last): (u32, u32)) -> (u32, u32) {
    let missing = MIN_LINES.saturating_sub(to - from + 1);
    let from = from.saturating_sub(missing / 2).max(first);
    (from, to.max(from + MIN_LINES - 1).min(last))
}

#[cfg(test)]
mod tests {
    use super::super::Features;
    use super::*;

    fn passage(
        candidate: usize,
        span: Option<usize>,
        lines: (u32, u32),
        line: (f32, u32),
    ) -> Passage {
        let features = Features { prior: 1.0, line: line.0, ..Features::default() };
        Passage { candidate, span, lines, fingerprint: None, best_line: line.1, features }
    }

    #[test]
    fn window_is_trimmed_to_its_best_definitions_and_its_best_line() {
        let window = |line| passage(0, None, (1, 40), line);
        let (a, b) =
            (passage(0, Some(0), (3, 17), (0.0, 0)), passage(0, Some(1), (20, 22), (0.0, 0)));
        let cut = |window, scores: &[f32]| {
            let mut all = [window, a.clone(), b.clone(), passage(1, None, (41, 80), (1.0, 50))];
            trim(&mut all, scores);
            assert_eq!(all[3].lines, (41, 80));
            all[0].lines
        };
        assert_eq!(cut(window((0.0, 30)), &[1.0, 2.0, 1.0, 9.0]), (3, 17));
        assert_eq!(cut(window((0.0, 30)), &[1.0, 1.0, 2.0, 9.0]), (16, 27));
        assert_eq!(cut(window((0.0, 30)), &[1.0, 1.9, 2.0, 9.0]), (3, 22));
        assert_eq!(cut(window((0.6, 30)), &[1.0, 2.0, 1.0, 9.0]), (3, 30));
    }

    #[test]
    fn short_range_is_widened_within_its_window() {
        assert_eq!(widen((1, 2), (1, 40)), (1, 12));
        assert_eq!(widen((39, 40), (1, 40)), (34, 40));
        assert_eq!(widen((5, 6), (5, 9)), (5, 9));
        assert_eq!(widen((10, 30), (1, 40)), (10, 30));
    }
}
