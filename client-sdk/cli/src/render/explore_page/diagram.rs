//! The diagram of the components: an SVG with a link to the section of each component.

use std::fmt::Write as _;

use cairn_explore_report::{facts, graph::ComponentGraph};
use cairn_protocol::explore::Component;
use dagre::{
    EdgeLabel, LayoutOptions, NodeLabel, RankDir,
    graph::{Graph, GraphOptions},
    layout,
};

use super::markup::{escape, text};
use crate::render::{cells, output::plain};

/// Width of a box in pixels.
const BOX_WIDTH: f64 = 226.0;
/// Height of a box with a name alone.
const NAME_HEIGHT: f64 = 38.0;
/// Height of each line of a role.
const ROLE_HEIGHT: f64 = 16.0;
/// Space around the diagram, and between boxes of a grid.
const GAP: f64 = 20.0;
/// Cells of a name in a box; a cell of its font is up to 9 pixels wide.
const NAME_CELLS: usize = 22;
/// Cells of a line of a role in a box.
const ROLE_CELLS: usize = 29;
/// Space between layers, where edges bend.
const LAYER_GAP: f64 = 60.0;
/// Farthest end of an edge from the centre of a box.
const PORT_SPREAD: f64 = 20.0;
/// Columns of a grid of boxes without edges.
const GRID_COLUMNS: usize = 4;
/// Width of the page's column: a wider diagram is shrunk or scrolled.
const COLUMN_WIDTH: f64 = 1100.0;

/// Point of an edge, or centre of a box.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    x: f64,
    y: f64,
}

/// An edge: between two components, with the data of its path.
struct Edge {
    from: usize,
    to: usize,
    is_mutual: bool,
    path: String,
}

/// Positions of boxes, and edges.
struct Drawing {
    centres: Vec<Point>,
    edges: Vec<Edge>,
    width: f64,
    height: f64,
}

/// Renders the figure; empty without components.
pub fn figure(components: &[Component]) -> String {
    if components.is_empty() {
        return String::new();
    }
    let graph = ComponentGraph::new(components);
    let drawn = &components[..graph.nodes];
    let names = facts::short_names(components);
    let roles: Vec<Vec<String>> = drawn
        .iter()
        .map(|c| cells::wrap_at_most(&plain(&facts::single_line(&c.role)), ROLE_CELLS, 2))
        .collect();
    let role_lines = roles.iter().map(Vec::len).max().unwrap_or_default();
    let height = NAME_HEIGHT + ROLE_HEIGHT * f64::from(u8::try_from(role_lines).unwrap_or(2));
    let drawing = arrange(&graph, height);
    let mut svg = svg_start(&drawing);
    for Edge { from, to, is_mutual, path } in &drawing.edges {
        let start = if *is_mutual { " marker-start=\"url(#arrow)\"" } else { "" };
        let _infallible = writeln!(
            svg,
            "<path class=\"edge\" data-from=\"{from}\" data-to=\"{to}\" d=\"{path}\"\
             {start} marker-end=\"url(#arrow)\"/>"
        );
    }
    for (at, component) in drawn.iter().enumerate() {
        let centre = drawing.centres[at];
        let name = names[at];
        let roles = &roles[at];
        node(&mut svg, &Node { at, component, name, roles, centre, height }, components);
    }
    svg.push_str("</svg>");
    let caption = caption(&graph, drawn);
    format!(
        "<figure>\n<div class=\"canvas\" tabindex=\"0\" role=\"group\" \
         aria-label=\"Diagram of the components; plus, minus and zero zoom it\">\n{svg}\n</div>\n\
         <div class=\"tools\" hidden>\
         <button type=\"button\" data-zoom=\"out\" aria-label=\"Zoom out\">−</button>\
         <button type=\"button\" data-zoom=\"in\" aria-label=\"Zoom in\">+</button>\
         <button type=\"button\" data-zoom=\"fit\">Fit</button></div>\n\
         <figcaption>{caption}</figcaption>\n</figure>\n"
    )
}

fn svg_start(drawing: &Drawing) -> String {
    let width = drawing.width.ceil();
    let height = drawing.height.ceil();
    format!(
        "<svg class=\"graph\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"group\" \
         aria-label=\"Components and their dependencies\">\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 0L8 4L0 8z\"/>\
         </marker></defs>\n"
    )
}

fn caption(graph: &ComponentGraph, drawn: &[Component]) -> String {
    let mut parts = vec!["An arrow points to a dependency.".to_owned()];
    for (kind, explanation) in [
        ("program", "A thick border marks a program."),
        ("module", "A dashed border marks a module."),
    ] {
        let others = drawn.iter().any(|c| c.kind != kind);
        if others && drawn.iter().any(|c| c.kind == kind) {
            parts.push(explanation.to_owned());
        }
    }
    if graph.edges.is_empty() {
        parts[0] = "No dependencies between components are known.".to_owned();
    }
    parts.extend(graph.omissions());
    parts.join(" ")
}

/// Box of a component.
struct Node<'a> {
    at: usize,
    component: &'a Component,
    name: &'a str,
    roles: &'a [String],
    centre: Point,
    height: f64,
}

fn node(svg: &mut String, node: &Node<'_>, all: &[Component]) {
    let Node { at, component, name, roles, centre, height } = node;
    let class = match component.kind.as_str() {
        "program" => "program",
        "module" => "module",
        _ => "library",
    };
    let dependencies = facts::dependency_names(all, component).join(", ");
    let mut title = format!("{}: {}", facts::name(component), component.role);
    if !dependencies.is_empty() {
        title = format!("{title}; depends on {dependencies}");
    }
    let left = centre.x - BOX_WIDTH / 2.0;
    let top = centre.y - height / 2.0;
    let name = plain(&facts::single_line(name));
    let text_x = round(left + 12.0);
    let _infallible = write!(
        svg,
        "<a href=\"#c-{at}\" class=\"{class}\" data-node=\"{at}\"><title>{}</title>\
         <rect x=\"{}\" y=\"{}\" width=\"{BOX_WIDTH}\" height=\"{height}\" rx=\"6\"/>\
         <text x=\"{text_x}\" y=\"{}\">{}</text>",
        text(&title),
        round(left),
        round(top),
        round(top + 24.0),
        escape(&cells::fit(&name, NAME_CELLS)),
    );
    for (line, role) in (0_u8..).zip(*roles) {
        let y = round(top + 42.0 + ROLE_HEIGHT * f64::from(line));
        let _infallible =
            write!(svg, "<text class=\"role\" x=\"{text_x}\" y=\"{y}\">{}</text>", escape(role));
    }
    svg.push_str("</a>\n");
}

/// Rounds to tenths of a pixel, so that platforms agree.
fn round(value: f64) -> f64 {
    let rounded = (value * 10.0).round() / 10.0;
    // Negative zero is formatted with its sign.
    if rounded == 0.0 { 0.0 } else { rounded }
}

/// Arranges connected boxes in layers, and the others in a grid below. Layers go from left to right
/// if that fits the page, else in the direction that is narrower.
fn arrange(graph: &ComponentGraph, box_height: f64) -> Drawing {
    let has_edge: Vec<bool> =
        (0..graph.nodes).map(|at| graph.edges.iter().any(|(a, b)| *a == at || *b == at)).collect();
    let mut drawing = layered(graph, &has_edge, box_height, RankDir::LR);
    if drawing.width > COLUMN_WIDTH {
        let upright = layered(graph, &has_edge, box_height, RankDir::TB);
        if upright.width < drawing.width {
            drawing = upright;
        }
    }
    let isolated: Vec<usize> = (0..graph.nodes).filter(|at| !has_edge[*at]).collect();
    let step = BOX_WIDTH + GAP;
    let columns = grid_columns(drawing.width, isolated.len(), isolated.len() == graph.nodes);
    let top = if drawing.height > 0.0 { drawing.height } else { GAP };
    let mut column = 0_u16;
    let mut row = 0_u16;
    for at in isolated {
        let x = GAP + step * f64::from(column) + BOX_WIDTH / 2.0;
        let y = top + (box_height + GAP) * f64::from(row) + box_height / 2.0;
        drawing.centres[at] = Point { x, y };
        drawing.width = drawing.width.max(x + BOX_WIDTH / 2.0 + GAP);
        drawing.height = drawing.height.max(y + box_height / 2.0 + GAP);
        column += 1;
        if usize::from(column) == columns {
            column = 0;
            row += 1;
        }
    }
    drawing
}

/// Columns of the grid: as many as fit below the layers.
fn grid_columns(width: f64, boxes: usize, is_alone: bool) -> usize {
    if is_alone {
        return boxes.clamp(1, GRID_COLUMNS);
    }
    let mut columns = 1_u16;
    while GAP + (BOX_WIDTH + GAP) * f64::from(columns + 1) <= width {
        columns += 1;
    }
    usize::from(columns)
}

fn layered(
    graph: &ComponentGraph,
    has_edge: &[bool],
    box_height: f64,
    direction: RankDir,
) -> Drawing {
    let options = GraphOptions { directed: true, multigraph: false, compound: false };
    let mut layers: Graph<NodeLabel, EdgeLabel> = Graph::with_options(options);
    // Numbers of one width: the library orders nodes by their names in a few steps.
    let name = |at: usize| format!("{at:04}");
    for at in (0..graph.nodes).filter(|at| has_edge[*at]) {
        let label = NodeLabel { width: BOX_WIDTH, height: box_height, ..NodeLabel::default() };
        layers.set_node(name(at), Some(label));
    }
    // Two components that depend on each other share a line with two arrows.
    let is_mutual = |edge: &(usize, usize)| graph.edges.contains(&(edge.1, edge.0));
    let lines: Vec<(usize, usize)> =
        graph.edges.iter().copied().filter(|edge| edge.0 < edge.1 || !is_mutual(edge)).collect();
    for (from, to) in &lines {
        layers.set_edge(name(*from), name(*to), Some(EdgeLabel::default()), None);
    }
    let mut drawing = Drawing {
        centres: vec![Point { x: 0.0, y: 0.0 }; graph.nodes],
        edges: Vec::new(),
        width: 0.0,
        height: 0.0,
    };
    if graph.edges.is_empty() {
        return drawing;
    }
    let options = LayoutOptions {
        rankdir: direction,
        nodesep: GAP,
        ranksep: LAYER_GAP,
        edgesep: 12.0,
        marginx: GAP,
        marginy: GAP,
        ..LayoutOptions::default()
    };
    layout(&mut layers, Some(options));
    for at in (0..graph.nodes).filter(|at| has_edge[*at]) {
        let label = layers.node(&name(at));
        let x = label.and_then(|label| label.x).unwrap_or_default();
        let y = label.and_then(|label| label.y).unwrap_or_default();
        drawing.centres[at] = Point { x, y };
        drawing.extend(Point { x: x + BOX_WIDTH / 2.0, y: y + box_height / 2.0 });
    }
    let is_upright = direction == RankDir::TB;
    let size = if is_upright { box_height } else { BOX_WIDTH };
    for edge in &lines {
        let (from, to) = *edge;
        let label = layers.edge(&name(from), &name(to), None);
        let bends: Vec<Point> = label
            .map(|label| label.points.iter().map(|p| Point { x: p.x, y: p.y }).collect())
            .unwrap_or_default();
        for bend in &bends {
            drawing.extend(*bend);
        }
        let ends = [drawing.centres[from], drawing.centres[to]];
        let path = match is_upright {
            true => path(&route(ends, &bends, &drawing.centres, size), false),
            false => {
                let flip =
                    |points: &[Point]| points.iter().map(|p| p.flipped()).collect::<Vec<_>>();
                let ends = ends.map(Point::flipped);
                path(&route(ends, &flip(&bends), &flip(&drawing.centres), size), true)
            }
        };
        drawing.edges.push(Edge { from, to, is_mutual: is_mutual(edge), path });
    }
    drawing
}

impl Drawing {
    /// Grows the drawing so that it contains a point and the margin.
    fn extend(&mut self, point: Point) {
        self.width = self.width.max(point.x + GAP);
        self.height = self.height.max(point.y + GAP);
    }
}

impl Point {
    /// Exchanges the axes: layers from left to right become layers from top to bottom.
    fn flipped(self) -> Self {
        Self { x: self.y, y: self.x }
    }
}

/// Points of an edge between layers from top to bottom, in pairs: each second stretch crosses a
/// layer straight, so that the line bends only between layers and touches no box.
fn route(ends: [Point; 2], bends: &[Point], centres: &[Point], size: f64) -> Vec<Point> {
    let [from, to] = ends;
    let sign = if to.y >= from.y { 1.0 } else { -1.0 };
    let half = size / 2.0 * sign;
    let inner = bends.get(1..bends.len().saturating_sub(1)).unwrap_or_default();
    let crossed: Vec<Point> = inner
        .iter()
        .copied()
        .filter(|bend| centres.iter().any(|centre| (centre.y - bend.y).abs() < 1.0))
        .filter(|bend| (bend.y - from.y) * sign > 1.0 && (to.y - bend.y) * sign > 1.0)
        .collect();
    // Ends lean towards the next point, so that edges of a box are apart.
    let port = |centre: Point, next: Point| {
        centre.x + ((next.x - centre.x) * 0.15).clamp(-PORT_SPREAD, PORT_SPREAD)
    };
    let first = port(from, crossed.first().copied().unwrap_or(to));
    let last = port(to, crossed.last().copied().unwrap_or(from));
    let mut points = vec![Point { x: first, y: from.y + half }];
    for bend in crossed {
        points.push(Point { x: bend.x, y: bend.y - half });
        points.push(Point { x: bend.x, y: bend.y + half });
    }
    points.push(Point { x: last, y: to.y - half });
    points
}

/// Renders a route as the data of a path; `is_flipped` exchanges the axes.
fn path(points: &[Point], is_flipped: bool) -> String {
    let format = |point: Point| {
        let point = if is_flipped { point.flipped() } else { point };
        format!("{} {}", round(point.x), round(point.y))
    };
    let mut data = String::new();
    for (at, pair) in points.chunks_exact(2).enumerate() {
        let (from, to) = (pair[0], pair[1]);
        let middle = (from.y + to.y) / 2.0;
        let start = if at == 0 { "M" } else { "L" };
        let near_start = Point { x: from.x, y: middle };
        let near_end = Point { x: to.x, y: middle };
        let _infallible = write!(
            data,
            "{start}{}C{} {} {}",
            format(from),
            format(near_start),
            format(near_end),
            format(to)
        );
    }
    data
}
