import type { FailureView, RecentRequestView, TargetStateView } from '../admin/live-state.js';
import { type Steps, sortSteps } from '../wire/steps.js';
import { targetLabel } from './gauges.js';

/** What one worker tells while somebody looks at the console. */
export interface Inspection {
  /** Its last calls, newest first. */
  readonly requests: readonly RecentRequestView[];
  readonly targets: readonly InspectedTarget[];
  /** Of the limits of which it has used anything within the last minute, or does now; those of most units first. */
  readonly limits: readonly UsedLimit[];
}

/** What one worker uses of a limit. */
interface UsedLimit {
  /** `key:team-a:requests` */
  readonly name: string;
  /** Units in use, or used within the last minute. */
  readonly used: number;
}

/** Limits that a worker tells of. */
const mostLimits = 1000;

/** What a worker tells of its limits, of which there may be several hundred thousand. */
export function* inspectLimits(limits: Iterable<UsedLimit>): Steps<UsedLimit[]> {
  let told: UsedLimit[] = [];
  for (const limit of limits) {
    if (limit.used > 0 && told.push(limit) > 2 * mostLimits) told = yield* mostUsed(told);
    yield;
  }
  return yield* mostUsed(told);
}

function* mostUsed(limits: readonly UsedLimit[]): Steps<UsedLimit[]> {
  return (yield* sortSteps(limits, (a, b) => b.used - a.used)).slice(0, mostLimits);
}

/** A target as one worker sees it. */
export interface InspectedTarget {
  /** As in labels. */
  readonly name: string;
  readonly state: TargetStateView;
  readonly lastFailure: FailureView | null;
}

/** Targets that a worker tells of; those with something to tell come first. */
const mostTargets = 500;

/** What is known of a target at a worker. */
export interface TargetFacts {
  readonly upstream: string;
  readonly model: string;
  readonly state: TargetStateView;
  readonly lastError: string | null;
  /** Milliseconds since then, or null. */
  readonly lastErrorAgoMs: number | null;
}

/**
 * What a worker tells of its targets.
 * @param unixTime of so many milliseconds before the moment at which they were asked
 */
export function inspectTargets(
  targets: readonly TargetFacts[],
  unixTime: (agoMs: number) => number,
): InspectedTarget[] {
  const isNotable = ({ state, lastError }: TargetFacts): boolean => state !== 'closed' || lastError !== null;
  const told =
    targets.length <= mostTargets
      ? targets
      : [...targets.filter(isNotable), ...targets.filter((target) => !isNotable(target))].slice(
          0,
          mostTargets,
        );
  return told.map(({ upstream, model, state, lastError, lastErrorAgoMs }) => ({
    name: targetLabel(upstream, model),
    state,
    lastFailure:
      lastError === null || lastErrorAgoMs === null
        ? null
        : { at: unixTime(lastErrorAgoMs), message: lastError },
  }));
}
