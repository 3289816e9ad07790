import type { Usage } from '../../conversation/usage.js';
import { lastObjectStart, numberNames, readNumbers } from '../../wire/json-skip.js';

/*
 * The `usage` objects of OpenAI's protocols: `prompt_tokens` and `completion_tokens` in the older ones, `input_tokens`
 * and `output_tokens` in the others, with details.
 */

export interface UsageReader {
  /**
   * Finds the last `usage` object in the bytes of an answer or in the end of a stream. A quoted `"usage"` cannot occur
   * inside a JSON string, where its quotes would be escaped, so no parse of the rest is needed.
   * @returns the tokens that it names, or null when there is none or it names none
   */
  lastUsage(bytes: Buffer): Usage | null;
  /** Reads the `usage` object that opens at `start`; null when it names no tokens. */
  usageAt(bytes: Buffer, start: number): Usage | null;
}

const usageMember = '"usage"';

/** What a protocol calls the tokens of the input and of the output. */
export type TokenNames = readonly [input: string, output: string];

const olderNames: TokenNames = ['prompt_tokens', 'completion_tokens'];

/** What all protocols but the older ones call them. */
export const tokenNames: TokenNames = ['input_tokens', 'output_tokens'];

/** Makes a reader of the usage of answers that have output. */
export function createUsageReader(names: TokenNames = olderNames): UsageReader {
  const wanted = numberNames([...names, 'cached_tokens', 'reasoning_tokens', 'cache_write_tokens']);
  return readerOf(usageMember, wanted, usageOfNumbers);
}

/**
 * @param numbers input, output, cached, reasoning and cache-written tokens, each -1 where it is missing
 * @returns the usage, or null when neither input nor output is there
 */
function usageOfNumbers(numbers: readonly number[]): Usage | null {
  const [input = -1, output = -1, cached = -1, reasoning = -1, written = -1] = numbers;
  if (input === -1 && output === -1) return null;
  return {
    input: Math.max(0, input),
    output: Math.max(0, output),
    cached: Math.max(0, cached),
    cacheWritten: Math.max(0, written),
    reasoning: Math.max(0, reasoning),
  };
}

/**
 * Makes a reader of the usage of answers whose tokens are all input: some servers name the total alone.
 * @param member that holds the numbers, with its quotes
 * @param names of the tokens of the prompt and of the total
 */
export function createInputUsageReader(
  member = usageMember,
  names: readonly [prompt: string, total: string] = ['prompt_tokens', 'total_tokens'],
): UsageReader {
  const wanted = numberNames(names);
  return readerOf(member, wanted, ([prompt = -1, total = -1]) => {
    const input = prompt === -1 ? total : prompt;
    return input === -1 ? null : { input, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 };
  });
}

/** @param usageOf reads the wanted numbers, each -1 where it is missing */
function readerOf(
  member: string,
  wanted: ReturnType<typeof numberNames>,
  usageOf: (numbers: readonly number[]) => Usage | null,
): UsageReader {
  const key = Buffer.from(member);
  const found: number[] = [];
  function usageAt(bytes: Buffer, start: number): Usage | null {
    return readNumbers(bytes, start, wanted, found) ? usageOf(found) : null;
  }
  function lastUsage(bytes: Buffer): Usage | null {
    const start = lastObjectStart(bytes, key);
    return start === -1 ? null : usageAt(bytes, start);
  }
  return { lastUsage, usageAt };
}
