// Parses documents with the real Mermaid and a CommonMark parser with GitHub's extensions, and checks that their text is no markup: markdown.mjs FILE…
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.cwd()}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { JSDOM } = require("jsdom");
const { window } = new JSDOM("<!doctype html><body></body>");
Object.assign(globalThis, { window, document: window.document });
const mermaid = (await import(pathToFileURL(`${process.cwd()}/node_modules/mermaid/dist/mermaid.core.mjs`))).default;
const { micromark } = await load("micromark");
const { gfm, gfmHtml } = await load("micromark-extension-gfm");
mermaid.initialize({ startOnLoad: false });

const ALLOWED = new Set("A CODE H1 H2 LI OL P PRE TABLE TBODY TD TH THEAD TR UL".split(" "));
const problems = [];
let diagrams = 0;
for (const path of process.argv.slice(2)) {
  const text = readFileSync(path, "utf8");
  for (const [, diagram] of text.matchAll(/^```mermaid\n([\s\S]*?)^```$/gm)) {
    diagrams += 1;
    const lines = diagram.split("\n");
    const expected = [lines.filter((line) => line.endsWith('"]')).length, lines.filter((line) => line.includes(" --> ")).length];
    try {
      await mermaid.parse(diagram);
      const { db } = await mermaid.mermaidAPI.getDiagramFromText(diagram);
      const nodes = [...db.getVertices().values()];
      const actual = [nodes.length, db.getEdges().length];
      if (`${actual}` !== `${expected}`) problems.push(`${path}: ${actual} nodes and edges, not ${expected}`);
      if (nodes.some((node) => node.link || node.haveCallback)) problems.push(`${path}: a node has a link`);
    } catch (error) {
      problems.push(`${path}: ${String(error).slice(0, 300)}`);
    }
  }
  const html = micromark(text, { extensions: [gfm()], htmlExtensions: [gfmHtml()], allowDangerousHtml: true });
  const { body } = new JSDOM(html).window.document;
  const elements = [...body.querySelectorAll("*")];
  for (const element of elements) {
    // Addresses in a text become links by themselves.
    const isLink = element.tagName === "A" && !decodeURI(element.getAttribute("href")).endsWith(element.textContent);
    if (!ALLOWED.has(element.tagName) || isLink) problems.push(`${path}: ${element.outerHTML.slice(0, 200)}`);
  }
  if (body.querySelectorAll("h1").length !== 1) problems.push(`${path}: not one title`);
}
for (const problem of problems) console.error(problem);
console.log(`${process.argv.length - 2} documents, ${diagrams} diagrams, ${problems.length} problems`);
process.exit(problems.length ? 1 : 0);
