import type { Json, JsonObject } from '../json.js';
import { type Language, literal, python, typescript } from './quoting.js';

/** Code for one request. */
export interface Sample {
  readonly python: string;
  readonly typescript: string;
}

/** The input of a sample. */
export interface SampleSource {
  /** Scheme and authority of the gateway. */
  readonly baseUrl: string;
  /** Members that the SDK has parameters for. */
  readonly body: JsonObject;
  /** Members merged over the body, which Python's SDKs take separately. */
  readonly extra: JsonObject;
}

export const pythonKey = 'os.environ["GATEWAY_KEY"]';
export const typescriptKey = 'process.env.GATEWAY_KEY';

/** A call with a named argument for each member. */
export function pythonCall(name: string, members: JsonObject): string {
  const lines = Object.entries(members).map(
    ([member, value]) => `    ${member}=${literal(value as Json, python, '    ')},\n`,
  );
  return `${name}(\n${lines.join('')})`;
}

/** A call with one object as its argument. */
export function typescriptCall(name: string, members: JsonObject): string {
  return `${name}(${broken(members, typescript)})`;
}

/** Adds the members that the SDK does not know, in the form of Python's SDKs. */
export function withExtraBody(members: JsonObject, extra: JsonObject): JsonObject {
  return Object.keys(extra).length === 0 ? members : { ...members, extra_body: extra };
}

/** An object written over several lines, however short. */
function broken(members: JsonObject, language: Language): string {
  const { step } = language;
  const lines = Object.entries(members).map(
    ([name, value]) => `${step}${language.member(name)}${literal(value as Json, language, step)},\n`,
  );
  return `{\n${lines.join('')}}`;
}
