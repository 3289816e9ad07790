import { targetStates } from '../metrics/gauges.js';
import type { InspectedTarget, Inspection } from '../metrics/inspection.js';
import { eachSeries } from '../metrics/readings.js';
import type { MetricsSnapshot } from '../metrics/snapshot.js';
import { entryOf, most } from './live-lists.js';
import type { FailureView, TargetStateView, TargetView } from './live-state.js';

interface TargetSums {
  attempts: number;
  readonly failures: Map<string, number>;
  retries: number;
  inFlight: number;
  /** What each worker says that knows it. */
  readonly inspected: InspectedTarget[];
}

/** Targets that workers know of, and those that were counted before a reload took them away; the busiest first. */
export function targetViews(
  { counters, gauges }: MetricsSnapshot,
  inspections: readonly Inspection[],
): TargetView[] {
  const targets = new Map<string, TargetSums>();
  const at = (name: string): TargetSums =>
    entryOf(targets, name, () => ({
      attempts: 0,
      failures: new Map(),
      retries: 0,
      inFlight: 0,
      inspected: [],
    }));
  eachSeries(counters, 'gateway_upstream_attempts_total', ([target = '', result = ''], count) => {
    const sums = at(target);
    sums.attempts += count;
    if (result !== 'ok') sums.failures.set(result, count);
  });
  eachSeries(counters, 'gateway_retries_total', ([target = ''], count) => {
    at(target).retries += count;
  });
  eachSeries(gauges, 'gateway_target_in_flight', ([target = ''], count) => {
    at(target).inFlight += count;
  });
  for (const inspection of inspections) {
    for (const target of inspection.targets) at(target.name).inspected.push(target);
  }
  const views = Array.from(targets, ([name, { failures, inspected, ...counts }]): TargetView => {
    const state = worst(inspected);
    return {
      name,
      state,
      workersInState: inspected.filter((target) => target.state === state).length,
      ...counts,
      failures: Object.fromEntries(failures),
      lastFailure: latest(inspected),
    };
  });
  return most(
    views,
    ({ attempts }) => attempts,
    ({ name }) => name,
  );
}

/** From well to ill: one that may be probed has been open, and is better off than one that may not. */
const severity: Readonly<Record<TargetStateView, number>> = {
  closed: 0,
  cooling: 1,
  'half-open': 2,
  open: 3,
};

function worst(inspected: readonly InspectedTarget[]): TargetStateView {
  let state: TargetStateView = targetStates[0];
  for (const target of inspected) if (severity[target.state] > severity[state]) state = target.state;
  return state;
}

function latest(inspected: readonly InspectedTarget[]): FailureView | null {
  let last: FailureView | null = null;
  for (const { lastFailure } of inspected) {
    if (lastFailure !== null && (last === null || lastFailure.at > last.at)) last = lastFailure;
  }
  return last;
}
