import type { ResolvedConfig } from '../config/resolve.js';

/** What a worker takes up only when it starts, as text that differs when any of it does. */
export function startSettings({ listen, limits, sockets }: ResolvedConfig): string {
  return JSON.stringify([listen.tls, limits.headerBytes, sockets.idleMs, sockets.messageBytes]);
}

/**
 * What must be set before a worker's process starts.
 * @param headerBytes of a request's head that it accepts; uWS reads it from the environment, once
 */
export function workerEnvironment(headerBytes: number): NodeJS.ProcessEnv {
  return {
    // glibc raises this threshold with the first large block that is freed, and then keeps large request bodies in
    // its heap: a worker stayed at 290 MB after a peak of 310, instead of going back to 70.
    MALLOC_MMAP_THRESHOLD_: '131072',
    ...process.env,
    UWS_HTTP_MAX_HEADERS_SIZE: String(headerBytes),
  };
}
