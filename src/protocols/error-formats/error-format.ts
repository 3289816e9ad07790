import type { RateFamily } from '../../config/types.js';
import { type ErrorKind, errorTable, type GatewayError } from '../../errors.js';

/** How a vendor writes errors, and what goes around them in its answers. */
export interface ErrorFormat {
  readonly name: 'openai' | 'anthropic' | 'google' | 'kling' | 'jimeng';
  /** The JSON text of an error body. */
  errorBody(error: GatewayError, requestId: string): string;
  /**
   * A stream's last words after a failure: complete SSE text, as this error format's SDKs raise it.
   * @param number of the event in its stream, for protocols that number them
   */
  errorEvent(error: GatewayError, requestId: string, number: number): string;
  /**
   * Whether a client raises the error event of a stream, by its `user-agent` (empty where it names none): one that does
   * not takes a stream that ends after it for a whole one, and learns of the failure only from a connection that breaks.
   * Null where all clients do.
   */
  readonly readsErrorEvents: ((userAgent: string) => boolean) | null;
  /** What is sent on a stream that is silent: complete SSE text that its SDKs pass over. */
  readonly keepAlive: string;
  /** Name of a second header that carries the request id, or null. */
  readonly requestIdHeader: string | null;
  /** In which family's headers its SDKs read the limits of their key; null for none. */
  readonly rateHeaders: RateFamily | null;
}

/** A format whose error event is its error body; what else it says of itself is written over this. */
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

/** What a format calls errors: by their kind, else by its status in `errorTable`, else by whose fault they are. */
export interface ErrorWords<Word> {
  readonly kinds: Readonly<Partial<Record<ErrorKind, Word>>>;
  readonly statuses: Readonly<Partial<Record<number, Word>>>;
  /** Of any other status below 500. */
  readonly client: Word;
  readonly server: Word;
}

/** @returns what an error of the kind is called */
export function wordOf<Word>({ kinds, statuses, client, server }: ErrorWords<Word>, kind: ErrorKind): Word {
  const { status } = errorTable[kind];
  return kinds[kind] ?? statuses[status] ?? (status < 500 ? client : server);
}
