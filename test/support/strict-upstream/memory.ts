import type { JsonObject } from '../../../src/wire/json.js';

/** What an upstream has given out, and wants back as it was. */
export interface Memory {
  /** Signed reasoning: its words by its signature. */
  readonly signed: Map<string, string>;
  /** Words of unsigned reasoning by the ids of the calls that came with it. */
  readonly reasons: Map<string, string>;
  /** Items of responses by their ids. */
  readonly items: Map<string, JsonObject>;
  /** What was said until a response ended, with it, as items by the ids of responses. */
  readonly told: Map<string, readonly JsonObject[]>;
  /** Responses by their ids, each with its input. */
  readonly responses: Map<string, { readonly answer: object; readonly input: readonly JsonObject[] }>;
  /** Threads by the ids of their replies: what each began with and all of its messages. */
  readonly threads: Map<string, JsonObject>;
  /** Cells whose first answer has failed. */
  readonly failed: Set<string>;
  /** Counts what it has given an id. */
  count: number;
}

/** @returns the memory of an upstream that has answered nothing */
export function newMemory(): Memory {
  return {
    signed: new Map(),
    reasons: new Map(),
    items: new Map(),
    told: new Map(),
    responses: new Map(),
    threads: new Map(),
    failed: new Set(),
    count: 0,
  };
}

/** @returns a signature that comes once, in standard base64 with the characters that other alphabets lack */
export function sign(memory: Memory, words: string): string {
  memory.count++;
  const bytes = Buffer.concat([Buffer.from([0xfb, 0xff, 0xbf]), Buffer.from(`signed ${memory.count}`)]);
  const signature = bytes.toString('base64');
  memory.signed.set(signature, words);
  return signature;
}
