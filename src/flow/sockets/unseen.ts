import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { Logger } from 'pino';
import { handFault } from '../../errors.js';
import type { ClientSocket } from '../../http/socket.js';
import { residentMemory } from '../../metrics/process-gauges.js';
import type { SessionMemory } from './session-memory.js';
import type { SessionList } from './sessions.js';

const mebibyte = 1024 * 1024;
const tickMs = 50;
/** Every so many ticks the memory is looked at closely, whether or not it has grown. */
const slowTicks = 20;
/** After so many of them without a socket, uWS holds nothing of one that was closed. */
const lingerTicks = 400;
/** Growth of the process that is worth a closer look. */
const stepBytes = 8 * mebibyte;
/** A client that has owed a pong for so long is taken to be within a frame. */
const patienceMs = 500;
/** A socket whose end brings so much back has held it; where there are many sockets, a part of what each may hold. */
const yieldBytes = { most: mebibyte, least: 64 * 1024 };
/** Sockets of a key that may be closed in vain within so many milliseconds; more where nothing is left to be held. */
const mostInVain = { ofShare: 2, ofAll: 16 };
/** Of a key with many sockets, one in so many. */
const partInVain = 12;
const inVainMs = 30_000;

/** Part of what may be held that unfinished messages do not take. */
const keptFree = 1 / 8;

/** Bytes of the process: all that is resident, and those that are neither V8's nor in buffers. */
interface MemoryReading {
  resident(): number;
  native(): number;
}

/** Of this process. Where the system has no descriptor left to be asked with, both are what they were the last time. */
export function ownMemory(): MemoryReading {
  let [resident, native] = [0, 0];
  return {
    resident() {
      resident = residentMemory() ?? resident;
      return resident;
    },
    native() {
      const now = residentMemory();
      const { total_heap_size: heap, external_memory: external } = getHeapStatistics();
      if (now !== null) native = now - heap - external;
      return native;
    },
  };
}

/**
 * Bounds what uWS holds of messages that have not ended, which it tells nobody of. What the process holds beside V8's
 * heap and buffers is measured instead, against what it was when no socket was open. Where that is more than one key may
 * hold, every client is asked for a pong: one that owes it is within a frame. Sockets of a key with many of those are
 * closed, as long as their ends bring memory back, until it is down to its share. Where all that may be held is, those
 * that have answered are closed in the same way, in turn with them: their messages may come in fragments.
 */
export class UnseenMemory {
  readonly #sessions: SessionList;
  readonly #memory: SessionMemory;
  readonly #log: Logger;
  readonly #reading: MemoryReading;
  #ticks = 0;
  /** Since the last socket was closed. */
  #emptyTicks = 0;
  /** Native bytes without any of sockets, and resident bytes up to which no closer look is worth it. */
  #base: number;
  #calmBelow = 0;
  /** By key, sockets that were closed in vain; the keys whose sockets were not; and since when that is known. */
  readonly #inVain = new Map<string, number>();
  readonly #guilty = new Set<string>();
  #knownSince = 0;

  constructor(sessions: SessionList, log: Logger, reading: MemoryReading = ownMemory()) {
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
      if (isSlow) this.#settle();
      return;
    }
    if (!this.#measure(isSlow)) return;
    this.#sessions.each(({ client }) => client?.ask(now, patienceMs / 2));
    this.#relieve(now);
  }

  /**
   * Much has come within one turn of the event loop, in which no tick comes. Who owes a pong is not known, since none is
   * read either: only what all may hold counts.
   */
  onMuch(now: number): void {
    if (this.#sessions.size === 0 || !this.#measure(false) || this.#excess <= 0) return;
    this.#renew(now);
    this.#search(() => false);
  }

  /** @returns whether there is so much that it matters whose it is */
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

  /** No socket is open, nor any that was closed within uWS any more. */
  #settle(): void {
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

  /** What is known of keys is forgotten after a while. */
  #renew(now: number): void {
    if (now - this.#knownSince <= inVainMs) return;
    this.#knownSince = now;
    this.#inVain.clear();
    this.#guilty.clear();
  }

  #relieve(now: number): void {
    this.#renew(now);
    const isFull = this.#excess > 0;
    const isSilent = (client: ClientSocket): boolean => client.silence(now) > patienceMs;
    for (const [keyId, sockets] of this.#socketsByKey(isSilent)) {
      if (this.#isLarge(sockets) && this.#mayTry(keyId, mostInVain.ofShare)) this.#reduce(keyId, sockets);
    }
    const isFound = this.#excess > 0 && this.#search(isSilent);
    if (isFull && !isFound && this.#excess > 0) this.#absolve();
  }

  /** What is held beyond what may be, with some room kept for sockets to come. */
  get #excess(): number {
    const { unseenBytes, bytes, settings } = this.#memory;
    return unseenBytes + bytes - settings.heldBytes * (1 - keptFree);
  }

  #mayTry(keyId: string, most: number): boolean {
    return this.#guilty.has(keyId) || (this.#inVain.get(keyId) ?? 0) <= most;
  }

  /**
   * Closes a socket of each key in turn, until it is known whose memory it is, and then more of that key's; with that
   * it ends for now, since what comes back late must cost no other key its sockets.
   * @returns whether any of them was one that held something
   */
  #search(isSilent: (client: ClientSocket) => boolean): boolean {
    const pools = [...this.#socketsByKey(isOpen)].map(([keyId, sockets]) => ({
      keyId,
      sockets: alternating(shuffled(sockets), isSilent),
    }));
    pools.sort((a, b) => b.sockets.length - a.sockets.length);
    for (const { keyId, sockets } of pools) if (this.#guilty.has(keyId)) this.#reduce(keyId, sockets);
    // Those that hold no more than their share come last, when it is none of the others'.
    const large = pools.filter(
      ({ keyId, sockets }) => this.#isLarge(sockets) && this.#mayTry(keyId, mostOf(sockets)),
    );
    return this.#tryInTurn(large.length > 0 ? large : pools);
  }

  /** @returns whether one of a socket of each in turn held something: then more of its key's are closed */
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

  /** Of fewer sockets a key holds no more than its share. */
  #isLarge(sockets: readonly ClientSocket[]): boolean {
    const { heldBytesPerKey, messageBytes } = this.#memory.settings;
    return sockets.length > Math.floor(heldBytesPerKey / messageBytes);
  }

  /** Closes sockets of a key as long as it has more than its share, or all is held, and they bring memory back. */
  #reduce(keyId: string, sockets: readonly ClientSocket[]): void {
    const { heldBytesPerKey } = this.#memory.settings;
    let [closed, returned, tried] = [0, 0, 0];
    for (const client of sockets) {
      const rest = tried === 0 ? Number.POSITIVE_INFINITY : ((sockets.length - tried) * returned) / tried;
      if (this.#excess <= 0 && rest <= heldBytesPerKey) break;
      if (!this.#mayTry(keyId, mostInVain.ofShare)) break;
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

  /** @returns bytes that came back, which they do at once; 0 when they were not worth it */
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
      this.#inVain.set(keyId, (this.#inVain.get(keyId) ?? 0) + 1);
      return 0;
    }
    this.#guilty.add(keyId);
    this.#memory.bar(keyId);
    this.#memory.unseenBytes = Math.max(0, this.#memory.unseenBytes - back);
    return back;
  }

  /** Something else has grown: half of it is left out of account from now on. */
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

/** One for which it holds, then one for which it does not, and so on: a client decides which of them it is. */
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

/** So that nobody can tell which is tried first. */
function shuffled(sockets: readonly ClientSocket[]): ClientSocket[] {
  return sockets
    .map((client) => ({ client, order: Math.random() }))
    .sort((one, other) => one.order - other.order)
    .map(({ client }) => client);
}

function mostOf(sockets: readonly ClientSocket[]): number {
  return Math.max(mostInVain.ofAll, Math.floor(sockets.length / partInVain));
}

function isOpen(client: ClientSocket): boolean {
  return client.isOpen;
}

/** Watches over the sockets of a worker until it is closed. */
export function watchUnseen(sessions: SessionList, log: Logger): { close(): void } {
  const unseen = new UnseenMemory(sessions, log);
  const { memory } = sessions;
  const tick = (): void => {
    const now = performance.now();
    memory.turned(now);
    unseen.tick(now);
  };
  memory.onMuch = (now) => unseen.onMuch(now);
  const timer = setInterval(tick, tickMs).unref();
  return { close: () => clearInterval(timer) };
}
