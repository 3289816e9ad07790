import { isObject, type JsonObject } from '../wire/json.js';
import type { StoredCall } from './store.js';

/** The form of a page of calls that were rows of another store; the packed forms of the gateway are below it. */
const form = 4;

/** Calls that were rows, as the text of one line: for a store that has no table of calls. */
export function writeCallLine(calls: readonly StoredCall[]): string {
  return JSON.stringify({ v: form, calls });
}

/** @returns the calls of such a text, which was read as JSON, or null for another one */
export function readCallLine(page: JsonObject | null): readonly StoredCall[] | null {
  return page?.v === form && Array.isArray(page.calls) ? page.calls.filter(isStoredCall) : null;
}

function isStoredCall(call: unknown): call is StoredCall {
  return isObject(call) && typeof call.at === 'number' && isObject(call.values);
}
