//! Questions to the graph.

use cairn_code_graph::{Direction, Group};

use crate::trees::Tree;

fn chain() -> Tree {
    Tree::new(&[
        ("x/a.js", "import '../y/b'"),
        ("y/b.js", "import '../z/c'; import '../x/a'"),
        ("z/c.js", "import '../x/a'; import 'ext'"),
        ("z/d.js", "import './c'"),
    ])
}

#[test]
fn circular_imports_are_reached_once() {
    let graph = chain().graph();
    assert_eq!(graph.reachable(0, Direction::Dependencies, 9, 100), [(1, 1), (2, 2)]);
    assert_eq!(graph.reachable(0, Direction::Dependents, 9, 100), [(1, 1), (2, 1), (3, 2)]);
    assert_eq!(graph.reachable(0, Direction::Dependents, 1, 100), [(1, 1), (2, 1)]);
    assert_eq!(graph.reachable(0, Direction::Dependents, 9, 1), [(1, 1)]);
    assert_eq!(graph.reachable(99, Direction::Dependents, 9, 1), []);
}

#[test]
fn groups_count_the_edges_between_folders() {
    let graph = chain().graph();
    let folders = ["x", "y", "z", "z"];
    let group =
        |from: &str, to: &str, edges| Group { from: from.to_owned(), to: to.to_owned(), edges };
    assert_eq!(
        graph.groups(|file| folders[file as usize]),
        [group("x", "y", 1), group("y", "x", 1), group("y", "z", 1), group("z", "x", 1)]
    );
    assert_eq!(graph.externals()["ext"], [(2, 1)]);
}
