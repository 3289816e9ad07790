import type { Writable } from 'node:stream';
import type { Logger } from 'pino';
import { GatewayError } from '../errors.js';
import type { HistoryView, LiveState } from './live-state.js';

/** Streams at once: every one of them is a page that somebody has open. */
const mostViewers = 16;
/** Bytes that may wait for a viewer. */
const mostWaitingBytes = 1024 * 1024;
const stateStepMs = 2000;
/** Seconds after which it is worth trying again. */
const retrySeconds = 5;

/** Where the stream takes what it tells. */
export interface LiveSources {
  /** Points of the last hour, the oldest first. */
  history(): readonly HistoryView[];
  state(): Promise<LiveState>;
  readonly log: Logger;
}

/** Tells everybody who looks the same, as server-sent events: see `live-state.ts`. Does nothing while nobody looks. */
export interface LiveStream {
  /** @throws {GatewayError} `overloaded` when there is no room for another viewer */
  checkRoom(): void;
  /**
   * Begins to tell a viewer, which ends when it is closed. One that does not read is destroyed.
   * @throws {GatewayError} as `checkRoom` does
   */
  watch(viewer: Writable): void;
  /** Tells a new point. */
  point(point: HistoryView): void;
  /** Destroys all viewers. */
  close(): void;
}

/** @param stepMs milliseconds from one state to the next */
export function createLiveStream({ history, state, log }: LiveSources, stepMs = stateStepMs): LiveStream {
  const viewers = new Set<Writable>();
  let timer: NodeJS.Timeout | null = null;
  /** What was told last, for whoever comes before the next time. */
  let last: Buffer | null = null;
  let isAsking = false;

  const tell = (viewer: Writable, event: Buffer): void => {
    if (viewer.destroyed) return;
    if (viewer.writableLength + event.length <= mostWaitingBytes) viewer.write(event);
    else {
      log.warn({ waiting: viewer.writableLength }, 'closing a console connection that does not read');
      viewer.destroy();
    }
  };
  const tellAll = (event: Buffer): void => {
    for (const viewer of viewers) tell(viewer, event);
  };

  /** One state for everybody; while one is awaited, none is asked for. */
  const refresh = async (): Promise<void> => {
    if (isAsking) return;
    isAsking = true;
    try {
      const event = eventOf('state', await state());
      if (viewers.size === 0) return;
      last = event;
      tellAll(event);
    } catch (error) {
      log.error({ err: error }, 'could not collect the state of the gateway');
    } finally {
      isAsking = false;
    }
  };

  const leave = (viewer: Writable): void => {
    viewers.delete(viewer);
    if (viewers.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
    last = null;
  };

  const checkRoom = (): void => {
    if (viewers.size < mostViewers) return;
    throw new GatewayError('overloaded', `${mostViewers} consoles are open, which is the maximum.`, {
      retryAfter: retrySeconds,
    });
  };

  return {
    checkRoom,
    watch(viewer) {
      checkRoom();
      if (viewer.destroyed) return;
      viewers.add(viewer);
      viewer.once('close', () => leave(viewer));
      tell(viewer, eventOf('history', history()));
      if (last !== null) tell(viewer, last);
      if (timer !== null) return;
      timer = setInterval(() => void refresh(), stepMs).unref();
      void refresh();
    },
    point(point) {
      if (viewers.size > 0) tellAll(eventOf('point', point));
    },
    close() {
      for (const viewer of [...viewers]) {
        viewer.destroy();
        leave(viewer);
      }
    },
  };
}

function eventOf(event: 'history' | 'point' | 'state', data: unknown): Buffer {
  return Buffer.from(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}
