// Explores a folder and prints what is worth knowing: node explore.mjs FOLDER
import { local } from "cairn-client/node";

const cairn = await local();
const run = await cairn.exploreStart({ root: process.argv[2] });
for await (const { seq, evt } of cairn.follow(run.sessionId, { toEnd: true })) {
  console.log(seq, evt?.type, evt?.op ?? "");
  if (evt?.type === "completed") console.log(JSON.stringify(evt.summary.languages));
}
await cairn.close();
