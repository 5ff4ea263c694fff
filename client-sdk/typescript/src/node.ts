/** Finding the daemon of this user, and starting it. For Node alone. */
import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

import { Client, type ClientOptions, type Target } from "./client.js";
import { CairnError, ClosedError, ConnectError, NotRunningError, StartError, UnauthorizedError } from "./errors.js";

export * from "./index.js";

/** Exit code of a daemon that leaves because another one holds its data root. */
const ALREADY_RUNNING = 5;
const START_TIMEOUT_MS = 10_000;
const LOOK_MS = { first: 10, longest: 50 };
/** Pause before another is started after one that lost a race: the holder of the lock may be leaving. */
const MAX_STARTS = 50;
const TAIL = 16 * 1024;

export interface LocalOptions extends ClientOptions {
  /** A data root other than the usual one. */
  home?: string;
  /** Whether a daemon is started when none answers; it is, by default. */
  start?: boolean;
  /** The binary that is started; `CAIRN_BIN`, or `cairn` on the path. */
  exe?: string;
}

type Env = Record<string, string | undefined>;

/** `CAIRN_HOME`; else Application Support on macOS; else XDG data. */
export function dataRoot(env: Env = process.env, platform: string = process.platform): string {
  if (env.CAIRN_HOME) return resolve(env.CAIRN_HOME);
  const home = env.HOME && isAbsolute(env.HOME) ? env.HOME : homedir();
  if (platform === "darwin") return join(home, "Library/Application Support/cairn");
  const data = env.XDG_DATA_HOME;
  return join(data && isAbsolute(data) ? data : join(home, ".local/share"), "cairn");
}

/** Reads `daemon.json` and the token it names. */
export function locate(root: string = dataRoot()): Required<Target> {
  try {
    const said = JSON.parse(readFileSync(join(root, "daemon.json"), "utf8")) as {
      addresses: string[];
      tokenPath: string;
      instanceId: string;
    };
    const [address] = said.addresses;
    if (address === undefined) throw new Error("it does not contain an address");
    return { address, token: readFileSync(said.tokenPath, "utf8").trim(), instance: said.instanceId };
  } catch (cause) {
    throw new NotRunningError(`no daemon is running on ${root}; start one with 'cairn serve'`, { cause });
  }
}

/** Connects to the daemon of this user, which is started first if none answers. */
export async function local(options: LocalOptions = {}): Promise<Client> {
  const root = options.home === undefined ? dataRoot() : resolve(options.home);
  const find = async (): Promise<Client> => Client.open(locate(root), options, find);
  try {
    return await find();
  } catch (error) {
    if (options.start === false || !absent(error)) throw error;
  }
  return startAndConnect(root, options.exe ?? process.env.CAIRN_BIN ?? "cairn", find);
}

/** Whether no daemon of ours answers there; one that starts or stops may cut a connection. */
function absent(error: unknown): boolean {
  return [NotRunningError, ConnectError, UnauthorizedError, ClosedError].some((kind) => error instanceof kind);
}

async function startAndConnect(root: string, exe: string, find: () => Promise<Client>): Promise<Client> {
  const until = Date.now() + START_TIMEOUT_MS;
  let pause = LOOK_MS.first;
  let child: Child | undefined;
  for (let starts = 0; ; ) {
    if (child === undefined && starts < MAX_STARTS) {
      starts += 1;
      child = start(root, exe);
    }
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(pause * 2, LOOK_MS.longest);
    try {
      return await find();
    } catch (error) {
      if (!absent(error)) throw error;
      if (Date.now() >= until) {
        throw new StartError(`the daemon did not start: no answer within ${START_TIMEOUT_MS} ms: ${(error as CairnError).message}`);
      }
    }
    const ended = child?.ended();
    if (ended !== undefined) {
      child = undefined;
      if (ended !== "") throw new StartError(`the daemon did not start: ${ended}`);
    }
  }
}

interface Child {
  /** Why it failed; empty when another one runs, nothing while it is at work. */
  ended(): string | undefined;
}

function start(root: string, exe: string): Child {
  const path = join(root, "logs", "daemon.log");
  mkdirSync(join(root, "logs"), { recursive: true, mode: 0o700 });
  const log = openSync(path, "a", 0o600);
  let ended: string | undefined;
  try {
    // A root of the caller's choice is told; the usual one the daemon finds by itself.
    const told = process.env.CAIRN_HOME !== undefined || root !== dataRoot();
    const env = told ? { ...process.env, CAIRN_HOME: root } : process.env;
    const child = spawn(exe, ["serve", "--on-demand"], { cwd: "/", detached: true, env, stdio: ["ignore", log, log] });
    child.on("error", (error) => {
      ended = `${exe}: ${error.message}`;
    });
    child.on("exit", (code, signal) => {
      ended = code === 0 || code === ALREADY_RUNNING ? "" : (lastWords(path) ?? `it exited with ${code ?? signal}`);
    });
    // It outlives this process.
    child.unref();
  } finally {
    closeSync(log);
  }
  return { ended: () => ended };
}

/** The last line that says `error:`. */
function lastWords(path: string): string | undefined {
  const lines = readFileSync(path, "utf8").slice(-TAIL).split("\n").reverse();
  return lines.find((line) => line.startsWith("error: "))?.slice("error: ".length);
}
