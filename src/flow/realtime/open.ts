import { performance } from 'node:perf_hooks';
import { Attempt, type AttemptAdapter, type AttemptPlan, type Wait } from '../../attempts/attempts.js';
import { readErrorAnswer } from '../../attempts/error-answer.js';
import { failureError } from '../../attempts/reported-error.js';
import type { FailedAttempt } from '../../attempts/verdict.js';
import type { Target } from '../../config/types.js';
import { type FaultPlace, GatewayError } from '../../errors.js';
import type { ExchangeListener } from '../../http/exchange.js';
import type { VendorHeaders } from '../../protocols/credentials/credentials.js';
import { isVendorAccountError } from '../../protocols/error-formats/vendor-account.js';
import { checkQueryMembers, upstreamQuery } from '../../protocols/realtime/query.js';
import { openSocket } from '../../upstream/socket.js';
import type { SocketFault, SocketListener, UpstreamSocket } from '../../upstream/socket-types.js';
import type { ResponseHead, UpstreamFailure } from '../../upstream/types.js';
import { queryParameter } from '../../wire/query.js';
import { answerLines } from '../answer/lines.js';
import type { AuthenticatedCall, Call, ResolvedCall, SessionCall } from '../call.js';
import { admitResolved } from '../limits/admit.js';
import { expectedOfSession } from '../limits/expected-usage.js';
import { account } from '../record/account.js';
import { refusalOf, refuse } from '../refuse.js';
import { findModel, routeCall, setTarget } from '../resolve.js';
import type { Services } from '../services.js';
import { takeSlot } from '../sockets/take-slot.js';
import { socketRequest } from '../upstream/head.js';
import { Bridge, type RealtimeCall } from './bridge.js';

const subprotocol = 'realtime';
const betaSubprotocol = 'openai-beta.realtime-v1';
const betaFeature = 'realtime=v1';

/**
 * Opens a realtime session. The upstream's side is opened first, so that its refusal can answer the client's request.
 * @throws {GatewayError} of status 400 for a request without a WebSocket upgrade, and as `findModel` does
 */
export function openSession(services: Services, call: AuthenticatedCall): void {
  const { exchange, running } = call;
  if (exchange.offer === null) throw noUpgrade;
  call.steering = checkQueryMembers(exchange.head.query);
  const named = queryParameter(exchange.head.query, 'model');
  const { realtime } = running.snapshot.defaultModels;
  const resolved = findModel(call, 'realtime', named === '' ? (realtime ?? '') : named);
  call.validatedAt = performance.now();
  const next = (_: Services, admitted: ResolvedCall): void => takeSlot(services, admitted, open);
  admitResolved(services, resolved, next, expectedOfSession);
}

function open(services: Services, call: ResolvedCall & SessionCall): void {
  const plan = routeCall(services, call, call.model.targets);
  plan.start(new Opening(services, setTarget(call, plan.target), plan));
}

/** Opens the upstream's side at the first target that accepts it. */
class Opening implements AttemptAdapter, SocketListener, ExchangeListener {
  readonly #services: Services;
  readonly #call: RealtimeCall;
  readonly #plan: AttemptPlan;
  #attempt: Attempt | null = null;
  #upstream: UpstreamSocket | null = null;
  /** Back-off before the same target is tried again. */
  #backoff: Wait | null = null;
  #bridge: Bridge | null = null;

  constructor(services: Services, call: RealtimeCall, plan: AttemptPlan) {
    this.#services = services;
    this.#call = call;
    this.#plan = plan;
    call.exchange.listener = this;
  }

  attempt(): void {
    const call = this.#call;
    const { target, keyIndex } = this.#plan;
    call.target = target;
    call.gatewayPath = 'exact';
    call.sentAt = performance.now();
    const shape = { protocol: 'realtime', vendor: vendorHeaders(call), keyIndex } as const;
    const request = socketRequest(call, target, pathAt(call, target), shape);
    this.#attempt = new Attempt(this.#services, this.#plan);
    this.#upstream = openSocket(request, this.#services.dialer, this);
  }

  onNoneLeft(thrown: unknown): void {
    refuse(this.#services, this.#call, refusalOf(this.#services, this.#call, 'request', thrown));
  }

  onOpen(): void {
    const { exchange } = this.#call;
    const upstream = this.#upstream;
    const attempt = this.#attempt;
    if (upstream === null || attempt === null)
      throw new Error('a WebSocket has opened that was not asked for');
    attempt.answered();
    this.#bridge = new Bridge(this.#services, this.#call, upstream, attempt);
    exchange.listener = null;
    this.#bridge.begin(offers(exchange.head.socketProtocols, subprotocol) ? subprotocol : '');
  }

  onDeclined(head: ResponseHead, body: Buffer): void {
    const call = this.#call;
    const isError = head.status >= 400;
    const answered = readErrorAnswer(call.target.upstream, head, body);
    const { status, error } = answered;
    const isOfVendorAccount = isError && isVendorAccountError(error);
    if (isError) this.#attempt?.answeredError(head, answered);
    else this.#attempt?.failed('unusable_answer', true);
    if (isOfVendorAccount) this.#attempt?.report(error);
    const reason = isError ? status : 'unusable_answer';
    if (this.#startsNext({ ...harmless, reason, bytesSent: true }, error)) return;
    if (!isError) {
      refuse(
        this.#services,
        call,
        new GatewayError('upstream_error', 'The upstream did not open a WebSocket.'),
      );
      return;
    }
    call.answeredAt = performance.now();
    // The attempt has ended: a client that disconnects before it has the answer changes nothing.
    call.exchange.listener = null;
    if (error !== null) {
      refuse(this.#services, call, error, isOfVendorAccount ? null : head);
      return;
    }
    call.exchange.respond(head.status, answerLines(call, head), body);
    account(this.#services, call, 'upstream_error');
  }

  onFailed(failure: UpstreamFailure): void {
    const { reason, headSeen, detail } = failure;
    this.#attempt?.failed(reason, headSeen, detail);
    // An unanswered upgrade has no effect, so the next target may be tried whatever was sent.
    const error = failureError(failure);
    if (this.#startsNext({ ...harmless, reason, bytesSent: false }, error)) return;
    refuse(this.#services, this.#call, error);
  }

  /** @returns whether another attempt follows */
  #startsNext(failed: FailedAttempt, error: GatewayError | null): boolean {
    if (!this.#plan.planNext(failed)) return false;
    this.#backoff = this.#plan.beginPlanned(error);
    return true;
  }

  onMessage(data: Buffer, isBinary: boolean): void {
    this.#bridge?.onUpstreamMessage(data, isBinary);
  }

  onReadEnd(): void {
    this.#bridge?.onUpstreamReadEnd();
  }

  onClosed(code: number, reason: Buffer, fault: SocketFault | null): void {
    this.#bridge?.onUpstreamClosed(code, reason, fault);
  }

  hold(bytes: number): boolean {
    return this.#bridge?.holdOfUpstream(bytes) ?? true;
  }

  onFault(where: FaultPlace, fault: unknown): void {
    (this.#bridge ?? this.#call).onFault(where, fault);
  }

  /** Called when the client disconnects before its side is open. */
  onClientGone(): void {
    this.#attempt?.withdraw();
    this.#backoff?.cancel();
    this.#upstream?.terminate();
    account(this.#services, this.#call, 'client_gone');
  }

  /** Called when the upstream has taken waiting bytes. A client cannot be paused, so only the count of these changes. */
  onDrained(): void {
    this.#bridge?.onUpstreamDrained();
  }
}

/** An upgrade not answered with a socket has no effects, however long it took. */
const harmless = { replayable: true, hasEffects: false, sentMs: 0 };

function pathAt({ exchange }: Call, { model, upstream }: Target): string {
  const { query } = exchange.head;
  const isNamed = queryParameter(query, 'model') !== '';
  // A session of an existing call, or of an intent, has its model already.
  const isKnown = queryParameter(query, 'call_id') !== '' || queryParameter(query, 'intent') !== '';
  return `/realtime?${upstreamQuery(query, isKnown && !isNamed ? null : model, upstream.baseQuery)}`;
}

/** Turns the beta subprotocol into the header; browsers can only send the former. */
function vendorHeaders({ exchange }: Call): VendorHeaders {
  const { head } = exchange;
  const isBeta = offers(head.socketProtocols, betaSubprotocol) && !head.openaiBeta.includes(betaFeature);
  const openaiBeta = [head.openaiBeta, isBeta ? betaFeature : ''].filter((part) => part !== '').join(', ');
  return { ...head, openaiBeta };
}

function offers(protocols: string, name: string): boolean {
  return protocols.split(',').some((protocol) => protocol.trim() === name);
}

const noUpgrade = new GatewayError(
  'invalid_request',
  'This endpoint is a WebSocket. Send the headers of an upgrade: connection, upgrade, sec-websocket-key and ' +
    'sec-websocket-version (RFC 6455 section 4.1).',
);
