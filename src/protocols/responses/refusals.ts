import { textOrNull } from '../../wire/json.js';

const longestName = 64;

/** What a `type` or a `role` is called in a message: it may be of any shape. */
export function nameOfType(type: unknown): string {
  return textOrNull(type)?.slice(0, longestName) ?? 'unknown';
}

/** The detail of a refusal: what type the refused thing has. */
export function ofType(type: unknown): string {
  return `of type '${nameOfType(type)}'`;
}
