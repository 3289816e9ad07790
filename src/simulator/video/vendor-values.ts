import type { JsonObject } from '../http/json.js';

/** Creates the vendor's refusal of a value. */
type Refuse = (message: string) => Error;

/** A member that is a text of at most `most` characters, or null without one. */
export function vendorText(body: JsonObject, name: string, most: number, refuse: Refuse): string | null {
  const value = body[name] ?? null;
  if (value === null) {
    return null;
  }
  if (typeof value !== 'string' || value.length > most) {
    throw refuse(`${name} must be a string of at most ${most} characters`);
  }
  return value;
}

/** A member with one of these words; the first of them if it is absent. */
export function vendorWord<Word extends string>(
  body: JsonObject,
  name: string,
  words: readonly [Word, ...Word[]],
  refuse: Refuse,
): Word {
  const value = body[name] ?? words[0];
  const found = words.find((word) => word === value);
  if (found === undefined) {
    throw refuse(`${name} value '${String(value)}' is invalid, it must be one of ${words.join(', ')}`);
  }
  return found;
}

/** A member that is a number within bounds, or null without one. */
export function vendorNumber(
  body: JsonObject,
  name: string,
  bounds: { readonly least: number; readonly most: number; readonly whole: boolean },
  refuse: Refuse,
): number | null {
  const value = body[name] ?? null;
  if (value === null) {
    return null;
  }
  const { least, most, whole } = bounds;
  if (
    typeof value !== 'number' ||
    !(value >= least && value <= most) ||
    (whole && !Number.isInteger(value))
  ) {
    throw refuse(`${name} must be ${whole ? 'an integer' : 'a number'} from ${least} to ${most}`);
  }
  return value;
}
