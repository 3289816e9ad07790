/**
 * All deadlines of a worker's upstream connections on one coarse timer.
 * Accuracy: never early; late by less than two ticks, unless the event loop itself was blocked.
 *
 * A wheel of slots, each a linked list. Moving a deadline to a later time, which every read does, only stores a number.
 * An entry that is not due when its slot is processed moves to its new slot then.
 */

import { performance } from 'node:perf_hooks';
import { type FaultPlace, type Guarded, handFault } from '../errors.js';

/** Milliseconds between two turns of the wheel. */
const tickMs = 100;

const slotCount = 512;
/** An interval between two ticks above this means that the event loop was blocked. */
const blockedMs = 5 * tickMs;

/** An entry of the wheel. Its owner may read `due`; only the wheel writes these fields. */
export abstract class Timed implements Guarded {
  /** When the entry is due (performance.now), or Infinity. */
  due = Number.POSITIVE_INFINITY;
  /** Tick of the slot that holds the entry, or -1. */
  tick = -1;
  previous: Timed | null = null;
  next: Timed | null = null;

  /** Called once when due; by then the entry is no longer in the wheel. */
  abstract expire(now: number): void;
  abstract onFault(where: FaultPlace, fault: unknown): void;
}

export class TimerWheel {
  readonly #slots: (Timed | null)[] = new Array<Timed | null>(slotCount).fill(null);
  #cursor = 0;
  #size = 0;
  #timer: NodeJS.Timeout | null = null;
  /** Time of the last tick (performance.now): a coarse clock while the wheel runs. */
  lastTick = 0;
  #forgave = false;

  /** Sets when an entry is due, replacing the previous value. */
  set(entry: Timed, due: number): void {
    entry.due = due;
    if (this.#timer === null) this.#start();
    const tick = this.#tickOf(due);
    if (entry.tick !== -1) {
      if (entry.tick <= tick) return;
      this.#unlink(entry);
    }
    this.#link(entry, tick);
  }

  /** Removes an entry. */
  clear(entry: Timed): void {
    entry.due = Number.POSITIVE_INFINITY;
    if (entry.tick !== -1) this.#unlink(entry);
  }

  #tickOf(due: number): number {
    const tick = Math.ceil(due / tickMs);
    if (tick <= this.#cursor) return this.#cursor + 1;
    return tick < this.#cursor + slotCount ? tick : this.#cursor + slotCount - 1;
  }

  #link(entry: Timed, tick: number): void {
    const slot = tick % slotCount;
    const first = this.#slots[slot] ?? null;
    entry.tick = tick;
    entry.next = first;
    if (first !== null) first.previous = entry;
    this.#slots[slot] = entry;
    this.#size++;
  }

  #unlink(entry: Timed): void {
    if (entry.previous !== null) entry.previous.next = entry.next;
    else this.#slots[entry.tick % slotCount] = entry.next;
    if (entry.next !== null) entry.next.previous = entry.previous;
    entry.previous = null;
    entry.next = null;
    entry.tick = -1;
    this.#size--;
  }

  #start(): void {
    this.lastTick = performance.now();
    this.#cursor = Math.floor(this.lastTick / tickMs);
    this.#timer = setInterval(() => this.#turn(), tickMs).unref();
  }

  #expire(entry: Timed, now: number): void {
    try {
      entry.expire(now);
    } catch (fault) {
      handFault(entry, 'timer', fault);
    }
  }

  #turn(): void {
    if (this.#size === 0 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
      return;
    }
    const now = performance.now();
    const blocked = now - this.lastTick > blockedMs;
    this.lastTick = now;
    // After a blocked loop, answers may be waiting in the kernel: they are read before any deadline fires. Only one
    // tick is skipped, or no deadline would fire in a loop that is always slow.
    if (blocked && !this.#forgave) {
      this.#forgave = true;
      return;
    }
    this.#forgave = false;
    const last = Math.floor(now / tickMs);
    while (this.#cursor < last) {
      this.#cursor++;
      const slot = this.#cursor % slotCount;
      for (let entry = this.#slots[slot]; entry; entry = this.#slots[slot]) {
        this.#unlink(entry);
        if (entry.due <= now) this.#expire(entry, now);
        else if (entry.due !== Number.POSITIVE_INFINITY) this.#link(entry, this.#tickOf(entry.due));
      }
    }
  }
}
