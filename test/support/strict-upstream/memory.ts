import type { JsonObject } from '../../../src/wire/json.js';

/** What an upstream has issued, and expects back unchanged. */
export interface Memory {
  /** Text of signed reasoning by its signature. */
  readonly signed: Map<string, string>;
  /** What preceded signed thinking, by its signature. */
  readonly prefixes: Map<string, string>;
  /** Text of unsigned reasoning by the ids of the calls that came with it. */
  readonly reasons: Map<string, string>;
  /** Items of responses by their ids. */
  readonly items: Map<string, JsonObject>;
  /** The whole conversation up to and including a response, as items by the ids of responses. */
  readonly told: Map<string, readonly JsonObject[]>;
  /** Responses by their ids, each with its input. */
  readonly responses: Map<string, { readonly answer: object; readonly input: readonly JsonObject[] }>;
  /** Threads by the ids of their replies: the beginning and all messages of each. */
  readonly threads: Map<string, JsonObject>;
  /** Cells whose first answer has failed. */
  readonly failed: Set<string>;
  /** Counter for ids. */
  count: number;
}

/** Returns the memory of an upstream that has answered nothing. */
export function newMemory(): Memory {
  return {
    signed: new Map(),
    prefixes: new Map(),
    reasons: new Map(),
    items: new Map(),
    told: new Map(),
    responses: new Map(),
    threads: new Map(),
    failed: new Set(),
    count: 0,
  };
}

/** Returns a unique signature, in standard base64 with the characters that other alphabets lack. */
export function sign(memory: Memory, words: string): string {
  memory.count++;
  const bytes = Buffer.concat([Buffer.from([0xfb, 0xff, 0xbf]), Buffer.from(`signed ${memory.count}`)]);
  const signature = bytes.toString('base64');
  memory.signed.set(signature, words);
  return signature;
}
