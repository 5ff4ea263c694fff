// What the TypeScript client says when it is used wrongly. Stops the daemon of `CAIRN_HOME` in the end.
import * as cairn from "cairn-client/node";

async function failure(attempt) {
  try {
    const client = await attempt;
    await client.close();
    return client.server;
  } catch (error) {
    return error instanceof cairn.CairnError ? error.name : String(error);
  }
}

const out = {};
const home = process.env.CAIRN_HOME;
const elsewhere = `${home}/elsewhere`;
out.absent = await failure(cairn.local({ home: elsewhere, start: false }));
out.broken = await failure(cairn.local({ home: elsewhere, exe: "/nowhere/cairn" }));
const target = cairn.locate(home);
out.token = await failure(cairn.connect({ ...target, token: "wrong" }));
out.unreachable = await failure(cairn.connect({ ...target, address: "127.0.0.1:1" }));
out.version = await failure(cairn.connect(target, { protocolVersions: ["0"] }));
const client = await cairn.connect(target);
try {
  await client.sessionGet({ sessionId: `ses_${"0".repeat(32)}` });
} catch (error) {
  const { reason, retryable, hint, code } = error;
  out.rpc = { reason, retryable, hint: hint !== "", code };
}
try {
  const late = client.call("search.hybrid", { query: "ledger", k: 100 }, 0);
  // Its time is over before anything is read, however quick the answer is.
  for (const until = performance.now() + 5; performance.now() < until; );
  await late;
} catch (error) {
  out.late = error.name;
}
if (!((await client.daemonStatus()).pid > 0)) throw new Error("no status");
await client.daemonStop();
await client.closed;
out.after = await failure(client.daemonStatus());
console.log(JSON.stringify(out));
