import { CairnError, ClosedError, ConnectError, IncompatibleError, RpcError, TimedOutError, UnauthorizedError } from "./errors.js";
import { Follow, type FollowOptions } from "./follow.js";
import { grepLines } from "./lines.js";
import { Methods } from "./methods.js";
import { Stream } from "./stream.js";
import {
  type GrepItem,
  type GrepStreamParams,
  type InitializeResult,
  type Notifications,
  PROTOCOL_VERSIONS,
  type SearchFilters,
  type SearchItem,
} from "./types.js";

/** Milliseconds that a call may take, unless another time is given. */
export const CALL_TIMEOUT_MS = 120_000;
const VERSION = "0.1.0";
const HANDSHAKE_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;
const MAX_STREAM = 65_536;
const INDEX_PATIENCE_MS = 60_000;
const INDEX_INTERVAL_MS = 100;

/** One daemon's address and secret. */
export interface Target {
  /** `host:port`, or a `ws:` or `wss:` address with a path. */
  address: string;
  token: string;
  /** The instance that is expected to answer, when it is known. */
  instance?: string;
}

export interface ClientOptions {
  /** Whether whoever is behind this client answers approvals. */
  approvals?: boolean;
  /** This client's name, 1 to 64 characters. */
  name?: string;
  version?: string;
  /** Versions of the protocol to offer. */
  protocolVersions?: string[];
  /** The class that opens sockets, where there is none of the platform. */
  webSocket?: typeof WebSocket;
}

export interface SearchOptions {
  /** An absolute folder to search in. */
  root?: string;
  /** Number of results, 10 by default. */
  k?: number;
  /** Only under this path of the root. */
  path?: string;
  /** Only this language, such as `rust`. */
  lang?: string;
}

/** A notification that belongs to no subscription. */
export type Notice = { [K in keyof Notifications]: { method: K; params: Notifications[K] } }[keyof Notifications];

/** Connects again to where a client came from. */
export type Opener = () => Promise<Client>;

interface Waiting {
  method: string;
  stream?: Stream;
  resolve(result: unknown): void;
  reject(error: Error): void;
}

interface Message {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: { code: number; message: string; data?: Record<string, unknown> };
}

/** Connects to a daemon at a known address. */
export function connect(target: Target, options: ClientOptions = {}): Promise<Client> {
  return Client.open(target, options, () => connect(target, options));
}

/** A connection to a daemon. It ends with its socket; `follow` alone connects again by itself. */
export class Client extends Methods {
  /** What the daemon said of itself. */
  server!: InitializeResult;
  #socket: WebSocket;
  #again: Opener;
  #next = 0;
  #waiting = new Map<number, Waiting>();
  #streams = new Map<string, Stream>();
  #listeners = new Set<(notice: Notice) => void>();
  #ended: string | undefined;
  #closed: Promise<void>;

  private constructor(socket: WebSocket, again: Opener) {
    super();
    this.#socket = socket;
    this.#again = again;
    socket.onmessage = (event) => this.#take(String(event.data));
    this.#closed = new Promise((resolve) => {
      socket.onclose = (event) => {
        this.#end(event.reason || `the daemon closed the connection (${event.code})`);
        resolve();
      };
    });
  }

  /** Opens a connection; `again` makes another like it. */
  static async open(target: Target, options: ClientOptions, again: Opener): Promise<Client> {
    const client = new Client(await openSocket(target, options), again);
    const hello = {
      protocolVersions: options.protocolVersions ?? PROTOCOL_VERSIONS,
      client: { name: options.name ?? "cairn-client-typescript", version: options.version ?? VERSION },
      capabilities: { approvals: options.approvals ?? false },
    };
    try {
      client.server = await client.call<InitializeResult>("initialize", hello, HANDSHAKE_TIMEOUT_MS);
      const { instanceId } = client.server.server;
      if (target.instance !== undefined && target.instance !== instanceId) {
        throw new ConnectError(`the daemon that answers at ${target.address} is not the one in the address file`);
      }
      return client;
    } catch (error) {
      await client.close();
      if (error instanceof RpcError && error.reason === "incompatible_version") {
        throw new IncompatibleError(`this client and the daemon are incompatible: ${error.message}`, { cause: error });
      }
      throw error;
    }
  }

  /** Closes the connection. */
  async close(): Promise<void> {
    this.#end("by this client");
    this.#socket.close();
    await this.#closed;
  }

  /** Settles when the connection has ended. */
  get closed(): Promise<void> {
    return this.#closed;
  }

  async [Symbol.for("Symbol.asyncDispose")](): Promise<void> {
    await this.close();
  }

  /** Calls a method by its name on the wire. A call that is late is cancelled. */
  override call<R = unknown>(method: string, params: object = {}, timeoutMs: number = CALL_TIMEOUT_MS): Promise<R> {
    return this.#call(method, params, timeoutMs) as Promise<R>;
  }

  #call(method: string, params: object, timeoutMs: number, stream?: Stream): Promise<unknown> {
    if (this.#ended !== undefined) {
      return Promise.reject(new ClosedError(`the connection ended: ${this.#ended}`));
    }
    const id = ++this.#next;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        this.#send({ method: "$/cancelRequest", params: { id } });
        reject(new TimedOutError(`${method} was not answered within ${timeoutMs} ms`));
      }, timeoutMs);
      const settle =
        <T>(then: (value: T) => void) =>
        (value: T) => {
          clearTimeout(timer);
          then(value);
        };
      this.#waiting.set(id, { method, stream, resolve: settle(resolve), reject: settle(reject) });
      this.#send({ id, method, params });
    });
  }

  #send(message: object): void {
    this.#socket.send(JSON.stringify({ jsonrpc: "2.0", ...message }));
  }

  /** Live progress of what this connection asks for; the answer stops it. */
  onNotice(listener: (notice: Notice) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Passages that answer a question or define a name, best first, with their text. With `root` in that folder, which is
   * indexed first if need be; else in all that is indexed.
   */
  async search(query: string, { root, k = 10, path, lang }: SearchOptions = {}): Promise<SearchItem[]> {
    const filters: SearchFilters = { languages: lang === undefined ? [] : [lang] };
    if (root !== undefined) {
      const [declared, inside] = await this.#declared(root);
      filters.roots = [declared];
      path = [inside, path].filter((part) => part).join("/") || undefined;
    }
    if (path !== undefined) filters.pathPrefix = path;
    const until = Date.now() + INDEX_PATIENCE_MS;
    for (;;) {
      const answer = await this.searchHybrid({ query, k, filters, includeText: true });
      // A daemon that starts has no results yet; a folder of the caller's choice is searched completely.
      const isLate = !answer.complete && (root !== undefined || answer.items.length === 0);
      if (!isLate || Date.now() >= until) return answer.items;
      await new Promise((resolve) => setTimeout(resolve, INDEX_INTERVAL_MS));
    }
  }

  /** The root that has a folder, and the folder's path in it; a folder without one becomes a root. */
  async #declared(folder: string): Promise<[string, string]> {
    const { roots } = await this.indexStatus();
    const enclosing = roots.map((root) => root.path).filter((path) => `${folder}/`.startsWith(`${path}/`));
    const nearest = enclosing.sort((one, other) => other.length - one.length)[0];
    if (nearest !== undefined) return [nearest, folder.slice(nearest.length + 1)];
    await this.indexAddRoot({ path: folder });
    return [folder, ""];
  }

  /** All lines of `search.grepStream`, in order, part by part. `requestId` is a name that no other search has. */
  grepLines(params: GrepStreamParams): AsyncGenerator<GrepItem[], void, undefined> {
    return grepLines(this, params);
  }

  /**
   * Follows a session over a connection of its own, which is made again when it is cut: every record after
   * `options.after` exactly once and in order.
   */
  follow(sessionId: string, options: FollowOptions = {}): Follow {
    return new Follow(this.#again, sessionId, options);
  }

  /** Used by `Follow`: the notifications of one subscription. */
  async subscribe(sessionId: string, after: number | "live"): Promise<Stream> {
    const stream = new Stream(MAX_STREAM);
    await this.#call("orchestrate.subscribe", { sessionId, after }, CALL_TIMEOUT_MS, stream);
    return stream;
  }

  #take(text: string): void {
    let message: Message;
    try {
      message = JSON.parse(text) as Message;
    } catch {
      this.#end("the daemon sent a message that is not JSON");
      this.#socket.close();
      return;
    }
    if (message.method !== undefined) {
      this.#told(message.method, message.params ?? {});
      return;
    }
    const waiting = this.#waiting.get(message.id ?? 0);
    if (waiting === undefined) return;
    this.#waiting.delete(message.id ?? 0);
    if (message.error !== undefined) {
      const { code, message: words, data } = message.error;
      waiting.reject(new RpcError(waiting.method, code, words, data ?? {}));
      return;
    }
    if (waiting.stream !== undefined) {
      // Before anybody else runs: events may come right behind the answer.
      this.#streams.set((message.result as { subscriptionId: string }).subscriptionId, waiting.stream);
    }
    waiting.resolve(message.result);
  }

  #told(method: string, params: Record<string, unknown>): void {
    if (!method.startsWith("orchestrate.")) {
      for (const listener of this.#listeners) listener({ method, params } as unknown as Notice);
      return;
    }
    const { subscriptionId, ...rest } = params;
    const stream = this.#streams.get(String(subscriptionId));
    if (stream !== undefined && !stream.put({ method, params: rest })) {
      // A browser's socket cannot be held back; what is not read is dropped with the connection and asked for again.
      this.#end("this client reads too slowly");
      this.#socket.close();
    }
  }

  #end(why: string): void {
    if (this.#ended !== undefined) return;
    this.#ended = why;
    for (const waiting of this.#waiting.values()) waiting.reject(new ClosedError(`the connection ended: ${why}`));
    this.#waiting.clear();
    for (const stream of this.#streams.values()) stream.end();
  }
}

/** The platform's socket; else that of the package `ws`. */
async function socketClass(options: ClientOptions): Promise<typeof WebSocket> {
  if (options.webSocket !== undefined) return options.webSocket;
  if (typeof WebSocket !== "undefined") return WebSocket;
  for (const load of [importHere, importFromProgram]) {
    const found = await load("ws").catch(() => undefined);
    if (found !== undefined) return found.WebSocket;
  }
  throw new CairnError("this platform has no WebSocket; install the package 'ws' (npm install ws)");
}

type SocketPackage = { WebSocket: typeof WebSocket };

async function importHere(name: string): Promise<SocketPackage> {
  return (await import(name)) as SocketPackage;
}

/** Resolves a package from the program that runs: from a symlinked package, Node resolves beside its real folder alone. */
async function importFromProgram(name: string): Promise<SocketPackage> {
  // Bundlers for browsers would resolve a literal.
  const builtin = "node:module";
  const { createRequire } = (await import(builtin)) as { createRequire(from: string): (name: string) => unknown };
  const from = [process.argv[1], `${process.cwd()}/program.js`].filter((path) => path !== undefined);
  for (const path of from) {
    try {
      return createRequire(path)(name) as SocketPackage;
    } catch {
      // The next folder may have it.
    }
  }
  throw new CairnError(`the package '${name}' is not installed`);
}

async function openSocket(target: Target, options: ClientOptions): Promise<WebSocket> {
  const Socket = await socketClass(options);
  const address = /^wss?:/.test(target.address) ? target.address : `ws://${target.address}/rpc`;
  return new Promise((resolve, reject) => {
    let socket: WebSocket;
    try {
      // A browser can set no header: the token travels as a subprotocol, which is never chosen.
      socket = new Socket(address, ["cairn.v1", `bearer.${target.token}`]);
    } catch (cause) {
      reject(new ConnectError(`cannot connect to ${target.address}: ${String(cause)}`, { cause }));
      return;
    }
    const timer = setTimeout(() => failed(`no answer within ${CONNECT_TIMEOUT_MS} ms`), CONNECT_TIMEOUT_MS);
    const failed = (cause: string): void => {
      clearTimeout(timer);
      socket.onerror = socket.onopen = socket.onclose = null;
      socket.close();
      // A socket does not tell why an upgrade was refused; asking by HTTP does.
      void whyRefused(address, target).then(
        (refused) => reject(refused ?? new ConnectError(`cannot connect to ${target.address}: ${cause}`)),
      );
    };
    socket.onopen = () => {
      clearTimeout(timer);
      socket.onerror = null;
      resolve(socket);
    };
    socket.onerror = (event) => failed((event as ErrorEvent).message || "the connection was refused");
    socket.onclose = () => failed("the connection was closed");
  });
}

/** The daemon's words to the same token by HTTP; nothing when it cannot be asked, or takes the token. */
async function whyRefused(address: string, target: Target): Promise<CairnError | undefined> {
  const url = new URL(address.replace(/^ws/, "http"));
  url.pathname = "/metrics";
  try {
    const headers = { authorization: `Bearer ${target.token}` };
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(CONNECT_TIMEOUT_MS) });
    if (response.status === 401) return new UnauthorizedError(`the daemon at ${target.address} rejected the token`);
    if (response.ok) return undefined;
    const said = (await response.json()) as { error?: string };
    return new ConnectError(`cannot connect to ${target.address}: ${said.error ?? `HTTP ${response.status}`}`);
  } catch {
    return undefined;
  }
}
