import type { Client, Opener } from "./client.js";
import { CairnError, GoneError, UnauthorizedError } from "./errors.js";
import type { Step, Stream } from "./stream.js";
import type { Envelope } from "./types.js";

const BACKOFF_MS = { first: 50, longest: 2_000 };
const MAX_GAPS = 3;

export interface FollowOptions {
  /** Records after this one; 0, the default, for all. */
  after?: number;
  /** End after the record that ends the run. */
  toEnd?: boolean;
  /** Also what is told live only and has no `seq`. */
  live?: boolean;
  /** How long connecting is tried again before a cut is reported; 15 s by default. */
  patienceMs?: number;
}

/** Whether a record is the last of a turn or of an explore. */
export function ends(record: Envelope): boolean {
  if (record.kind !== "Evt") return false;
  const evt = record.evt as { type: string; op?: string };
  if (evt.type === "completed" || evt.type === "run_completed") return true;
  return (evt.type === "stopped" || evt.type === "error") && evt.op === "explore";
}

/** A session followed from one record on, over connections that are made as needed. */
export class Follow implements AsyncIterableIterator<Envelope> {
  /** The last record that was given. */
  last: number;
  /** Whether everything there was at the beginning was given: what comes is live. */
  synced = false;
  /** Connections that were made after the first. */
  reconnects = 0;
  #client: Client | undefined;
  #stream: Stream | undefined;
  #ready: Step[] = [];
  #over = false;
  #gaps = 0;

  constructor(
    private readonly again: Opener,
    private readonly session: string,
    private readonly options: FollowOptions,
  ) {
    this.last = options.after ?? 0;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Envelope>> {
    while (!this.#over) {
      const step = this.#ready.shift() ?? (await this.#more());
      const record = step && this.#record(step);
      if (record === undefined) continue;
      if (record === "again") {
        await this.#drop();
        continue;
      }
      if (this.options.toEnd && ends(record)) await this.return();
      return { done: false, value: record };
    }
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<Envelope>> {
    this.#over = true;
    await this.#drop();
    return { done: true, value: undefined };
  }

  async #more(): Promise<Step | undefined> {
    this.#stream ??= await this.#subscribe();
    const steps = await this.#stream?.take();
    if (steps === undefined) {
      this.reconnects += 1;
      await this.#drop();
      return undefined;
    }
    this.#ready = steps;
    return this.#ready.shift();
  }

  #record({ method, params }: Step): Envelope | "again" | undefined {
    if (method === "orchestrate.gone") {
      void this.return();
      throw new GoneError(`the session no longer exists: ${String(params.message)}`);
    }
    if (method === "orchestrate.synced") this.synced = true;
    if (method !== "orchestrate.event") return undefined;
    const record = params as unknown as Envelope;
    const seq = params.seq as number | undefined;
    if (seq === undefined) return this.options.live ? record : undefined;
    if (seq <= this.last) return undefined;
    if (seq > this.last + 1) {
      // Never seen from a daemon that keeps to the protocol; asking again is cheap and right.
      this.#gaps += 1;
      if (this.#gaps <= MAX_GAPS) return "again";
      void this.return();
      throw new CairnError(`record ${seq} arrived after ${this.last}`);
    }
    this.#gaps = 0;
    this.last = seq;
    return record;
  }

  async #drop(): Promise<void> {
    const client = this.#client;
    this.#client = this.#stream = undefined;
    this.#ready = [];
    await client?.close();
  }

  async #subscribe(): Promise<Stream | undefined> {
    const until = Date.now() + (this.options.patienceMs ?? 15_000);
    let pause = BACKOFF_MS.first;
    for (;;) {
      try {
        this.#client = await this.again();
        if (this.#over) {
          await this.#drop();
          return undefined;
        }
        return await this.#client.subscribe(this.session, this.last);
      } catch (error) {
        await this.#drop();
        // The token of a daemon that starts may be read before it is written.
        const passes = error instanceof CairnError && (error.retryable || error instanceof UnauthorizedError);
        if (!passes || Date.now() + pause >= until) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(pause * 2, BACKOFF_MS.longest);
    }
  }
}
