import type { Model, Target } from '../config/types.js';
import { backoff } from '../routing/backoff.js';
import type { TargetHealth } from '../routing/health.js';
import { isOfKey } from '../routing/outcome.js';
import { type FailedAttempt, verdict } from '../routing/verdict.js';
import type { Call } from './call.js';
import type { Services } from './services.js';

/**
 * The targets of one call in the order in which they are asked, and the present one of them with the key to ask it
 * with. What follows an attempt that failed is decided here, for calls of every kind.
 */
export class Candidates {
  target: Target;
  health: TargetHealth;
  /** Index of the upstream's key; 0 where it has one, or none. */
  key = 0;
  /** When the present target was chosen (milliseconds of `performance.now()`). */
  lookedAt: number;
  readonly #services: Services;
  readonly #call: Call;
  readonly #targets: readonly Target[];
  #index = 0;
  /** Keys of the present target that were asked with, and how often it was tried again with the same. */
  #keysAsked = 1;
  #repeats = 0;

  /**
   * @param targets at least one
   * @param now milliseconds of `performance.now()`
   */
  constructor(services: Services, call: Call, targets: readonly Target[], now: number) {
    this.#services = services;
    this.#call = call;
    this.#targets = targets;
    this.lookedAt = now;
    this.target = targets[0] as Target;
    this.health = services.health.of(this.target);
    if (this.health.keys !== null) this.#chooseKey();
  }

  /**
   * Makes the one that is to be asked after an attempt that failed the present one: the same target with another key
   * where the one before was refused, the next target, or the same again.
   * @returns milliseconds to wait before it is asked, or null when that attempt was the last
   */
  after(attempt: FailedAttempt): number | null {
    const now = performance.now();
    this.lookedAt = now;
    if (this.#wantsOtherKey(attempt, now)) {
      this.#keysAsked++;
      this.#chooseKey();
      return this.#again(0);
    }
    const next = this.#nextAt(now);
    const { retries } = this.#call.running.snapshot.routing;
    const hasNext = next < this.#targets.length;
    switch (verdict(attempt, hasNext, this.#repeats < retries && this.#mayAsk(now))) {
      case 'next':
        this.#moveTo(next);
        return this.#again(0);
      case 'same': {
        const wait = backoff(++this.#repeats, Math.random());
        return now + wait < this.#call.validatedAt + this.#call.running.snapshot.timeouts.totalMs
          ? this.#again(wait)
          : null;
      }
      case 'stop':
        return null;
    }
  }

  /**
   * Goes on to the next target that may be asked now, for another reason than a failure.
   * @returns false when there is none
   */
  skip(): boolean {
    this.lookedAt = performance.now();
    const next = this.#nextAt(this.lookedAt);
    if (next >= this.#targets.length) return false;
    this.#moveTo(next);
    return true;
  }

  #again(wait: number): number {
    this.#call.retries++;
    this.#services.attempts.recordRetry(this.target);
    return wait;
  }

  #wantsOtherKey(attempt: FailedAttempt, now: number): boolean {
    const { keys } = this.health;
    return (
      keys !== null &&
      attempt.reason === 'error_answer' &&
      isOfKey(attempt.status) &&
      this.#keysAsked < keys.count &&
      keys.hasWell(now) &&
      this.#mayAsk(now) &&
      verdict(attempt, true, false) === 'next'
    );
  }

  /** Whether the present target may be asked again: as at first, a model's only one always is. */
  #mayAsk(now: number): boolean {
    return (this.#call.model as Model).targets.length === 1 || this.health.mayTake(now);
  }

  /** Index of the next target that may be asked; beyond the last when there is none. */
  #nextAt(now: number): number {
    let at = this.#index + 1;
    while (at < this.#targets.length && !this.#services.health.of(this.#targets[at] as Target).mayTake(now))
      at++;
    return at;
  }

  #moveTo(index: number): void {
    this.#index = index;
    this.target = this.#targets[index] as Target;
    this.health = this.#services.health.of(this.target);
    this.key = 0;
    this.#keysAsked = 1;
    this.#repeats = 0;
    if (this.health.keys !== null) this.#chooseKey();
  }

  #chooseKey(): void {
    this.key = this.health.keys?.choose(this.#call.affinity, Math.random, this.lookedAt) ?? 0;
  }
}
