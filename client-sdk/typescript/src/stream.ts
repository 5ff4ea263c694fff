/** A notification of a subscription. */
export interface Step {
  method: string;
  params: Record<string, unknown>;
}

/** A bounded queue whose end comes after what it holds. */
export class Stream {
  #items: Step[] = [];
  #ended = false;
  #wake: (() => void) | undefined;

  constructor(readonly size: number) {}

  /** Whether there was room. */
  put(step: Step): boolean {
    if (this.#items.length >= this.size) return false;
    this.#items.push(step);
    this.#wake?.();
    return true;
  }

  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  /** All that waits, or what comes next; nothing at the end. */
  async take(): Promise<Step[] | undefined> {
    while (this.#items.length === 0) {
      if (this.#ended) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
    const items = this.#items;
    this.#items = [];
    return items;
  }
}
