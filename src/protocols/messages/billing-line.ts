/**
 * How Claude Code begins its system prompt: a line for its vendor's accounts, which ends with a number that changes with
 * every call (`cch=…`). For any other model it is noise at the very place from which prompt caches count.
 */
const billingMark = 'x-anthropic-billing-header:';

/**
 * Takes the line out of a system prompt.
 * @param system its texts; the line is a text of its own, or the first line of the first one
 */
export function withoutBillingLine(system: readonly string[]): readonly string[] {
  const [first, ...rest] = system;
  if (first?.startsWith(billingMark) !== true) return system;
  const end = first.indexOf('\n');
  const kept = end === -1 ? '' : first.slice(end).trimStart();
  return kept === '' ? rest : [kept, ...rest];
}

/** A part of a body, as offsets of its bytes. */
interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Where the line stands in a body that is not parsed: up to the end of its JSON string, or the first escape in it.
 * @param within the line has to begin among so many first bytes
 */
export function findBillingLine(body: Buffer, within: number): ByteRange | null {
  const start = body.subarray(0, within).indexOf(billingMark, 0, 'latin1');
  if (start === -1) return null;
  let end = start + billingMark.length;
  while (end < body.length && body[end] !== 0x22 && body[end] !== 0x5c) end++;
  return { start, end };
}
