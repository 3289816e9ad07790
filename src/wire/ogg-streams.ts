import { standsAt } from './json-skip.js';

/** A page begins with this and the version 0. */
const pattern = Buffer.from('OggS\0');
const opusHead = Buffer.from('OpusHead');
const vorbisHead = Buffer.from('\x01vorbis');
const flacHead = Buffer.from('\x7fFLAC');
const speexHead = Buffer.from('Speex   ');
/** Offset of a page's segment table, which follows the number of its entries. */
const segmentsAt = 27;
/** Most bytes that are read at the beginning of a page: with the beginning of a stream's first packet. */
const headBytes = segmentsAt + 255 + 40;
/** Maximum number of pages that are read. */
const mostPages = 16_384;
/** A search of `headBytes` for a page counts as so many pages. */
const searchPages = 32;

const none = Buffer.alloc(0);

interface SoundStream {
  /** Units of its positions per second. */
  readonly rate: number;
  /** Index of the link of the chain that it belongs to. */
  readonly link: number;
}

/**
 * Reads the duration of an Ogg file (RFC 3533) with Opus, Vorbis, FLAC or Speex from the heads of its pages. The links of a chain follow
 * each other, and each counts its positions anew, so the durations of all of them are added. Of sounds side by side within a
 * link, the longest counts.
 */
export class OggStreams {
  /** By their numbers. */
  readonly #streams = new Map<number, SoundStream>();
  /** Seconds of each link. */
  readonly #links: number[] = [];
  /** Whether the current link has pages beside the first ones of its streams. */
  #isBegun = false;
  #lastRate = 0;
  #left = mostPages;
  /** Where the next page begins, from the end of what has passed; and the bytes from there on. */
  #next = 0;
  #rest: Buffer = none;

  /** Whether the file has more pages than are read: `readLast` then has to be called. */
  get isOver(): boolean {
    return this.#left <= 0;
  }

  /** @param bytes valid only until this returns */
  add(bytes: Buffer): void {
    const kept = this.#rest.length;
    let from = bytes;
    let at = this.#next;
    if (at < 0) {
      from = Buffer.concat([this.#rest, bytes.subarray(0, headBytes)]);
      at = this.#walk(from, 0) - kept;
    }
    if (at >= 0) {
      from = bytes;
      at = this.#walk(bytes, at);
    } else at += kept;
    this.#next = this.isOver ? 0 : at - from.length;
    this.#rest = this.#next < 0 ? Buffer.from(from.subarray(at)) : none;
  }

  /** Returns the duration in seconds; 0 if it is unknown. Nothing may be added after this. */
  seconds(): number {
    // The last page may be cut.
    if (this.#next < 0) this.add(Buffer.alloc(headBytes));
    return this.#links.reduce((sum, seconds) => sum + seconds, 0);
  }

  /** Reads pages from an offset on. @returns the offset of the first one that is incomplete, or begins later */
  #walk(bytes: Buffer, from: number): number {
    let at = from;
    while (at + headBytes <= bytes.length && this.#left > 0) {
      if (standsAt(bytes, at, pattern)) {
        this.#readPage(bytes, at);
        at = endOfPage(bytes, at);
        this.#left--;
      } else {
        at = searchPage(bytes, at + 1);
        this.#left -= searchPages;
      }
    }
    return at;
  }

  /** Reads the last page. @param tail the last bytes of the file */
  readLast(tail: Buffer): void {
    if (tail.length < segmentsAt) return;
    // The file may be cut within the head of a later one.
    const at = tail.lastIndexOf(pattern, tail.length - segmentsAt);
    if (at === -1) return;
    // It may be one of a link whose beginning was not read.
    const serial = tail.readUInt32LE(at + 14);
    if (!this.#streams.has(serial) && this.#lastRate > 0) this.#addStream(serial, this.#lastRate);
    this.#readPosition(tail, at);
  }

  #readPage(bytes: Buffer, at: number): void {
    const rate = positionRateOf(bytes, at);
    const serial = bytes.readUInt32LE(at + 14);
    const isFirst = ((bytes[at + 5] as number) & 2) !== 0;
    // Some writers repeat a stream's first packet within it.
    const isRepeated = !isFirst && this.#streams.get(serial)?.link === this.#links.length - 1;
    if (rate > 0 && !isRepeated) this.#addStream(serial, rate);
    else if (!isFirst) this.#isBegun = true;
    this.#readPosition(bytes, at);
  }

  #addStream(serial: number, rate: number): void {
    if (this.#isBegun || this.#links.length === 0) this.#links.push(0);
    this.#isBegun = false;
    this.#lastRate = rate;
    this.#streams.set(serial, { rate, link: this.#links.length - 1 });
  }

  #readPosition(bytes: Buffer, at: number): void {
    const stream = this.#streams.get(bytes.readUInt32LE(at + 14));
    if (stream === undefined) return;
    // A page on which no packet ends has the position -1.
    const position = bytes.readInt32LE(at + 10) * 2 ** 32 + bytes.readUInt32LE(at + 6);
    this.#links[stream.link] = Math.max(this.#links[stream.link] ?? 0, position / stream.rate);
  }
}

function endOfPage(bytes: Buffer, at: number): number {
  const segments = at + segmentsAt;
  const content = segments + (bytes[segments - 1] as number);
  let end = content;
  for (let i = segments; i < content; i++) end += bytes[i] as number;
  return end;
}

/** Searches as many bytes as a page's head may have. @returns the offset of what may be a page, or of what was not searched */
function searchPage(bytes: Buffer, from: number): number {
  const end = from + headBytes - pattern.length;
  for (let at = from; at < end; at++) if (standsAt(bytes, at, pattern)) return at;
  return end;
}

/** Returns the units per second of a stream's positions by its first page; 0 for any other page. */
function positionRateOf(bytes: Buffer, at: number): number {
  const packet = at + segmentsAt + (bytes[at + segmentsAt - 1] as number);
  if (standsAt(bytes, packet, opusHead)) return 48_000;
  if (standsAt(bytes, packet, vorbisHead)) return bytes.readUInt32LE(packet + 12);
  if (standsAt(bytes, packet, flacHead)) return bytes.readUInt32BE(packet + 27) >>> 12;
  return standsAt(bytes, packet, speexHead) ? bytes.readUInt32LE(packet + 36) : 0;
}
