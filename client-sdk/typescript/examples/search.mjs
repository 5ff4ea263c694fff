// Searches everything that is indexed: node search.mjs QUERY
import { local } from "cairn-client/node";

const cairn = await local();
const found = await cairn.searchHybrid({ query: process.argv[2], k: 5 });
for (const hit of found.items) {
  console.log(`${hit.path}:${hit.startLine}-${hit.endLine}  ${hit.score.toFixed(2)}`);
}
await cairn.close();
