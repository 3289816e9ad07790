import { needleOf } from '../../wire/json-skip.js';

/*
 * Ids of items that the gateway made of an answer of another protocol: searches (`ws`) and reasoning (`rs`). No
 * upstream of this protocol knows them.
 */

/** A body without this contains no such id. */
export const ownItemMark = needleOf('s_gw1_');
const ownId = /^(?:ws|rs)_gw1_([0-9a-f]{1,64})_\d{1,9}$/;

/** @param index number of the item in `output` */
export function ownItemId(kind: 'ws' | 'rs', answer: string, index: number): string {
  return `${kind}_gw1_${answer}_${index}`;
}

/** Returns the id of the answer that the gateway wrote an item in; null for any other id. */
export function answerOfItem(id: string): string | null {
  return ownId.exec(id)?.[1] ?? null;
}
