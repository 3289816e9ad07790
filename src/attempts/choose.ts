import type { Target } from '../config/types.js';
import { shortened } from '../errors.js';
import { rendezvousScore } from './affinity.js';
import type { HealthTable, TargetHealth } from './health.js';

/** What a call requires of its targets. */
export interface RouteRequest {
  /** Hash of the call's beginning: calls with the same hash go to the same target. Null if that does not matter. */
  readonly affinity: number | null;
  /** Null if every target is allowed. */
  readonly targetFilter: TargetFilter | null;
}

/** A call that may be sent to any target. */
export const anyTarget: RouteRequest = Object.freeze({ affinity: null, targetFilter: null });

const none: readonly Target[] = Object.freeze([]);

/**
 * Chooses the targets of calls at one worker. Its methods take all times in milliseconds of `performance.now()`, and a
 * model's targets in the order of its config, sorted by priority.
 */
export class TargetChooser {
  readonly #health: HealthTable;
  readonly #random: () => number;
  /** Ranks of the targets in the list being made, and scores within a rank. */
  readonly #ranks: number[] = [];
  readonly #scores: number[] = [];

  /** @param random returns numbers in [0, 1) */
  constructor(health: HealthTable, random: () => number) {
    this.#health = health;
    this.#random = random;
  }

  /**
   * Returns the targets to try for a call, in order. For a model with one target, the list is the model's own.
   *
   * The list omits targets whose breaker is open, whose probe is in flight, or that asked to be left alone. Targets
   * that rest come after all others. The rest are ordered by priority number, lowest first, and within a priority:
   * - With a hash, by their score for it. A target with more calls in flight than `loadFactor` times its share of the
   *   calls of all comes after the others (consistent hashing with bounded loads).
   * - Without a hash, by a draw by weight. A second drawn target takes the first place if it has fewer calls in flight
   *   for its weight. Two draws do nearly as well as comparing all targets, and shares stay near the weights. The least
   *   loaded of all would often be an idle target of little weight, since most targets of one worker are mostly idle.
   *
   * Before each attempt but the first, check `mayTake` again, since time has passed. The call that `began` at a
   * half-open target is its probe.
   * @returns an empty list if no target may be tried now: see `retryAt`
   */
  choose(targets: readonly Target[], request: RouteRequest, now: number): readonly Target[] {
    const { affinity, targetFilter } = request;
    const [first] = targets;
    if (first !== undefined && targets.length === 1 && targetFilter === null)
      return this.#health.of(first).mayTake(now) ? targets : none;
    const ordered = targets.slice();
    let count = 0;
    let rank = 0;
    let callsPerWeight = 0;
    let priority: number | null = null;
    for (const target of targets) {
      if (target.priority !== priority) {
        priority = target.priority;
        rank += 2;
        if (affinity !== null) callsPerWeight = this.#fairShare(targets, priority, request, now);
      }
      if (targetFilter !== null && !isAllowed(target, targetFilter)) continue;
      const health = this.#health.of(target);
      if (!health.mayTake(now)) continue;
      let ownRank = health.isResting(now) ? rank + 2 * targets.length : rank;
      let score: number;
      if (affinity === null) score = target.weight / -Math.log(this.#random());
      else {
        score = rendezvousScore(affinity, health.hash, target.weight);
        if (isFull(health, target, callsPerWeight)) ownRank++;
      }
      this.#insert(ordered, count++, target, ownRank, score);
    }
    if (count === 0) return none;
    if (count < ordered.length) ordered.length = count;
    if (affinity === null && count > 1) this.#balance(ordered);
    return ordered;
  }

  /**
   * Returns when the first of these targets may be tried again, for a call for which `choose` has found none.
   * @returns a time, or Infinity if the call's target filter leaves none
   */
  retryAt(targets: readonly Target[], { targetFilter }: RouteRequest, now: number): number {
    let earliest = Number.POSITIVE_INFINITY;
    for (const target of targets) {
      if (targetFilter === null || isAllowed(target, targetFilter))
        earliest = Math.min(earliest, this.#health.of(target).earliest(now));
    }
    return earliest;
  }

  /**
   * Returns the calls that targets of one priority may have in flight for each unit of their weight, including this
   * call.
   */
  #fairShare(
    targets: readonly Target[],
    priority: number,
    { targetFilter }: RouteRequest,
    now: number,
  ): number {
    let calls = 1;
    let weights = 0;
    for (const target of targets) {
      if (target.priority !== priority || (targetFilter !== null && !isAllowed(target, targetFilter)))
        continue;
      const health = this.#health.of(target);
      if (!health.mayTake(now) || health.isResting(now)) continue;
      calls += health.inFlight;
      weights += target.weight;
    }
    return weights === 0 ? 0 : (this.#health.settings.loadFactor * calls) / weights;
  }

  /** Inserts a target among the first `count`: lower ranks first, then higher scores. */
  #insert(ordered: Target[], count: number, target: Target, rank: number, score: number): void {
    const ranks = this.#ranks;
    const scores = this.#scores;
    let at = count;
    for (; at > 0; at--) {
      const before = ranks[at - 1] as number;
      if (before < rank || (before === rank && (scores[at - 1] as number) >= score)) break;
      ordered[at] = ordered[at - 1] as Target;
      ranks[at] = before;
      scores[at] = scores[at - 1] as number;
    }
    ordered[at] = target;
    ranks[at] = rank;
    scores[at] = score;
  }

  /** Makes the second draw, among the targets of the first one's rank. */
  #balance(ordered: Target[]): void {
    const equals = ordered.filter((_, at) => this.#ranks[at] === this.#ranks[0]);
    const [first] = equals;
    if (first === undefined || equals.length === 1) return;
    let left = this.#random() * equals.reduce((sum, { weight }) => sum + weight, 0);
    const found = equals.findIndex(({ weight }) => {
      left -= weight;
      return left < 0;
    });
    const drawn = found === -1 ? equals.length - 1 : found;
    const second = equals[drawn] ?? first;
    const firstLoad = this.#health.of(first).inFlight * second.weight;
    const secondLoad = this.#health.of(second).inFlight * first.weight;
    if (secondLoad >= firstLoad) return;
    ordered.splice(drawn, 1);
    ordered.unshift(second);
  }
}

/**
 * Whether a target has more calls than its share. One call above the bound is always allowed: otherwise, with only a
 * few calls, some would leave the target whose cache knows them.
 */
function isFull({ inFlight }: TargetHealth, { weight }: Target, callsPerWeight: number): boolean {
  return inFlight >= 1 + Math.ceil(callsPerWeight * weight);
}

/** Longest value of the header, in characters, and most names in it. */
const longestValue = 2048;
const mostNames = 32;
/** Characters of a name that an error repeats. */
const shownCharacters = 64;

/**
 * The targets that one request demands. A name is that of an upstream, or of an upstream and its model with a slash between
 * them.
 */
export interface TargetFilter {
  /** Only these; empty if every target is allowed. */
  readonly wanted: readonly string[];
  /** None of these, even if `wanted` allows one by a less specific name. */
  readonly excluded: readonly string[];
}

/** The result of parsing the header, or what is wrong with it, as a sentence for its sender. */
type ParsedTargetFilter =
  | { readonly ok: true; readonly targetFilter: TargetFilter }
  | { readonly ok: false; readonly problem: string };

/**
 * Reads the value of `x-gateway-target`: names with commas between them, and an exclamation mark before each that is
 * not wanted. `main, !claude/x` is every target of the upstream main but not the model x of the upstream claude. The
 * order of names means nothing. Whether a model has such targets is not looked at.
 */
export function parseTargetFilter(value: string): ParsedTargetFilter {
  if (value.length > longestValue) return wrong(`has more than ${longestValue} characters`);
  const wanted: string[] = [];
  const excluded: string[] = [];
  for (const part of value.split(',')) {
    const item = part.trim();
    // A list may have empty elements (RFC 9110 section 5.6.1).
    if (item === '') continue;
    const isExcluded = item.startsWith('!');
    const name = isExcluded ? item.slice(1).trim() : item;
    if (name === '') return wrong('has an exclamation mark without the name of a target');
    if (name.startsWith('!')) return wrong(`has two exclamation marks in ${shown(item)}`);
    if (name.startsWith('/') || name.endsWith('/'))
      return wrong(`has ${shown(name)}, which is neither an upstream nor upstream/model`);
    const [list, others] = isExcluded ? [excluded, wanted] : [wanted, excluded];
    if (others.includes(name)) return wrong(`both wants and excludes ${shown(name)}`);
    if (!list.includes(name)) list.push(name);
    if (wanted.length + excluded.length > mostNames) return wrong(`names more than ${mostNames} targets`);
  }
  if (wanted.length + excluded.length === 0) return wrong('names no target');
  return { ok: true, targetFilter: { wanted, excluded } };
}

function wrong(what: string): ParsedTargetFilter {
  return { ok: false, problem: `The header x-gateway-target ${what}.` };
}

function shown(name: string): string {
  return JSON.stringify(shortened(name, shownCharacters));
}

/** Whether a request with this filter may go to a target. */
export function isAllowed(target: Target, { wanted, excluded }: TargetFilter): boolean {
  return (wanted.length === 0 || isAmong(target, wanted)) && !isAmong(target, excluded);
}

function isAmong(target: Target, names: readonly string[]): boolean {
  for (const name of names) if (isNamed(target, name)) return true;
  return false;
}

/** Compares without writing the target's own name. */
function isNamed({ upstream, model }: Target, name: string): boolean {
  const { length } = upstream.name;
  if (name.length === length) return name === upstream.name;
  return (
    name.length === length + 1 + model.length &&
    name[length] === '/' &&
    name.startsWith(upstream.name) &&
    name.endsWith(model)
  );
}
