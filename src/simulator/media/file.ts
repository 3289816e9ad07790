import { createHash } from 'node:crypto';
import type { Directive } from '../faults/directives.js';
import { bodyReply, type Reply, type Step } from '../http/reply.js';
import type { RouteRequest } from '../http/route.js';
import { binaryFormat } from './route.js';

/** Every block begins with its number in eight bytes, followed by noise that is the same in all blocks. */
const blockLength = 1024 * 1024;
const numberLength = 8;
const noisePieceLength = 256 * 1024;

/**
 * Any part of an endless, deterministic sequence of bytes in which no two megabytes are equal. Takes one block of memory,
 * however much is read.
 * @param range first byte, and the one after the last
 */
export function* patternBytes(range: { readonly from: number; readonly to: number }): Generator<Buffer> {
  let at = range.from;
  while (at < range.to) {
    const block = Math.floor(at / blockLength);
    const offset = at - block * blockLength;
    const left = Math.min(range.to - at, blockLength - offset);
    const piece =
      offset < numberLength
        ? numberOf(block).subarray(offset, offset + left)
        : noise().subarray(offset, offset + Math.min(left, noisePieceLength));
    at += piece.length;
    yield piece;
  }
}

function numberOf(block: number): Buffer {
  const bytes = Buffer.alloc(numberLength);
  bytes.writeBigUInt64BE(BigInt(block));
  return bytes;
}

let made: Buffer | null = null;

/** Marsaglia's xorshift over 32 bits, from a fixed seed. */
function noise(): Buffer {
  if (made === null) {
    made = Buffer.allocUnsafe(blockLength);
    let state = 0x9e3779b9;
    for (let at = 0; at < blockLength; at += 4) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      made.writeInt32LE(state | 0, at);
    }
  }
  return made;
}

/** A file that can be read at any position. */
export interface MediaFile {
  readonly type: string;
  /** Bytes. */
  readonly size: number;
  /** With its quotes. */
  readonly etag: string;
  /** @param range first byte, and the one after the last */
  read(range: { readonly from: number; readonly to: number }): Iterable<Buffer>;
}

const pieceLength = 64 * 1024;
/** Bytes of cached files, so that a file requested in parts is generated once. */
const maxKept = 64 * 1024 * 1024;
const kept = new Map<string, Buffer>();
let keptBytes = 0;

/**
 * A file that is generated on first use.
 * @param name unique name; the same name has the same bytes
 */
export function generatedFile(name: string, type: string, make: () => Buffer): MediaFile {
  const bytes = remembered(name, make);
  function* read(range: { readonly from: number; readonly to: number }): Generator<Buffer> {
    for (let at = range.from; at < range.to; at += pieceLength) {
      yield bytes.subarray(at, Math.min(at + pieceLength, range.to));
    }
  }
  return { type, size: bytes.length, etag: etagOf(name), read };
}

/** A file of noise of any size. */
export function patternFile(size: number, type: string): MediaFile {
  return { type, size, etag: etagOf(`pattern ${size}`), read: patternBytes };
}

function etagOf(name: string): string {
  return `"${createHash('sha256').update(name).digest('hex').slice(0, 24)}"`;
}

function remembered(name: string, make: () => Buffer): Buffer {
  const bytes = kept.get(name) ?? make();
  if (kept.delete(name)) {
    keptBytes -= bytes.length;
  }
  // Least recently used files are evicted first.
  kept.set(name, bytes);
  keptBytes += bytes.length;
  for (const [old, { length }] of kept) {
    if (keptBytes <= maxKept) {
      break;
    }
    kept.delete(old);
    keptBytes -= length;
  }
  return bytes;
}

interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * Answers `GET` and `HEAD` for a file, with conditions and ranges (RFC 9110, sections 13 and 14). One range is served;
 * several, or one that cannot be read, give the whole file.
 */
export function serveFile(asked: RouteRequest, file: MediaFile, directives: readonly Directive[]): Reply {
  const headers = {
    'content-type': file.type,
    'accept-ranges': 'bytes',
    etag: file.etag,
    'cache-control': 'private, max-age=3600',
  };
  if (matches(asked.header('if-none-match'), file.etag)) {
    return {
      ...bodyReply({ status: 304, body: '', answerFormat: binaryFormat, directives }),
      headers,
      length: null,
    };
  }
  const condition = asked.header('if-range');
  const wanted = condition === undefined || condition === file.etag ? asked.header('range') : undefined;
  const range = readRange(wanted, file.size);
  if (range === 'unsatisfiable') {
    const refused = bodyReply({ status: 416, body: '', answerFormat: binaryFormat, directives });
    return { ...refused, headers: { ...headers, 'content-range': `bytes */${file.size}` } };
  }
  const part = range ?? { from: 0, to: file.size };
  return {
    ...bodyReply({ status: range === null ? 200 : 206, body: '', answerFormat: binaryFormat, directives }),
    headers:
      range === null
        ? headers
        : { ...headers, 'content-range': `bytes ${part.from}-${part.to - 1}/${file.size}` },
    length: part.to - part.from,
    // Pieces count as events, so that faults can occur in the middle of a file that is not in memory.
    stream: true,
    steps: asked.method === 'HEAD' ? [] : pieces(file, part),
  };
}

function* pieces(file: MediaFile, part: Range): Generator<Step> {
  for (const bytes of file.read(part)) {
    yield { kind: 'data', bytes, tokens: 0 };
  }
}

function matches(header: string | undefined, etag: string): boolean {
  const tags = (header ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes('*') || tags.includes(etag);
}

/** The range, null for the whole file. */
function readRange(header: string | undefined, size: number): Range | 'unsatisfiable' | null {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? '') ?? [];
  if (first === '' && last === '') {
    return null;
  }
  if (first === '') {
    const from = Math.max(0, size - Number(last));
    return from < size ? { from, to: size } : 'unsatisfiable';
  }
  const from = Number(first);
  const to = last === '' ? size : Math.min(size, Number(last) + 1);
  if (last !== '' && Number(last) < from) {
    return null;
  }
  return from < size ? { from, to } : 'unsatisfiable';
}
