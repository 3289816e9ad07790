import type { Usage } from '../../../conversation/usage.js';
import { countOf, isObject } from '../../../wire/json.js';
import { lastObjectStart, numberNames, readNumbers } from '../../../wire/json-skip.js';

const needle = Buffer.from('"usageMetadata"');
const wanted = numberNames([
  'promptTokenCount',
  'toolUsePromptTokenCount',
  'candidatesTokenCount',
  'thoughtsTokenCount',
  'cachedContentTokenCount',
]);
const found: number[] = [];

/**
 * Finds the last `usageMetadata` in the bytes of an answer or in the end of a stream. A quoted key cannot occur inside
 * a JSON string, where its quotes would be escaped, so no parse of the rest is needed.
 * @returns the tokens that it names, or null when there is none or it names none
 */
export function lastUsage(bytes: Buffer): Usage | null {
  const start = lastObjectStart(bytes, needle);
  if (start === -1 || !readNumbers(bytes, start, wanted, found)) return null;
  const [prompt = -1, toolUse = -1, candidates = -1, thoughts = -1, cached = -1] = found;
  if (prompt === -1 && candidates === -1 && thoughts === -1) return null;
  return usageOf({
    prompt: Math.max(0, prompt),
    toolUse: Math.max(0, toolUse),
    candidates: Math.max(0, candidates),
    thoughts: Math.max(0, thoughts),
    cached: Math.max(0, cached),
  });
}

/** Reads a parsed `usageMetadata`; null for what is none, or names no tokens. */
export function decodeUsage(usage: unknown): Usage | null {
  if (!isObject(usage)) return null;
  const counts = {
    prompt: countOf(usage.promptTokenCount),
    toolUse: countOf(usage.toolUsePromptTokenCount),
    candidates: countOf(usage.candidatesTokenCount),
    thoughts: countOf(usage.thoughtsTokenCount),
    cached: countOf(usage.cachedContentTokenCount),
  };
  return counts.prompt + counts.candidates + counts.thoughts === 0 ? null : usageOf(counts);
}

/** Writes the `usageMetadata` of a whole answer. */
export function encodeUsage({ input, output, cached, reasoning }: Usage): string {
  // Upstreams of other protocols have been seen to count more reasoning than output.
  const candidates = Math.max(0, output - reasoning);
  return (
    `{"promptTokenCount":${input},"candidatesTokenCount":${candidates}` +
    (reasoning > 0 ? `,"thoughtsTokenCount":${reasoning}` : '') +
    (cached > 0 ? `,"cachedContentTokenCount":${cached}` : '') +
    `,"totalTokenCount":${input + candidates + reasoning}}`
  );
}

/** Writes the `usageMetadata` of a stream that has not ended: what is known of the input. */
export function encodeInputUsage({ input, cached }: Usage): string {
  const ofCache = cached > 0 ? `,"cachedContentTokenCount":${cached}` : '';
  return `{"promptTokenCount":${input}${ofCache},"totalTokenCount":${input}}`;
}

interface Counts {
  readonly prompt: number;
  readonly toolUse: number;
  readonly candidates: number;
  readonly thoughts: number;
  readonly cached: number;
}

function usageOf({ prompt, toolUse, candidates, thoughts, cached }: Counts): Usage {
  return {
    input: prompt + toolUse,
    output: candidates + thoughts,
    cached,
    cacheWritten: 0,
    reasoning: thoughts,
  };
}
