import { isObject, type JsonObject } from '../wire/json.js';

/** Maximum number of names per call. */
const mostNames = 32;
/** Pattern that the members of all protocols match. */
const plainName = /^[A-Za-z][\w.-]{0,63}$/;

declare const checked: unique symbol;
/** Names that are safe in a header of an answer. Only `LeftOut` creates them. */
export type LeftOutNames = readonly string[] & { readonly [checked]: true };

const none: readonly string[] = [];
/** For calls that lose nothing. */
export const nothingLeftOut = none as LeftOutNames;

/**
 * Collects what a translated request loses on its way to a target: the names of members of the client's body without
 * duplicates, never their values. They are sent in a header of the answer, so names that are not safe there are
 * ignored. Also used for what an answer loses on its way back (`AnswerContext.lost`), which only the call record
 * reports.
 */
export class LeftOut {
  /** Null for most calls, which lose nothing. */
  #names: string[] | null = null;

  /** @param names names that are lost whatever the target is */
  constructor(names: readonly string[] = none) {
    for (const name of names) this.add(name);
  }

  add(name: string): void {
    this.#names ??= [];
    if (this.#names.length < mostNames && plainName.test(name) && !this.#names.includes(name))
      this.#names.push(name);
  }

  get names(): LeftOutNames {
    return this.#names === null ? nothingLeftOut : ([...this.#names] as readonly string[] as LeftOutNames);
  }
}

/**
 * Members that are repeated although parts of them were left out: the names of the remaining tools are still needed,
 * and clients write metadata for themselves.
 */
const repeated: readonly string[] = ['tools', 'tool_choice', 'metadata'];

/**
 * Removes the settings that were left out of the request from those that a responses answer repeats.
 * @param names see `LeftOut.names`
 */
export function withoutLeftOut(echo: JsonObject | null, names: readonly string[]): JsonObject | null {
  if (echo === null || names.length === 0) return echo;
  let kept = echo;
  for (const name of names) {
    const path = name.split('.');
    const [member = ''] = path;
    // The newer name of `user`, which is sent instead of it.
    if (member === 'safety_identifier') kept = withoutMember(kept, ['user']);
    if (!repeated.includes(member)) kept = withoutMember(kept, path);
  }
  return kept;
}

/** @param path names of the enclosing objects and of the member */
function withoutMember(holder: JsonObject, [name = '', ...inner]: readonly string[]): JsonObject {
  const { [name]: value, ...others } = holder;
  if (inner.length === 0) return others;
  return isObject(value) ? { ...holder, [name]: withoutMember(value, inner) } : holder;
}
