//! Breadth-first search over the worlds.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    time::Instant,
};

use super::{
    Rules,
    world::{Action, Budget, World},
};

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub depth: usize,
    pub states: usize,
}

/// Result of a search.
#[derive(Debug, Default)]
pub struct SearchResult {
    pub states: usize,
    pub transitions: usize,
    pub depth: usize,
    /// True if every reachable state was examined.
    pub complete: bool,
    pub seconds: f64,
    /// The violated invariant, then the steps that lead to it.
    pub violation: Option<String>,
}

fn hash(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Every step taken, for the path to a violation: the index of the step before it and its action.
struct Trail(Vec<(usize, Action)>);

impl Trail {
    fn way(&self, mut at: usize) -> String {
        let mut steps = Vec::new();
        while at != 0 {
            let (before, what) = &self.0[at];
            steps.push(format!("{what:?}"));
            at = *before;
        }
        steps.reverse();
        steps.join("\n  ")
    }
}

/// Examines all worlds that `rules` reach, up to the limits, and stops at the first violated
/// invariant. A second search that records its steps finds the path to it.
pub fn check(rules: Rules, budget: Budget, limits: Limits) -> SearchResult {
    let mut result = search(rules, budget, limits, false);
    if result.violation.is_some() {
        result.violation = search(rules, budget, limits, true).violation;
    }
    result
}

fn search(rules: Rules, budget: Budget, limits: Limits, remember: bool) -> SearchResult {
    let began = Instant::now();
    let first = World::new(budget);
    let mut seen: HashSet<u64> = HashSet::from([hash(&first)]);
    let mut trail = Trail(vec![(0, Action::None)]);
    let mut level: Vec<(World, usize)> = vec![(first, 0)];
    let mut result = SearchResult { states: 1, ..SearchResult::default() };
    while !level.is_empty() && result.depth < limits.depth && result.states < limits.states {
        let mut next = Vec::new();
        for (world, at) in std::mem::take(&mut level) {
            for (what, after) in world.successors(rules) {
                result.transitions += 1;
                if !seen.insert(hash(&after)) {
                    continue;
                }
                let index = if remember {
                    trail.0.push((at, what));
                    trail.0.len() - 1
                } else {
                    0
                };
                if let Err(broken) = after.check() {
                    let way = trail.way(index);
                    result.violation = Some(format!("{broken}\n  {way}\n{after:#?}"));
                    result.states = seen.len();
                    result.depth += 1;
                    result.seconds = began.elapsed().as_secs_f64();
                    return result;
                }
                next.push((after, index));
            }
        }
        level = next;
        result.depth += 1;
        result.states = seen.len();
    }
    result.complete = level.is_empty();
    result.seconds = began.elapsed().as_secs_f64();
    result
}
