import type { HttpResponse } from 'uWebSockets.js';
import { chunkEvent } from './answers.js';
import { blankStamp, hostUs, writeStamp } from './stamp.js';

/** At least so many in a turn, and one every five milliseconds of a long one. */
const leastSlots = 20;
const slotsPerSecond = 200;

/** Keeps streams open and sends each of them events at a steady rate until its peer leaves. */
interface Pacer {
  add(res: HttpResponse): void;
  remove(res: HttpResponse): void;
}

/**
 * Steady streams from one timer: each stream belongs to one of the slots of a turn, so that the events of ten
 * thousand streams spread over the turn instead of leaving together.
 * @param eventsPerSecond of each stream; a whole number
 * @param stamped each event holds the time at which it is written
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

  // uWS has its own copy of what it cannot send at once.
  const send = (res: HttpResponse): void => {
    if (stamped) writeStamp(event, hostUs());
    res.write(event);
  };
  const tick = (): void => {
    // Catches up when the timer came late: the rate holds, and lateness shows at the client.
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
