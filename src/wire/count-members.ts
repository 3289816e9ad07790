import { isObject, type JsonObject, parseObject, wrongValue } from './json.js';
import { foldName } from './member-guard.js';
import type { FormPart } from './multipart.js';

/*
 * Names from which servers read how many images or videos are requested. Servers that accept several formats read all
 * of their names, in the body itself and in objects that some servers merge into it.
 */

/** Names for images and videos. */
export const countMembers: readonly string[] = [
  ...['n', 'count', 'sample_count', 'num_samples', 'n_variants', 'num_outputs'],
  ...['number_of_results', 'batch_size'],
];

/** Names for images, including those of Google's APIs in their spelling. */
export const imageCountMembers: readonly string[] = [
  ...countMembers,
  ...['image_count', 'num_images', 'n_images', 'number_of_images', 'num_images_per_prompt', 'max_images'],
  ...['numberOfImages', 'sampleCount'],
];

/** Maximum number of names in a path: nested holders, and a member. */
const mostLevels = 4;
/** Maximum length of names. Servers know no longer one for these members. */
const longestName = 256;
/** Maximum length of a holder that is JSON text: some clients send `metadata` like this. */
const longestText = 16_384;

/** What to find, by names as returned by `foldName`. */
export interface Sought {
  readonly names: ReadonlySet<string>;
  /** Objects in which servers also look for the names. */
  readonly holders: ReadonlySet<string>;
  /** Holders that are a prompt in other APIs: a text there need not be JSON, whatever it begins with. */
  readonly prompts?: ReadonlySet<string>;
}

/** A member that was found, in the body itself or in holders. */
export interface HeldMember {
  /** Names from the top of the body. */
  readonly path: readonly string[];
  /** The path as the client wrote it. */
  readonly at: string;
  readonly name: string;
  readonly value: unknown;
  /** True if the member is within a text that is passed on unchanged, in which a name may occur twice. */
  readonly isInText: boolean;
  /** True for a file of a form. */
  readonly isFile: boolean;
}

/**
 * Finds members in a JSON body.
 * @throws {GatewayError} of status 400 for a holder that is a text which may be an object and cannot be parsed
 */
export function heldMembers(body: JsonObject, sought: Sought): Generator<HeldMember> {
  return lookInto(body, [], false, sought);
}

/**
 * Finds members in a form, where members of objects are named like `metadata[n]` or `metadata.n`.
 * @throws {GatewayError} of status 400
 */
export function* heldFields(parts: readonly FormPart[], sought: Sought): Generator<HeldMember> {
  for (const { name, filename, data } of parts) {
    const path = name.slice(0, longestName).match(/[^[\].]+/g) ?? [];
    const last = foldName(path.at(-1) ?? '');
    const isWanted = sought.names.has(last) || sought.holders.has(last);
    if (!isWanted || !path.slice(0, -1).every((each) => sought.holders.has(foldName(each)))) continue;
    // One byte more than the longest text can have: each code unit takes at most three bytes.
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
  // The text is refused even if it is not JSON here, since some parsers accept more, such as NaN.
  const object = value.length <= longestText ? parseObject(value) : null;
  if (object !== null || mayBePrompt) return object;
  throw wrongValue(
    path.join('.'),
    `an object, or the JSON text of one, of at most ${longestText} characters`,
  );
}
