import { tierOf, type Usage, withCharges, withTotal } from '../../../conversation/usage.js';
import { isObject, parseObject } from '../../../wire/json.js';
import { collectNumbers, numberNames, readNumbers } from '../../../wire/json-numbers.js';
import { lastMemberObject } from '../../../wire/json-skip.js';
import { modalityMarks, partsByModality } from '../../modality-tokens.js';

const needle = Buffer.from('"usageMetadata"');
const wanted = numberNames([
  'promptTokenCount',
  'toolUsePromptTokenCount',
  'candidatesTokenCount',
  'thoughtsTokenCount',
  'cachedContentTokenCount',
  'totalTokenCount',
]);
const found: number[] = [];

/** A usage is a member of a block, or of a block in a list. The arguments of a call stand deeper. */
const levels = 2;

/**
 * Finds the last `usageMetadata` in the bytes of an answer or in the end of a stream. A quoted key cannot occur inside
 * a JSON string, which would escape its quotes, so the rest need not be parsed.
 * @returns the tokens, or null if there is no such member or it names none
 */
export function lastUsage(bytes: Buffer): Usage | null {
  const start = lastMemberObject(bytes, needle, levels);
  const end = start === -1 ? -1 : readNumbers(bytes, start, wanted, found);
  if (end === -1) return null;
  const told = bytes.subarray(start, end);
  if (charging.some((mark) => told.includes(mark))) return decodeUsage(parseObject(told.toString('utf8')));
  return usageOfNumbers(found);
}

/** Reads a parsed `usageMetadata`; null for anything else, and if it names no tokens. */
export function decodeUsage(usage: unknown): Usage | null {
  if (!isObject(usage)) return null;
  collectNumbers(usage, wanted, found);
  const counted = usageOfNumbers(found);
  if (counted === null) return null;
  return withCharges(counted, {
    parts: partsByModality(usage),
    tier: tierOf(usage.serviceTier) ?? tierOf(usage.trafficType),
  });
}

/** Marks of what has a price of its own. The object is parsed only if it contains one of them. */
const charging = [...modalityMarks, Buffer.from('"serviceTier"'), Buffer.from('"trafficType"')];

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

/** Writes the `usageMetadata` of a stream that has not ended: the known part of the input. */
export function encodeInputUsage({ input, cached }: Usage): string {
  const ofCache = cached > 0 ? `,"cachedContentTokenCount":${cached}` : '';
  return `{"promptTokenCount":${input}${ofCache},"totalTokenCount":${input}}`;
}

/**
 * @param numbers in the order of `wanted`
 * @returns null if they include no tokens
 */
function usageOfNumbers(numbers: readonly number[]): Usage | null {
  const { 0: prompt = -1, 1: toolUse = -1, 2: candidates = -1, 3: thoughts = -1, 4: cached = -1 } = numbers;
  const { 5: total = -1 } = numbers;
  if (prompt === -1 && candidates === -1 && thoughts === -1) return null;
  const input = Math.max(0, prompt) + Math.max(0, toolUse);
  const reasoning = Math.max(0, thoughts);
  const usage: Usage = {
    input,
    output: Math.max(0, candidates) + reasoning,
    cached: Math.max(0, cached),
    cacheWritten: 0,
    reasoning,
  };
  return withTotal(usage, total);
}
