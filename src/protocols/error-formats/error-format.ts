import type { RateFamily } from '../../config/types.js';
import { type ErrorKind, errorTable, type GatewayError } from '../../errors.js';

/** How a vendor writes errors, and what accompanies them in its answers. */
export interface ErrorFormat {
  readonly name: 'openai' | 'anthropic' | 'google' | 'kling' | 'jimeng';
  /** Returns the JSON text of an error body. */
  errorBody(error: GatewayError, requestId: string): string;
  /**
   * Returns the last words of a stream after a failure: complete SSE text that this error format's SDKs raise as an
   * error.
   * @param number of the event in its stream, for protocols that number them
   */
  errorEvent(error: GatewayError, requestId: string, number: number): string;
  /**
   * Tells whether a client raises the error event of a stream, by its `user-agent`, which is empty if absent. A client
   * that does not treats a stream that ends after the event as complete, and notices the failure only if the connection
   * breaks. Null if all clients raise it.
   */
  readonly readsErrorEvents: ((userAgent: string) => boolean) | null;
  /** Complete SSE text to send on a silent stream, which the format's SDKs ignore. */
  readonly keepAlive: string;
  /** Name of a second header with the request id, or null. */
  readonly requestIdHeader: string | null;
  /** The family of headers in which its SDKs read the limits of their key; null for none. */
  readonly rateHeaders: RateFamily | null;
}

/** Makes a format whose error event is its error body. Its caller overrides the other members as needed. */
export function plainFormat(name: ErrorFormat['name'], errorBody: ErrorFormat['errorBody']): ErrorFormat {
  return {
    name,
    keepAlive: ': keep-alive\n\n',
    requestIdHeader: null,
    rateHeaders: null,
    readsErrorEvents: null,
    errorBody,
    errorEvent: (error, requestId) => `data: ${errorBody(error, requestId)}\n\n`,
  };
}

/** A format's words for errors: by kind, else by the kind's status in `errorTable`, else by who caused the error. */
export interface ErrorWords<Word> {
  readonly kinds: Readonly<Partial<Record<ErrorKind, Word>>>;
  readonly statuses: Readonly<Partial<Record<number, Word>>>;
  /** For any other status below 500. */
  readonly client: Word;
  readonly server: Word;
}

/** @returns the format's word for errors of the kind */
export function wordOf<Word>({ kinds, statuses, client, server }: ErrorWords<Word>, kind: ErrorKind): Word {
  const { status } = errorTable[kind];
  return kinds[kind] ?? statuses[status] ?? (status < 500 ? client : server);
}
