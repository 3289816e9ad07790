import { GatewayError } from '../../errors.js';
import {
  type HeldMember,
  heldFields,
  heldMembers,
  imageCountMembers,
  type Sought,
} from '../../wire/count-members.js';
import { isObject, type JsonObject } from '../../wire/json.js';
import { foldName } from '../../wire/member-guard.js';
import type { FormPart } from '../../wire/multipart.js';
import { noFile, wrongValue } from '../../wire/reading.js';
import { mostCount } from './schema.js';

/*
 * How many images a body asks for. It is passed on as it came, to servers that differ on the member that counts and on
 * where it stands: what is metered is the largest number that any of them could read.
 */

const sought: Sought = {
  names: new Set(imageCountMembers.map(foldName)),
  // DashScope has `parameters`, Ark `sequential_image_generation_options`.
  holders: new Set(
    ['parameters', 'metadata', 'extra_body', 'sequential_image_generation_options'].map(foldName),
  ),
};

/**
 * The largest number of images that a JSON body asks for.
 * @param body its long strings may be cut
 * @param whole gives the body with its long strings
 * @returns null where it names none
 * @throws {GatewayError} of status 400, naming the member, for what could count and is no number
 */
export function countIn(body: JsonObject, whole: () => JsonObject): number | null {
  return largest(heldMembers(holdsText(body) ? whole() : body, sought));
}

/**
 * The same of a form, which has the members of objects as `parameters[n]` or `parameters.n`.
 * @throws {GatewayError} of status 400, naming the field
 */
export function countInForm(parts: readonly FormPart[]): number | null {
  return largest(heldFields(parts, sought));
}

/** Whether some holder is a text, which may be that of an object. */
function holdsText(body: JsonObject): boolean {
  return Object.entries(body).some(([name, value]) => {
    if (!sought.holders.has(foldName(name))) return false;
    return typeof value === 'string' || (isObject(value) && holdsText(value));
  });
}

function largest(members: Iterable<HeldMember>): number | null {
  let most: number | null = null;
  for (const { at, value, isInText, isFile } of members) {
    // Some servers take a file for a field of its name.
    if (isFile) throw noFile(at);
    if (isInText) throw inText(at);
    const count = countOf(value, at);
    if (count !== null) most = Math.max(most ?? count, count);
  }
  return most;
}

function inText(at: string): GatewayError {
  return new GatewayError(
    'unsupported_parameter',
    `'${at}' stands in a text, in which it could come twice: send it in an object.`,
    { param: at },
  );
}

/** A number, or the text of one, which some servers take for it. */
function countOf(value: unknown, at: string): number | null {
  if (value === null || value === '') return null;
  const count = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value;
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 1 || count > mostCount)
    throw wrongValue(at, `an integer between 1 and ${mostCount}`);
  return count;
}
