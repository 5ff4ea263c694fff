//! The diagram of the components: an SVG with a link to the section of each component.

use std::fmt::Write as _;

use cairn_protocol::explore::Component;
use dagre::{
    EdgeLabel, LayoutOptions, NodeLabel, RankDir,
    graph::{Graph, GraphOptions},
    layout,
};

use super::markup::{escape, text};
use crate::render::{cells, explore_facts as facts, explore_graph::ComponentGraph, sanitize::plain};

/// Width of a box in pixels.
const BOX_WIDTH: f64 = 216.0;
/// Height of a box with a name alone.
const NAME_HEIGHT: f64 = 38.0;
/// Height of each line of a role.
const ROLE_HEIGHT: f64 = 16.0;
/// Space around the diagram, and between boxes of a grid.
const GAP: f64 = 20.0;
/// Cells of a name in a box; a cell of its font is 8 pixels wide.
const NAME_CELLS: usize = 24;
/// Cells of a line of a role in a box.
const ROLE_CELLS: usize = 31;
/// Columns of a grid of boxes without edges.
const GRID_COLUMNS: usize = 4;
/// Width from which a diagram is scrolled on small screens instead of shrunk.
const WIDE: f64 = 720.0;
/// Width from which a diagram is scrolled on tablets too.
const WIDER: f64 = 1300.0;

/// Point of an edge, or centre of a box.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    x: f64,
    y: f64,
}

/// Positions of boxes and edges.
struct Drawing {
    centres: Vec<Point>,
    edges: Vec<((usize, usize), Vec<Point>)>,
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
    let roles: Vec<Vec<String>> = drawn
        .iter()
        .map(|c| cells::wrap_at_most(&plain(&facts::single_line(&c.role)), ROLE_CELLS, 2))
        .collect();
    let role_lines = roles.iter().map(Vec::len).max().unwrap_or_default();
    let height = NAME_HEIGHT + ROLE_HEIGHT * f64::from(u8::try_from(role_lines).unwrap_or(2));
    let drawing = arrange(&graph, height);
    let mut svg = svg_start(&drawing);
    for ((from, to), points) in &drawing.edges {
        let path = curve(points);
        let _infallible = write!(
            svg,
            "<path class=\"edge\" data-from=\"{from}\" data-to=\"{to}\" d=\"{path}\" \
             marker-end=\"url(#arrow)\"/>\n"
        );
    }
    for (at, component) in drawn.iter().enumerate() {
        node(&mut svg, at, component, &roles[at], drawing.centres[at], height, components);
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
    let class = match drawing.width {
        width if width > WIDER => "graph wider",
        width if width > WIDE => "graph wide",
        _ => "graph",
    };
    let (width, height) = (drawing.width.ceil(), drawing.height.ceil());
    format!(
        "<svg class=\"{class}\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"group\" \
         aria-label=\"Components and their dependencies\">\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n"
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

fn node(
    svg: &mut String,
    at: usize,
    component: &Component,
    roles: &[String],
    centre: Point,
    height: f64,
    all: &[Component],
) {
    let class = match component.kind.as_str() {
        "program" => "program",
        "module" => "module",
        _ => "library",
    };
    let name = plain(&facts::single_line(facts::name(component)));
    let dependencies = facts::dependency_names(all, component).join(", ");
    let mut title = format!("{name}: {}", facts::single_line(&component.role));
    if !dependencies.is_empty() {
        title = format!("{title}; depends on {dependencies}");
    }
    let (left, top) = (centre.x - BOX_WIDTH / 2.0, centre.y - height / 2.0);
    let short = escape(&cells::fit(&name, NAME_CELLS));
    let text_x = round(left + 12.0);
    let _infallible = write!(
        svg,
        "<a href=\"#c-{at}\" class=\"{class}\" data-node=\"{at}\"><title>{}</title>\
         <rect x=\"{}\" y=\"{}\" width=\"{BOX_WIDTH}\" height=\"{height}\" rx=\"6\"/>\
         <text x=\"{text_x}\" y=\"{}\">{short}</text>",
        text(&title),
        round(left),
        round(top),
        round(top + 24.0),
    );
    for (line, role) in (0_u8..).zip(roles) {
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

/// Arranges connected boxes in layers from left to right, and the others in a grid below.
fn arrange(graph: &ComponentGraph, box_height: f64) -> Drawing {
    let has_edge: Vec<bool> =
        (0..graph.nodes).map(|at| graph.edges.iter().any(|(a, b)| *a == at || *b == at)).collect();
    let mut drawing = layered(graph, &has_edge, box_height);
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

fn layered(graph: &ComponentGraph, has_edge: &[bool], box_height: f64) -> Drawing {
    let options = GraphOptions { directed: true, multigraph: false, compound: false };
    let mut layers: Graph<NodeLabel, EdgeLabel> = Graph::with_options(options);
    // Numbers of one width: the library orders nodes by their names in a few steps.
    let name = |at: usize| format!("{at:04}");
    for at in (0..graph.nodes).filter(|at| has_edge[*at]) {
        let label = NodeLabel { width: BOX_WIDTH, height: box_height, ..NodeLabel::default() };
        layers.set_node(name(at), Some(label));
    }
    for (from, to) in &graph.edges {
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
        rankdir: RankDir::LR,
        nodesep: GAP,
        ranksep: 56.0,
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
    for (from, to) in &graph.edges {
        let points: Vec<Point> = layers
            .edge(&name(*from), &name(*to), None)
            .map(|edge| edge.points.iter().map(|p| Point { x: p.x, y: p.y }).collect())
            .unwrap_or_default();
        for point in &points {
            drawing.extend(*point);
        }
        drawing.edges.push(((*from, *to), points));
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

/// Renders a smooth line through the first and last point, guided by the others.
fn curve(points: &[Point]) -> String {
    let Some((first, rest)) = points.split_first() else { return String::new() };
    let mut path = format!("M{} {}", round(first.x), round(first.y));
    for (at, point) in rest.iter().enumerate() {
        let _infallible = match rest.get(at + 1) {
            Some(next) => {
                let x = round((point.x + next.x) / 2.0);
                let y = round((point.y + next.y) / 2.0);
                write!(path, "Q{} {} {x} {y}", round(point.x), round(point.y))
            }
            None => write!(path, "L{} {}", round(point.x), round(point.y)),
        };
    }
    path
}
