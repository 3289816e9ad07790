import { isObject, type JsonObject } from '../wire/json.js';

/** So many names are told of one call. */
const mostNames = 32;
/** The members of all protocols are made of these. */
const plainName = /^[A-Za-z][\w.-]{0,63}$/;

declare const checked: unique symbol;
/** Names that may stand in a header of an answer. Only `LeftOut` makes them. */
export type LeftOutNames = readonly string[] & { readonly [checked]: true };

const none: readonly string[] = [];
/** Where nothing is lost. */
export const nothingLeftOut = none as LeftOutNames;

/**
 * What a translated request loses on its way to a target: names of members of the client's body, each once, never their
 * values. They stand in a header of the answer, so a name that could not stand there is not taken. Also what an answer
 * loses on its way back (`AnswerContext.lost`), which the call record alone tells.
 */
export class LeftOut {
  /** Few, and none for most calls, which then make no list. */
  #names: string[] | null = null;

  /** @param names that are lost whatever the target is */
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
 * Members that are repeated all the same: of tools that are left out the names of the others are still needed, and
 * metadata is what the client has written for itself.
 */
const repeated: readonly string[] = ['tools', 'tool_choice', 'metadata'];

/**
 * Settings as the responses protocol repeats them, without those that were left out of the request.
 * @param names see `LeftOut.names`
 */
export function withoutLeftOut(echo: JsonObject | null, names: readonly string[]): JsonObject | null {
  if (echo === null || names.length === 0) return echo;
  let kept = echo;
  for (const name of names) {
    const path = name.split('.');
    const [member = ''] = path;
    // The same under its newer name.
    if (member === 'user') kept = withoutMember(kept, ['safety_identifier']);
    if (!repeated.includes(member)) kept = withoutMember(kept, path);
  }
  return kept;
}

/** @param path names of the member and of the objects that it is in */
function withoutMember(holder: JsonObject, [name = '', ...inner]: readonly string[]): JsonObject {
  const { [name]: value, ...others } = holder;
  if (inner.length === 0) return others;
  return isObject(value) ? { ...holder, [name]: withoutMember(value, inner) } : holder;
}
