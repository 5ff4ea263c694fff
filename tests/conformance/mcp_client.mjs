// The official client for TypeScript, over standard input and output: mcp_client.mjs CAIRN ROOT. Prints what came.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [cairn, root] = process.argv.slice(2);
const out = { progress: [] };
const client = new Client({ name: "typescript", version: "0" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  out.asked = request.params.message;
  return { action: "accept", content: { decision: "once" } };
});
const env = { CAIRN_HOME: process.env.CAIRN_HOME, PATH: process.env.PATH, HOME: process.env.HOME };
await client.connect(new StdioClientTransport({ command: cairn, args: ["mcp", "--root", root], env }));
const call = async (name, args) => {
  const onprogress = ({ message }) => out.progress.push(message);
  const result = await client.callTool({ name, arguments: args }, undefined, { onprogress, resetTimeoutOnProgress: true });
  return result.content.map((block) => block.text).join("\n");
};
out.tools = (await client.listTools()).tools.map((tool) => tool.name);
out.search = await call("search", { query: "open ledger", k: 1 });
out.read = await call("read", { path: "sample/store.py" });
out.wrong = await call("search", { query: "x", k: -5 });
out.progress = [];
out.written = await call("write", { path: "new.txt", content: "one\n" });
await client.close();
console.log(JSON.stringify(out));
