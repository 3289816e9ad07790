import {
  type Holder,
  isHolder,
  type KeptChain,
  type KeptTurn,
  readRecord,
  writeTurn,
} from '../../conversation/kept-turns.js';
import { isObject, type JsonObject, listOf } from '../../wire/json.js';
import { elementsOf } from '../../wire/json-scan.js';
import { withoutMembers } from '../../wire/json-skip.js';
import { answerOfItem } from './made-id.js';

/** A turn as it is kept: a response with the items of its request. */
export interface KeptResponse extends KeptChain {
  /** JSON texts of the client's items, separated by commas. */
  readonly items: string;
  /** JSON text of the response as it was sent to the client. */
  readonly response: string;
}

/** Returns the value of a turn's record. The turn's part is the texts of its items. */
export function writeKept(turn: KeptTurn, response: string): string {
  return writeTurn(turn, (items) => `"items":[${items}]`, 'response', response);
}

/** @returns the turn or its holder, or null for a value of another form */
export function readKept(value: string): KeptResponse | Holder | null {
  const kept = readRecord(value, 'responses', ['items', 'response']);
  if (kept === null || isHolder(kept)) return kept;
  const [items = '', response = ''] = kept.texts;
  return { bytes: kept.bytes, before: kept.before, items: items.slice(1, -1), response };
}

/** Returns the JSON text of the list of a response's items. */
export function outputOf(response: string): string {
  const output = withoutMembers(Buffer.from(response), new Set(['output']))?.taken.get('output');
  return output?.startsWith('[') ? output : '[]';
}

/**
 * Returns the JSON texts of the items of a list.
 * @param list its JSON text
 */
export function itemsIn(list: string): readonly string[] {
  return elementsOf(Buffer.from(list)) ?? [];
}

/** Returns the ids of a response and of its items. */
export function idsOf({ id, output }: JsonObject): readonly string[] {
  const ids = [id, ...listOf(output).map((item) => (isObject(item) ? item.id : null))];
  return ids.filter((each) => typeof each === 'string');
}

/**
 * An id of the gateway's own items: prefix, id of the answer, number of the item. An `i` stands before the number of a
 * client's item.
 */
const ownItem = /^[a-z]{2,4}_([0-9a-f]{8,64})(?:_i?\d+)?$/;

/** Returns the id of the response that an item of the gateway's own belongs to; null for any other id. */
export function responseOfItem(id: string): string | null {
  const made = answerOfItem(id) ?? ownItem.exec(id)?.[1];
  return made === undefined ? null : `resp_${made}`;
}

/** Suffix of the id of a client's item. */
const clientItem = /_i(\d+)$/;

/**
 * Returns the number of a client's item in its turn, for the id under which it is shown; null for an item of the
 * answer.
 */
export function clientItemNumber(id: string): number | null {
  const found = clientItem.exec(id)?.[1];
  return found === undefined ? null : Number(found);
}
