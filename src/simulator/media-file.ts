import { createHash } from 'node:crypto';
import { patternBytes } from './media-pattern.js';

/** A file that can be read from any place in it. */
export interface MediaFile {
  readonly type: string;
  /** Bytes. */
  readonly size: number;
  /** With its quotes. */
  readonly etag: string;
  /** @param range first byte, and the one behind the last */
  read(range: { readonly from: number; readonly to: number }): Iterable<Buffer>;
}

const pieceLength = 64 * 1024;
/** Files of which parts are asked for one after another are made once. */
const mostKept = 64 * 1024 * 1024;
const kept = new Map<string, Buffer>();
let keptBytes = 0;

/**
 * A file that is made when it is first wanted.
 * @param name tells it from all others: the same name, the same bytes
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

/** A file of noise, as large as is wanted. */
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
  // The one used last is the one forgotten last.
  kept.set(name, bytes);
  keptBytes += bytes.length;
  for (const [old, { length }] of kept) {
    if (keptBytes <= mostKept) {
      break;
    }
    kept.delete(old);
    keptBytes -= length;
  }
  return bytes;
}
