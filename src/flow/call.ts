import type { Key, Model, Target } from '../config/types.js';
import type { Usage } from '../conversation/usage.js';
import type { Dialect } from '../dialects/dialect.js';
import type { GatewayError } from '../errors.js';
import type { Exchange } from '../http/exchange.js';
import type { Route } from '../routes.js';
import type { LimitedCall } from './limited-call.js';
import type { Running } from './services.js';
import type { TurnCall } from './turns/turn-call.js';
import type { UploadBody } from './upload-body.js';
import type { ValidatedBody } from './validate.js';

/** How a call ended. */
export type Outcome = 'complete' | 'incomplete' | 'refused' | 'client_gone' | 'upstream_error';

/** How the request body reached the upstream: as it came, with a few bytes replaced, or rewritten. */
export type GatewayPath = 'exact' | 'spliced' | 'translated';

const none: Readonly<Record<string, string>> = {};

/** The record of one call, from its first byte to its line in the log. Every field is there from the start. */
export class Call {
  readonly exchange: Exchange;
  readonly running: Running;
  dialect: Dialect;
  route: Route | null = null;
  params: Readonly<Record<string, string>> = none;
  key: Key | null = null;
  body: Buffer | null = null;
  /** Hash of what it begins with, where calls that begin alike are to go together. */
  affinity: number | null = null;
  /** Of a call that came as a message of a WebSocket. */
  turn: TurnCall | null = null;
  /** The form of a call that is passed on while it arrives; `body` is null then. */
  upload: UploadBody | null = null;
  validated: ValidatedBody | null = null;
  model: Model | null = null;
  target: Target | null = null;
  path: GatewayPath | null = null;
  /** How the events of a streamed answer are framed. */
  framing: 'sse' | 'array' = 'sse';
  error: GatewayError | null = null;
  usage: Usage | null = null;
  /** Null for a call that falls under no limits. */
  limited: LimitedCall | null = null;
  /** An upstream has done what was asked for, or is at it: a price per call or second counts. */
  isServed = false;
  /** For how many calls its price counts: one for each image. */
  units = 1;
  /** Seconds of audio or video, as far as they are known. */
  mediaSeconds = 0;
  /** See `costOfCall`; below zero until it was asked for. */
  costNanos = -1;
  /** It asks for a video task that an earlier call has made. */
  isOfTask = false;
  /** Body bytes reserved in `Services.bufferedBytes`. */
  reserved = 0;
  /** Attempts at an upstream after the first. */
  retries = 0;
  accounted = false;
  outcome: Outcome = 'complete';
  /** Milliseconds of `performance.now()`; 0 until it happened. */
  readonly startedAt: number;
  authenticatedAt = 0;
  bodyAt = 0;
  validatedAt = 0;
  /** The request was handed to an upstream's socket. */
  sentAt = 0;
  /** The upstream's head came. */
  answeredAt = 0;
  endedAt = 0;

  constructor(exchange: Exchange, running: Running, dialect: Dialect) {
    this.exchange = exchange;
    this.running = running;
    this.dialect = dialect;
    this.startedAt = performance.now();
  }
}
