import type { HttpResponse, us_socket_context_t } from 'uWebSockets.js';
import type { GatewayError } from '../errors.js';
import type { BodyPool } from './body-pool.js';
import type { SweepList } from './sweep.js';

/** What the owner of an exchange hears of its client. */
export interface ExchangeListener {
  /** The client left, or its connection broke. Nothing can be sent any more. */
  onClientGone(): void;
  /** After `write` has said false: the client has taken what waited, go on. */
  onDrained(): void;
  /** A fault of ours has ended what the answer is made of: says so, however much of the answer has left. */
  onBroken?(error: GatewayError): void;
}

/** What the exchanges of one server share. */
export interface ExchangeHost {
  /** Exchanges whose client has not sent all of its body, or does not read at the moment. */
  readonly sweepList: SweepList;
  /** Answers carry `connection: close`. */
  draining: boolean;
  /** Exchanges and WebSockets that have not ended. */
  open: number;
  /** Exchanges since the start. */
  served: number;
  onIdle: (() => void) | null;
  readonly bodies: BodyPool;
}

/** What uWS needs to make a WebSocket of a request later. */
export interface SocketOffer {
  /** Of the request, until its exchange has ended. */
  readonly response: HttpResponse;
  readonly context: us_socket_context_t;
  readonly host: ExchangeHost;
}
