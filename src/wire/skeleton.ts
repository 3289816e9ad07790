import { DOT } from './bytes.js';
import { invalidJson } from './json-fault.js';
import type { BodyScan } from './json-scan.js';

/** Skeletons up to this size share one buffer, which is in use only until the parse returns. */
const scratchBytes = 1 << 20;
/** Number of bytes kept at the start of a long string. They are for error messages; no check may depend on them. */
const headBytes = 16;
/**
 * Number of dots. They are ASCII: a character beyond Latin-1 would make V8 store the whole text with two bytes each.
 */
const ellipsis = 3;
/** Below this, a loop copies faster than a call into native code. */
const shortCopy = 48;

let scratch: Buffer = Buffer.allocUnsafeSlow(16 << 10);

/**
 * Parses a body for validation. The value is that of the body, except that string values longer than 256 bytes are cut
 * to their first characters and three dots. Structure, types, keys, numbers and short strings are as in a full parse.
 * So a schema yields the same result if it only requires of a string to be one, to be non-empty, or to be one of some
 * constants. The top-level `model` is never cut.
 *
 * Invalid escapes, raw control characters and invalid UTF-8 within a long string are not detected. They cannot change
 * the string's end, and are passed on unchanged to the upstream, whose own parser handles them.
 * @param body the whole body
 * @param scan the result of `scanBody` for it
 * @throws {GatewayError} `invalid_json` with the position in the body.
 */
export function parseBody(body: Buffer, scan: BodyScan): unknown {
  // One long string in a body of 1 KB already pays for the copy (0.9 against 1.4 µs).
  if (scan.cuts.length === 0) return parseWhole(body);
  const needed = body.length - scan.cutBytes + (scan.cuts.length >> 1) * (headBytes + ellipsis);
  const target = needed > scratchBytes ? Buffer.allocUnsafeSlow(needed) : scratchOf(needed);
  const length = writeSkeleton(body, scan.cuts, target);
  return parse(target.toString('utf8', 0, length), body);
}

/**
 * Parses a whole body, for code that translates it or needs its long strings.
 * @throws {GatewayError} `invalid_json` with the position in the body.
 */
export function parseWhole(body: Buffer): unknown {
  return parse(body.toString('utf8'), body);
}

function parse(text: string, body: Buffer): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidJson(body);
  }
}

function scratchOf(needed: number): Buffer {
  if (scratch.length < needed) {
    scratch = Buffer.allocUnsafeSlow(Math.min(scratchBytes, Math.max(needed, scratch.length * 2)));
  }
  return scratch;
}

/** Writes the body without its long strings to `target`, which must be large enough. Returns the length. */
function writeSkeleton(body: Buffer, cuts: readonly number[], target: Buffer): number {
  let from = 0;
  let length = 0;
  for (let i = 0; i < cuts.length; i += 2) {
    const cut = headEnd(body, cuts[i] as number);
    length = copy(body, from, cut, target, length);
    for (let dot = 0; dot < ellipsis; dot++) target[length++] = DOT;
    from = cuts[i + 1] as number;
  }
  return copy(body, from, body.length, target, length);
}

/**
 * Returns where the kept start of a string ends: before an escape or a multi-byte character, so that neither is split.
 */
function headEnd(body: Buffer, start: number): number {
  let at = start;
  while (at < start + headBytes) {
    const byte = body[at] as number;
    if (byte === 0x5c || byte >= 0x80) break;
    at++;
  }
  return at;
}

function copy(from: Buffer, start: number, end: number, to: Buffer, at: number): number {
  const length = end - start;
  if (length > shortCopy) {
    from.copy(to, at, start, end);
  } else {
    for (let i = 0; i < length; i++) to[at + i] = from[start + i] as number;
  }
  return at + length;
}
