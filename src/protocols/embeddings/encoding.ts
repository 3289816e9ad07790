import { isObject } from '../../wire/json.js';
import { scanBody } from '../../wire/json-scan.js';
import { afterColon } from '../../wire/json-skip.js';
import { parseBody } from '../../wire/skeleton.js';
import { readFloats } from './floats.js';

const QUOTE = 0x22;
const OPEN_BRACKET = 0x5b;

const formatKey = Buffer.from('"encoding_format"');
/** Quoted, so that it is a key or a whole string, and followed by a colon, so that it is a key. */
const embeddingKey = Buffer.from('"embedding"');

/** What stands in the place of an answer's embedding. */
interface Replacement {
  readonly text: Buffer;
  /** Offset after what it replaces. */
  readonly end: number;
}

/**
 * Makes the answer's vectors be of the form that the client asked for: SDKs that ask for base64 and get numbers make
 * empty vectors of them, and clients that ask for numbers cannot read base64. Base64 holds single-precision numbers,
 * little-endian; read from it, each number is written as JavaScript writes that single, which reads back the same.
 * @param body a validated request
 * @returns what puts a whole answer into that form and gives back the same buffer when it is in it already
 */
export function encodingAmender(body: Buffer): (answer: Buffer) => Buffer {
  return asksForBase64(body) ? (answer) => amend(answer, OPEN_BRACKET) : (answer) => amend(answer, QUOTE);
}

function asksForBase64(body: Buffer): boolean {
  if (!body.includes(formatKey)) return false;
  const request = parseBody(body, scanBody(body));
  return isObject(request) && request.encoding_format === 'base64';
}

/** @param unwanted first byte of a vector in the form that was not asked for */
function amend(answer: Buffer, unwanted: number): Buffer {
  let at = nextEmbedding(answer, 0);
  if (at === -1 || answer[at] !== unwanted) return answer;
  const replace = unwanted === OPEN_BRACKET ? asBase64 : asNumbers;
  const pieces: Buffer[] = [];
  let from = 0;
  for (; at !== -1; at = nextEmbedding(answer, at)) {
    const replacement = replace(answer, at);
    if (replacement === null) continue;
    pieces.push(answer.subarray(from, at), replacement.text);
    from = replacement.end;
    at = from;
  }
  if (pieces.length === 0) return answer;
  pieces.push(answer.subarray(from));
  return Buffer.concat(pieces);
}

/** Where the value of the next `embedding` begins, at or after `from`, or -1. */
function nextEmbedding(answer: Buffer, from: number): number {
  let at = answer.indexOf(embeddingKey, from);
  while (at !== -1) {
    const value = afterColon(answer, at + embeddingKey.length - 1);
    if (value !== -1) return value;
    at = answer.indexOf(embeddingKey, at + embeddingKey.length);
  }
  return -1;
}

function asBase64(answer: Buffer, at: number): Replacement | null {
  const found = readFloats(answer, at);
  if (found === null) return null;
  // Every machine that uWebSockets.js runs on is little-endian.
  const { buffer, byteOffset, byteLength } = found.values;
  const text = `"${Buffer.from(buffer, byteOffset, byteLength).toString('base64')}"`;
  return { text: Buffer.from(text, 'latin1'), end: found.end };
}

function asNumbers(answer: Buffer, at: number): Replacement | null {
  if (answer[at] !== QUOTE) return null;
  const close = answer.indexOf(QUOTE, at + 1);
  if (close === -1) return null;
  // Some writers of JSON escape the slash.
  const bytes = Buffer.from(answer.toString('latin1', at + 1, close).replaceAll('\\/', '/'), 'base64');
  if (bytes.length % 4 !== 0) return null;
  const numbers = new Array<number>(bytes.length / 4);
  for (let i = 0; i < numbers.length; i++) numbers[i] = bytes.readFloatLE(4 * i);
  // Not a number, and infinite, cannot be said in JSON.
  if (!numbers.every(Number.isFinite)) return null;
  return { text: Buffer.from(JSON.stringify(numbers), 'latin1'), end: close + 1 };
}
