import type { LiveState } from '../metrics/live-state.js';

/** States of the last seconds, oldest first, from which rates are computed. */
export type StateWindow = readonly LiveState[];

const windowMs = 10_000;
/** Tolerance for late states, so that the window keeps its full length. */
const slackMs = 1_000;

/** Adds a state to a window. The window is reset when the gateway restarted. */
export function addState(window: StateWindow, state: LiveState): StateWindow {
  const oldest = state.at - windowMs - slackMs;
  return [
    ...window.filter(
      ({ at, gateway }) => at >= oldest && at < state.at && gateway.startedAt === state.gateway.startedAt,
    ),
    state,
  ];
}

/** Seconds from the oldest state of a window to the newest; 0 if it has fewer than two. */
export function secondsOf(window: StateWindow): number {
  const first = window[0];
  const last = window.at(-1);
  return first === undefined || last === undefined ? 0 : (last.at - first.at) / 1000;
}

/**
 * The growth of a count per second.
 * @param before undefined counts as zero: the count did not exist yet
 * @returns null if unknown
 */
export function growth(before: number | undefined, after: number, seconds: number): number | null {
  const grown = after - (before ?? 0);
  return seconds <= 0 || grown < 0 ? null : grown / seconds;
}

/** The growth per second of a count in every state. */
export function rateOf(window: StateWindow, pick: (state: LiveState) => number): number | null {
  const first = window[0];
  const last = window.at(-1);
  if (first === undefined || last === undefined) return null;
  return growth(pick(first), pick(last), secondsOf(window));
}

/** A fraction from 0 to 1; null if the total is zero. */
export function share(part: number, total: number): number | null {
  return total > 0 ? part / total : null;
}
