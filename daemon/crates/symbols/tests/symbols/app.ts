// class Commented { m() {} }
import { a, b } from './ab';
import type { T } from "./t";

export interface Options<K extends string = 'x'> {
  path: string;
  open?(mode: { write: boolean }): Promise<void>;
}

type Fn = (a: number) => { b: string };

declare function ambient(x: string): { length: number };

export enum Mode { A = 'a', B = 1 << 2 }

namespace Inner {
  export function deep() {
    return /[{"'\/]}/.test('}');
  }
}

export abstract class Service<T extends object> extends Base<{ a: string }> implements Options {
  static #count = 0;
  private map: Map<string, () => void> = new Map();
  handler = async (e: Event): Promise<void> => {
    await this.run(e);
  };

  constructor(private readonly name: string, opts: Options = {}) {
    super({ name, opts });
  }

  get size(): number {
    return this.map.size;
  }

  static { Service.#count = 1; }

  abstract missing(): void;

  run(e: Event): { ok: boolean; other: string } {
    const text = `${this.name} { ${[1, 2].map((n) => `}${n}`).join('')} `;
    if (e) {
      for (const x of [1]) { console.log(x / 2, text); }
    }
    return { ok: true, other: text };
  }

  *[Symbol.iterator]() {
    yield 1;
  }
}

export const use = (x: number) => {
  const inner = function () {
    return x;
  };
  return { inner, method() { return 1; }, arrow: () => 2 };
};

function plain(cb = () => {}) {
  const table = { 'if': 1, for: 2 };
  return a.filter(function named(n) { return n > table.for; }).map((n) => {
    return n * 2;
  });
}

function typed() {
  interface Local { m(): void }
  let shape: { call(): string };
  type Alias = string;
}

const object = {
  key: function () { return 1; },
  async load() {
    const x = y ? 1 : 2;
    return x;
  },
};

module.exports = plain;

export async function serve(options: { close(): void }): Promise<{ stop(): Promise<void> }> {
  return { stop: async () => {} };
}

function generic(all: Map<string, number>) {
  const pick = <T extends Exclude<keyof Options, undefined>>(key: T) => {
    return key;
  };
  const table = { a: plain(), nested: { deep(): Map<string, number> { return all; } } };
  return pick(table);
}
