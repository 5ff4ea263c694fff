#!/usr/bin/env node
// The command of the package: starts the program that npm installed for this platform, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { existsSync, readdirSync } = require("node:fs");
const path = require("node:path");

const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"];

/** True on a Linux whose C library is not glibc: there the program cannot start. */
function isMusl() {
  if (process.platform !== "linux") return false;
  const report = process.report && process.report.getReport();
  if (report && report.header) return !report.header.glibcVersionRuntime;
  return existsSync("/lib") && readdirSync("/lib").some((name) => name.startsWith("ld-musl-"));
}

function fail(message) {
  console.error(`cairn: ${message}`);
  process.exit(1);
}

function program() {
  const platform = `${process.platform}-${process.arch}`;
  const source = "Build it from source with Rust: https://github.com/OWNER/cairn";
  if (!PLATFORMS.includes(platform)) {
    fail(`there is no package for ${platform}, only for ${PLATFORMS.join(", ")}. ${source}`);
  }
  if (isMusl()) fail(`there is no package for musl (Alpine and others), only for Linux with glibc 2.17 or newer. ${source}`);
  const name = `cairn-agent-${platform}`;
  try {
    return path.join(path.dirname(require.resolve(`${name}/package.json`)), "bin", "cairn");
  } catch {
    return fail(`the package ${name} is missing. npm leaves it out with --omit=optional or --no-optional; install again without it.`);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
// The terminal sends an interrupt to both; the program decides what it means.
for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => fail(`${child.spawnfile}: ${error.message}`));
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
