import { isObjectText, parseJson } from '../wire/json.js';

/** Member for arguments that are not an object. */
export const argumentsMember = 'input';

/**
 * Returns the arguments of a call as the JSON text of an object. Some protocols require an object, which not all models
 * write. The text of an object is returned unchanged, so that large numbers keep all their digits. Anything else is
 * wrapped in an object.
 */
export function objectArguments(text: string): string {
  if (isObjectText(text)) return text;
  if (text.trim() === '') return '{}';
  const value = parseJson(text);
  return JSON.stringify({ [argumentsMember]: value === undefined ? text : value });
}
