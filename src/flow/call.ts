import { performance } from 'node:perf_hooks';
import type { Key, Model, Target } from '../config/types.js';
import type { Recalled } from '../conversation/kept-turns.js';
import { type LeftOutNames, nothingLeftOut } from '../conversation/left-out.js';
import type { MadeMedia, Usage } from '../conversation/usage.js';
import { type FaultPlace, GatewayError, type Guarded } from '../errors.js';
import type { Exchange } from '../http/exchange.js';
import type { CallOutcome, OtherAttempt } from '../metrics/call-record.js';
import type { VendorHeaders } from '../protocols/credentials/credentials.js';
import type { ErrorFormat } from '../protocols/error-formats/error-format.js';
import type { Route } from '../routes.js';
import type { ValidatedBody } from '../schema/accept.js';
import type { AnswerTransform } from '../stream/answer-transform.js';
import type { Deadlines, RequestBodySource } from '../upstream/types.js';
import type { OpenCall, OpenRecord } from '../usage/open-calls.js';
import type { Writable } from '../wire/head.js';
import { type JsonObject, parseObject, requireCheapBody } from '../wire/json.js';
import type { SteeringMember } from '../wire/steering-members.js';
import type { LimitedCall } from './limits/limited-call.js';
import type { BegunResponse, GivenUpTokens } from './record/consumption.js';
import type { SocketCall } from './responses-socket/upstream-session.js';
import type { Running } from './running.js';
import type { SessionSlot } from './sockets/session-memory.js';

/** How the request reached the upstream, and its answer the client: as they came, with a few bytes replaced, or rewritten. */
export type GatewayPath = 'exact' | 'spliced' | 'translated';

const none: Readonly<Record<string, string>> = {};
const noSteering: readonly never[] = [];
const nothing: readonly string[] = [];

/** Whose bytes count in the memory budget. */
export interface MemoryHolder {
  readonly running: Running;
  readonly key: Key | null;
  /** See `Call`. */
  heldBytes: number;
  gathered: number;
}

/** Whoever asks an upstream: a call, or the gateway of its own accord. */
export interface Asking extends MemoryHolder, Guarded {
  readonly exchange: { readonly id: Writable; readonly head: VendorHeaders };
  readonly model: Model | null;
  error: GatewayError | null;
  readonly accounted: boolean;
  answeredAt: number;
}

/** Asks upstreams for the answer of a call. */
export interface ForwardedCall {
  /** Of the present attempt, once that was sent. */
  readonly transform: AnswerTransform | null;
  /** Ends the call with an error of its own side: the rest of its body will not come. */
  fail(error: GatewayError): void;
}

/** What a call takes up of a bounded number. */
interface Slot {
  /** Gives it back; a second time does nothing. */
  give(): void;
}

/** The form of a call that reaches its upstream while it still arrives from the client. */
export interface UploadBody {
  /** Value of the content type with the form's boundary. */
  readonly contentType: string;
  /** Nothing of it has been let go yet, so that it may be sent to another target. */
  readonly canReplay: boolean;
  /**
   * @param model takes the place of the name in the form; null to leave it
   * @returns the pieces that are there, and where the rest comes from, or null when they are all
   */
  open(model: string | null): {
    readonly body: readonly Buffer[];
    readonly source: RequestBodySource | null;
  };
}

/** One call, from its first byte to its record (see `account`). Every field is there from the start. */
export class Call implements Guarded, OpenCall<Call> {
  readonly exchange: Exchange;
  readonly running: Running;
  errorFormat: ErrorFormat;
  route: Route | null = null;
  params: Readonly<Record<string, string>> = none;
  key: Key | null = null;
  body: Buffer | null = null;
  /** Hash of what it begins with, where calls that begin alike are to go together. */
  affinity: number | null = null;
  /** Of a call that came as a message of a WebSocket. */
  socketCall: SocketCall | null = null;
  /** The form of a call that is passed on while it arrives; `body` is null then. */
  upload: UploadBody | null = null;
  validated: ValidatedBody | null = null;
  /** Members of the request that could make an upstream call another address. */
  steering: readonly SteeringMember[] = noSteering;
  model: Model | null = null;
  /** What it goes on from; null where it stands for itself. */
  recalled: Recalled | null = null;
  target: Target | null = null;
  gatewayPath: GatewayPath | null = null;
  /** Members of its body that the target which answered did not get, since its protocol cannot say them. */
  leftOut: LeftOutNames = nothingLeftOut;
  /** The same of its answer, which the client did not get. */
  lostInAnswer: readonly string[] = nothing;
  /** How the events of a streamed answer are framed. */
  framing: 'sse' | 'array' = 'sse';
  error: GatewayError | null = null;
  usage: Usage | null = null;
  /** What its attempts before, or beside the one that answers, are thought to have used; null for nothing. */
  givenUp: GivenUpTokens | null = null;
  /** The attempts that others have taken the place of, by themselves; null for none. */
  otherAttempts: Map<object, OtherAttempt> | null = null;
  /** Null for a call that falls under no limits. */
  limited: LimitedCall | null = null;
  /** Of a call that opens a session, or downloads a file: given back with its account at the latest. */
  slot: Slot | null = null;
  /** An upstream has done what was asked for, or is at it: a price per call or second counts. */
  isServed = false;
  /** How many times the price per call is charged: once for each image. */
  units = 1;
  /** Seconds of audio or video, as far as they are known. */
  mediaSeconds = 0;
  /** What kind of images or video it asks for, or gets; null where that is not known or has no price. */
  made: MadeMedia | null = null;
  /** The cost of the call, see `costOfCall`; below zero until it was computed. */
  costNanos = -1;
  /** What it has its upstream make in the background; null for a call that ends with its answer. */
  begun: BegunResponse | null = null;
  /** It asks for a video task that an earlier call has made. */
  isOfTask = false;
  /** Bytes that it has taken of `Services.memory`. */
  heldBytes = 0;
  /** Of them, those of the upstream's answer. */
  gathered = 0;
  /** Attempts at an upstream after the first. */
  retries = 0;
  /** Whoever asks its upstreams for an answer that is handed on; null until then, and where none is. */
  forwarding: ForwardedCall | null = null;
  openBefore: Call | null = null;
  openAfter: Call | null = null;
  isListed = false;
  openRecord: OpenRecord<Call> | null = null;
  accounted = false;
  outcome: CallOutcome = 'complete';
  /** Milliseconds of `performance.now()`; 0 until it happened. */
  readonly startedAt: number;
  authenticatedAt = 0;
  /** Its body has come; that of a call without one, with authentication. */
  bodyAt = 0;
  validatedAt = 0;
  /** The request was handed to an upstream's socket. */
  sentAt = 0;
  /** The upstream's head came. */
  answeredAt = 0;
  /** Its client has left, and its upstream is read on for. */
  leftAt = 0;
  /** Set by `account`. */
  endedAt = 0;

  readonly #endThrown: (call: Call, where: FaultPlace, thrown: unknown) => void;

  /** @param endThrown ends the call when a callback of it has thrown */
  constructor(
    exchange: Exchange,
    running: Running,
    errorFormat: ErrorFormat,
    endThrown: (call: Call, where: FaultPlace, thrown: unknown) => void,
  ) {
    this.exchange = exchange;
    this.running = running;
    this.errorFormat = errorFormat;
    this.startedAt = performance.now();
    this.#endThrown = endThrown;
    exchange.owner = this;
  }

  /** The whole body. @throws Error when it has not come, or has been let go of */
  wholeBody(): Buffer {
    if (this.body === null) throw new Error('the body of the call is not at hand');
    return this.body;
  }

  /**
   * The same of a body that is about to be read as JSON.
   * @throws {GatewayError} of status 400 for one that would hold up all other calls
   */
  jsonBody(): Buffer {
    const body = this.wholeBody();
    requireCheapBody(body, this.running.snapshot.limits.bodyValues);
    return body;
  }

  /** The whole body, parsed. @throws {GatewayError} `invalid_json`, and as `jsonBody` does */
  parsedBody(): JsonObject {
    const parsed = parseObject(this.jsonBody().toString('utf8'));
    if (parsed === null) throw new GatewayError('invalid_json', 'The request body is not valid JSON.');
    return parsed;
  }

  /** What is known of the body. @throws Error as `wholeBody` does */
  checkedBody(): ValidatedBody {
    if (this.validated === null) throw new Error('the body of the call was not validated');
    return this.validated;
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.#endThrown(this, where, fault);
  }
}

/*
 * A call is one object all its life. What a phase has found is never null after it, but for `body` and `validated`, which
 * go once nothing needs them any more: so each of these phases gives the call on under the narrower of the types below, and
 * is the only place that does.
 */

/** A call that `authenticate` has let pass. */
export interface AuthenticatedCall extends Call {
  readonly route: Route;
  readonly key: Key;
}

/** A call of which `findModel` has found the model. */
export interface ResolvedCall extends AuthenticatedCall {
  readonly model: Model;
}

/** A call that `aimAt` has given a target: the last one that was asked. */
export interface RoutedCall extends ResolvedCall {
  target: Target;
}

/** A call that opens a session, for which `takeSlot` has found room. */
export interface SessionCall extends AuthenticatedCall {
  readonly slot: SessionSlot;
}

/** What the ids of an answer of the gateway's own are made of: the call's id without its kind. */
export function answerId({ exchange }: Call): string {
  return exchange.id.slice('req_'.length);
}

/** Milliseconds that are left of a call's total time, at least one. */
export function timeLeft({ running, validatedAt }: Call): number {
  return Math.max(1, running.snapshot.timeouts.totalMs - (performance.now() - validatedAt));
}

/** The deadlines of an attempt that is not the first thing that its call has waited for. */
export function deadlinesLeft(call: Call): Deadlines {
  return { ...call.running.snapshot.timeouts, totalMs: timeLeft(call) };
}

/**
 * The deadlines of the next attempt of a call that is forwarded.
 * @param isLate time went by before the first attempt
 */
export function attemptDeadlines(call: Call, isLate: boolean): Deadlines {
  const { timeouts, limits } = call.running.snapshot;
  if (call.upload !== null)
    return uploadDeadlines(timeouts, call.exchange.head.contentLength, limits.uploadBytes);
  return call.retries === 0 && !isLate ? timeouts : deadlinesLeft(call);
}

/** Bytes of an upload in a millisecond that a client may be expected to send. */
const slowestUpload = 64;

/** An upload may take as long as its size asks for, since both sides are watched for silence. */
function uploadDeadlines(timeouts: Deadlines, announced: number, most: number): Deadlines {
  const bytes = announced === -1 ? most : announced;
  return { ...timeouts, totalMs: timeouts.totalMs + bytes / slowestUpload };
}
