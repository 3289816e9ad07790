import type { Json, JsonObject } from '../json.js';
import { type Language, literal, python, typescript } from './quoting.js';

/** Code that does one request. */
export interface Sample {
  readonly python: string;
  readonly typescript: string;
}

/** What a sample is written from. */
export interface SampleSource {
  /** Of the gateway: scheme and authority. */
  readonly baseUrl: string;
  /** What the SDK's own parameters say. */
  readonly body: JsonObject;
  /** What is laid over it, which Python's SDKs take apart. */
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

/** A call with one object. */
export function typescriptCall(name: string, members: JsonObject): string {
  return `${name}(${broken(members, typescript)})`;
}

/** The members with those that the SDK does not know, as Python's SDKs take them. */
export function withExtraBody(members: JsonObject, extra: JsonObject): JsonObject {
  return Object.keys(extra).length === 0 ? members : { ...members, extra_body: extra };
}

/** An object over several lines, however short it is. */
function broken(members: JsonObject, language: Language): string {
  const { step } = language;
  const lines = Object.entries(members).map(
    ([name, value]) => `${step}${language.member(name)}${literal(value as Json, language, step)},\n`,
  );
  return `{\n${lines.join('')}}`;
}
