import { COMMA, OPEN_BRACE, QUOTE } from '../wire/bytes.js';
import { parseJson } from '../wire/json.js';
import { afterColon, endOfString, endOfValue, mostDepth, skipSpace, textStart } from '../wire/json-skip.js';
import { firstEventEnd } from '../wire/sse.js';
import { isLegalId, type KeptRecord, type Watch } from './kept-turns.js';

const data = Buffer.from('data:');
/** The id is in the first event of a stream, but some upstreams send a keep-alive event before it. */
const mostEvents = 4;

/**
 * Reads the id of an answer from the beginning of its JSON text.
 * @returns null if the id is absent so far, or is not one that can be requested
 */
export function idOfBeginning(beginning: Buffer): string | null {
  return idAt(beginning, textStart(beginning));
}

/**
 * Reads the id from the first events of a stream, of which the last may be incomplete.
 * @param name name of the member that contains the answer so far
 */
export function idOfEvents(run: Buffer, name: string): string | null {
  let start = 0;
  for (let count = 0; count < mostEvents && start < run.length; count += 1) {
    const at = run.indexOf(data, start);
    if (at === -1) return null;
    const id = idAt(run, memberAt(run, skipSpace(run, at + data.length), name));
    if (id !== null) return id;
    const end = firstEventEnd(run, start, run.length);
    if (end === -1) return null;
    start = end;
  }
  return null;
}

/**
 * Makes a `Watch` that waits for the id of an answer.
 * @param name see `idOfEvents`
 * @param records makes the records to store from the id
 */
export function watchFor(name: string, records: (id: string) => readonly KeptRecord[]): Watch {
  return (piece, isStream) => {
    const id = isStream ? idOfEvents(piece, name) : idOfBeginning(piece);
    return id === null ? null : records(id);
  };
}

function idAt(bytes: Buffer, object: number): string | null {
  const at = memberAt(bytes, object, 'id');
  const end = at === -1 ? -1 : endOfValue(bytes, at, mostDepth);
  const id = end === -1 ? null : parseJson(bytes.toString('utf8', at, end));
  return typeof id === 'string' && isLegalId(id) ? id : null;
}

/**
 * Returns where the value of a member begins, or -1. The object may be incomplete.
 * @param object where the object begins
 */
function memberAt(bytes: Buffer, object: number, name: string): number {
  if (bytes[object] !== OPEN_BRACE) return -1;
  let at = skipSpace(bytes, object + 1);
  while (at < bytes.length && bytes[at] === QUOTE) {
    const close = endOfString(bytes, at + 1);
    const value = close === -1 ? -1 : afterColon(bytes, close);
    if (value === -1) return -1;
    if (bytes.toString('latin1', at + 1, close) === name) return value;
    const end = endOfValue(bytes, value, mostDepth);
    at = end === -1 ? -1 : skipSpace(bytes, end);
    if (at === -1 || bytes[at] !== COMMA) return -1;
    at = skipSpace(bytes, at + 1);
  }
  return -1;
}
