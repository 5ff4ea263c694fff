// All lines of a pattern, beside the pages of a plain search. Stops the daemon of `CAIRN_HOME` in the end.
import * as cairn from "cairn-client/node";

async function all(lines) {
  const parts = [];
  for await (const part of lines) parts.push(part);
  return parts;
}

const client = await cairn.local({ start: false });
const pages = [];
for (let cursor; ; ) {
  const page = await client.searchGrep({ pattern: "e", k: 5000, cursor });
  pages.push(...page.items);
  cursor = page.nextCursor;
  if (cursor === undefined) break;
}
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const sorted = ({ path, root, line, text, ranges }) => ({ path, root, line, text, ranges });
const parts = await all(client.grepLines({ requestId: "all", pattern: "e", withRanges: true }));
const out = { lines: parts.flat().length, same: same(parts.flat().map(sorted), pages.map(sorted)), parts: parts.length };
// Who stops reading asks for no more, and the connection goes on.
for await (const _ of client.grepLines({ requestId: "some", pattern: "e" })) break;
try {
  await all(client.grepLines({ requestId: "bad", pattern: "(", isRegex: true }));
} catch (error) {
  out.bad = error.reason;
}
const few = (await all(client.grepLines({ requestId: "few", pattern: "e", k: 25_070 }))).flat();
const bare = ({ ranges: _, ...item }) => item;
out.some = same(few.map(bare).map(sorted), pages.slice(0, 25_070).map(bare).map(sorted));
await client.daemonStop();
await client.closed;
console.log(JSON.stringify(out));
