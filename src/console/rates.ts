import type { LiveState } from '../admin/live-state.js';

/** States of the last seconds, the oldest first: what rates are made of. */
export type StateWindow = readonly LiveState[];

const windowMs = 10_000;
/** A state that came late is no reason to do without the window's full length. */
const slackMs = 1_000;

/** @returns the window with one more state; it starts anew when the gateway did */
export function addState(window: StateWindow, state: LiveState): StateWindow {
  const oldest = state.at - windowMs - slackMs;
  return [
    ...window.filter(
      ({ at, gateway }) => at >= oldest && at < state.at && gateway.startedAt === state.gateway.startedAt,
    ),
    state,
  ];
}

/** Seconds from the oldest state of a window to the newest; 0 where there are none to compare. */
export function secondsOf(window: StateWindow): number {
  const first = window[0];
  const last = window.at(-1);
  return first === undefined || last === undefined ? 0 : (last.at - first.at) / 1000;
}

/**
 * How fast a count grew, per second.
 * @param before undefined where it was not there yet: it was zero
 * @returns null where that cannot be known
 */
export function growth(before: number | undefined, after: number, seconds: number): number | null {
  const grown = after - (before ?? 0);
  return seconds <= 0 || grown < 0 ? null : grown / seconds;
}

/** The growth per second of a count that every state has. */
export function rateOf(window: StateWindow, pick: (state: LiveState) => number): number | null {
  const first = window[0];
  const last = window.at(-1);
  if (first === undefined || last === undefined) return null;
  return growth(pick(first), pick(last), secondsOf(window));
}

/** A part of a whole, 0 to 1. @returns null of nothing */
export function share(part: number, total: number): number | null {
  return total > 0 ? part / total : null;
}
