import type { BodySpans, Span } from './json-scan.js';

/** What to change in a body for an upstream. */
export interface BodyEdits {
  /** The model's name at the upstream, or null to keep the client's. */
  readonly model: string | null;
  /** Whether to set `stream_options.include_usage` to true. */
  readonly includeUsage: boolean;
}

interface Replacement extends Span {
  readonly text: Buffer;
}

const usageOption = Buffer.from('{"include_usage":true}');
const usageMember = Buffer.from('"stream_options":{"include_usage":true}');
const usageMemberComma = Buffer.from('"stream_options":{"include_usage":true},');
const includeUsage = Buffer.from('"include_usage":true');
const includeUsageComma = Buffer.from('"include_usage":true,');
const trueText = Buffer.from('true');

/**
 * Changes a body without parsing or copying it. All other bytes stay unchanged.
 * @param body valid JSON
 * @param scan the result of `scanBody` for it
 * @param edits a model replaces that of the body, or becomes its first member
 * @returns the pieces in order: slices of `body` and new text, none of them empty, and all read-only. Only `body`
 *   itself if nothing changes
 */
export function spliceBody(body: Buffer, scan: BodySpans, edits: BodyEdits): Buffer[] {
  const usage = edits.includeUsage ? usageReplacement(body, scan) : null;
  const model = edits.model === null ? null : modelReplacement(body, scan, edits.model, usage);
  if (model === null && usage === null) return [body];
  const pieces: Buffer[] = [];
  const modelFirst = model !== null && usage !== null && model.start <= usage.start;
  const first = modelFirst ? model : usage;
  const second = modelFirst ? usage : model;
  let from = 0;
  if (first !== null) from = replace(pieces, body, from, first);
  if (second !== null) from = replace(pieces, body, from, second);
  if (from < body.length) pieces.push(body.subarray(from));
  return pieces;
}

function replace(pieces: Buffer[], body: Buffer, from: number, by: Replacement): number {
  if (by.start > from) pieces.push(body.subarray(from, by.start));
  pieces.push(by.text);
  return by.end;
}

/** Returns the replacement for the model's name. A new member precedes a new usage option. */
function modelReplacement(
  body: Buffer,
  scan: BodySpans,
  model: string,
  usage: Replacement | null,
): Replacement {
  const name = JSON.stringify(model);
  if (scan.model !== null) return { ...scan.model, text: Buffer.from(name) };
  const member = Buffer.from(`"model":${name}`);
  const withComma = Buffer.from(`"model":${name},`);
  return usage?.start === scan.open
    ? { start: scan.open, end: scan.open, text: withComma }
    : insertion(body, scan.open, member, withComma);
}

/** Returns the replacement for the usage option, or null if it is already set. */
function usageReplacement(body: Buffer, scan: BodySpans): Replacement | null {
  const options = scan.streamOptions;
  if (options === null) {
    return insertion(body, scan.open, usageMember, usageMemberComma);
  }
  if (body[options.start] !== 0x7b) return { ...options, text: usageOption };
  const current = scan.includeUsage;
  if (current === null) {
    return insertion(body, options.start + 1, includeUsage, includeUsageComma);
  }
  // The body is valid JSON: a value that begins with `t` is `true`.
  return body[current.start] === 0x74 ? null : { ...current, text: trueText };
}

/** Returns a new first member for the object that opens just before `at`, with a comma unless the object is empty. */
function insertion(body: Buffer, at: number, alone: Buffer, beforeOthers: Buffer): Replacement {
  let next = at;
  while ((body[next] as number) <= 0x20) next++;
  return { start: at, end: at, text: body[next] === 0x7d ? alone : beforeOthers };
}
