import { tierOf, type Usage, withCharges } from '../../../conversation/usage.js';
import { isObject, type JsonObject, numberOrNull } from '../../../wire/json.js';
import {
  countsIn,
  otherCached,
  otherWritten,
  partsOf,
  searchesIn,
  withReasoning,
} from '../../openai-shared/usage.js';

export { lastUsage } from '../../openai-shared/choice-stream.js';

/** Reads the `usage` of a parsed answer or chunk; null when it is none or names no tokens. */
export function decodeUsage({ usage, service_tier }: JsonObject): Usage | null {
  if (!isObject(usage)) return null;
  const counts = countsIn(usage);
  if (counts === null) return null;
  const input = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : usage;
  const output = isObject(usage.completion_tokens_details) ? usage.completion_tokens_details : usage;
  const counted = withReasoning(tokens(usage.total_tokens), {
    input: counts.input,
    output: counts.output,
    cached: Math.max(tokens(input.cached_tokens), otherCached(usage)),
    cacheWritten: Math.max(tokens(input.cache_write_tokens), otherWritten(usage)),
    reasoning: tokens(output.reasoning_tokens),
  });
  return withCharges(counted, {
    searches: searchesIn(usage),
    parts: partsOf(usage),
    tier: tierOf(service_tier),
  });
}

/** A count that may be missing, or be none. */
function tokens(value: unknown): number {
  const whole = Math.floor(numberOrNull(value) ?? 0);
  return Number.isSafeInteger(whole) ? Math.max(0, whole) : 0;
}

/** Writes the JSON text of a `usage` object. Details that say nothing are left out. */
export function encodeUsage({ input, output, cached, cacheWritten, reasoning }: Usage): string {
  let text = `{"prompt_tokens":${input},"completion_tokens":${output},"total_tokens":${input + output}`;
  if (cached > 0 || cacheWritten > 0) {
    const written = cacheWritten > 0 ? `,"cache_write_tokens":${cacheWritten}` : '';
    text += `,"prompt_tokens_details":{"cached_tokens":${cached}${written}}`;
  }
  if (reasoning > 0) text += `,"completion_tokens_details":{"reasoning_tokens":${reasoning}}`;
  return `${text}}`;
}
