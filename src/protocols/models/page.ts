import type { Model } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { queryParameter } from '../../wire/query.js';

/**
 * Reads a whole number from the query.
 * @returns the number, or null where the parameter is absent.
 * @throws GatewayError invalid_value when it is not a whole number of at least `least`.
 */
export function wholeNumber(query: string, name: string, least: number): number | null {
  const text = queryParameter(query, name);
  if (text === '') return null;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : -1;
  if (value < least) {
    throw new GatewayError('invalid_value', `'${name}' must be a whole number of at least ${least}.`, {
      param: name,
    });
  }
  return value;
}

/**
 * Finds a page's border in a list.
 * @throws GatewayError invalid_value when the list has no such model; `param` names the cursor's parameter.
 */
export function positionOf(models: readonly Model[], name: string, param: string): number {
  const index = models.findIndex((model) => model.name === name);
  if (index === -1) {
    throw new GatewayError('invalid_value', `'${param}' does not point into this list.`, { param });
  }
  return index;
}
