import { performance } from 'node:perf_hooks';
import type { Target, Upstream } from '../config/types.js';
import { type AttemptFailure, GatewayError, guard } from '../errors.js';
import type { Asking, Call, ResolvedCall } from '../flow/call.js';
import type { Services } from '../flow/services.js';
import { resultOfFailure, resultOfStatus } from '../metrics/results.js';
import type { VendorAccountError } from '../protocols/error-formats/vendor-account.js';
import type { ResponseHead, UpstreamExchange } from '../upstream/types.js';
import { carriesAccount, type ErrorAnswer, toldStatus } from './error-answer.js';
import type { TargetHealth } from './health.js';
import { type AttemptOutcome, type Finding, findingOfFailure, findingOfStatus } from './outcome.js';
import { type FailedAttempt, isOfUpstreamKey, verdict } from './verdict.js';

/** Before the first try again, in milliseconds; twice as long before each that follows. */
const baseMs = 100;
const longestMs = 2000;

/** Asks a target for a call: relays its answer, collects it, opens a socket there, or submits a task. */
export interface Asker {
  /**
   * Asks the present target, and tells `AttemptPlan` when that comes to nothing.
   * @throws {GatewayError} for what this target cannot be asked: the next one is
   */
  ask(): void;
  /** No target can be asked any more. @param fault what the caller is told */
  onNoneLeft(fault: unknown): void;
}

/**
 * The plan of one call's attempts: its targets in the order in which they are asked, and the present one of them with the
 * key to ask it with. What follows an attempt that failed is decided here by the `verdict`, for calls of every kind.
 */
export class AttemptPlan {
  target: Target;
  health: TargetHealth;
  /** Index of the upstream's key; 0 where it has one, or none. */
  keyIndex = 0;
  /** When the present target was chosen (milliseconds of `performance.now()`). */
  lookedAt: number;
  readonly #services: Services;
  readonly call: ResolvedCall;
  readonly #targets: readonly Target[];
  #index = 0;
  /** Keys of the present target that were asked with, and how often it was tried again with the same. */
  #keysAsked = 1;
  #repeats = 0;
  #asker: Asker | null = null;
  /** Milliseconds to wait before the attempt that `planNext` has promised; null where it has promised none. */
  #wait: number | null = null;
  /** Why an attempt failed: a target that then cannot be asked at all is not the caller's mistake. */
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

  /** Asks the present target, or the next one of the list that can be asked this call. */
  start(asker: Asker): void {
    this.#asker = asker;
    this.#ask(asker);
  }

  /**
   * Decides what follows an attempt that failed, and makes ready for it: its target and key are the present ones from now on.
   * @returns whether another one does: `beginPlanned` begins it, and nothing else may be told the client
   */
  planNext(attempt: FailedAttempt): boolean {
    this.#wait = this.#after(attempt);
    return this.#wait !== null;
  }

  /**
   * Begins the attempt that `planNext` has promised, at once or after a back-off.
   * @param failure of the attempt before
   * @returns the back-off, for whoever has to end it when the client leaves; null where there is none
   */
  beginPlanned(failure: GatewayError | null): Wait | null {
    const asker = this.#asker;
    const wait = this.#wait;
    this.#wait = null;
    if (asker === null || wait === null) return null;
    this.#failure = failure ?? this.#failure;
    if (wait === 0) {
      this.#ask(asker);
      return null;
    }
    const timer = setTimeout(
      guard('timer', this.call, () => this.#ask(asker)),
      wait,
    );
    return new Wait(() => clearTimeout(timer));
  }

  /** For a target that turns out, after `ask` has returned, to be one that cannot be asked. @param fault why */
  cannot(fault: unknown): void {
    const asker = this.#asker;
    if (asker === null) return;
    if (!(fault instanceof GatewayError)) asker.onNoneLeft(fault);
    else if (this.goTo(this.next)) this.#ask(asker);
    else asker.onNoneLeft(this.#failure ?? fault);
  }

  /** Asks the present target once more, which can be asked in another way. */
  askAgain(): void {
    if (this.#asker !== null) this.#ask(this.#asker);
  }

  #ask(asker: Asker): void {
    try {
      asker.ask();
    } catch (fault) {
      this.cannot(fault);
    }
  }

  /**
   * Makes the one that is to be asked after an attempt that failed the present one: the same target with another key
   * where the one before was refused, the next target, or the same again.
   * @returns milliseconds to wait before it is asked, or null when that attempt was the last
   */
  #after(attempt: FailedAttempt): number | null {
    const now = performance.now();
    this.lookedAt = now;
    if (this.#wantsOtherKey(attempt, now)) {
      this.#keysAsked++;
      this.#chooseKey();
      return this.#again(0);
    }
    const next = this.#nextAt(now);
    const { retries } = this.call.running.snapshot.routing;
    const hasNext = next < this.#targets.length;
    switch (verdict(attempt, hasNext, this.#repeats < retries && this.#mayAsk(now))) {
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
   * Goes on to a target that `next` has given, for another reason than a failure.
   * @returns false when there was none
   */
  goTo(target: Target | null): boolean {
    if (target === null) return false;
    this.lookedAt = performance.now();
    this.#moveTo(this.#targets.indexOf(target, this.#index + 1));
    return true;
  }

  /** Of two targets that were asked at once, the call goes on with this attempt's. The targets behind both come next. */
  stayWith({ target, keyIndex }: Attempt): void {
    if (target === this.target) return;
    this.target = target;
    this.health = this.#services.health.of(target);
    this.keyIndex = keyIndex;
    this.#keysAsked = 1;
    this.#repeats = 0;
  }

  /** Whether a target behind the present one may be asked now. @param canAsk the call can be put to it */
  hasNext(canAsk: (target: Target) => boolean): boolean {
    const now = performance.now();
    for (let at = this.#nextAt(now); ; at = this.#nextAt(now, at)) {
      const target = this.#targets[at];
      if (target === undefined) return false;
      if (canAsk(target)) return true;
    }
  }

  /** The upstream's key that the present target is asked with; null where it has none. */
  get apiKey(): string | null {
    return this.target.upstream.apiKeys[this.keyIndex] ?? null;
  }

  /** The next target that may be asked now, or null. */
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
      this.#keysAsked < keys.count &&
      !this.#isOfOneKey &&
      keys.hasWell(now) &&
      this.#mayAsk(now) &&
      verdict(attempt, true, false) === 'next'
    );
  }

  /** What the call goes on from is known to the account of one key alone. */
  get #isOfOneKey(): boolean {
    const { recalled } = this.call;
    return recalled !== null && recalled.unfound !== null && (recalled.holder?.key ?? null) !== null;
  }

  /** Whether the present target may be asked again: as at first, a model's only one always is. */
  #mayAsk(now: number): boolean {
    return this.call.model.targets.length === 1 || this.health.mayTake(now);
  }

  /** Index of the next target that may be asked; beyond the last when there is none. */
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
    this.#keysAsked = 1;
    this.#repeats = 0;
    if (this.health.keys !== null) this.#chooseKey();
  }

  #chooseKey(): void {
    this.keyIndex = this.health.keys?.choose(this.call.affinity, Math.random, this.lookedAt) ?? 0;
  }
}

/** What is asked, and with which of its keys. */
interface AttemptStart extends Pick<AttemptPlan, 'target' | 'health' | 'keyIndex' | 'lookedAt'> {
  /** Whose client's headers are sent; null where none are. */
  readonly call: Call | null;
}

/**
 * One attempt of a call at a target, as the target's health and the metrics see it. It is under way from the start and
 * ends once: what is said of it after that changes nothing.
 */
export class Attempt {
  readonly target: Target;
  /** Index of the upstream's key. */
  readonly keyIndex: number;
  readonly #services: Services;
  readonly #call: Call | null;
  readonly #health: TargetHealth;
  readonly #beganAt: number;
  readonly #ticket: number;
  #isOver = false;

  /** Begins an attempt at the present target. */
  constructor(services: Services, { call, target, health, keyIndex, lookedAt }: AttemptStart) {
    this.target = target;
    this.#call = call;
    this.#services = services;
    this.#health = health;
    this.keyIndex = keyIndex;
    this.#beganAt = lookedAt;
    this.#ticket = health.began(lookedAt);
  }

  /** A good answer has begun, whose end may be minutes away. */
  answered(): void {
    this.#health.answered(this.#ticket);
    this.#services.recorder.recordFirstByte(this.target, performance.now() - this.#beganAt);
  }

  /** A good answer has come whole. */
  succeeded(): void {
    if (this.#isOver) return;
    // It counts for the time in which its call began, which spares a look at the clock.
    this.#end(this.#beganAt, 'success');
    this.#services.recorder.recordAttempt(this.target, 'ok');
  }

  /** The answer is an error. @param answered what `readErrorAnswer` says of it */
  answeredError({ status }: ResponseHead, answered: ErrorAnswer): void {
    if (this.#isOver) return;
    this.#endFound(this.#findingOf(answered.status), `status ${status}`, answered.retryAfterMs);
    this.#services.recorder.recordAttempt(this.target, resultOfStatus(status));
  }

  /** What began as a good answer says what is wrong in words that stand for a status. */
  endedAs(status: number): void {
    if (this.#isOver) return;
    this.#endFound(this.#findingOf(status), `status ${status}`, null);
    this.#services.recorder.recordAttempt(this.target, resultOfStatus(status));
  }

  /** Takes note of an answer about our account, which is the client's own where the call has named one. */
  report(error: GatewayError): void {
    const { target, keyIndex } = this;
    if (this.#call === null || carriesAccount(this.#call, target)) return;
    this.#services.reportVendorAccount(this.#call, { upstream: target.upstream, keyIndex, error });
  }

  /** What began as a good answer says that our account is not accepted. */
  accountRefused(error: VendorAccountError): void {
    this.endedAs(error.vendorAccountStatus);
    this.report(error);
  }

  /** A good answer turns out to be of no use: it counts as what its error stands for, or as the upstream's failure. */
  unusable(error: GatewayError): void {
    const status = toldStatus(error);
    if (status === null) this.failed('unusable_answer', true);
    else this.endedAs(status);
  }

  /**
   * @param headSeen the answer had begun
   * @param detail of an `UpstreamFailure`, for operators
   */
  failed(reason: AttemptFailure, headSeen: boolean, detail: string | null = null): void {
    if (this.#isOver) return;
    const error = detail === null ? reason : `${reason}: ${detail}`;
    this.#endFound(findingOfFailure(reason, headSeen), error, null);
    this.#services.recorder.recordAttempt(this.target, resultOfFailure(reason));
  }

  /** Nobody waits for its answer any more, which says nothing about its target. */
  withdraw(): void {
    if (!this.#isOver) this.#end(this.#beganAt, 'uncounted');
  }

  /** What a status says of the key or its limits says nothing of them beside an account that the client has named. */
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
 * Takes note that a target's upstream refused our account when it was asked about something that was made there, which
 * is no attempt of its own.
 * @param model the model's name at the upstream
 * @param apiKey that it was asked with
 */
export function noteVendorAccountRefused(
  services: Services,
  call: Pick<Asking, 'exchange' | 'model'>,
  asked: { readonly upstream: Upstream; readonly model: string; readonly apiKey: string | null },
  error: VendorAccountError,
): void {
  const { upstream, model, apiKey } = asked;
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
 * How long to wait before the same target is asked again: anything up to a bound that grows (full jitter), since calls
 * that failed together would else come back together.
 * @param attempt 1 for the first try again
 * @param draw a number in [0, 1)
 * @returns milliseconds
 */
export function backoffMs(attempt: number, draw: number): number {
  return draw * Math.min(longestMs, baseMs * 2 ** Math.max(0, attempt - 1));
}

/** Stands in an attempt's place: a back-off, or the fetching of what it needs. */
export class Wait implements UpstreamExchange {
  readonly sentAt = 0;
  readonly bodyReleased = false;
  cancel: () => void;

  /** @param cancel ends it; set later by what it turns out to be a wait for */
  constructor(cancel: () => void = () => {}) {
    this.cancel = cancel;
  }

  resume(): void {}
}
