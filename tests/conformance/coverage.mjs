// Has OpenRPC's own test tool call a daemon by our document and check every answer: coverage.mjs DOCUMENT ADDRESS TOKEN
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.cwd()}/`);
const coverage = require("@open-rpc/test-coverage/build/coverage").default;
const Made = require("@open-rpc/test-coverage/build/rules/json-schema-faker-rule").default;
const { parseOpenRPCDocument } = require("@open-rpc/schema-utils-js");

const [path, address, token] = process.argv.slice(2);
// Its validator knows no formats of numbers.
const plain = (schema) => JSON.parse(JSON.stringify(schema, (name, value) => (name === "format" && typeof value === "string" ? undefined : value)));
const document = await parseOpenRPCDocument(plain(JSON.parse(readFileSync(path, "utf8"))));
document.servers = [{ name: "daemon", url: `ws://${address}/rpc` }];
// Calls of a client that knows nothing of the daemon. `model.list` asks a server of models, `fleet.status` a broker.
const only = document.methods
  .filter((method) => method["x-right"] === "observe" && method.params.every((param) => !param.required))
  .filter((method) => !["model.list", "fleet.status"].includes(method.name))
  .map((method) => method.name);

const socket = new WebSocket(document.servers[0].url, ["cairn.v1", `bearer.${token}`]);
const waiting = new Map();
socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  waiting.get(message.id)?.(message);
};
await new Promise((resolve, reject) => Object.assign(socket, { onopen: resolve, onerror: () => reject(new Error("no connection")) }));
let next = 0;
const call = (method, params) =>
  new Promise((resolve) => {
    waiting.set(++next, resolve);
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: next, method, params }));
  });
await call("initialize", { protocolVersions: ["1"], client: { name: "coverage", version: "1" } });

// It makes up a value for every parameter, also for those that may be left out and name what is not there.
const named = { symbol: "a" };
const params = { "search.symbols": { query: "a" }, "search.references": named, "search.callers": named, "search.callees": named };
const transport = (_url, method) => call(method, params[method] ?? {});
const run = (openrpcDocument, methods) =>
  coverage({ openrpcDocument, transport, reporters: [], skip: [], only: methods, rules: [new Made({ numCalls: 1 })] });
const calls = await run(document, only);
const wrong = calls.filter((made) => !made.valid).map((made) => `${made.methodName}: ${JSON.stringify(made.error) ?? made.reason ?? made.requestError}`);

// It has to be able to fail: a document that promises what no answer has.
const other = structuredClone(document);
const status = other.methods.find((method) => method.name === "daemon.status");
status.result.schema.required = [...(status.result.schema.required ?? []), "nobodyHasThis"];
const refused = (await run(other, ["daemon.status"])).every((made) => !made.valid);
console.log(JSON.stringify({ methods: only.length, wrong: wrong.map((text) => text.slice(0, 2000)), refusesAnother: refused }));
socket.close();
process.exit(0);
