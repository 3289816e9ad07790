import { BACKSLASH, QUOTE } from '../../wire/bytes.js';
import type { Span } from '../../wire/json-scan.js';

/**
 * Prefix of the first line of Claude Code's system prompt. The line is for its vendor's billing and ends with a number
 * that changes with every call (`cch=…`). For any other model it is noise, at the very place from which prompt caches
 * count.
 */
const billingMark = 'x-anthropic-billing-header:';

/**
 * Removes the line from a system prompt.
 * @param system its texts; the line is a separate text, or the first line of the first text
 */
export function withoutBillingLine(system: readonly string[]): readonly string[] {
  const [first, ...rest] = system;
  if (first?.startsWith(billingMark) !== true) return system;
  const end = first.indexOf('\n');
  const kept = end === -1 ? '' : first.slice(end).trimStart();
  return kept === '' ? rest : [kept, ...rest];
}

/**
 * Finds the line in a body that is not parsed. It extends to the end of its JSON string, or to the first escape in it.
 * @param within number of bytes in which the line has to begin
 */
export function findBillingLine(body: Buffer, within: number): Span | null {
  const start = body.subarray(0, within).indexOf(billingMark, 0, 'latin1');
  if (start === -1) return null;
  let end = start + billingMark.length;
  while (end < body.length && body[end] !== QUOTE && body[end] !== BACKSLASH) end++;
  return { start, end };
}
