import { isObject, type JsonObject } from '../wire/json.js';
import type { StoredCall } from './store.js';

/** Form of a page of calls that were rows of another store. The gateway's packed forms have the other numbers. */
const form = 4;

/** Writes calls that were rows as the text of one line, for a store without a table of calls. */
export function writeCallLine(calls: readonly StoredCall[]): string {
  return JSON.stringify({ v: form, calls });
}

/** @returns the calls of such a text, which was parsed as JSON; null for any other */
export function readCallLine(page: JsonObject | null): readonly StoredCall[] | null {
  return page?.v === form && Array.isArray(page.calls) ? page.calls.filter(isStoredCall) : null;
}

function isStoredCall(call: unknown): call is StoredCall {
  return isObject(call) && typeof call.at === 'number' && isObject(call.values);
}
