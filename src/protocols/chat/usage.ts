import type { Usage } from '../../conversation/usage.js';
import { lastObjectAt } from '../../wire/json-object.js';

const needle = Buffer.from('"usage"');

/** @returns the tokens that a chat `usage` object names, or null when it is none */
export function readUsage(value: unknown): Usage | null {
  if (typeof value !== 'object' || value === null) return null;
  const usage = value as Record<string, unknown>;
  const input = count(usage.prompt_tokens);
  const output = count(usage.completion_tokens);
  if (usage.prompt_tokens === undefined && usage.completion_tokens === undefined) return null;
  const promptDetails = usage.prompt_tokens_details as Record<string, unknown> | null | undefined;
  const completionDetails = usage.completion_tokens_details as Record<string, unknown> | null | undefined;
  return {
    input,
    output,
    cached: count(promptDetails?.cached_tokens),
    reasoning: count(completionDetails?.reasoning_tokens),
  };
}

/**
 * Finds the last `usage` object in the bytes of an answer or in the end of a stream. A quoted `"usage"` cannot
 * occur inside a JSON string, where its quotes would be escaped, so no parse of the rest is needed.
 */
export function lastUsage(bytes: Buffer): Usage | null {
  return readUsage(lastObjectAt(bytes, needle));
}

function count(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}
