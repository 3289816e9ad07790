import type { HttpResponse } from 'uWebSockets.js';
import { chunkEvent } from './answers.js';
import { blankStamp, hostUs, writeStamp } from './stamp.js';

/** At least this many slots in a turn, and one every five milliseconds of a long turn. */
const leastSlots = 20;
const slotsPerSecond = 200;

/** Keeps streams open and sends each of them events at a steady rate until its client disconnects. */
interface Pacer {
  add(res: HttpResponse): void;
  remove(res: HttpResponse): void;
}

/**
 * Steady streams from one timer. Each stream belongs to one of the slots of a turn, so that the events of ten
 * thousand streams are spread over the turn instead of being sent together.
 * @param eventsPerSecond of each stream; a whole number
 * @param stamped each event contains the time at which it is written
 */
export function createPacer(eventsPerSecond: number, stamped = false): Pacer {
  const slots = Math.max(leastSlots, Math.round(slotsPerSecond / eventsPerSecond));
  const rings: Set<HttpResponse>[] = Array.from({ length: slots }, () => new Set());
  const event = Buffer.from(chunkEvent(stamped ? ` ${blankStamp}` : ' word'));
  const slotMs = 1000 / eventsPerSecond / slots;
  let added = 0;
  let turns = 0;
  let startedAt = 0;
  let timer: NodeJS.Timeout | null = null;

  // uWS copies what it cannot send at once.
  const send = (res: HttpResponse): void => {
    if (stamped) writeStamp(event, hostUs());
    res.write(event);
  };
  const tick = (): void => {
    // Catches up if the timer was late: the rate is kept, and the client sees the delay.
    const due = Math.floor((performance.now() - startedAt) / slotMs);
    for (; turns < due; turns += 1) {
      for (const res of rings[turns % slots] ?? []) res.cork(() => send(res));
    }
  };

  return {
    add(res) {
      res.writeHeader('content-type', 'text/event-stream');
      send(res);
      rings[added % slots]?.add(res);
      added += 1;
      if (timer) return;
      startedAt = performance.now();
      timer = setInterval(tick, slotMs);
    },
    remove(res) {
      for (const ring of rings) ring.delete(res);
    },
  };
}
