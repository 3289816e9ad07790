import { isLegalId } from '../../conversation/kept-turns.js';
import { parseJson } from '../../wire/json.js';
import {
  afterColon,
  endOfString,
  endOfValue,
  mostDepth,
  needleOf,
  skipSpace,
  textStart,
} from '../../wire/json-skip.js';
import { firstEventEnd } from '../../wire/sse.js';

const data = Buffer.from('data:');
const quote = 0x22;
const comma = 0x2c;
const openBrace = 0x7b;
/** The id of a response stands in the first event of its stream; others may send a keep-alive before it. */
const mostEvents = 4;

/**
 * The id of a response by the beginning of its JSON text.
 * @returns null where it is not there, or not one that can be asked for
 */
export function idOfBeginning(beginning: Buffer): string | null {
  return idAt(beginning, textStart(beginning));
}

/** The same by the first events of its stream, of which the last may be cut off. */
export function idOfEvents(run: Buffer): string | null {
  let start = 0;
  for (let count = 0; count < mostEvents && start < run.length; count += 1) {
    const at = run.indexOf(data, start);
    if (at === -1) return null;
    const id = idAt(run, memberAt(run, skipSpace(run, at + data.length), 'response'));
    if (id !== null) return id;
    const end = firstEventEnd(run, start, run.length);
    if (end === -1) return null;
    start = end;
  }
  return null;
}

function idAt(bytes: Buffer, object: number): string | null {
  const at = memberAt(bytes, object, 'id');
  const end = at === -1 ? -1 : endOfValue(bytes, at, mostDepth);
  const id = end === -1 ? null : parseJson(bytes.toString('utf8', at, end));
  return typeof id === 'string' && isLegalId(id) ? id : null;
}

/** Where the value of a member begins, or -1: what stands behind it may be missing. @param object where its object opens */
function memberAt(bytes: Buffer, object: number, name: string): number {
  if (bytes[object] !== openBrace) return -1;
  let at = skipSpace(bytes, object + 1);
  while (at < bytes.length && bytes[at] === quote) {
    const close = endOfString(bytes, at + 1);
    const value = close === -1 ? -1 : afterColon(bytes, close);
    if (value === -1) return -1;
    if (bytes.toString('latin1', at + 1, close) === name) return value;
    const end = endOfValue(bytes, value, mostDepth);
    at = end === -1 ? -1 : skipSpace(bytes, end);
    if (at === -1 || bytes[at] !== comma) return -1;
    at = skipSpace(bytes, at + 1);
  }
  return -1;
}

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
