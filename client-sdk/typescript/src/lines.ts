import type { Client } from "./client.js";
import type { FileLines, GrepItem, GrepStreamEnd, GrepStreamParams, LinesPartial } from "./types.js";

/** Lines asked for at once. */
const AT_ONCE = 20_000;

/**
 * All lines of a pattern, in order, part by part, while they are found. A socket of a browser cannot be held back: lines are
 * asked for some at a time, and the next when those were taken. Who stops taking them asks for no more.
 */
export async function* grepLines(client: Client, params: GrepStreamParams): AsyncGenerator<GrepItem[], void, undefined> {
  let left = params.k ?? Number.POSITIVE_INFINITY;
  let cursor = params.cursor;
  for (;;) {
    const some = new Some(client, { ...params, k: Math.min(left, AT_ONCE), cursor });
    try {
      for (let part = await some.next(); part !== undefined; part = await some.next()) {
        cursor = part.cursor ?? cursor;
        if (part.files.length > 0) yield part.files.flatMap(items);
      }
    } finally {
      some.leave();
    }
    left -= some.end?.total ?? 0;
    if (some.end?.truncated !== true || left <= 0) return;
  }
}

/** The parts of one search, as many as there are before its answer. */
class Some {
  /** How it ended. */
  end: GrepStreamEnd | undefined;
  readonly leave: () => void;
  #parts: LinesPartial[] = [];
  #failed: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(client: Client, params: GrepStreamParams) {
    this.leave = client.onNotice((notice) => {
      if (notice.method !== "search.partial" || notice.params.corpus !== "lines") return;
      if (notice.params.requestId !== params.requestId) return;
      this.#parts.push(notice.params);
      this.#wake?.();
    });
    client.searchGrepStream(params).then(
      (end) => {
        this.end = end;
        this.#wake?.();
      },
      (error: Error) => {
        this.#failed = error;
        this.#wake?.();
      },
    );
  }

  /** The next part; nothing behind the last. */
  async next(): Promise<LinesPartial | undefined> {
    for (;;) {
      const part = this.#parts.shift();
      if (part !== undefined) return part;
      if (this.#failed !== undefined) throw this.#failed;
      if (this.end !== undefined) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

/** The lines of a file one by one, as `search.grep` has them. */
function items(file: FileLines): GrepItem[] {
  const texts = file.text.split("\n");
  return file.lines.map((line, at) => {
    const item: GrepItem = { path: file.path, root: file.root, line, text: texts[at] ?? "" };
    const ranges = file.ranges?.[at] ?? [];
    if (ranges.length > 0) item.ranges = ranges;
    return item;
  });
}
