import type { Key } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { acceptSocket, type ClientSocket, type ClientSocketListener } from '../../http/socket.js';
import { errorEvent } from '../../protocols/realtime/error-event.js';
import { addUsage, usageOfEvent } from '../../protocols/realtime/usage.js';
import type { UpstreamSocket } from '../../upstream/socket.js';
import { account } from '../account.js';
import type { Call, Outcome } from '../call.js';
import type { Services } from '../services.js';
import type { Trial } from '../trial.js';
import { Watched } from '../watch.js';
import { closeCode } from './close-code.js';
import type { OpenSession } from './sessions.js';

/**
 * Two WebSockets as one: what comes from either side goes to the other as it came. A client that does not keep up
 * stops its upstream; a client cannot be stopped, so what waits for a slow upstream is bounded. Whichever side ends, the
 * other is told why.
 */
export class Bridge extends Watched implements ClientSocketListener, OpenSession {
  readonly #services: Services;
  readonly #call: Call;
  readonly #upstream: UpstreamSocket;
  readonly #trial: Trial;
  #client: ClientSocket | null = null;
  #over = false;

  /** @param trial the attempt that has opened the upstream's side; it ends with the session */
  constructor(services: Services, call: Call, upstream: UpstreamSocket, trial: Trial) {
    super();
    this.#services = services;
    this.#call = call;
    this.#upstream = upstream;
    this.#trial = trial;
  }

  /**
   * Gives the client its side.
   * @param protocol the subprotocol to agree on; empty for none
   */
  begin(protocol: string): void {
    this.#services.sessions.add(this);
    this.#services.watched.add(this);
    this.#call.isServed = true;
    const client = acceptSocket(this.#call.exchange, protocol, this);
    if (client === null) this.#end('client_gone', closeCode.goingAway, '');
    else if (!this.#over) this.#client = client;
    // It may have been revoked while the upstream's side was opened.
    this.onKeysChanged();
  }

  /** A message of the client. */
  onMessage(data: Buffer, isBinary: boolean): void {
    if (this.#over) return;
    const { exchange, running } = this.#call;
    const { messageBytes, waitingBytes } = running.snapshot.sockets;
    exchange.bytesIn += data.length;
    if (data.length > messageBytes) {
      this.#refuse(tooBig(messageBytes), closeCode.tooBig);
      return;
    }
    if (this.#upstream.waitingBytes > waitingBytes) this.#refuse(tooSlow, closeCode.tryLater);
    else this.#upstream.send(data, isBinary);
  }

  onBlocked(): void {
    if (!this.#over) this.#upstream.pause();
  }

  /** The client has taken what waited for it. */
  onDrained(): void {
    if (!this.#over) this.#upstream.resume();
  }

  /** The client's side has ended. */
  onClosed(code: number, reason: string): void {
    this.#client = null;
    const isOrderly = code !== closeCode.broken;
    this.#end(isOrderly ? 'complete' : 'client_gone', isOrderly ? code : closeCode.goingAway, reason);
  }

  /** A message of the upstream. */
  onUpstreamMessage(data: Buffer, isBinary: boolean): void {
    const client = this.#client;
    if (client === null) return;
    const call = this.#call;
    if (call.answeredAt === 0) call.answeredAt = performance.now();
    call.exchange.bytesOut += data.length;
    if (!isBinary) {
      const usage = usageOfEvent(data);
      if (usage !== null) call.usage = addUsage(call.usage, usage);
    }
    client.gather(data, isBinary);
  }

  /** The upstream's messages are valid until here. */
  onUpstreamReadEnd(): void {
    this.#client?.flush();
  }

  /** The upstream's side has ended. */
  onUpstreamClosed(code: number, reason: Buffer): void {
    if (this.#over) return;
    if (code === closeCode.broken) {
      this.#trial.failed('reset', true);
      this.#refuse(lost, closeCode.internal);
      return;
    }
    const isOrderly = code === closeCode.normal || code === closeCode.noCode || code === closeCode.goingAway;
    this.#end(isOrderly ? 'complete' : 'upstream_error', null, '');
    this.#closeClient(code, reason.toString('utf8'));
  }

  override onTick(now: number): void {
    const { sessionMs } = this.#call.running.snapshot.sockets;
    if (now - this.#call.startedAt > sessionMs) this.#refuse(expired, closeCode.goingAway);
  }

  /** Only its two sides know when a session is over. */
  drain(): void {}

  shutDown(): void {
    this.#end('incomplete', closeCode.goingAway, '');
    this.#closeClient(closeCode.restart, 'The gateway restarts.');
  }

  onKeysChanged(): void {
    const { key, running } = this.#call;
    if (!this.#over && !running.keys.holds(key as Key)) this.#refuse(noKey, closeCode.policy);
  }

  /** Ends both sides with an error of the gateway's own. */
  #refuse(error: GatewayError, code: number): void {
    const { exchange } = this.#call;
    this.#call.error = error;
    this.#client?.send(errorEvent(error, exchange.id), false);
    this.#end(error.source === 'upstream' ? 'upstream_error' : 'incomplete', closeCode.goingAway, '');
    this.#closeClient(code, error.message);
  }

  /** After `#end`, since uWS tells at once that the socket has ended. */
  #closeClient(code: number, reason: string): void {
    const client = this.#client;
    this.#client = null;
    client?.close(code, reason);
  }

  /** @param code for the upstream, or null when its side has ended already */
  #end(outcome: Outcome, code: number | null, reason: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#trial.succeeded();
    const services = this.#services;
    services.watched.remove(this);
    services.sessions.remove(this);
    services.sessions.release((this.#call.key as Key).id);
    if (code !== null) this.#upstream.close(code, reason);
    const { usage } = this.#call;
    // A response that was being made is reported to nobody any more.
    if (usage !== null && outcome !== 'complete') this.#call.usage = { ...usage, partial: true };
    account(services, this.#call, outcome);
  }
}

// Made once: a flood of them pays for no stack traces.
const tooSlow = new GatewayError('overloaded', 'The upstream does not keep up with what the client sends.');
const lost = new GatewayError('upstream_error', 'The connection to the upstream was lost.');
const noKey = new GatewayError('invalid_api_key', 'The API key of the session was revoked.');
const expired = new GatewayError('invalid_request', 'The session has reached its longest duration.');

function tooBig(bytes: number): GatewayError {
  return new GatewayError('request_too_large', `A message may have ${bytes} bytes at most.`);
}
