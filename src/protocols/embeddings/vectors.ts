import { GatewayError } from '../../errors.js';
import { afterColon } from '../../wire/json-skip.js';

const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** By byte: 1 where a flat list of numbers may have it. */
const listBytes = new Uint8Array(256);
for (const character of '0123456789+-.eE, \t\r\n') listBytes[character.charCodeAt(0)] = 1;

/** An answer, and apart from it the texts of its vectors: an answer of millions of numbers is not parsed. */
export interface CutAnswer {
  /** As parsed, with the number of a vector in the place of each. */
  readonly rest: unknown;
  readonly vectors: readonly Buffer[];
}

/**
 * Takes the lists of numbers out of an answer that are the values of a member.
 * @param key the member's name in its quotes: they cannot stand in a text, where they would be escaped
 * @throws {GatewayError} `upstream_error` for what is no JSON, and for a list of something else
 */
export function cutVectors(answer: Buffer, key: Buffer): CutAnswer {
  const pieces: Buffer[] = [];
  const vectors: Buffer[] = [];
  let from = 0;
  for (let at = answer.indexOf(key); at !== -1; at = answer.indexOf(key, at)) {
    const value = afterColon(answer, at + key.length - 1);
    at += key.length;
    if (value === -1 || answer[value] !== OPEN_BRACKET) continue;
    const end = answer.indexOf(CLOSE_BRACKET, value) + 1;
    if (!isListOfNumbers(answer, value + 1, end - 1)) throw unusable('a vector that is no list of numbers');
    pieces.push(answer.subarray(from, value), Buffer.from(String(vectors.length)));
    vectors.push(answer.subarray(value, end));
    from = end;
    at = end;
  }
  pieces.push(answer.subarray(from));
  try {
    return { rest: JSON.parse(Buffer.concat(pieces).toString('utf8')) as unknown, vectors };
  } catch {
    throw unusable('an answer that is no JSON');
  }
}

function isListOfNumbers(bytes: Buffer, from: number, end: number): boolean {
  if (end < from) return false;
  for (let at = from; at < end; at++) if (listBytes[bytes[at] as number] === 0) return false;
  return true;
}

/** What a client is told in place of an answer that is none. @param what for the log */
export function unusable(what: string): GatewayError {
  return new GatewayError('upstream_error', 'The upstream answered with something else than embeddings.', {
    cause: what,
  });
}
