import { imageCountMembers } from '../../wire/count-members.js';
import { isObject, type JsonObject } from '../../wire/json.js';
import { foldName } from '../../wire/member-guard.js';
import type { FormPart } from '../../wire/multipart.js';
import { noFile, wrongValue } from '../../wire/reading.js';
import { mostCount } from './schema.js';

/*
 * How many images a body asks for. It is passed on as it came, to servers that differ on the member that counts and on
 * where it stands: what is metered is the largest number that any of them could read.
 */

const names: ReadonlySet<string> = new Set(imageCountMembers.map(foldName));
/** Objects in which servers look for them: DashScope's `parameters`, Ark's `sequential_image_generation_options`. */
const holders: ReadonlySet<string> = new Set(
  ['parameters', 'metadata', 'extra_body', 'sequential_image_generation_options'].map(foldName),
);
/** One in another, and one more. */
const mostLevels = 4;
/** No server knows a longer name for any of these. */
const longestName = 256;
const longestNumber = 9;

/**
 * The largest number of images that a JSON body asks for.
 * @param body its long strings may be cut
 * @returns null where it names none
 * @throws {GatewayError} of status 400, naming the member, for what could count and is no number
 */
export function countIn(body: JsonObject): number | null {
  return largest(body, []);
}

/**
 * The same of a form, which has the members of objects as `parameters[n]` or `parameters.n`.
 * @throws {GatewayError} of status 400, naming the field
 */
export function countInForm(parts: readonly FormPart[]): number | null {
  let most: number | null = null;
  for (const { name, filename, data } of parts) {
    const path = name.slice(0, longestName).match(/[^[\].]+/g) ?? [];
    if (!path.slice(0, -1).every(isHolder) || !isCount(path.at(-1) ?? '')) continue;
    // Some servers take a file for a field of its name.
    if (filename !== null) throw noFile(name.slice(0, longestName));
    const text = data.toString('utf8', 0, longestNumber + 1);
    most = larger(most, countOf(text, name.slice(0, longestName)));
  }
  return most;
}

function largest(holder: JsonObject, path: readonly string[]): number | null {
  let most: number | null = null;
  for (const [name, value] of Object.entries(holder)) {
    if (name.length > longestName) continue;
    const at = [...path, name];
    if (isCount(name)) most = larger(most, countOf(value, at.join('.')));
    else if (isObject(value) && isHolder(name) && at.length < mostLevels)
      most = larger(most, largest(value, at));
  }
  return most;
}

function isCount(name: string): boolean {
  return names.has(foldName(name));
}

function isHolder(name: string): boolean {
  return holders.has(foldName(name));
}

/** A number, or the text of one, which some servers take for it. */
function countOf(value: unknown, at: string): number | null {
  if (value === null || value === '') return null;
  const count = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value;
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 1 || count > mostCount)
    throw wrongValue(at, `an integer between 1 and ${mostCount}`);
  return count;
}

function larger(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other);
}
