import { isObject, type JsonObject, parseObject } from './json.js';
import { foldName } from './member-guard.js';
import type { FormPart } from './multipart.js';
import { wrongValue } from './reading.js';

/*
 * Names under which servers read how many images or videos are asked for. Those that know several formats read all of
 * their names, in the body itself and in the objects that some of them lay over it.
 */

/** Of either. */
export const countMembers: readonly string[] = [
  ...['n', 'count', 'sample_count', 'num_samples', 'n_variants', 'num_outputs'],
  ...['number_of_results', 'batch_size'],
];

/** Of images; those of Google's APIs in the spelling that these have, too. */
export const imageCountMembers: readonly string[] = [
  ...countMembers,
  ...['image_count', 'num_images', 'n_images', 'number_of_images', 'num_images_per_prompt', 'max_images'],
  ...['numberOfImages', 'sampleCount'],
];

/** One in another, and one more. */
const mostLevels = 4;
/** No server knows a longer name for any member that is sought. */
const longestName = 256;
/** Some clients send `metadata` as a text that is JSON. */
const longestText = 16_384;

/** What is looked for, by names as `foldName` gives them. */
export interface Sought {
  readonly names: ReadonlySet<string>;
  /** Objects in which servers look for them, too. */
  readonly holders: ReadonlySet<string>;
  /** Those of them that are a prompt elsewhere: a text there need not be JSON, whatever it begins with. */
  readonly prompts?: ReadonlySet<string>;
}

/** A member that is sought, in the body itself or in holders. */
export interface HeldMember {
  /** From the top of the body. */
  readonly path: readonly string[];
  /** The same as the client has written it. */
  readonly at: string;
  readonly name: string;
  readonly value: unknown;
  /** It stands in a text that is passed on as it came, in which a name may come twice. */
  readonly isInText: boolean;
  /** It is a file of a form. */
  readonly isFile: boolean;
}

/**
 * Finds the members that are sought in a JSON body.
 * @throws {GatewayError} of status 400 for a holder that is a text which may be an object and cannot be looked into
 */
export function heldMembers(body: JsonObject, sought: Sought): Generator<HeldMember> {
  return lookInto(body, [], false, sought);
}

/**
 * The same of a form, which has the members of objects as `metadata[n]` or `metadata.n`.
 * @throws {GatewayError} of status 400
 */
export function* heldFields(parts: readonly FormPart[], sought: Sought): Generator<HeldMember> {
  for (const { name, filename, data } of parts) {
    const path = name.slice(0, longestName).match(/[^[\].]+/g) ?? [];
    const last = foldName(path.at(-1) ?? '');
    const isWanted = sought.names.has(last) || sought.holders.has(last);
    if (!isWanted || !path.slice(0, -1).every((each) => sought.holders.has(foldName(each)))) continue;
    // A byte more than the longest can have: of three at most each character is made.
    const value = data.toString('utf8', 0, 3 * longestText + 1);
    for (const member of lookAt(path, value, false, sought)) {
      const at = member.path === path ? name.slice(0, longestName) : member.at;
      yield { ...member, at, isFile: filename !== null };
    }
  }
}

function* lookInto(
  object: JsonObject,
  path: readonly string[],
  isInText: boolean,
  sought: Sought,
): Generator<HeldMember> {
  for (const [name, value] of Object.entries(object))
    if (name.length <= longestName) yield* lookAt([...path, name], value, isInText, sought);
}

function* lookAt(
  path: readonly string[],
  value: unknown,
  isInText: boolean,
  sought: Sought,
): Generator<HeldMember> {
  const name = foldName(path.at(-1) ?? '');
  if (sought.names.has(name)) yield { path, at: path.join('.'), name, value, isInText, isFile: false };
  else if (sought.holders.has(name)) {
    const object = isObject(value) ? value : objectIn(value, path, sought.prompts?.has(name) === true);
    if (object !== null && path.length < mostLevels)
      yield* lookInto(object, path, isInText || object !== value, sought);
  }
}

function objectIn(value: unknown, path: readonly string[], mayBePrompt: boolean): JsonObject | null {
  if (typeof value !== 'string' || !value.trimStart().startsWith('{')) return null;
  // What is no JSON here, such as NaN, some parsers take.
  const object = value.length <= longestText ? parseObject(value) : null;
  if (object !== null || mayBePrompt) return object;
  throw wrongValue(
    path.join('.'),
    `an object, or the JSON text of one, of at most ${longestText} characters`,
  );
}
