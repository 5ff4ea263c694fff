// Builds `dist` for `npm pack`, `npm publish` and an installation from a checkout, whose compiler may not be installed yet.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const run = (program, ...args) => {
  const { status, error } = spawnSync(program, args, { cwd: fileURLToPath(new URL(".", import.meta.url)), stdio: "inherit" });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
};
const compiler = "node_modules/typescript/bin/tsc";
if (!existsSync(new URL(compiler, import.meta.url))) {
  const flags = ["--ignore-scripts", "--include=dev", "--no-audit", "--no-fund", "--no-package-lock", "--global=false"];
  run("npm", "install", ...flags);
}
run(process.execPath, compiler);
