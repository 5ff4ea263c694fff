// An editor: the ACP client of npm's `@agentclientprotocol/sdk`, over `cairn acp`.
//
// Usage: editor.mjs BINARY FOLDER SCENARIO [SESSION | PROGRAM SCRIPT]
// Plays a scenario and prints one JSON object with what came. The package checks each message with its
// schemas; the answers to requests are checked here with the same ones.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import * as schemas from "./node_modules/@agentclientprotocol/sdk/dist/v1/schema/zod.gen.js";

const [binary, folder, scenario, ...more] = process.argv.slice(2);
const { agent, client } = acp.methods;

const RESPONSES = {
  [agent.initialize]: schemas.zInitializeResponse,
  [agent.authenticate]: schemas.zAuthenticateResponse,
  [agent.session.new]: schemas.zNewSessionResponse,
  [agent.session.load]: schemas.zLoadSessionResponse,
  [agent.session.list]: schemas.zListSessionsResponse,
  [agent.session.prompt]: schemas.zPromptResponse,
  [agent.session.setMode]: schemas.zSetSessionModeResponse,
};

const out = { updates: [], asked: [] };
let answer = { turn: "once", reject: "deny", cancel: null }[scenario];
if (answer === undefined) answer = "once";
let asked;
const waits = new Promise((resolve) => (asked = resolve));

/** The text of the agent, or of another kind of update. */
const text = (kind = "agent_message_chunk") =>
  out.updates
    .filter((update) => update.sessionUpdate === kind)
    .map((update) => update.content.text)
    .join("");

async function request(connection, method, params) {
  const response = await connection.request(method, params);
  RESPONSES[method]?.parse(response);
  return response;
}

/** The code of the error that a request ends with. */
async function refusal(connection, method, params) {
  try {
    await connection.request(method, params);
    return null;
  } catch (error) {
    return error.code;
  }
}

const prompt = (connection, sessionId, words) =>
  request(connection, agent.session.prompt, { sessionId, prompt: [{ type: "text", text: words }] });

const begin = (connection, mcpServers = []) =>
  request(connection, agent.session.new, { cwd: folder, mcpServers });

const scenarios = {
  /** A complete turn with a question to the user, in a session with a server of the editor. */
  async turn(connection) {
    await request(connection, agent.authenticate, { methodId: out.methods[0] });
    out.wrongMethod = await refusal(connection, agent.authenticate, { methodId: "nonsense" });
    const [command, script] = more;
    const created = await begin(connection, [{ name: "peer", command, args: [script], env: [] }]);
    out.session = created.sessionId;
    out.modes = created.modes.availableModes.map((mode) => mode.id);
    out.models = created.configOptions[0].currentValue;
    out.stop = (await prompt(connection, created.sessionId, "write it")).stopReason;
  },

  /** The user refuses. */
  async reject(connection) {
    const created = await begin(connection);
    out.stop = (await prompt(connection, created.sessionId, "write it")).stopReason;
  },

  /** A turn in which nothing is changed. */
  async modes(connection) {
    const { sessionId } = await begin(connection);
    await request(connection, agent.session.setMode, { sessionId, modeId: "dry-run" });
    out.wrongMode = await refusal(connection, agent.session.setMode, { sessionId, modeId: "nonsense" });
    out.stop = (await prompt(connection, sessionId, "write it")).stopReason;
  },

  /** A turn that is stopped while it waits for its user. */
  async cancel(connection) {
    const { sessionId } = await begin(connection);
    const turn = prompt(connection, sessionId, "write it");
    await waits;
    await connection.notify(agent.session.cancel, { sessionId });
    out.stop = (await turn).stopReason;
  },

  /** A session of the past, which is listed, loaded, continued and deleted. */
  async load(connection) {
    const [sessionId] = more;
    const list = async () => {
      const listed = await request(connection, agent.session.list, { cwd: folder });
      return listed.sessions.map((session) => session.sessionId);
    };
    out.listed = await list();
    await request(connection, agent.session.load, { cwd: folder, sessionId, mcpServers: [] });
    out.words = text("user_message_chunk");
    out.said = text();
    out.stop = (await prompt(connection, sessionId, "and now?")).stopReason;
    await connection.request(agent.session.delete, { sessionId });
    out.left = await list();
    const gone = { cwd: folder, sessionId, mcpServers: [] };
    out.gone = await refusal(connection, agent.session.load, gone);
  },
};

const child = spawn(binary, ["acp"], { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
await acp
  .client({ name: "editor" })
  .onNotification(client.session.update, ({ params }) => {
    out.updates.push(params.update);
  })
  .onRequest(client.session.requestPermission, async ({ params }) => {
    const options = params.options.map((option) => [option.optionId, option.kind]);
    out.asked.push({ toolCall: params.toolCall, options });
    asked();
    if (answer === null) await new Promise(() => {});
    return { outcome: { outcome: "selected", optionId: answer } };
  })
  .connectWith(stream, async (connection) => {
    const hello = await request(connection, agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientInfo: { name: "editor", title: "Editor", version: "1" },
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false } },
    });
    out.version = hello.protocolVersion;
    out.methods = hello.authMethods.map((method) => method.id);
    await scenarios[scenario](connection);
  });
out.said ??= text();
process.stdout.write(JSON.stringify(out), () => process.exit(0));
