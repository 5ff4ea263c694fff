//! Graph of components as diagrams draw it: bounded, and without edges that follow from others.

use cairn_protocol::explore::Component;

use crate::facts::positions;

/// Maximum number of components in a diagram; more are unreadable.
pub const MAX_NODES: usize = 24;
/// Edges per ten nodes above which edges that follow from others are left out.
const DENSE: usize = 12;

/// The drawn part of a graph of components.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentGraph {
    /// Number of drawn components: the first ones of the list.
    pub nodes: usize,
    /// Dependencies between drawn components, sorted.
    pub edges: Vec<(usize, usize)>,
    /// Number of components that are not drawn.
    pub omitted: usize,
    /// Number of dependencies that are not drawn because a longer path implies them.
    pub implied: usize,
}

impl ComponentGraph {
    pub fn new(components: &[Component]) -> Self {
        let nodes = components.len().min(MAX_NODES);
        let positions = positions(components);
        let mut edges: Vec<(usize, usize)> = components[..nodes]
            .iter()
            .enumerate()
            .flat_map(|(from, one)| one.depends_on.iter().map(move |path| (from, path.as_str())))
            .filter_map(|(from, path)| Some((from, *positions.get(path)?)))
            .filter(|(from, to)| from != to && *to < nodes)
            .collect();
        edges.sort_unstable();
        edges.dedup();
        let before = edges.len();
        if before * 10 > nodes * DENSE {
            edges = without_implied(nodes, edges);
        }
        let implied = before - edges.len();
        Self { nodes, edges, omitted: components.len() - nodes, implied }
    }

    /// Describes the parts that are not drawn; `None` if all are.
    pub fn omissions(&self) -> Option<String> {
        let omitted = (self.omitted > 0).then(|| {
            format!("The first {} of {} components.", self.nodes, self.nodes + self.omitted)
        });
        let implied = match self.implied {
            0 => None,
            1 => Some("1 dependency that follows from others is not drawn.".to_owned()),
            n => Some(format!("{n} dependencies that follow from others are not drawn.")),
        };
        let all: Vec<String> = [omitted, implied].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(" "))
    }
}

/// Removes each edge whose target is reachable without it. Edges of cycles stay, because their
/// removal would hide a direct mutual dependency.
fn without_implied(nodes: usize, edges: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    let mut remaining = edges.clone();
    for edge in edges {
        let (from, to) = edge;
        let others: Vec<(usize, usize)> =
            remaining.iter().copied().filter(|e| *e != edge).collect();
        if reaches(nodes, &others, from, to) && !reaches(nodes, &remaining, to, from) {
            remaining = others;
        }
    }
    remaining
}

fn reaches(nodes: usize, edges: &[(usize, usize)], from: usize, to: usize) -> bool {
    let mut visited = vec![false; nodes];
    let mut pending = vec![from];
    while let Some(at) = pending.pop() {
        if at == to {
            return true;
        }
        if std::mem::replace(&mut visited[at], true) {
            continue;
        }
        pending.extend(edges.iter().filter(|(a, _)| *a == at).map(|(_, b)| *b));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn components(n: usize, edges: &[(usize, usize)]) -> Vec<Component> {
        let depends_on = |at: usize| {
            edges.iter().filter(|(from, _)| *from == at).map(|(_, to)| format!("p{to}")).collect()
        };
        (0..n)
            .map(|at| Component {
                name: format!("n{at}"),
                path: format!("p{at}"),
                depends_on: depends_on(at),
                ..Default::default()
            })
            .collect()
    }

    #[test]
    fn dense_graphs_lose_implied_edges_but_no_cycle() {
        let all: Vec<(usize, usize)> =
            (0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b))).collect();
        let graph = ComponentGraph::new(&components(5, &all));
        assert_eq!(graph.edges, [(0, 1), (1, 2), (2, 3), (3, 4)]);
        assert_eq!(
            graph.omissions().unwrap(),
            "6 dependencies that follow from others are not drawn."
        );
        let cycle = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)];
        assert_eq!(ComponentGraph::new(&components(3, &cycle)).edges.len(), 6);
        // Sparse graphs are drawn in full.
        let sparse = [(0, 1), (1, 2), (0, 2)];
        let graph = ComponentGraph::new(&components(3, &sparse));
        assert_eq!((graph.edges.len(), graph.omissions()), (3, None));
    }

    #[test]
    fn graphs_are_bounded_and_ignore_unknown_paths() {
        let all: Vec<(usize, usize)> = (0..300).map(|at| (at, (at * 7 + 1) % 310)).collect();
        let graph = ComponentGraph::new(&components(300, &all));
        assert_eq!((graph.nodes, graph.omitted), (MAX_NODES, 300 - MAX_NODES));
        assert!(graph.edges.iter().all(|(a, b)| *a < MAX_NODES && *b < MAX_NODES && a != b));
        assert!(graph.omissions().unwrap().starts_with("The first 24 of 300 components."));
        assert_eq!(ComponentGraph::new(&[]).edges, []);
    }
}
