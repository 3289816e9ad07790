import { type Steps, sortSteps } from '../wire/steps.js';
import { targetLabel } from './gauges.js';
import type { FailureView, RecentRequestView, TargetStateView } from './live-state.js';

/** A worker's report while the console is open. */
export interface Inspection {
  /** Its last calls, newest first. */
  readonly requests: readonly RecentRequestView[];
  readonly targets: readonly InspectedTarget[];
  /** The limits that it uses or has used within the last minute, those with the most units first. */
  readonly limits: readonly UsedLimit[];
}

/** A worker's use of a limit. */
interface UsedLimit {
  /** `key:team-a:requests` */
  readonly name: string;
  /** Units in use, or used within the last minute. */
  readonly used: number;
}

/** Most limits in a report. */
const maxLimits = 1000;

/** Selects the limits to report, of which there may be several hundred thousand. */
export function* inspectLimits(limits: Iterable<UsedLimit>): Steps<UsedLimit[]> {
  let selected: UsedLimit[] = [];
  for (const limit of limits) {
    if (limit.used > 0 && selected.push(limit) > 2 * maxLimits) selected = yield* mostUsed(selected);
    yield;
  }
  return yield* mostUsed(selected);
}

function* mostUsed(limits: readonly UsedLimit[]): Steps<UsedLimit[]> {
  return (yield* sortSteps(limits, (a, b) => b.used - a.used)).slice(0, maxLimits);
}

/** A target as one worker sees it. */
export interface InspectedTarget {
  /** The target's name, as in labels. */
  readonly name: string;
  readonly state: TargetStateView;
  readonly lastFailure: FailureView | null;
}

/** Most targets in a report; those with a failure or a state other than closed come first. */
const maxTargets = 500;

/** The state of a target at a worker. */
export interface TargetFacts {
  readonly upstream: string;
  readonly model: string;
  readonly state: TargetStateView;
  readonly lastError: string | null;
  /** Milliseconds since the last error, or null. */
  readonly lastErrorAgoMs: number | null;
}

/**
 * Selects the targets to report.
 * @param unixTime converts an age in milliseconds, at the time of the reading, to Unix time
 */
export function inspectTargets(
  targets: readonly TargetFacts[],
  unixTime: (agoMs: number) => number,
): InspectedTarget[] {
  const isNotable = ({ state, lastError }: TargetFacts): boolean => state !== 'closed' || lastError !== null;
  const selected =
    targets.length <= maxTargets
      ? targets
      : [...targets.filter(isNotable), ...targets.filter((target) => !isNotable(target))].slice(
          0,
          maxTargets,
        );
  return selected.map(({ upstream, model, state, lastError, lastErrorAgoMs }) => ({
    name: targetLabel(upstream, model),
    state,
    lastFailure:
      lastError === null || lastErrorAgoMs === null
        ? null
        : { at: unixTime(lastErrorAgoMs), message: lastError },
  }));
}
