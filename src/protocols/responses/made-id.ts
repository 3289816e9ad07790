import { needleOf } from '../../wire/json-skip.js';

/*
 * Ids of items that were made here of what an upstream of another protocol said: searches (`ws`) and reasoning (`rs`).
 * No upstream of this protocol knows them.
 */

/** What a body must hold for such an id to be in it. */
export const ownItemMark = needleOf('s_gw1_');
const ownId = /^(?:ws|rs)_gw1_([0-9a-f]{1,64})_\d{1,9}$/;

/** @param index number of the item in `output` */
export function ownItemId(kind: 'ws' | 'rs', answer: string, index: number): string {
  return `${kind}_gw1_${answer}_${index}`;
}

/** Id of the answer that an item was written in here, by the item's; null for any other id. */
export function answerOfItem(id: string): string | null {
  return ownId.exec(id)?.[1] ?? null;
}
