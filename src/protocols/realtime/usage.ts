import type { Usage } from '../../conversation/usage.js';
import { createUsageReader, tokenNames } from '../openai-shared/usage.js';

const reader = createUsageReader(tokenNames);
const marker = Buffer.from('"response.done"');
/** An event's type stands in its first bytes, before everything that may be long. */
const typeWithin = 256;

/** @returns what a server event says that a response has used, or null for every event but `response.done` */
export function usageOfEvent(event: Buffer): Usage | null {
  const begin = event.length > typeWithin ? event.subarray(0, typeWithin) : event;
  return begin.includes(marker) ? reader.lastUsage(event) : null;
}

/** The sum of what two responses of a session have used. */
export function addUsage(before: Usage | null, more: Usage): Usage {
  if (before === null) return more;
  return {
    input: before.input + more.input,
    output: before.output + more.output,
    cached: before.cached + more.cached,
    cacheWritten: before.cacheWritten + more.cacheWritten,
    reasoning: before.reasoning + more.reasoning,
  };
}
