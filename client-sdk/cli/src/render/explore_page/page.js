'use strict';
for (const figure of document.querySelectorAll('figure')) {
  const box = figure.querySelector('.canvas');
  const svg = figure.querySelector('.graph');
  const tools = figure.querySelector('.tools');
  if (!box || !svg || !tools) continue;
  const natural = svg.viewBox.baseVal.width;
  const resize = (width, x, y) => {
    const before = svg.getBoundingClientRect();
    const next = Math.min(Math.max(width, natural / 5), natural * 4);
    const atX = (x - before.left) / before.width;
    const atY = (y - before.top) / before.height;
    svg.style.width = next + 'px';
    const after = svg.getBoundingClientRect();
    box.scrollLeft += after.left + atX * after.width - x;
    box.scrollTop += after.top + atY * after.height - y;
  };
  const centre = () => {
    const frame = box.getBoundingClientRect();
    return [frame.left + frame.width / 2, frame.top + frame.height / 2];
  };
  const zoom = (factor, at = centre()) => resize(svg.getBoundingClientRect().width * factor, ...at);
  const fit = () => resize(box.clientWidth, ...centre());
  const act = { in: () => zoom(1.25), out: () => zoom(0.8), fit };
  tools.hidden = false;
  // Shrunk to the window as far as its text stays readable; the rest is scrolled.
  svg.style.width = Math.min(natural, Math.max(box.clientWidth, natural * 0.75)) + 'px';
  const first = svg.querySelector('a');
  if (first && box.scrollWidth > box.clientWidth) {
    const at = first.getBoundingClientRect();
    const frame = box.getBoundingClientRect();
    box.scrollLeft += at.left + at.width / 2 - frame.left - frame.width / 2;
  }
  tools.addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (button) act[button.dataset.zoom]();
  });
  box.addEventListener('keydown', (event) => {
    const action = { '+': act.in, '=': act.in, '-': act.out, 0: act.fit }[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
  box.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.15 : 0.87, [event.clientX, event.clientY]);
  }, { passive: false });
  let drag = null;
  box.addEventListener('pointerdown', (event) => {
    if (event.pointerType !== 'mouse' || event.button !== 0) return;
    drag = { x: event.clientX, y: event.clientY, left: box.scrollLeft, top: box.scrollTop, moved: false };
  });
  addEventListener('pointermove', (event) => {
    if (!drag) return;
    const dx = event.clientX - drag.x;
    const dy = event.clientY - drag.y;
    if (!drag.moved && Math.hypot(dx, dy) < 5) return;
    drag.moved = true;
    box.classList.add('dragging');
    box.scrollLeft = drag.left - dx;
    box.scrollTop = drag.top - dy;
  });
  let suppress = false;
  addEventListener('pointerup', () => {
    suppress = Boolean(drag && drag.moved);
    drag = null;
    box.classList.remove('dragging');
    setTimeout(() => { suppress = false; }, 0);
  });
  box.addEventListener('dragstart', (event) => event.preventDefault());
  box.addEventListener('click', (event) => { if (suppress) event.preventDefault(); }, true);
  const nodes = [...svg.querySelectorAll('a')];
  const edges = [...svg.querySelectorAll('.edge')];
  const focus = (id) => {
    const near = new Set([id]);
    for (const edge of edges) {
      const touches = id !== null && (edge.dataset.from === id || edge.dataset.to === id);
      edge.classList.toggle('near', touches);
      edge.classList.toggle('away', id !== null && !touches);
      if (touches) near.add(edge.dataset.from).add(edge.dataset.to);
    }
    for (const node of nodes) node.classList.toggle('away', id !== null && !near.has(node.dataset.node));
  };
  for (const node of nodes) {
    node.addEventListener('pointerenter', () => focus(node.dataset.node));
    node.addEventListener('focus', () => focus(node.dataset.node));
    node.addEventListener('pointerleave', () => focus(null));
    node.addEventListener('blur', () => focus(null));
  }
}
