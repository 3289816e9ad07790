import type { Target, Upstream } from '../../config/types.js';
import type { HeldPart } from '../../http/socket.js';
import type { EffectRule } from '../../protocols/effects.js';
import { messageOf, socketStreamRules } from '../../protocols/responses/socket-message.js';
import type { Dialer } from '../../upstream/dial.js';
import { SocketCalls } from '../../upstream/socket-calls.js';
import type { SocketRequest } from '../../upstream/socket-types.js';
import type { Deadlines, UpstreamExchange, UpstreamHandler } from '../../upstream/types.js';
import type { SteeringMember } from '../../wire/steering-members.js';

/** A call to be sent, and what is done where its upstream has no WebSocket. */
interface SessionRequest {
  readonly target: Target;
  /** Index of the upstream's key. */
  readonly keyIndex: number;
  readonly body: readonly Buffer[];
  readonly hasEffects: EffectRule;
  readonly deadlines: Deadlines;
  readonly handler: UpstreamHandler;
  readonly isWarmUp: boolean;
  /** What a WebSocket to the target is asked for with, where one is to be opened. */
  readonly socketRequest: () => SocketRequest;
  /** @returns null when there is nothing more to send */
  readonly otherwise: () => UpstreamExchange | null;
}

/**
 * The upstream's side of a socket over which responses are made: a WebSocket, where the upstream has one, which stays
 * open between the calls, since upstreams remember the newest response of a connection.
 */
export class UpstreamSession {
  readonly #dialer: Dialer;
  readonly #unfinished: HeldPart;
  #calls: SocketCalls | null = null;
  #upstream: Upstream | null = null;
  /** Index of the upstream's key that the socket was opened with. */
  #keyIndex = 0;
  /** Names of upstreams that turned out to have none. */
  readonly #without = new Set<string>();

  /** @param unfinished what there is of an upstream's message whose end has not come */
  constructor(dialer: Dialer, unfinished: HeldPart) {
    this.#dialer = dialer;
    this.#unfinished = unfinished;
  }

  /** The upstream of the newest call still knows what was said. */
  get isOpen(): boolean {
    return this.#calls?.isOpen ?? false;
  }

  /** Puts the target first that the socket is open to. */
  arrange(targets: readonly Target[]): readonly Target[] {
    const at = this.isOpen ? targets.findIndex(({ upstream }) => isSame(upstream, this.#upstream)) : -1;
    const first = targets[at];
    if (first === undefined || at === 0) return targets;
    return [first, ...targets.filter((target) => target !== first)];
  }

  /** Index of the key with which the socket to a target was opened, whose account knows what was said; null for none. */
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

/** A call under way, over the socket or, where there is none, by a request. */
class SessionExchange implements UpstreamExchange {
  current: UpstreamExchange | null = null;

  get sentAt(): number {
    return this.current?.sentAt ?? 0;
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

/** A reload makes the upstreams anew. */
function isSame(a: Upstream, b: Upstream | null): boolean {
  return b !== null && a.name === b.name && a.origin.identity === b.origin.identity;
}

/** What a call is told that came as a message of a WebSocket, and what it tells. */
export interface SocketCall {
  readonly upstreamSession: UpstreamSession;
  /** Nothing is to be generated. */
  readonly isWarmUp: boolean;
  /** Members of the message that could lead an upstream elsewhere: those of its body, and what only a message has. */
  readonly steering: readonly SteeringMember[];
  /** As it came, while it is read: a fault of its JSON is told by its place there. Null after that. */
  message: Buffer | null;
  /** The response that it goes on from, where only its upstream can know it. */
  readonly previousId: string | null;
  /** Is told the whole input, as JSON texts of items, of a call that goes on from a response which the socket had not. */
  readonly onRecalled: (items: string) => void;
  /** Who made the answer: an upstream over the WebSocket or a request of the same protocol, or the gateway had a part. */
  madeBy: 'session' | 'request' | 'gateway';
}
