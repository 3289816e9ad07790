import {
  type Holder,
  isHolder,
  type KeptChain,
  type KeptTurn,
  readRecord,
  writeTurn,
} from '../../conversation/kept-turns.js';
import { isObject, type JsonObject, listOf } from '../../wire/json.js';
import { elementsOf } from '../../wire/json-elements.js';
import { withoutMembers } from '../../wire/json-skip.js';
import { answerOfItem } from './made-id.js';

/** A turn as it is kept: a response, and what was asked for with it. */
export interface KeptResponse extends KeptChain {
  /** JSON texts of the client's items, with commas between them. */
  readonly items: string;
  /** JSON text of the response as the client got it. */
  readonly response: string;
}

/** The value of the record of a turn, whose part is the texts of its items. */
export function writeKept(turn: KeptTurn, response: string): string {
  return writeTurn(turn, (items) => `"items":[${items}]`, 'response', response);
}

/** @returns the turn or who holds it, or null for a value of another form */
export function readKept(value: string): KeptResponse | Holder | null {
  const kept = readRecord(value, 'responses', ['items', 'response']);
  if (kept === null || isHolder(kept)) return kept;
  const [items = '', response = ''] = kept.texts;
  return { bytes: kept.bytes, before: kept.before, items: items.slice(1, -1), response };
}

/** JSON text of the list of a response's items. */
export function outputOf(response: string): string {
  const output = withoutMembers(Buffer.from(response), new Set(['output']))?.taken.get('output');
  return output?.startsWith('[') ? output : '[]';
}

/** JSON texts of the items of a list. @param list its JSON text */
export function itemsIn(list: string): readonly string[] {
  return elementsOf(Buffer.from(list)) ?? [];
}

/** Ids of a response and of its items. */
export function idsOf({ id, output }: JsonObject): readonly string[] {
  const ids = [id, ...listOf(output).map((item) => (isObject(item) ? item.id : null))];
  return ids.filter((each) => typeof each === 'string');
}

/** Of the gateway's own items: prefix, id of the answer, number of the item, after an `i` for one of the client's. */
const ownItem = /^[a-z]{2,4}_([0-9a-f]{8,64})(?:_i?\d+)?$/;

/** Id of the response that an item of the gateway's own belongs to, by the item's; null for any other. */
export function responseOfItem(id: string): string | null {
  const made = answerOfItem(id) ?? ownItem.exec(id)?.[1];
  return made === undefined ? null : `resp_${made}`;
}

/** What the id of an item of the client's ends with. */
const clientItem = /_i(\d+)$/;

/** Number of one of the client's items in its turn, by the id that it is shown under; null for an item of the answer. */
export function clientItemNumber(id: string): number | null {
  const found = clientItem.exec(id)?.[1];
  return found === undefined ? null : Number(found);
}
