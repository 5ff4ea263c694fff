// Searches everything that is indexed: node search.mjs QUERY
import { local } from "cairn-client/node";

const cairn = await local();
for (const hit of await cairn.search(process.argv[2], { k: 5 })) {
  console.log(`${hit.path}:${hit.startLine}-${hit.endLine}  ${hit.score.toFixed(2)}`);
}
await cairn.close();
