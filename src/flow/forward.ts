import type { Target } from '../config/types.js';
import type { GatewayError } from '../errors.js';
import type { TextProtocol } from '../protocols/protocol.js';
import { orderTargets } from '../routing/candidates.js';
import { verdict } from '../routing/verdict.js';
import type { Deadlines, UpstreamFailure } from '../upstream/client.js';
import { spliceBody } from '../wire/splice.js';
import type { Call } from './call.js';
import { refuse } from './refuse.js';
import { type AttemptOwner, Relay } from './relay.js';
import type { Services } from './services.js';
import { upstreamHead } from './upstream-head.js';
import type { ValidatedBody } from './validate.js';

/** Sends a validated call to its model's targets, one after the other until one answers. */
export function forward(
  services: Services,
  call: Call,
  protocol: TextProtocol,
  targets: readonly Target[],
): void {
  new Forwarding(
    services,
    call,
    protocol,
    orderTargets(targets, targets.length > 1 ? Math.random() : 0),
  ).next();
}

/** The attempts of one call. */
class Forwarding implements AttemptOwner {
  readonly #services: Services;
  readonly #call: Call;
  readonly #protocol: TextProtocol;
  readonly #targets: readonly Target[];
  #index = 0;
  #relay: Relay | null = null;

  constructor(services: Services, call: Call, protocol: TextProtocol, targets: readonly Target[]) {
    this.#services = services;
    this.#call = call;
    this.#protocol = protocol;
    this.#targets = targets;
  }

  next(): void {
    const call = this.#call;
    const services = this.#services;
    const target = this.#targets[this.#index++] as Target;
    const { upstream } = target;
    const validated = call.validated as ValidatedBody;
    const body = call.body as Buffer;
    const injectUsage =
      validated.stream && !validated.includeUsage && this.#protocol.usageOnRequest && upstream.injectUsage;
    const model = target.model === validated.model ? null : target.model;
    call.target = target;
    call.path = model === null && !injectUsage ? 'exact' : 'spliced';
    this.#relay ??= new Relay(services, call, this.#protocol, this);
    const relay = this.#relay;
    relay.reset(injectUsage);
    relay.upstream = services.upstream.send(
      upstream.origin,
      {
        method: 'POST',
        head: upstreamHead(call, target, this.#protocol.upstreamPath),
        body:
          call.path === 'exact'
            ? [body]
            : spliceBody(body, validated.scan, { model, includeUsage: injectUsage }),
      },
      this.#deadlines(),
      relay,
    );
  }

  /** What is left of the total time after the attempts so far. */
  #deadlines(): Deadlines {
    const { timeouts } = this.#call.running.snapshot;
    if (this.#index === 1) return timeouts;
    const passed = performance.now() - this.#call.validatedAt;
    return { ...timeouts, totalMs: Math.max(1, timeouts.totalMs - passed) };
  }

  onAttemptFailed(error: GatewayError, failure: UpstreamFailure | null): void {
    const more = this.#index < this.#targets.length;
    const decision = verdict({
      reason: failure?.reason ?? 'unusable_answer',
      bytesSent: failure?.bytesSent ?? true,
      headRelayed: false,
      replayable: this.#call.body !== null,
    });
    if (more && decision === 'next' && this.#call.exchange.alive) {
      this.#call.retries++;
      this.next();
      return;
    }
    this.#relay?.leave();
    refuse(this.#services, this.#call, error);
  }
}
