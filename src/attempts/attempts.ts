import { performance } from 'node:perf_hooks';
import type { Target, Upstream } from '../config/types.js';
import { type AttemptFailure, GatewayError, guard } from '../errors.js';
import type { Call, RequestSender, ResolvedCall } from '../flow/call.js';
import type { Services } from '../flow/services.js';
import { resultOfFailure, resultOfStatus } from '../metrics/results.js';
import type { VendorAccountError } from '../protocols/error-formats/vendor-account.js';
import type { ResponseHead, UpstreamExchange } from '../upstream/types.js';
import { carriesAccount, type ErrorAnswer, reportedStatus } from './error-answer.js';
import type { TargetHealth } from './health.js';
import { type AttemptOutcome, type Finding, findingOfFailure, findingOfStatus } from './outcome.js';
import { type FailedAttempt, isOfUpstreamKey, verdict } from './verdict.js';

/** Bound of the back-off before the first retry, in milliseconds. It doubles with each retry. */
const baseMs = 100;
const longestMs = 2000;

/** Sends a call to a target: to relay or collect its answer, to open a socket, or to submit a task. */
export interface AttemptAdapter {
  /**
   * Sends the call to the current target. Reports a failure to `AttemptPlan`.
   * @throws {GatewayError} if this target cannot serve the call, so that the next one is tried
   */
  attempt(): void;
  /** No target is left. @param fault the error for the client */
  onNoneLeft(fault: unknown): void;
}

/**
 * The plan of one call's attempts: its targets in the order in which they are tried, and the current one with the key for
 * it. The `verdict` decides what follows a failed attempt, for calls of every kind.
 */
export class AttemptPlan {
  target: Target;
  health: TargetHealth;
  /** Index of the upstream's API key; 0 if it has one or none. */
  keyIndex = 0;
  /** When the current target was chosen (milliseconds of `performance.now()`). */
  lookedAt: number;
  readonly #services: Services;
  readonly call: ResolvedCall;
  readonly #targets: readonly Target[];
  #index = 0;
  /** API keys of the current target that were tried, and the number of retries with the same one. */
  #keysTried = 1;
  #repeats = 0;
  #adapter: AttemptAdapter | null = null;
  /** Back-off before the attempt that `planNext` has planned, in milliseconds; null if none is planned. */
  #wait: number | null = null;
  /** Why an attempt failed. It is reported if no further target can serve the call. */
  #failure: GatewayError | null = null;

  /**
   * @param targets at least one
   * @param now milliseconds of `performance.now()`
   */
  constructor(services: Services, call: ResolvedCall, targets: readonly Target[], now: number) {
    this.#services = services;
    this.call = call;
    this.#targets = targets;
    this.lookedAt = now;
    const [first] = targets;
    if (first === undefined) throw new Error('a call has no target that it may be sent to');
    this.target = first;
    this.health = services.health.of(this.target);
    if (this.health.keys !== null) this.#chooseKey();
  }

  /** Sends the call to the current target, or to the next one that can serve it. */
  start(adapter: AttemptAdapter): void {
    this.#adapter = adapter;
    this.#attempt(adapter);
  }

  /**
   * Decides what follows a failed attempt. If another attempt follows, its target and API key become the current ones.
   * @returns whether another attempt follows. Then `beginPlanned` begins it, and the client must not get an error
   */
  planNext(attempt: FailedAttempt): boolean {
    this.#wait = this.#after(attempt);
    return this.#wait !== null;
  }

  /**
   * Begins the attempt that `planNext` has planned, immediately or after a back-off.
   * @param failure of the attempt before
   * @returns the back-off, which has to be cancelled if the client disconnects; null if there is none
   */
  beginPlanned(failure: GatewayError | null): Wait | null {
    const adapter = this.#adapter;
    const wait = this.#wait;
    this.#wait = null;
    if (adapter === null || wait === null) return null;
    this.#failure = failure ?? this.#failure;
    if (wait === 0) {
      this.#attempt(adapter);
      return null;
    }
    const timer = setTimeout(
      guard('timer', this.call, () => this.#attempt(adapter)),
      wait,
    );
    return new Wait(() => clearTimeout(timer));
  }

  /** Called if a target turns out after `attempt` to be unable to serve the call. @param fault the reason */
  cannot(fault: unknown): void {
    const adapter = this.#adapter;
    if (adapter === null) return;
    if (!(fault instanceof GatewayError)) adapter.onNoneLeft(fault);
    else if (this.goTo(this.next)) this.#attempt(adapter);
    else adapter.onNoneLeft(this.#failure ?? fault);
  }

  /** Sends the call to the current target again, in a different form. */
  attemptAgain(): void {
    if (this.#adapter !== null) this.#attempt(this.#adapter);
  }

  #attempt(adapter: AttemptAdapter): void {
    try {
      adapter.attempt();
    } catch (fault) {
      this.cannot(fault);
    }
  }

  /**
   * Selects what to try after a failed attempt: the same target with another API key if the key was refused, the next target, or
   * the same again.
   * @returns milliseconds to wait before, or null if the attempt was the last
   */
  #after(attempt: FailedAttempt): number | null {
    const now = performance.now();
    this.lookedAt = now;
    if (this.#wantsOtherKey(attempt, now)) {
      this.#keysTried++;
      this.#chooseKey();
      return this.#again(0);
    }
    const next = this.#nextAt(now);
    const { retries } = this.call.running.snapshot.routing;
    const hasNext = next < this.#targets.length;
    switch (verdict(attempt, hasNext, this.#repeats < retries && this.#mayAttempt(now))) {
      case 'next':
        this.#moveTo(next);
        return this.#again(0);
      case 'same': {
        const wait = backoffMs(++this.#repeats, Math.random());
        return now + wait < this.call.validatedAt + this.call.running.snapshot.timeouts.totalMs
          ? this.#again(wait)
          : null;
      }
      case 'stop':
        return null;
    }
  }

  /**
   * Moves to a target that `next` has returned, for another reason than a failure.
   * @returns false if there was none
   */
  goTo(target: Target | null): boolean {
    if (target === null) return false;
    this.lookedAt = performance.now();
    this.#moveTo(this.#targets.indexOf(target, this.#index + 1));
    return true;
  }

  /** Continues with the target of one of two concurrent attempts. The targets after both come next. */
  stayWith({ target, keyIndex }: Attempt): void {
    if (target === this.target) return;
    this.target = target;
    this.health = this.#services.health.of(target);
    this.keyIndex = keyIndex;
    this.#keysTried = 1;
    this.#repeats = 0;
  }

  /** Whether a target after the current one may be tried now. @param canServe whether it can serve the call */
  hasNext(canServe: (target: Target) => boolean): boolean {
    const now = performance.now();
    for (let at = this.#nextAt(now); ; at = this.#nextAt(now, at)) {
      const target = this.#targets[at];
      if (target === undefined) return false;
      if (canServe(target)) return true;
    }
  }

  /** The API key for the current target; null if its upstream has none. */
  get apiKey(): string | null {
    return this.target.upstream.apiKeys[this.keyIndex] ?? null;
  }

  /** The next target that may be tried now, or null. */
  get next(): Target | null {
    return this.#targets[this.#nextAt(performance.now())] ?? null;
  }

  #again(wait: number): number {
    this.call.retries++;
    this.#services.recorder.recordRetry(this.target);
    return wait;
  }

  #wantsOtherKey(attempt: FailedAttempt, now: number): boolean {
    const { keys } = this.health;
    return (
      keys !== null &&
      typeof attempt.reason === 'number' &&
      isOfUpstreamKey(attempt.reason) &&
      this.#keysTried < keys.count &&
      !this.#isOfOneKey &&
      keys.hasWell(now) &&
      this.#mayAttempt(now) &&
      verdict(attempt, true, false) === 'next'
    );
  }

  /** The conversation that the call continues is known only to the account of one API key. */
  get #isOfOneKey(): boolean {
    const { recalled } = this.call;
    return recalled?.unfound != null && recalled.holder?.key != null;
  }

  /** Whether the current target may be retried. The only target of a model always may. */
  #mayAttempt(now: number): boolean {
    return this.call.model.targets.length === 1 || this.health.mayTake(now);
  }

  /** Returns the index of the next target that may be tried; beyond the last if there is none. */
  #nextAt(now: number, behind = this.#index): number {
    for (let at = behind + 1; ; at++) {
      const target = this.#targets[at];
      if (target === undefined || this.#services.health.of(target).mayTake(now)) return at;
    }
  }

  #moveTo(index: number): void {
    const target = this.#targets[index];
    if (target === undefined) return;
    this.#index = index;
    this.target = target;
    this.health = this.#services.health.of(this.target);
    this.keyIndex = 0;
    this.#keysTried = 1;
    this.#repeats = 0;
    if (this.health.keys !== null) this.#chooseKey();
  }

  #chooseKey(): void {
    this.keyIndex = this.health.keys?.choose(this.call.affinity, Math.random, this.lookedAt) ?? 0;
  }
}

/** The target of an attempt, and its API key. */
interface AttemptStart extends Pick<AttemptPlan, 'target' | 'health' | 'keyIndex' | 'lookedAt'> {
  /** The call whose client headers are sent; null for none. */
  readonly call: Call | null;
}

/**
 * One attempt of a call at a target, for the target's health and the metrics. It is in flight from the start and ends once.
 * Later reports have no effect.
 */
export class Attempt {
  readonly target: Target;
  /** Index of the upstream's API key. */
  readonly keyIndex: number;
  readonly #services: Services;
  readonly #call: Call | null;
  readonly #health: TargetHealth;
  readonly #beganAt: number;
  readonly #ticket: number;
  #isOver = false;

  /** Begins an attempt at the current target. */
  constructor(services: Services, { call, target, health, keyIndex, lookedAt }: AttemptStart) {
    this.target = target;
    this.#call = call;
    this.#services = services;
    this.#health = health;
    this.keyIndex = keyIndex;
    this.#beganAt = lookedAt;
    this.#ticket = health.began(lookedAt);
  }

  /** A successful answer has begun. It may take minutes to end. */
  answered(): void {
    this.#health.answered(this.#ticket);
    this.#services.recorder.recordFirstByte(this.target, performance.now() - this.#beganAt);
  }

  /** A successful answer is complete. */
  succeeded(): void {
    if (this.#isOver) return;
    // It is counted at the time its call began, which saves reading the clock.
    this.#end(this.#beganAt, 'success');
    this.#services.recorder.recordAttempt(this.target, 'ok');
  }

  /** Called for an error answer. @param answered the result of `readErrorAnswer` */
  answeredError({ status }: ResponseHead, answered: ErrorAnswer): void {
    if (this.#isOver) return;
    this.#endFound(this.#findingOf(answered.status), `status ${status}`, answered.retryAfterMs);
    this.#services.recorder.recordAttempt(this.target, resultOfStatus(status));
  }

  /** An answer that began successfully reports an error that corresponds to a status. */
  endedAs(status: number): void {
    if (this.#isOver) return;
    this.#endFound(this.#findingOf(status), `status ${status}`, null);
    this.#services.recorder.recordAttempt(this.target, resultOfStatus(status));
  }

  /** Records a refusal of the account, which is the client's own if the call names one. */
  report(error: GatewayError): void {
    const { target, keyIndex } = this;
    if (this.#call === null || carriesAccount(this.#call, target)) return;
    this.#services.reportVendorAccount(this.#call, { upstream: target.upstream, keyIndex, error });
  }

  /** An answer that began successfully reports that the gateway's account is refused. */
  accountRefused(error: VendorAccountError): void {
    this.endedAs(error.vendorAccountStatus);
    this.report(error);
  }

  /** A successful answer is unusable. It counts by the status of its error, or as a failure of the upstream. */
  unusable(error: GatewayError): void {
    const status = reportedStatus(error);
    if (status === null) this.failed('unusable_answer', true);
    else this.endedAs(status);
  }

  /**
   * @param headSeen the answer had begun
   * @param detail detail of the `UpstreamFailure`, for operators
   */
  failed(reason: AttemptFailure, headSeen: boolean, detail: string | null = null): void {
    if (this.#isOver) return;
    const error = detail === null ? reason : `${reason}: ${detail}`;
    this.#endFound(findingOfFailure(reason, headSeen), error, null);
    this.#services.recorder.recordAttempt(this.target, resultOfFailure(reason));
  }

  /** The answer is no longer needed. Does not affect the target's health. */
  withdraw(): void {
    if (!this.#isOver) this.#end(this.#beganAt, 'uncounted');
  }

  /** A status about the API key or its limits does not count if the client has named an account of its own. */
  #findingOf(status: number): Finding {
    const finding = findingOfStatus(status);
    const isOfAccount = finding === 'rejected' || finding === 'doubted' || finding === 'rateLimited';
    return isOfAccount && this.#call !== null && carriesAccount(this.#call, this.target)
      ? 'uncounted'
      : finding;
  }

  #endFound(finding: Finding, error: string, retryAfterMs: number | null): void {
    const isOutcome = finding === 'success' || finding === 'uncounted';
    this.#end(performance.now(), isOutcome ? finding : { kind: finding, error, retryAfterMs });
  }

  #end(now: number, outcome: AttemptOutcome): void {
    this.#isOver = true;
    this.#health.ended(now, this.#ticket, outcome, this.keyIndex);
  }
}

/**
 * Records that an upstream refused the gateway's account in a request about something created there, which is not an attempt.
 * @param model the model's name at the upstream
 * @param apiKey the API key of the request
 */
export function noteVendorAccountRefused(
  services: Services,
  call: Pick<RequestSender, 'exchange' | 'model'>,
  attempted: { readonly upstream: Upstream; readonly model: string; readonly apiKey: string | null },
  error: VendorAccountError,
): void {
  const { upstream, model, apiKey } = attempted;
  const keyIndex = Math.max(0, upstream.apiKeys.indexOf(apiKey ?? ''));
  const target = call.model?.targets.find((each) => each.upstream === upstream && each.model === model);
  if (target !== undefined) {
    const health = services.health.of(target);
    const start = { call: null, target, health, keyIndex, lookedAt: performance.now() };
    new Attempt(services, start).endedAs(error.vendorAccountStatus);
  }
  services.reportVendorAccount(call, { upstream, keyIndex, error });
}

/**
 * Draws the back-off before a retry of the same target: any time up to a growing bound (full jitter), so that calls which failed
 * together do not return together.
 * @param attempt 1 for the first retry
 * @param draw a number in [0, 1)
 * @returns milliseconds
 */
export function backoffMs(attempt: number, draw: number): number {
  return draw * Math.min(longestMs, baseMs * 2 ** Math.max(0, attempt - 1));
}

/** A wait in place of an attempt: a back-off, or fetching files that the attempt needs. */
export class Wait implements UpstreamExchange {
  readonly sentAt = 0;
  readonly isWritten = false;
  readonly bodyReleased = false;
  cancel: () => void;

  /** @param cancel ends the wait; may be set later */
  constructor(cancel: () => void = () => {}) {
    this.cancel = cancel;
  }

  resume(): void {}
}
