import type { Key, Model, Target } from '../../config/types.js';
import { queryParameter } from '../../dialects/query.js';
import type { VendorHeaders } from '../../dialects/upstream-lines.js';
import { GatewayError } from '../../errors.js';
import type { ExchangeListener } from '../../http/exchange-host.js';
import { upstreamQuery } from '../../protocols/realtime/query.js';
import type { FailedAttempt } from '../../routing/verdict.js';
import type { ResponseHead, UpstreamFailure } from '../../upstream/client.js';
import { openSocket, type SocketListener, type UpstreamSocket } from '../../upstream/socket.js';
import { account } from '../account.js';
import { answerLines } from '../answer.js';
import type { Call } from '../call.js';
import type { Candidates } from '../candidates.js';
import { failureError } from '../failure.js';
import { limit } from '../limit.js';
import { Pause } from '../pause.js';
import { refuse } from '../refuse.js';
import { findModel } from '../resolve.js';
import { routeCall } from '../route.js';
import type { Services } from '../services.js';
import { socketRequest } from '../socket-request.js';
import { Trial } from '../trial.js';
import { Bridge } from './bridge.js';

const subprotocol = 'realtime';
const betaSubprotocol = 'openai-beta.realtime-v1';
const betaFeature = 'realtime=v1';

/**
 * Opens a realtime session: the upstream's side first, so that its refusal is an answer to the client's request, then
 * the client's.
 * @throws {GatewayError} of status 400 for a request that asks for no WebSocket, and as `findModel` does
 */
export function openSession(services: Services, call: Call): void {
  const { exchange, running } = call;
  if (exchange.offer === null) throw noUpgrade;
  const named = queryParameter(exchange.head.query, 'model');
  const { realtime } = running.snapshot.defaultModels;
  call.model = findModel(call, 'realtime', named === '' ? (realtime ?? '') : named);
  call.validatedAt = performance.now();
  limit(services, call, open);
}

function open(services: Services, call: Call): void {
  const candidates = routeCall(services, call, (call.model as Model).targets);
  services.sessions.reserve((call.key as Key).id, call.running.snapshot.sockets.perKey);
  new Opening(services, call, candidates).ask();
}

/** The attempts to open a session. */
class Opening implements SocketListener, ExchangeListener {
  readonly #services: Services;
  readonly #call: Call;
  readonly #candidates: Candidates;
  #trial: Trial | null = null;
  #upstream: UpstreamSocket | null = null;
  /** Before the same target is asked again. */
  #pause: Pause | null = null;
  #bridge: Bridge | null = null;

  constructor(services: Services, call: Call, candidates: Candidates) {
    this.#services = services;
    this.#call = call;
    this.#candidates = candidates;
    call.exchange.listener = this;
  }

  /** Asks the present one of the candidates. */
  ask(): void {
    const call = this.#call;
    const { target, key } = this.#candidates;
    call.target = target;
    call.path = 'exact';
    call.sentAt = performance.now();
    const request = socketRequest(call, target.upstream, pathAt(call, target), {
      wire: 'realtime',
      vendor: vendorHeaders(call),
      key,
    });
    this.#trial = new Trial(this.#services, this.#candidates);
    this.#upstream = openSocket(request, this.#services.secureProfiles, this);
  }

  onOpen(): void {
    const { exchange } = this.#call;
    exchange.listener = null;
    const upstream = this.#upstream as UpstreamSocket;
    const trial = this.#trial as Trial;
    trial.answered();
    this.#bridge = new Bridge(this.#services, this.#call, upstream, trial);
    this.#bridge.begin(offers(exchange.head.socketProtocols, subprotocol) ? subprotocol : '');
  }

  onRefused(head: ResponseHead, body: Buffer): void {
    const call = this.#call;
    const { status } = head;
    const isError = status >= 400;
    if (isError) this.#trial?.refused(head);
    else this.#trial?.failed('unusable_answer', true);
    const reason = isError ? 'error_answer' : 'unusable_answer';
    if (this.#goesOn({ reason, status, bytesSent: true, headRelayed: false, replayable: true })) return;
    this.#release();
    if (!isError) {
      refuse(this.#services, call, new GatewayError('upstream_error', 'The upstream opened no WebSocket.'));
      return;
    }
    call.answeredAt = performance.now();
    call.exchange.respond(head.status, answerLines(call, head), body);
    account(this.#services, call, 'upstream_error');
  }

  onFailed(failure: UpstreamFailure): void {
    const { reason, headSeen } = failure;
    this.#trial?.failed(reason, headSeen);
    // An upgrade that is not answered has no effect: whatever was sent of it, the next target may be asked.
    if (this.#goesOn({ reason, bytesSent: false, headRelayed: false, replayable: true })) return;
    this.#release();
    refuse(this.#services, this.#call, failureError(failure));
  }

  /** @returns whether another attempt follows */
  #goesOn(attempt: FailedAttempt): boolean {
    const wait = this.#candidates.after(attempt);
    if (wait === null) return false;
    if (wait === 0) this.ask();
    else this.#pause = new Pause(wait, () => this.ask());
    return true;
  }

  onMessage(data: Buffer, isBinary: boolean): void {
    this.#bridge?.onUpstreamMessage(data, isBinary);
  }

  onReadEnd(): void {
    this.#bridge?.onUpstreamReadEnd();
  }

  onClosed(code: number, reason: Buffer): void {
    this.#bridge?.onUpstreamClosed(code, reason);
  }

  /** The client left before its side was open. */
  onClientGone(): void {
    this.#trial?.leave();
    this.#pause?.cancel();
    this.#upstream?.terminate();
    this.#release();
    account(this.#services, this.#call, 'client_gone');
  }

  /** Of the upstream: a client cannot be stopped, so nothing waits for it. */
  onDrained(): void {}

  #release(): void {
    this.#services.sessions.release((this.#call.key as Key).id);
  }
}

function pathAt({ exchange }: Call, { model }: Target): string {
  const { query } = exchange.head;
  const isNamed = queryParameter(query, 'model') !== '';
  // A session of a call, or of an intent, has its model already.
  const isKnown = queryParameter(query, 'call_id') !== '' || queryParameter(query, 'intent') !== '';
  return `/realtime?${upstreamQuery(query, isKnown && !isNamed ? null : model)}`;
}

/** A browser can ask for the beta only by a subprotocol. */
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
