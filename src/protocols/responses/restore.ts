import { carryingMark, withBareId } from '../../conversation/carrying-id.js';
import { tokenMarks, untagSignature } from '../../conversation/signature.js';
import { changedObjects, type JsonObject, textOf, textOrNull } from '../../wire/json.js';
import { type Sealer, sealMark } from '../../wire/seal.js';
import { isCompaction, openCompaction } from './compact.js';
import { answerOfItem, ownItemMark } from './made-id.js';
import { openReasoning } from './reasoning.js';

/** Prefix of a text that was sealed here. */
const sealTag = sealMark.whole.toString('latin1', 1);

/**
 * Marks of tokens, including those in ids of calls, of compactions, and of other vendors' searches and reasoning; see
 * `Translation.carriedMarks`.
 */
export const carriedMarks = [...tokenMarks, carryingMark, sealMark, ownItemMark];

/**
 * Restores in a body what a client carries for the gateway; see `Translation.restore`. Reasoning gets the id and the
 * encrypted text of its upstream, or is removed if no upstream of this protocol made it. A compaction that was made
 * here becomes a message of the user. Removed are a compaction that cannot be opened, which no upstream could read
 * either, and a search that another vendor ran. Ids of calls lose the tokens that they carry.
 */
export function restore(body: JsonObject, sealer: Sealer): JsonObject | null {
  const input = changedObjects(body.input, (item) => restoreItem(item, sealer));
  return input === null ? null : { ...body, input };
}

/** @returns the same item if there is nothing to restore, or null if it has to be removed */
function restoreItem(item: JsonObject, sealer: Sealer): JsonObject | null {
  const isOwn = answerOfItem(textOf(item.id)) !== null;
  if (item.type === 'web_search_call' && isOwn) return null;
  if (typeof item.call_id === 'string') return withBareId(item, 'call_id');
  const carried = textOrNull(item.encrypted_content);
  // The vendor looks up reasoning that is not encrypted by its id, and answers 404 if it did not make it.
  if (item.type === 'reasoning' && isOwn && (carried === null || untagSignature(carried) === null))
    return null;
  if (carried === null) return item;
  if (item.type === 'reasoning') return restoreReasoning(item, carried);
  if (!isCompaction(item) || !carried.startsWith(sealTag)) return item;
  const text = openCompaction(item, sealer);
  if (text === null) return null;
  return { type: 'message', role: 'user', content: [{ type: 'input_text', text }] };
}

function restoreReasoning(item: JsonObject, token: string): JsonObject | null {
  if (untagSignature(token) === null) return item;
  const opened = openReasoning(token);
  if (opened === null) return null;
  const { id, content } = opened;
  const members = Object.entries(item).flatMap(([key, value]): [string, unknown][] => {
    if (key === 'encrypted_content') return [[key, content]];
    if (key !== 'id') return [[key, value]];
    return id === '' ? [] : [[key, id]];
  });
  if (id !== '' && !Object.hasOwn(item, 'id')) members.push(['id', id]);
  return Object.fromEntries(members);
}
