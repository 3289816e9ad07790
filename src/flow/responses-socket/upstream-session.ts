import type { Target, Upstream } from '../../config/types.js';
import type { HeldPart } from '../../http/socket.js';
import type { EffectRule } from '../../protocols/effects.js';
import { messageOf, socketStreamRules } from '../../protocols/responses/socket-message.js';
import type { Dialer } from '../../upstream/dial.js';
import { SocketCalls } from '../../upstream/socket-calls.js';
import type { SocketRequest } from '../../upstream/socket-types.js';
import type { Deadlines, UpstreamExchange, UpstreamHandler } from '../../upstream/types.js';
import type { SteeringMember } from '../../wire/routed-members.js';

/** A call to be sent, with the fallback for an upstream without a WebSocket. */
interface SessionRequest {
  readonly target: Target;
  /** Index of the upstream's key. */
  readonly keyIndex: number;
  readonly body: readonly Buffer[];
  readonly hasEffects: EffectRule;
  readonly deadlines: Deadlines;
  readonly handler: UpstreamHandler;
  readonly isWarmUp: boolean;
  /** Creates the request that opens a WebSocket to the target. */
  readonly socketRequest: () => SocketRequest;
  /** Sends the call as a request instead. @returns null if nothing more is to be sent */
  readonly otherwise: () => UpstreamExchange | null;
}

/**
 * The upstream's side of a responses socket: a WebSocket if the upstream has one. It stays open between calls, since
 * upstreams remember the newest response of a connection.
 */
export class UpstreamSession {
  readonly #dialer: Dialer;
  readonly #unfinished: HeldPart;
  #calls: SocketCalls | null = null;
  #upstream: Upstream | null = null;
  /** Index of the upstream key with which the socket was opened. */
  #keyIndex = 0;
  /** Names of upstreams that turned out to have no WebSocket. */
  readonly #without = new Set<string>();

  /** @param unfinished counts the bytes of an upstream message whose end has not arrived */
  constructor(dialer: Dialer, unfinished: HeldPart) {
    this.#dialer = dialer;
    this.#unfinished = unfinished;
  }

  /** Whether the upstream's socket is open, so that it still knows the conversation. */
  get isOpen(): boolean {
    return this.#calls?.isOpen ?? false;
  }

  /** Moves the target to which the socket is open to the front. */
  arrange(targets: readonly Target[]): readonly Target[] {
    const at = this.isOpen ? targets.findIndex(({ upstream }) => isSame(upstream, this.#upstream)) : -1;
    const first = targets[at];
    if (first === undefined || at === 0) return targets;
    return [first, ...targets.filter((target) => target !== first)];
  }

  /** Index of the key with which the target's socket was opened, whose account knows the conversation; null for none. */
  keyIndexFor({ upstream }: Target): number | null {
    return this.isOpen && isSame(upstream, this.#upstream) ? this.#keyIndex : null;
  }

  /** Whether a call can be sent to a target over a WebSocket. */
  takes({ upstream }: Target, isTranslated: boolean): boolean {
    return !isTranslated && upstream.responsesSocket && !this.#without.has(upstream.name);
  }

  send(request: SessionRequest): UpstreamExchange {
    const { target, keyIndex, body, hasEffects, deadlines, handler, isWarmUp, otherwise } = request;
    const { upstream } = target;
    if (this.#calls === null || keyIndex !== this.#keyIndex || !isSame(upstream, this.#upstream)) {
      this.close();
      this.#upstream = upstream;
      this.#keyIndex = keyIndex;
      this.#calls = new SocketCalls(request.socketRequest(), this.#dialer, {
        ...socketStreamRules,
        hold: (bytes) => this.#unfinished.hold(bytes),
      });
    }
    const exchange = new SessionExchange();
    exchange.current = this.#calls.send(messageOf(body, isWarmUp), hasEffects, deadlines, handler, () => {
      this.#without.add(upstream.name);
      this.#calls = null;
      exchange.current = otherwise();
    });
    return exchange;
  }

  close(): void {
    this.#calls?.close();
    this.#calls = null;
    this.#upstream = null;
  }
}

/** A call in flight, over the socket or as a request. */
class SessionExchange implements UpstreamExchange {
  current: UpstreamExchange | null = null;

  get sentAt(): number {
    return this.current?.sentAt ?? 0;
  }

  get isWritten(): boolean {
    return this.current?.isWritten ?? false;
  }

  get bodyReleased(): boolean {
    return this.current?.bodyReleased ?? false;
  }

  resume(): void {
    this.current?.resume();
  }

  cancel(): void {
    this.current?.cancel();
  }
}

/** Whether two objects are the same upstream: a reload creates new objects. */
function isSame(a: Upstream, b: Upstream | null): boolean {
  return b !== null && a.name === b.name && a.origin.identity === b.origin.identity;
}

/** The part of a call that arrived as a message of a WebSocket. */
export interface SocketCall {
  readonly upstreamSession: UpstreamSession;
  /**
   * Takes the message of the call apart, once its key's limits let it in, and sets what follows from it.
   * @returns the body of the equivalent POST request; copied
   * @throws {GatewayError} for a message that does not request a response
   */
  readonly open: (message: Buffer) => Buffer;
  /** Whether nothing is to be generated. */
  isWarmUp: boolean;
  /** Members of the message that could steer an upstream: those of its body, and those that only messages have. */
  steering: readonly SteeringMember[];
  /** Id of the response that it continues, if only its upstream can know that. */
  previousId: string | null;
  /** Called with the whole input, as JSON of items, of a call that continues a response which the socket did not have. */
  readonly onRecalled: (items: string) => void;
  /** What made the answer: an upstream over the WebSocket, a request of the same protocol, or in part the gateway. */
  madeBy: 'session' | 'request' | 'gateway';
}
