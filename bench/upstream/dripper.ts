import type { HttpResponse } from 'uWebSockets.js';
import { streamEvents } from './answers.js';

/** Streams whole answers event by event, as fast as their clients read them. */
interface Dripper {
  add(res: HttpResponse): void;
  remove(res: HttpResponse): void;
}

/**
 * Writes one event of every open stream in each turn of the event loop, each in its own write. A proxy thus receives
 * many small segments, as from a model, and not one large one.
 */
export function createDripper(): Dripper {
  const events = streamEvents().map((text) => Buffer.from(text));
  const open = new Map<HttpResponse, number>();
  let running = false;

  const turn = (): void => {
    for (const [res, next] of open) {
      const event = events[next];
      if (event) {
        open.set(res, next + 1);
        res.cork(() => res.write(event));
      } else {
        open.delete(res);
        res.cork(() => res.end());
      }
    }
    running = open.size > 0;
    if (running) setImmediate(turn);
  };

  return {
    add(res) {
      res.writeHeader('content-type', 'text/event-stream');
      open.set(res, 0);
      if (running) return;
      running = true;
      setImmediate(turn);
    },
    remove(res) {
      open.delete(res);
    },
  };
}
