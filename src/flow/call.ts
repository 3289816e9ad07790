import { performance } from 'node:perf_hooks';
import type { Key, Model, Target } from '../config/types.js';
import type { Recalled } from '../conversation/kept-turns.js';
import { type LeftOutNames, nothingLeftOut } from '../conversation/left-out.js';
import type { MadeMedia, Usage } from '../conversation/usage.js';
import { type FaultPlace, GatewayError, type Guarded } from '../errors.js';
import type { Exchange } from '../http/exchange.js';
import type { CallOutcome, OtherAttempt } from '../metrics/call-record.js';
import type { VendorHeaders } from '../protocols/credentials/credentials.js';
import type { ErrorFormat } from '../protocols/error-formats/formats.js';
import type { Route } from '../routes.js';
import type { ValidatedBody } from '../schema/accept.js';
import type { AnswerTransform } from '../stream/answer-transform.js';
import type { Alternatives } from '../stream/opening.js';
import type { Deadlines, RequestBodySource } from '../upstream/types.js';
import type { OpenCall, OpenRecord } from '../usage/open-calls.js';
import type { Writable } from '../wire/head.js';
import { type JsonObject, parseObject, requireCheapBody } from '../wire/json.js';
import type { SteeringMember } from '../wire/routed-members.js';
import type { CallLimits } from './limits/call-limits.js';
import type { BegunResponse, Consumption, GivenUpTokens, ImplausibleUsage } from './record/consumption.js';
import type { SocketCall } from './responses-socket/upstream-session.js';
import type { Running } from './running.js';
import type { SessionSlot } from './sockets/session-memory.js';

/** How the request reached the upstream and its answer the client: unchanged, with a few bytes replaced, or rewritten. */
export type GatewayPath = 'exact' | 'spliced' | 'translated';

const none: Readonly<Record<string, string>> = {};
const noSteering: readonly never[] = [];
const nothing: readonly string[] = [];

/** The owner of bytes in the memory budget. */
export interface MemoryHolder {
  readonly running: Running;
  readonly key: Key | null;
  /** See `Call`. */
  heldBytes: number;
  gathered: number;
}

/** The sender of an upstream request: a call, or the gateway on its own account. */
export interface RequestSender extends MemoryHolder, Guarded {
  readonly exchange: { readonly id: Writable; readonly head: VendorHeaders };
  readonly model: Model | null;
  error: GatewayError | null;
  readonly accounted: boolean;
  answeredAt: number;
}

/** Requests the answer of a call from upstreams. */
export interface ForwardedCall extends Alternatives {
  /** The transform of the current attempt, once its upstream has got the whole request or has answered. */
  readonly transform: AnswerTransform | null;
  /** Ends the call with an error on the client's side: the rest of its body will not arrive. */
  fail(error: GatewayError): void;
}

/** A unit of a bounded number that a call holds. */
interface Slot {
  /** Returns the unit. A second call is a no-op. */
  give(): void;
}

/** The form of a call that is sent to its upstream while it still arrives from the client. */
export interface UploadBody {
  /** Value of the `content-type` header, with the form's boundary. */
  readonly contentType: string;
  /** No part of the form has been released yet, so it can be sent to another target. */
  readonly canReplay: boolean;
  /** @param model replaces the model's name in the form; null leaves it */
  open(model: string | null): OpenedForm;
}

/** A form as an attempt sends it. */
export interface OpenedForm {
  /** The pieces that have arrived. */
  readonly body: readonly Buffer[];
  /** Source of the rest; null if there is none. */
  readonly source: RequestBodySource | null;
}

/** One call, from its first byte to its record (see `account`). Every field exists from the start. */
export class Call implements Guarded, OpenCall<Call> {
  readonly exchange: Exchange;
  readonly running: Running;
  errorFormat: ErrorFormat;
  route: Route | null = null;
  params: Readonly<Record<string, string>> = none;
  key: Key | null = null;
  body: Buffer | null = null;
  /** Hash of the beginning of the body, if calls that begin alike are to reach the same target. */
  affinity: number | null = null;
  /** Set if the call arrived as a message of a WebSocket. */
  socketCall: SocketCall | null = null;
  /** The form of a call that is passed on while it arrives. `body` is null then. */
  upload: UploadBody | null = null;
  validated: ValidatedBody | null = null;
  /** Members of the request that could make an upstream send requests to another address. */
  steering: readonly SteeringMember[] = noSteering;
  model: Model | null = null;
  /** The earlier turn that the call continues from; null if there is none. */
  recalled: Recalled | null = null;
  target: Target | null = null;
  gatewayPath: GatewayPath | null = null;
  /** Members of the body that were left out for the target that answered, since its protocol cannot express them. */
  leftOut: LeftOutNames = nothingLeftOut;
  /** Members of the answer that were left out for the client for the same reason. */
  lostInAnswer: readonly string[] = nothing;
  /** How the events of a streamed answer are framed. */
  framing: 'sse' | 'array' = 'sse';
  error: GatewayError | null = null;
  usage: Usage | null = null;
  /** A usage that an upstream has reported and no call can have had: what was used is estimated. Null for none. */
  implausible: ImplausibleUsage | null = null;
  /** Estimated usage of the attempts before or beside the one that answers; null for none. */
  givenUp: GivenUpTokens | null = null;
  /** Attempts that another attempt has replaced; null for none. */
  otherAttempts: Map<object, OtherAttempt> | null = null;
  /** Null if no limits apply to the call. */
  limits: CallLimits | null = null;
  /** The input that is expected of a large body, with its length: the body itself is released before the call ends. */
  estimated: { readonly bytes: number; readonly input: number } | null = null;
  /**
   * Slot of a call that opens a session or downloads a file. It is returned when the call is accounted for, at the latest.
   */
  slot: Slot | null = null;
  /** See `Consumption.otherModels`. */
  otherModels: Consumption['otherModels'] = null;
  /** An upstream has done the requested work, or is doing it: a price per call or second applies. */
  isServed = false;
  /** How many times the price per call is charged: once for each image. */
  units = 1;
  /** Expected input tokens that the body does not show: of a text that is read once with each element of a list. */
  repeatedTokens = 0;
  /** Seconds of audio or video, if they are known. */
  mediaSeconds = 0;
  /** See `Consumption.secondsBesideTokens`. */
  secondsBesideTokens = 0;
  /** See `Consumption.characters`. */
  characters = 0;
  /** Kind of the requested or made images or video; null if it is unknown or has no price. */
  made: MadeMedia | null = null;
  /** The cost of the call, see `costOfCall`. Negative until it is computed. */
  costNanos = -1;
  /** Work that the upstream does in the background; null for a call that ends with its answer. */
  begun: BegunResponse | null = null;
  /** The call is about a video task that an earlier call has created. */
  isOfTask = false;
  /** Bytes that the call has taken of `Services.memory`. */
  heldBytes = 0;
  /** The part of `heldBytes` that holds the upstream's answer. */
  gathered = 0;
  /** Number of attempts after the first. */
  retries = 0;
  /** Requests the answer from upstreams; null until that begins, and if the call relays no answer. */
  forwarding: ForwardedCall | null = null;
  openBefore: Call | null = null;
  openAfter: Call | null = null;
  isListed = false;
  openRecord: OpenRecord<Call> | null = null;
  accounted = false;
  outcome: CallOutcome = 'complete';
  /** Time of `performance.now()` in milliseconds. The times below are 0 until the event has happened, except `leftAt`. */
  readonly startedAt: number;
  authenticatedAt = 0;
  /** The body has arrived. For a call without a body, the time of authentication. */
  bodyAt = 0;
  validatedAt = 0;
  /** The request was handed to an upstream's socket. */
  sentAt = 0;
  /** The head of the upstream's answer has arrived. */
  answeredAt = 0;
  /**
   * The client has disconnected, and the upstream is still read for the usage. NaN until then: with a whole number, V8
   * discards the compiled code of all calls when the first client disconnects.
   */
  leftAt = Number.NaN;
  /** Set by `account`. */
  endedAt = 0;

  readonly #endThrown: (call: Call, where: FaultPlace, thrown: unknown) => void;

  /** @param endThrown ends the call when one of its callbacks has thrown */
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

  /** Returns the whole body. @throws Error if it has not arrived, or was released */
  wholeBody(): Buffer {
    if (this.body === null) throw new Error('the body of the call is not at hand');
    return this.body;
  }

  /**
   * Returns the whole body, which is about to be parsed as JSON.
   * @throws {GatewayError} with status 400 if parsing it would block all other calls
   */
  jsonBody(): Buffer {
    const body = this.wholeBody();
    requireCheapBody(body, this.running.snapshot.limits.bodyValues);
    return body;
  }

  /** Parses the whole body. @throws {GatewayError} `invalid_json`, and as `jsonBody` does */
  parsedBody(): JsonObject {
    const parsed = parseObject(this.jsonBody().toString('utf8'));
    if (parsed === null) throw new GatewayError('invalid_json', 'The request body is not valid JSON.');
    return parsed;
  }

  /** Returns the result of the body's validation. @throws Error if the body was not validated or its result was released */
  checkedBody(): ValidatedBody {
    if (this.validated === null) throw new Error('the body of the call was not validated');
    return this.validated;
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.#endThrown(this, where, fault);
  }
}

/*
 * A call is one object during its whole life. A field that a phase has set is not null after that phase, except `body` and
 * `validated`, which are released when nothing needs them any more. Each of these phases returns the call as the narrower
 * type below, and is the only place that does.
 */

/** A call whose key `authenticate` has accepted. */
export interface AuthenticatedCall extends Call {
  readonly route: Route;
  readonly key: Key;
}

/** A call whose model `findModel` has found. */
export interface ResolvedCall extends AuthenticatedCall {
  readonly model: Model;
}

/** A call to which `setTarget` has given a target: the last one to which it was sent. */
export interface RoutedCall extends ResolvedCall {
  target: Target;
}

/** A call that opens a session and for which `takeSlot` has found a slot. */
export interface SessionCall extends AuthenticatedCall {
  readonly slot: SessionSlot;
}

/** Returns the base for ids in an answer that the gateway makes: the call's id without its prefix. */
export function answerId({ exchange }: Call): string {
  return exchange.id.slice('req_'.length);
}

/** Returns the milliseconds that are left of a call's total time, at least one. */
export function timeLeft({ running, validatedAt }: Call): number {
  return Math.max(1, running.snapshot.timeouts.totalMs - (performance.now() - validatedAt));
}

/** Returns the deadlines of an attempt before which its call has already waited for something else. */
export function deadlinesLeft(call: Call): Deadlines {
  return { ...call.running.snapshot.timeouts, totalMs: timeLeft(call) };
}

/**
 * Returns the deadlines of the next attempt of a forwarded call.
 * @param isLate the call has waited for something before its first attempt
 */
export function attemptDeadlines(call: Call, isLate: boolean): Deadlines {
  const { timeouts, limits } = call.running.snapshot;
  if (call.upload !== null)
    return uploadDeadlines(timeouts, call.exchange.head.contentLength, limits.uploadBytes);
  return call.retries === 0 && !isLate ? timeouts : deadlinesLeft(call);
}

/** Slowest rate at which a client is expected to send an upload, in bytes per millisecond. */
const slowestUpload = 64;

/** Extends the total time by what the upload's size needs. Both sides are watched for silence besides. */
function uploadDeadlines(timeouts: Deadlines, announced: number, most: number): Deadlines {
  const bytes = announced === -1 ? most : announced;
  return { ...timeouts, totalMs: timeouts.totalMs + bytes / slowestUpload };
}
