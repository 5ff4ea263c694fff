// Checks an OpenRPC document with the ecosystem's own schema: openrpc.mjs DOCUMENT
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.cwd()}/`);
const Ajv = require("ajv").default;
// One schema names the other with a slash at the end and without.
const load = (schema) => {
  const { $schema: _, ...rest } = schema;
  return JSON.parse(JSON.stringify(rest).replace(/https:\/\/meta\.json-schema\.tools\/?/g, "https://meta.json-schema.tools/schema"));
};
const schema = load(require("@open-rpc/meta-schema").openrpcDocument);
const types = load(require("@json-schema-tools/meta-schema").jsonSchema);
const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(types);
const check = ajv.compile(schema);
const document = JSON.parse(readFileSync(process.argv[2], "utf8"));
const methods = document.methods.length;
if (!check(document)) {
  console.error(JSON.stringify(check.errors.slice(0, 20), null, 1));
  process.exit(1);
}
// It has to be able to fail.
delete document.methods[0].name;
console.log(JSON.stringify({ methods, refusesAnother: !check(document) }));
