import { isObjectText, parseJson } from '../wire/json.js';

/** Member that holds what a model wrote in the place of an object. */
export const argumentsMember = 'input';

/**
 * The arguments of a call as the JSON text of an object, which some protocols want and not all models write: the text
 * itself where it is one, so that large numbers keep all their digits, else an object around it.
 */
export function objectArguments(text: string): string {
  if (isObjectText(text)) return text;
  if (text.trim() === '') return '{}';
  const value = parseJson(text);
  return JSON.stringify({ [argumentsMember]: value === undefined ? text : value });
}
