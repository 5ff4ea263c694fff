// Gives a task to a session's agent and answers its questions: node approve.mjs FOLDER TASK
import { createInterface } from "node:readline/promises";
import { local } from "cairn-client/node";

const [folder, task] = process.argv.slice(2);
const cairn = await local({ approvals: true });
await cairn.indexAddRoot({ path: folder });
const session = await cairn.sessionCreate({ root: folder });
const run = await cairn.runStart({ sessionId: session.sessionId, turnId: crypto.randomUUID(), input: task });
for await (const { evt } of cairn.follow(run.sessionId, { toEnd: true })) {
  if (evt?.type === "approval_required") {
    console.log(evt.approval.preview.summary + "\n" + (evt.approval.preview.diff ?? ""));
    const terminal = createInterface({ input: process.stdin, output: process.stdout });
    const decision = (await terminal.question("allow? [y/N] ")) === "y" ? "once" : "deny";
    terminal.close();
    await cairn.approvalResolve({ approvalId: evt.approval.approvalId, decision });
  }
  if (evt?.type === "run_completed") console.log(evt.result.status);
}
await cairn.close();
