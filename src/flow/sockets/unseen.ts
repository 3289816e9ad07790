import { closeSync, openSync, readSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { Logger } from 'pino';
import { handFault } from '../../errors.js';
import type { ClientSocket } from '../../http/socket.js';
import { residentMemory } from '../../metrics/gauges.js';
import type { SessionMemory } from './session-memory.js';
import type { SessionList } from './sessions.js';

const mebibyte = 1024 * 1024;
const tickMs = 50;
/** Ticks after which memory is measured closely, whether or not it has grown. */
const slowTicks = 20;
/** Ticks without a socket after which uWS holds nothing of closed ones. */
const lingerTicks = 400;
/** Growth of the process that triggers a close measurement. */
const stepBytes = 8 * mebibyte;
/** A client that has owed a pong for this long is treated as being within a frame. */
const patienceMs = 500;
/** Bounds of the bytes that closing a socket has to free for it to count as a holder; with more sockets, fewer suffice. */
const yieldBytes = { most: mebibyte, least: 64 * 1024 };
/** Most sockets of a key that may be closed without effect per `futileMs`; more if all memory for sockets is used. */
const maxFutileCloses = { ofShare: 2, ofAll: 16 };
/** For a key with many sockets, one in this many instead. */
const futileFraction = 12;
const futileMs = 30_000;

/** Fraction of the bound that is kept free of unfinished messages. */
const keptFree = 1 / 8;

/**
 * Bytes of the process: resident without the pages of mapped files, such as those of an embedded store, and native ones,
 * which are neither in V8's heap nor in buffers.
 */
interface MemoryReading {
  resident(): number;
  native(): number;
  close(): void;
}

/** Where Linux counts a process's pages: all, resident ones, and those of the latter that belong to files. */
const pageCounts = '/proc/self/statm';
const mostCountsBytes = 128;

/**
 * Reads the memory of this process, until closed.
 * @param countsPath without such a file, mapped files count, too, and both readings stay at their last values while no
 * file descriptor is free
 */
export function ownMemory(countsPath = pageCounts): MemoryReading {
  let pages = openPageCounts(countsPath);
  let [resident, native] = [0, 0];
  const read = (): number | null => (pages === null ? residentMemory() : pages.unmapped());
  return {
    resident() {
      resident = read() ?? resident;
      return resident;
    },
    native() {
      const now = read();
      const { total_heap_size: heap, external_memory: external } = getHeapStatistics();
      if (now !== null) native = now - heap - external;
      return native;
    },
    // Not twice: the descriptor's number may be another file's by then.
    close() {
      pages?.close();
      pages = null;
    },
  };
}

/**
 * Opens the counts of this process's pages. An open file is read in half of the time of `process.memoryUsage.rss`.
 * @returns null where there are none
 */
function openPageCounts(countsPath: string): { unmapped(): number; close(): void } | null {
  const text = Buffer.alloc(mostCountsBytes);
  try {
    const file = openSync(countsPath, 'r');
    const counts = (): readonly number[] =>
      text
        .toString('latin1', 0, readSync(file, text, 0, mostCountsBytes, 0))
        .split(' ')
        .map(Number);
    const [, resident = 0] = counts();
    // Node does not tell the size of a page, which is a power of two.
    const pageBytes = 2 ** Math.round(Math.log2((residentMemory() ?? 0) / resident));
    const unmapped = (): number => {
      const [, all = 0, ofFiles = 0] = counts();
      return (all - ofFiles) * pageBytes;
    };
    if (unmapped() > 0) return { unmapped, close: () => closeSync(file) };
    closeSync(file);
  } catch {
    // Neither file nor descriptor.
  }
  return null;
}

/**
 * Bounds the memory that uWS holds for unfinished messages, which it does not report. The process's memory outside V8's
 * heap and buffers is measured instead, relative to its value when no socket was open. If that exceeds what one key may
 * hold, every client is pinged; a client that owes the pong is within a frame. Sockets of a key with many of these are
 * closed, as long as that frees memory, until the key is down to its share. If the bound of all keys is reached, clients
 * that have answered are closed alternately with them, since their messages may arrive in fragments.
 */
export class UnseenMemory {
  readonly #sessions: SessionList;
  readonly #memory: SessionMemory;
  readonly #log: Logger;
  readonly #reading: MemoryReading;
  #ticks = 0;
  /** Ticks since the last socket was closed. */
  #emptyTicks = 0;
  /** Native bytes without sockets, and resident bytes below which no close measurement is made. */
  #base: number;
  #calmBelow = 0;
  /** Sockets closed without effect, by key; keys whose closed sockets freed memory; and the start of these records. */
  readonly #futile = new Map<string, number>();
  readonly #guilty = new Set<string>();
  #knownSince = 0;

  constructor(sessions: SessionList, log: Logger, reading: MemoryReading) {
    this.#sessions = sessions;
    this.#memory = sessions.memory;
    this.#log = log;
    this.#reading = reading;
    this.#base = reading.native();
  }

  tick(now: number): void {
    const isSlow = ++this.#ticks % slowTicks === 0;
    if (this.#sessions.size > 0) this.#emptyTicks = 0;
    else if (++this.#emptyTicks > lingerTicks || !this.#memory.isPressed) {
      if (isSlow) this.#rebase();
      return;
    }
    if (!this.#measure(isSlow)) return;
    this.#sessions.each(({ client }) => client?.ask(now, patienceMs / 2));
    this.#relieve(now);
  }

  /**
   * Called when many bytes have arrived within one turn of the event loop, in which no tick runs. No pongs are read in it
   * either, so only the bound of all keys is enforced.
   */
  onMuch(now: number): void {
    if (this.#sessions.size === 0 || !this.#measure(false) || this.#excess <= 0) return;
    this.#renew(now);
    this.#search(() => false);
  }

  /** @returns whether there is so much that it has to be attributed to keys */
  #measure(isSlow: boolean): boolean {
    const resident = this.#reading.resident();
    if (!isSlow && !this.#memory.isPressed && resident < this.#calmBelow) return false;
    const native = this.#reading.native();
    const unseen = Math.max(0, native - this.#base - this.#countedBytes());
    const { heldBytesPerKey } = this.#memory.settings;
    this.#memory.unseenBytes = unseen;
    this.#memory.isPressed = unseen > heldBytesPerKey;
    if (!this.#memory.isPressed) this.#calmBelow = resident + Math.min(stepBytes, heldBytesPerKey - unseen);
    return this.#memory.isPressed;
  }

  /** Takes a new base, when uWS has neither open sockets nor buffers of closed ones. */
  #rebase(): void {
    this.#base = this.#reading.native();
    this.#memory.unseenBytes = 0;
    this.#memory.isPressed = false;
    this.#calmBelow = 0;
  }

  #countedBytes(): number {
    let bytes = 0;
    for (const { client } of this.#sessions.all()) bytes += client?.countedBytes ?? 0;
    return bytes;
  }

  /** Clears the records of keys after a while. */
  #renew(now: number): void {
    if (now - this.#knownSince <= futileMs) return;
    this.#knownSince = now;
    this.#futile.clear();
    this.#guilty.clear();
  }

  #relieve(now: number): void {
    this.#renew(now);
    const isFull = this.#excess > 0;
    const isSilent = (client: ClientSocket): boolean => client.silence(now) > patienceMs;
    for (const [keyId, sockets] of this.#socketsByKey(isSilent)) {
      if (this.#isLarge(sockets) && this.#mayTry(keyId, maxFutileCloses.ofShare))
        this.#reduce(keyId, sockets);
    }
    const isFound = this.#excess > 0 && this.#search(isSilent);
    if (isFull && !isFound && this.#excess > 0) this.#absolve();
  }

  /** Bytes held beyond the bound, of which a fraction is kept free for new sockets. */
  get #excess(): number {
    const { unseenBytes, bytes, settings } = this.#memory;
    return unseenBytes + bytes - settings.heldBytes * (1 - keptFree);
  }

  #mayTry(keyId: string, most: number): boolean {
    return this.#guilty.has(keyId) || (this.#futile.get(keyId) ?? 0) <= most;
  }

  /**
   * Closes a socket of each key in turn until one frees memory, and then more of that key's. The search then ends for
   * now, since memory that is freed with a delay must cost no other key its sockets.
   * @returns whether any of them held memory
   */
  #search(isSilent: (client: ClientSocket) => boolean): boolean {
    const pools = [...this.#socketsByKey(isOpen)].map(([keyId, sockets]) => ({
      keyId,
      sockets: alternating(shuffled(sockets), isSilent),
    }));
    pools.sort((a, b) => b.sockets.length - a.sockets.length);
    for (const { keyId, sockets } of pools) if (this.#guilty.has(keyId)) this.#reduce(keyId, sockets);
    // Keys that can hold no more than their share are tried last, if none of the others held the memory.
    const large = pools.filter(
      ({ keyId, sockets }) => this.#isLarge(sockets) && this.#mayTry(keyId, mostOf(sockets)),
    );
    return this.#tryInTurn(large.length > 0 ? large : pools);
  }

  /** Closes a socket of each key in turn, and more of a key whose socket held memory. @returns whether one did */
  #tryInTurn(
    pools: readonly { readonly keyId: string; readonly sockets: readonly ClientSocket[] }[],
  ): boolean {
    for (let round = 0; this.#excess > 0; round++) {
      let tried = false;
      for (const { keyId, sockets } of pools) {
        const client = sockets[round];
        if (client === undefined || this.#guilty.has(keyId)) continue;
        if (!this.#mayTry(keyId, mostOf(sockets))) continue;
        tried = true;
        if (this.#cut(keyId, client) === 0) continue;
        this.#reduce(keyId, sockets.slice(round + 1));
        return true;
      }
      if (!tried) break;
    }
    return false;
  }

  /** Whether a key has enough sockets to hold more than its share. */
  #isLarge(sockets: readonly ClientSocket[]): boolean {
    const { heldBytesPerKey, messageBytes } = this.#memory.settings;
    return sockets.length > Math.floor(heldBytesPerKey / messageBytes);
  }

  /** Closes sockets of a key while they free memory, and the key exceeds its share or all memory for sockets is used. */
  #reduce(keyId: string, sockets: readonly ClientSocket[]): void {
    const { heldBytesPerKey } = this.#memory.settings;
    let [closed, returned, tried] = [0, 0, 0];
    for (const client of sockets) {
      const rest = tried === 0 ? Number.POSITIVE_INFINITY : ((sockets.length - tried) * returned) / tried;
      if (this.#excess <= 0 && rest <= heldBytesPerKey) break;
      if (!this.#mayTry(keyId, maxFutileCloses.ofShare)) break;
      if (!client.isOpen) continue;
      const back = this.#cut(keyId, client);
      tried++;
      returned += back;
      if (back > 0) closed++;
    }
    if (closed > 0)
      this.#log.warn(
        { key: keyId, sockets: closed, bytes: returned },
        'closing sockets with unfinished messages',
      );
  }

  /** Closes a socket. @returns the bytes freed, which happens synchronously; 0 if too few to count */
  #cut(keyId: string, client: ClientSocket): number {
    const { most, least } = yieldBytes;
    const worth = Math.max(least, Math.min(most, this.#memory.unseenBytes / (4 * this.#sessions.size)));
    const before = this.#reading.native();
    try {
      client.cut();
    } catch (fault) {
      handFault(client, 'socket', fault);
    }
    const back = before - this.#reading.native();
    if (back < worth) {
      this.#futile.set(keyId, (this.#futile.get(keyId) ?? 0) + 1);
      return 0;
    }
    this.#guilty.add(keyId);
    this.#memory.bar(keyId);
    this.#memory.unseenBytes = Math.max(0, this.#memory.unseenBytes - back);
    return back;
  }

  /** Called when no socket held the growth: adds half of it to the base. */
  #absolve(): void {
    const { unseenBytes } = this.#memory;
    this.#log.warn({ bytes: unseenBytes }, 'memory has grown by more than the sockets account for');
    this.#base += unseenBytes / 2;
    this.#memory.unseenBytes /= 2;
  }

  #socketsByKey(isMeant: (client: ClientSocket) => boolean): Map<string, ClientSocket[]> {
    const byKey = new Map<string, ClientSocket[]>();
    this.#sessions.each(({ key, client }) => {
      if (client === null || !isMeant(client)) return;
      const sockets = byKey.get(key.id);
      if (sockets === undefined) byKey.set(key.id, [client]);
      else sockets.push(client);
    });
    return byKey;
  }
}

/** Alternates sockets for which a condition holds with others, since clients decide whether it holds. */
function alternating(
  sockets: readonly ClientSocket[],
  holds: (client: ClientSocket) => boolean,
): ClientSocket[] {
  const [first, second] = [sockets.filter(holds), sockets.filter((client) => !holds(client))];
  const all: ClientSocket[] = [];
  for (let at = 0; at < Math.max(first.length, second.length); at++)
    for (const client of [first[at], second[at]]) if (client !== undefined) all.push(client);
  return all;
}

/** Shuffled, so that nobody can predict which is tried first. */
function shuffled(sockets: readonly ClientSocket[]): ClientSocket[] {
  return sockets
    .map((client) => ({ client, order: Math.random() }))
    .sort((one, other) => one.order - other.order)
    .map(({ client }) => client);
}

function mostOf(sockets: readonly ClientSocket[]): number {
  return Math.max(maxFutileCloses.ofAll, Math.floor(sockets.length / futileFraction));
}

function isOpen(client: ClientSocket): boolean {
  return client.isOpen;
}

/** Starts bounding the memory of a worker's sockets, until closed. */
export function watchUnseen(sessions: SessionList, log: Logger): { close(): void } {
  const reading = ownMemory();
  const unseen = new UnseenMemory(sessions, log, reading);
  const { memory } = sessions;
  const tick = (): void => {
    const now = performance.now();
    memory.turned(now);
    unseen.tick(now);
  };
  memory.onMuch = (now) => unseen.onMuch(now);
  const timer = setInterval(tick, tickMs).unref();
  const close = (): void => {
    clearInterval(timer);
    memory.onMuch = null;
    reading.close();
  };
  return { close };
}
