// The diagram of the components: their layout in layers, and its SVG. Text is always inserted as text.
import { el, fitted, wrapped } from "./dom.js";

const NS = "http://www.w3.org/2000/svg";
/** More components are unreadable. */
const MAX_NODES = 24;
const WIDTH = 226;
const NAME_HEIGHT = 38;
const ROLE_HEIGHT = 16;
const GAP = 20;
const LAYER_GAP = 60;
/** Room of an edge that crosses a layer. */
const LANE = 12;
/** A wider diagram is drawn from top to bottom, if that is narrower. */
const PAGE_WIDTH = 1100;
const SWEEPS = 12;

function svg(tag, attributes, ...children) {
  const node = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Renders the figure; `open(index)` shows the details of a component. */
export function diagram(components, names, open) {
  const drawn = components.slice(0, MAX_NODES);
  const graph = edgesOf(components, drawn.length);
  const roles = drawn.map((component) => wrapped(component.role, 29, 2));
  const height = NAME_HEIGHT + ROLE_HEIGHT * Math.max(0, ...roles.map((lines) => lines.length));
  const drawing = arrange(drawn.length, graph.edges, height);
  const arrow = svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" },
    svg("path", { d: "M0 0L8 4L0 8z" }));
  const picture = svg("svg", { class: "graph", width: drawing.width, height: drawing.height, viewBox: `0 0 ${drawing.width} ${drawing.height}`,
    role: "group", "aria-label": "Components and their dependencies" }, svg("defs", {}, arrow));
  const paths = drawing.lines.map(({ from, to, mutual, d }) => {
    const path = svg("path", { class: "edge", d, "marker-end": "url(#arrow)", ...(mutual ? { "marker-start": "url(#arrow)" } : {}) });
    return { from, to, path };
  });
  const boxes = drawn.map((component, at) => box(component, names[at], roles[at], drawing.centres[at], height));
  boxes.forEach((node, at) => bind(node, at, boxes, paths, open));
  picture.append(...paths.map((line) => line.path), ...boxes);
  // Shrunk to the page as far as its text stays readable; the rest is scrolled.
  picture.style.width = `clamp(${Math.round(drawing.width * 0.75)}px, 100%, ${drawing.width}px)`;
  picture.style.height = "auto";
  const canvas = el("div", "canvas", picture);
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "group");
  canvas.setAttribute("aria-label", "Diagram of the components");
  // The first component is visible without scrolling.
  requestAnimationFrame(() => {
    canvas.scrollLeft = drawing.centres[0].x * picture.getBoundingClientRect().width / drawing.width - canvas.clientWidth / 2;
  });
  return el("figure", "", canvas, el("figcaption", "faint", caption(graph, drawn, components.length)));
}

function box(component, name, roles, centre, height) {
  const kind = ["program", "module"].includes(component.kind) ? component.kind : "library";
  const x = centre.x - WIDTH / 2;
  const y = centre.y - height / 2;
  const label = fitted([component.name || component.path, component.role].filter(Boolean).join(": "), 200);
  return svg("g", { class: `box ${kind}`, role: "link", tabindex: 0 },
    svg("title", {}, label),
    svg("rect", { x, y, width: WIDTH, height, rx: 6 }),
    svg("text", { x: x + 12, y: y + 24 }, fitted(name, 22)),
    ...roles.map((line, at) => svg("text", { class: "role", x: x + 12, y: y + 42 + ROLE_HEIGHT * at }, line)));
}

/** Opens a box by click and Enter, and marks its edges and neighbours. */
function bind(node, at, boxes, paths, open) {
  const near = new Set([at]);
  for (const { from, to } of paths) if (from === at || to === at) near.add(from).add(to);
  const mark = (on) => {
    boxes.forEach((other, index) => other.classList.toggle("away", on && !near.has(index)));
    for (const { from, to, path } of paths) {
      const touches = on && (from === at || to === at);
      path.classList.toggle("near", touches);
      path.classList.toggle("away", on && !touches);
    }
  };
  node.addEventListener("pointerenter", () => mark(true));
  node.addEventListener("pointerleave", () => mark(false));
  node.addEventListener("focus", () => mark(true));
  node.addEventListener("blur", () => mark(false));
  node.addEventListener("click", () => open(at));
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.stopPropagation();
    open(at);
  });
}

function caption(graph, drawn, total) {
  const parts = [graph.edges.length ? "An arrow points to a dependency." : "No dependencies between components are known."];
  const kinds = new Set(drawn.map((component) => component.kind));
  if (kinds.has("program") && kinds.size > 1) parts.push("A thick border marks a program.");
  if (kinds.has("module") && kinds.size > 1) parts.push("A dashed border marks a module.");
  if (total > drawn.length) parts.push(`The first ${drawn.length} of ${total} components.`);
  if (graph.implied) parts.push(`${graph.implied} ${graph.implied === 1 ? "dependency that follows from others is" : "dependencies that follow from others are"} not drawn.`);
  return parts.join(" ");
}

/** Returns the dependencies between drawn components; in a dense graph, without those that follow from others. */
function edgesOf(components, nodes) {
  const positions = new Map();
  components.forEach((component, at) => positions.has(component.path) || positions.set(component.path, at));
  const seen = new Set();
  let edges = [];
  for (let from = 0; from < nodes; from += 1) {
    for (const path of components[from].dependsOn ?? []) {
      const to = positions.get(path);
      if (to === undefined || to === from || to >= nodes || seen.has(from * nodes + to)) continue;
      seen.add(from * nodes + to);
      edges.push([from, to]);
    }
  }
  const before = edges.length;
  if (before * 10 > nodes * 12) {
    for (const edge of [...edges]) {
      const others = edges.filter((other) => other !== edge);
      if (reaches(others, edge[0], edge[1]) && !reaches(edges, edge[1], edge[0])) edges = others;
    }
  }
  return { edges, implied: before - edges.length };
}

function reaches(edges, from, to) {
  const visited = new Set();
  const pending = [from];
  while (pending.length) {
    const at = pending.pop();
    if (at === to) return true;
    if (visited.has(at)) continue;
    visited.add(at);
    for (const [a, b] of edges) if (a === at) pending.push(b);
  }
  return false;
}

/** Places connected boxes in layers, and the others in a grid below. */
function arrange(nodes, edges, height) {
  const linked = new Set(edges.flat());
  let drawing = layered(nodes, edges, linked, height, false);
  if (drawing.width > PAGE_WIDTH) {
    const upright = layered(nodes, edges, linked, height, true);
    if (upright.width < drawing.width) drawing = upright;
  }
  const single = [...Array(nodes).keys()].filter((at) => !linked.has(at));
  const fitting = Math.floor((Math.max(drawing.width, PAGE_WIDTH * 0.9) - GAP) / (WIDTH + GAP));
  const columns = Math.max(1, Math.min(single.length, fitting));
  const top = edges.length ? drawing.height : GAP;
  single.forEach((at, index) => {
    const x = GAP + (WIDTH + GAP) * (index % columns) + WIDTH / 2;
    const y = top + (height + GAP) * Math.floor(index / columns) + height / 2;
    drawing.centres[at] = { x, y };
    drawing.width = Math.max(drawing.width, x + WIDTH / 2 + GAP);
    drawing.height = Math.max(drawing.height, y + height / 2 + GAP);
  });
  return drawing;
}

/** Numbers the layers: each node is below all that depend on it, unless a cycle is in between. */
function ranks(nodes, edges) {
  const state = Array(nodes).fill(0);
  const forward = [];
  const visit = (at) => {
    state[at] = 1;
    for (const [from, to] of edges) {
      if (from !== at) continue;
      // An edge back into the path would be part of a cycle.
      forward.push(state[to] === 1 ? [to, from] : [from, to]);
      if (state[to] === 0) visit(to);
    }
    state[at] = 2;
  };
  for (let at = 0; at < nodes; at += 1) if (!state[at] && !edges.some(([, to]) => to === at)) visit(at);
  for (let at = 0; at < nodes; at += 1) if (!state[at]) visit(at);
  const rank = Array(nodes).fill(0);
  for (let round = 0; round < nodes; round += 1) {
    let moved = false;
    for (const [from, to] of forward) {
      if (rank[to] > rank[from]) continue;
      rank[to] = rank[from] + 1;
      moved = true;
    }
    if (!moved) break;
  }
  // A node that nothing depends on moves close to what it depends on.
  for (let at = 0; at < nodes; at += 1) {
    const below = forward.filter(([from]) => from === at).map(([, to]) => rank[to]);
    if (below.length && !forward.some(([, to]) => to === at)) rank[at] = Math.min(...below) - 1;
  }
  return rank;
}

/** Layers of boxes, and of lanes for edges that cross them. `along` is the position in a layer, `across` that of the layer. */
function layered(nodes, edges, linked, height, upright) {
  const rank = ranks(nodes, edges);
  const along = upright ? WIDTH : height;
  const across = upright ? height : WIDTH;
  const items = [...Array(nodes).keys()].map((at) => ({ at, rank: rank[at], size: along, near: [[], []] }));
  const chains = [];
  for (const [from, to] of edges) {
    const mutual = edges.some(([a, b]) => a === to && b === from);
    if (mutual && from > to) continue;
    const chain = [items[from]];
    const step = Math.sign(rank[to] - rank[from]);
    for (let between = rank[from] + step; step && between !== rank[to]; between += step) chain.push({ rank: between, size: LANE, near: [[], []] });
    chain.push(items[to]);
    for (let at = 1; at < chain.length; at += 1) {
      const [upper, lower] = chain[at].rank > chain[at - 1].rank ? [chain[at - 1], chain[at]] : [chain[at], chain[at - 1]];
      upper.near[1].push(lower);
      lower.near[0].push(upper);
    }
    chains.push({ from, to, mutual, chain });
  }
  const layers = [];
  const all = new Set([...items.filter((item) => linked.has(item.at)), ...chains.flatMap(({ chain }) => chain)]);
  for (const item of all) (layers[item.rank] ??= []).push(item);
  orderLayers(layers);
  const lowest = Math.min(0, ...[...all].map((item) => item.along - item.size / 2));
  const centre = (item) => {
    const first = item.along - lowest + GAP;
    const second = GAP + across / 2 + item.rank * (across + LAYER_GAP);
    return upright ? { x: first, y: second } : { x: second, y: first };
  };
  const drawing = { centres: Array(nodes), lines: [], width: 0, height: 0 };
  for (const item of all) {
    const { x, y } = centre(item);
    if (item.at !== undefined) drawing.centres[item.at] = { x, y };
    drawing.width = Math.max(drawing.width, Math.ceil(x + (item.at === undefined ? 0 : WIDTH / 2) + GAP));
    drawing.height = Math.max(drawing.height, Math.ceil(y + (item.at === undefined ? 0 : height / 2) + GAP));
  }
  drawing.lines = chains.map(({ from, to, mutual, chain }) => ({ from, to, mutual, d: route(chain.map(centre), across, upright) }));
  return drawing;
}

/** Orders each layer so that few edges cross, and places its items near those that they are linked with. */
function orderLayers(layers) {
  const mean = (values, none) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : none);
  for (const layer of layers) layer.forEach((item, at) => { item.order = at; });
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const side = sweep % 2;
    for (const layer of side ? [...layers].reverse() : layers) {
      for (const item of layer) item.wish = mean(item.near[side].map((other) => other.order / (layers[other.rank].length || 1)), item.order / layer.length);
      layer.sort((a, b) => a.wish - b.wish);
      layer.forEach((item, at) => { item.order = at; });
    }
  }
  for (const layer of layers) {
    const total = layer.reduce((sum, item) => sum + item.size + GAP, -GAP);
    let next = -total / 2;
    for (const item of layer) {
      item.along = next + item.size / 2;
      next += item.size + GAP;
    }
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      const wishes = layer.map((item) => mean([...item.near[0], ...item.near[1]].map((other) => other.along), item.along));
      let floor = -Infinity;
      layer.forEach((item, at) => {
        item.along = Math.max(wishes[at], floor + item.size / 2);
        floor = item.along + item.size / 2 + GAP;
      });
      const shift = mean(layer.map((item, at) => wishes[at] - item.along), 0);
      for (const item of layer) item.along += shift;
    }
  }
}

/** Renders an edge: it bends between layers and crosses them straight. */
function route(points, across, upright) {
  const half = across / 2;
  const flip = ({ x, y }) => (upright ? { x: y, y: x } : { x, y });
  const show = (x, y) => (upright ? `${round(y)} ${round(x)}` : `${round(x)} ${round(y)}`);
  const all = points.map(flip);
  let d = "";
  for (let at = 1; at < all.length; at += 1) {
    const [a, b] = [all[at - 1], all[at]];
    const sign = b.x >= a.x ? 1 : -1;
    const [from, to] = [a.x + half * sign, b.x - half * sign];
    const middle = (from + to) / 2;
    d += `${at === 1 ? "M" : "L"}${show(from, a.y)}C${show(middle, a.y)} ${show(middle, b.y)} ${show(to, b.y)}`;
  }
  return d;
}

function round(value) {
  return Math.round(value * 10) / 10;
}
