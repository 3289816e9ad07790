import type { Writable } from 'node:stream';
import type { Logger } from 'pino';
import { GatewayError } from '../errors.js';
import type { HistoryView, LiveState } from '../metrics/live-state.js';

/** Most concurrent streams. Each is an open page. */
const mostViewers = 16;
/** Most bytes that may wait for a viewer. */
const mostWaitingBytes = 1024 * 1024;
const stateStepMs = 2000;
/** Seconds until a retry makes sense. */
const retrySeconds = 5;

/** Sources of the stream's data. */
export interface LiveSources {
  /** Points of the last hour, oldest first. */
  history(): readonly HistoryView[];
  state(): Promise<LiveState>;
  readonly log: Logger;
}

/** Sends the same server-sent events to all viewers: see `live-state.ts`. Does nothing while there are none. */
export interface LiveStream {
  /** @throws {GatewayError} `overloaded` if there is no room for another viewer */
  checkRoom(): void;
  /**
   * Starts sending events to a viewer, until it is closed. Destroys a viewer that does not read.
   * @throws {GatewayError} as `checkRoom` does
   */
  watch(viewer: Writable): void;
  /** Sends a new point. */
  point(point: HistoryView): void;
  /** Destroys all viewers. */
  close(): void;
}

/** @param stepMs milliseconds between two states */
export function createLiveStream({ history, state, log }: LiveSources, stepMs = stateStepMs): LiveStream {
  const viewers = new Set<Writable>();
  let timer: NodeJS.Timeout | null = null;
  /** The last state event, for viewers that arrive before the next one. */
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

  /** Sends one state to all viewers. Skipped while another one is awaited. */
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
