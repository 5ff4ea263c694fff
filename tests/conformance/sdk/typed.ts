// A program that uses the TypeScript client as its types allow; the compiler judges it in strict mode.
import { type Client, connect, type Envelope, RpcError, type SearchItem } from "cairn-client";
import { local } from "cairn-client/node";

function best(items: SearchItem[]): [string, number] | undefined {
  const first = items[0];
  return first && [first.path, first.startLine];
}

async function ends(cairn: Client, session: string): Promise<Envelope[]> {
  const records: Envelope[] = [];
  for await (const record of cairn.follow(session, { toEnd: true })) records.push(record);
  return records;
}

const cairn = await local({ approvals: true });
const answer = await cairn.searchHybrid({ query: "a", k: 3, filters: { languages: ["rust"] } });
console.log(best(answer.items), best(await cairn.search("a", { root: "/tmp" })));
try {
  await ends(await connect({ address: "127.0.0.1:1", token: "x" }), "ses_x");
} catch (error) {
  if (error instanceof RpcError) console.log(error.reason, error.retryAfterMs);
}
cairn.onNotice(({ method, params }) => {
  if (method === "approval.updated") console.log(params.approvalId, params.decision ?? "pending");
});
for await (const part of cairn.grepLines({ requestId: "a", pattern: "x" })) console.log(part.length);
await cairn.close();
